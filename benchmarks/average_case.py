"""Average case against worst case: what a Bob gains who learns where truths are drawn, and what it costs elsewhere.

    python -m benchmarks.average_case [--games NAME ...] [--seeds 0 1 2] [--json PATH] [--figure PATH]

With the random oracle the sub-claims' truths are drawn before Alice answers; with the adversarial one she chooses them
as she lies. A Bob is trained under either, and both of them, LP Bob and a Bob who samples uniformly are measured
exactly against the Alice who answers him best under each oracle. Takes about ten minutes of one core.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from pathlib import Path
from typing import Any

from agents.learner_config import LearnerConfig
from benchmarks.runs import best_catch, choice, dots, each_seed, in_parallel, markdown, options, parsed, shown, train
from envs.config import EnvConfig, ProblemConfig
from fbs.command import give

# name: aggregator, rho, depth
GAMES = {
    "threshold, depth 1": ("threshold 3,2,2,1,1 >= 5", 3.0, 1),
    "threshold, depth 2": ("threshold 3,2,2,1,1 >= 5", 3.0, 2),
    "majority 5, depth 2": ("majority 5", 3.0, 2),
    "tribes, depth 2": ("or(and 2, and 3)", 3.0, 2),
}
ORACLES = ("random", "adversarial")


def learn(name: str, seed: int) -> list[dict[str, Any]]:
    """The Bobs of one game and seed: each one's catch of false claims against the best Alice under each oracle."""
    from agents.players import bob as scripted
    from envs.game import Game

    aggregator, rho, depth = GAMES[name]
    problem = ProblemConfig(aggregators=[aggregator])
    envs = {oracle: EnvConfig(rho=rho, depth=depth, oracle=oracle) for oracle in ORACLES}
    arenas = {oracle: Game(env, problem).evaluation() for oracle, env in envs.items()}
    bobs = {f"{kind} Bob": scripted(kind, arenas["random"]) for kind in ("lp", "uniform")}
    for oracle, env in envs.items():
        bobs[f"learned, {oracle} oracle"] = train(env, problem, LearnerConfig(), seed).players["bob"]
    return [
        {"name": name, "seed": seed, "bob": kind,
         "catch": {oracle: best_catch(arena, bob) for oracle, arena in arenas.items()}}
        for kind, bob in bobs.items()
    ]  # fmt: skip


def printed(rows: list[dict[str, Any]]) -> str:
    """The table, in Markdown."""
    columns = [
        "game", "Bob", "catches the best Alice: random oracle", "each seed", "adversarial oracle", "each seed"
    ]  # fmt: skip
    cells = []
    for name, bob in dict.fromkeys((row["name"], row["bob"]) for row in rows):
        mine = [row["catch"] for row in rows if (row["name"], row["bob"]) == (name, bob)]
        drawn, chosen = ([catch[oracle] for catch in mine] for oracle in ORACLES)
        cells.append([name, bob, shown(drawn), each_seed(drawn), shown(chosen), each_seed(chosen)])
    return markdown(columns, cells)


def figure(rows: list[dict[str, Any]], path: Path) -> None:
    """Every Bob's catch under each oracle."""
    panels: dict[str, Any] = {f"catches the best Alice, {oracle} oracle": {} for oracle in ORACLES}
    for row in rows:
        for panel, oracle in zip(panels.values(), ORACLES, strict=True):
            panel.setdefault(row["name"], {}).setdefault(row["bob"], []).append(row["catch"][oracle])
    dots(panels, {}, path)


def main() -> int:
    parser = options(__doc__)
    choice(parser, "--games", GAMES)
    parser.add_argument("--figure", type=Path, metavar="PATH")
    given = parsed(parser)
    found = in_parallel(learn, [(name, seed) for name in given.games for seed in given.seeds], given.jobs)
    rows = [row for run in found for row in run]
    give(rows, printed(rows), given.json)
    if given.figure:
        figure(rows, given.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
