"""People's answers about tasks, for the report: a user's own CSV, or a made-up crowd that is shipped.

The shipped crowd is synthetic: 60 tasks, three in four of them true, of a difficulty drawn uniformly, answered by 15
workers of a skill drawn uniformly, who err the more often the harder the task and the less their skill.
`synthetic_answers` is how `examples/synthetic_crowd.csv` and `examples/synthetic_crowd_truth.csv` were made.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from envs.claim_tree import ClaimTree
from envs.crowd import load_crowd
from envs.document import ProblemError, read_text

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SYNTHETIC, SYNTHETIC_TRUTH = EXAMPLES / "synthetic_crowd.csv", EXAMPLES / "synthetic_crowd_truth.csv"
TASKS, WORKERS, SEED = 60, 15, 2


class CrowdError(ValueError):
    """A crowd, or the truth about its tasks, that cannot be used; the message says what would do."""


@dataclass(frozen=True)
class Crowd:
    """A crowd's answers, and what was true.

    Attributes:
        tree: The answers as a claim tree; tasks are nodes 1 to n.
        wrong: bool (n,), whether the majority of a task is wrong; None where the truth is not known.
        about: Where they come from, in words.
        synthetic: Whether it is the shipped, made-up crowd.
    """

    tree: ClaimTree
    wrong: np.ndarray | None
    about: str
    synthetic: bool = False

    @property
    def tasks(self) -> np.ndarray:
        """int64 (n,): the nodes of the tasks."""
        return np.arange(1, 1 + int(self.tree.width[0]))


def find_crowd(labels: str | None, truth: str | None) -> Crowd:
    """The crowd in a user's files, or the synthetic one.

    Raises:
        CrowdError: a truth without labels, or one that does not fit. ProblemError: a file that is malformed.
    """
    if labels is None and truth is not None:
        raise CrowdError("--crowd_truth says what is true of --crowd's tasks; give --crowd too")
    if labels is None:
        tree = load_crowd(SYNTHETIC)
        about = f"a synthetic crowd ({TASKS} tasks, {WORKERS} workers; examples/{SYNTHETIC.name})"
        return Crowd(tree, _wrong(tree, read_truth(SYNTHETIC_TRUTH)), about, synthetic=True)
    tree = load_crowd(labels)
    about = f"{Path(labels).name} ({int(tree.width[0])} tasks, {tree.leaves:,} answers)"
    return Crowd(tree, None if truth is None else _wrong(tree, read_truth(truth)), about)


def read_truth(path: str | Path) -> dict[str, int]:
    """The true label of each task, from a CSV with columns `task,label` in any order.

    Raises:
        ProblemError: the file cannot be read, or is malformed.
    """
    rows = csv.DictReader(io.StringIO(read_text(path), newline=""))
    if not {"task", "label"} <= set(rows.fieldnames or ()):
        found = ",".join(rows.fieldnames or ["nothing"])[:200]
        raise ProblemError(str(path), f"expected the columns task,label, found {found}", "line 1")
    truth: dict[str, int] = {}
    for row in rows:
        task, label, place = (row["task"] or "").strip(), (row["label"] or "").strip(), f"line {rows.line_num}"
        if label not in ("0", "1"):
            raise ProblemError(str(path), f"the label of '{task[:60]}' is '{label[:60]}'; expected 0 or 1", place)
        if task in truth:
            raise ProblemError(str(path), f"'{task[:60]}' is there twice; keep one of the two", place)
        truth[task] = int(label)
    return truth


def _wrong(tree: ClaimTree, truth: dict[str, int]) -> np.ndarray:
    """bool (n,): whether the majority of each task is wrong."""
    names = [tree.text[node].rpartition(": the majority of ")[0] for node in range(1, 1 + int(tree.width[0]))]
    if missing := [name for name in names if name not in truth]:
        raise CrowdError(f"--crowd_truth: nothing is said of {len(missing)} tasks, such as '{missing[0][:60]}'")
    return np.array([tree.answer[1 + i] != truth[name] for i, name in enumerate(names)])


def synthetic_answers() -> tuple[str, str]:
    """The labels and the truth of the synthetic crowd, as CSV text."""
    rng = np.random.default_rng(SEED)
    truth = (rng.random(TASKS) < 0.75).astype(int)
    difficulty, skill = rng.uniform(0, 1, TASKS), rng.uniform(0.2, 1, WORKERS)
    right = 1 / (1 + np.exp(-(2 + 2 * skill - 4 * difficulty[:, None])))
    answers = np.where(rng.random((TASKS, WORKERS)) < right, truth[:, None], 1 - truth[:, None])
    labels = [f"task_{t:02},worker_{w:02},{answers[t, w]}" for t in range(TASKS) for w in range(WORKERS)]
    truths = [f"task_{t:02},{truth[t]}" for t in range(TASKS)]
    return "\n".join(["task,worker,label", *labels, ""]), "\n".join(["task,label", *truths, ""])
