"""Games that the environment, the rules and the engine are all tested on, as arguments of `fbs_debate_v0.env`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from envs.config import EnvConfig, ProblemConfig
from envs.fbs_debate import raw_env

FOOTBRIDGE = str(Path(__file__).parent.parent / "examples" / "footbridge.yaml")  # ragged: leaves at depth 1, 2 and 3
MIXED = ["threshold 3,2,2,1,1 >= 5", "majority 3", "parity 2", "table 0110", "majority(and 2, or 2, parity 1)"]

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "random oracle": {"oracle": "random", "depth": 3},
    "free root": {"root_claim": "free"},
    "menu of three": {"rho": 2.0, "problem": {"aggregators": MIXED, "menu": 3}},
    "menu of three, random oracle": {"rho": 2.5, "oracle": "random", "problem": {"aggregators": MIXED, "menu": 3}},
    "bob sees truth": {"bob_sees": "truth", "root_claim": "free", "problem": {"aggregators": MIXED}},
    "noise and cost": {"noise": 0.25, "query_cost": 0.1, "rho": 2.0, "p_false": 0.9},
    "width one": {"rho": 1.0, "depth": 4, "problem": {"aggregators": ["table 01"]}},
    "wide": {"rho": 8.0, "problem": {"aggregators": ["majority 13", "at_least 2 3"]}},
    "sampled library": {"rho": 4.0, "problem": {"family": "table", "size": 5, "width": 4, "menu": 2}},
    "claim tree": {"problem": FOOTBRIDGE, "rho": 4.0},
    "free root of a claim tree": {"problem": {"path": FOOTBRIDGE}, "root_claim": "free", "bob_sees": "truth"},
    "crowd": {"problem": "crowd.csv", "rho": 4.0, "p_false": 1.0},
}


def arguments(name: str, folder: Path) -> dict[str, Any]:
    """The arguments by name; a crowd's labels are written to the folder first."""
    chosen = dict(CONFIGURATIONS[name])
    if name == "crowd":
        chosen["problem"] = str(folder / "crowd.csv")
        rng = random.Random(0)
        rows = [f"t{t},w{w},{rng.randrange(2)}" for t in range(4) for w in range(11 if t else 4)]
        Path(chosen["problem"]).write_text("\n".join(["task,worker,label", *rows]))
    return chosen


def configs(name: str, folder: Path) -> tuple[EnvConfig, ProblemConfig]:
    """The same as the two configurations that a `Game` is made from."""
    game = raw_env(**arguments(name, folder)).game
    return game.env, game.problem
