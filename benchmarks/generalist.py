"""One Bob for many aggregators: trained on some, tested on others that he has never met.

    python -m benchmarks.generalist [--families threshold table] [--seeds 0 1 2] [--json PATH] [--figure PATH]

Trains the learner `distilled` at depth 1 on 64 random weighted thresholds of width 7 and measures its Bob exactly on 64
others, and on thresholds of widths 5 and 9, which he was not trained on; then the same for random truth tables of width
5. Beside him stand a Bob that was not trained and one that samples uniformly. A run takes about ten minutes of one
core.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from pathlib import Path
from typing import Any

import numpy as np

from agents.learner_config import LearnerConfig
from benchmarks.runs import choice, dots, each_seed, in_parallel, markdown, options, parsed, shown, train
from envs.config import EnvConfig, ProblemConfig
from fbs.command import give

LEARNER = LearnerConfig(name="distilled", iterations=300, minibatch=512, learning_rate=3e-3)
SIZE, UNSEEN = 64, 1000  # of a library; seed of the first library that is not trained on
RHO = {5: 3.0, 7: 4.0, 9: 5.0}
TESTS = {"threshold": (7, 5, 9), "table": (5,)}  # widths; the first is trained on


def problem(family: str, width: int, seed: int) -> ProblemConfig:
    """A library of `SIZE` aggregators."""
    return ProblemConfig(family=family, size=SIZE, width=width, seed=seed)


def train_and_test(family: str, seed: int) -> dict[str, Any]:
    """One run: the catch ratios of the learned Bob on the aggregators he knows and on others."""
    import torch

    from agents.measures import bob_measures
    from agents.players import bob as scripted
    from agents.policy import BobPolicy, LearnedPlayer
    from envs.game import Game

    widths = TESTS[family]
    env = {width: EnvConfig(depth=1, rho=RHO[width]) for width in widths}
    run = train(env[widths[0]], problem(family, widths[0], seed), LEARNER, seed)
    known = set(run.game.library.aggregators)
    tests = {"the same": run.game}
    for width in widths:
        tests[f"unseen, width {width}"] = Game(env[width], problem(family, width, UNSEEN + seed)).evaluation()
    found = {}
    for name, test in tests.items():
        policy = BobPolicy(test.on(torch), LEARNER.hidden)
        policy.load_state_dict(run.players["bob"].policy.state_dict())
        bobs = {"uniform": scripted("uniform", test), "learned": LearnedPlayer(policy)}
        found[name] = {kind: bob_measures(test, bob) for kind, bob in bobs.items()}
        found[name]["met before"] = len(known & set(test.library.aggregators))
    return {"family": family, "seed": seed, "cpu_seconds": run.cpu_seconds, "tests": found}


def printed(runs: list[dict[str, Any]]) -> str:
    """The table, in Markdown."""
    columns = [
        "trained on", "tested on", "mean catch ratio (95% interval)", "each seed", "lowest assignment",
        "challenge errors (stable, unstable)", "uniform",
    ]  # fmt: skip
    rows = []
    for family in dict.fromkeys(run["family"] for run in runs):
        mine = [run for run in runs if run["family"] == family]
        for name in mine[0]["tests"]:
            tests = [run["tests"][name] for run in mine]
            means, uniform = (
                np.array([test[kind]["catch_ratio"]["mean"] for test in tests]) for kind in ("learned", "uniform")
            )
            lowest = min(test["learned"]["catch_ratio"]["min"] for test in tests)
            errors = [
                max(test["learned"]["challenge_errors"][kind] or 0.0 for test in tests)
                for kind in ("stable", "unstable")
            ]
            rows.append([
                f"{SIZE} {family}s of width {TESTS[family][0]}", name, shown(means), each_seed(means),
                f"{lowest:.3f}", f"{errors[0]:.4f}, {errors[1]:.4f}", f"{uniform.mean():.3f}",
            ])  # fmt: skip
    return markdown(columns, rows)


def figure(runs: list[dict[str, Any]], path: Path) -> None:
    """Mean catch ratio of every run, of the learned Bob and of a uniform one."""
    rows: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        for name, test in run["tests"].items():
            row = rows.setdefault(f"{run['family']}s: {name}", {})
            for kind in ("learned", "uniform"):
                row.setdefault(kind, []).append(test[kind]["catch_ratio"]["mean"])
    dots({"mean catch ratio": rows}, {"mean catch ratio": 0.93}, path)


def main() -> int:
    parser = options(__doc__)
    choice(parser, "--families", TESTS)
    parser.add_argument("--figure", type=Path, metavar="PATH")
    given = parsed(parser)
    runs = in_parallel(
        train_and_test, [(family, seed) for family in given.families for seed in given.seeds], given.jobs
    )
    give(runs, printed(runs), given.json)
    if given.figure:
        figure(runs, given.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
