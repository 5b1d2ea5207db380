"""Games that the environment, the rules and the engine are all tested on, and random play in the environment."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from envs.config import EnvConfig, ProblemConfig
from envs.fbs_debate import raw_env

FOOTBRIDGE = str(Path(__file__).parent.parent / "examples" / "footbridge.yaml")  # ragged: leaves at depth 1, 2 and 3
MIXED = ["threshold 3,2,2,1,1 >= 5", "majority 3", "parity 2", "table 0110", "majority(and 2, or 2, parity 1)"]

# As arguments of `fbs_debate_v0.env`.
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


def legal_action(mask: np.ndarray, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


def play(env: Any, rng: np.random.Generator, illegal: float = 0.0) -> list[tuple]:
    """One debate after `reset`: what `last` gave and the action, for every step."""
    steps = []
    for agent in env.agent_iter():
        seen, reward, terminated, truncated, info = env.last()
        action = None if terminated else legal_action(seen["action_mask"], rng)
        if not terminated and rng.random() < illegal:
            action = None
        steps.append((agent, seen["observation"].tobytes(), seen["action_mask"].tobytes(), reward, terminated, action))
        assert not truncated
        env.step(action)
        assert sum(env.rewards.values()) == 0
    return steps


def advance(env: Any, phase: int, rng: np.random.Generator) -> Any:
    """Reset and play random legal actions until a move of that phase is asked for; the bare environment."""
    raw = env.unwrapped
    while True:
        env.reset()
        while not raw.terminations[raw.agent_selection]:
            if raw._state.phase == phase:
                return raw
            env.step(legal_action(raw._mask, rng))
