"""A problem from a file, whatever its kind."""

from __future__ import annotations

from pathlib import Path

from envs.claim_tree import ClaimTree, load_claim_tree
from envs.crowd import load_crowd
from envs.document import ProblemError

LOADERS = {".json": load_claim_tree, ".yaml": load_claim_tree, ".yml": load_claim_tree, ".csv": load_crowd}


def load_problem(path: str | Path) -> ClaimTree:
    """Read a claim tree (.json, .yaml, .yml) or crowd labels (.csv); the ending of the name decides.

    Raises:
        ProblemError: another ending, or a file that is malformed.
    """
    ending = Path(path).suffix.lower()
    if ending not in LOADERS and not Path(path).is_dir():
        known = ", ".join(LOADERS)
        raise ProblemError(str(path), f"the name ends in '{ending}'; a problem ends in one of {known}")
    return LOADERS.get(ending, load_claim_tree)(path)
