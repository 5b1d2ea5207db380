"""Whether self-play finds the linear program's optimum, game by game.

    python -m benchmarks.learning [--only NAME ...] [--seeds 0 1 2] [--jobs 2] [--json PATH] [--figure PATH]

Trains the default learner on a suite of games and measures the averaged pair exactly (`agents.measures`). Prints a row
a game: mean catch ratio (mean and 95% interval of the seeds, and each seed), the lowest at any assignment and seed, the
worst-case catch over the game value beside 0.97^depth, challenge errors, and exploitability over what lies are worth to
catch. Takes a minute or two of one core for each game and seed; the wide ones and the tables take four or five.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agents.learner_config import LearnerConfig
from benchmarks.runs import choice, dots, each_seed, in_parallel, markdown, options, parsed, shown, train
from envs.config import EnvConfig, ProblemConfig
from fbs.command import give

THRESHOLD = "threshold 3,2,2,1,1 >= 5"
MULTIPLEXER = "table " + "".join(f"{code:06b}"[2 + int(f"{code:06b}"[:2], 2)] for code in range(64))


def random_table(seed: int) -> str:
    """A uniform truth table of width 6, which has no symmetry to speak of."""
    return "table " + "".join(map(str, np.random.default_rng(seed).integers(0, 2, 64)))


LONG, LONGEST = 400, 600  # rounds where every sub-claim plays a part of its own, and there is the more to learn

# name: aggregator, rho, depth, rounds of `mmd` if not the default's
SUITE = {
    "and 5": ("and 5", 5.0, 2, None),
    "or 5": ("or 5", 5.0, 2, None),
    "parity 4": ("parity 4", 4.0, 2, None),
    "majority 7": ("majority 7", 4.0, 2, None),
    "majority 15, some unstable": ("majority 15", 3.0, 2, None),
    "threshold, depth 1": (THRESHOLD, 3.0, 1, None),
    "threshold, depth 2": (THRESHOLD, 3.0, 2, None),
    "threshold, depth 3": (THRESHOLD, 3.0, 3, None),
    "threshold, depth 4": (THRESHOLD, 3.0, 4, None),
    "threshold, some unstable": (THRESHOLD, 2.0, 2, None),
    "tribes": ("or(and 3, and 3)", 3.0, 2, None),
    "composition": ("majority(and 2, or 2, parity 2)", 4.0, 2, None),
    "multiplexer": (MULTIPLEXER, 3.0, 2, LONG),
    "random table 0": (random_table(0), 4.0, 2, LONGEST),
    "random table 1": (random_table(1), 4.0, 2, LONGEST),
    "random table 2, some unstable": (random_table(2), 3.5, 2, LONGEST),
}


def train_and_measure(name: str, seed: int, learner_name: str) -> dict[str, Any]:
    """One run of the suite: its measures, and how long it took."""
    from agents.measures import evaluate

    aggregator, rho, depth, rounds = SUITE[name]
    learner = LearnerConfig(name=learner_name)
    if learner_name == "mmd":
        learner = replace(learner, iterations=rounds or learner.iterations)
    run = train(EnvConfig(rho=rho, depth=depth), ProblemConfig(aggregators=[aggregator]), learner, seed)
    measured = evaluate(run.game, run.players["alice"], run.players["bob"])
    return {"name": name, "seed": seed, "depth": depth, "cpu_seconds": run.cpu_seconds, **measured}


def printed(runs: list[dict[str, Any]]) -> str:
    """The table, in Markdown: a row for the seeds of a game together."""
    columns = [
        "game", "mean catch ratio (95% interval)", "each seed", "lowest assignment", "worst-case catch / game value",
        "aim", "challenge errors (stable, unstable)", "exploitability / 2pV (Alice, Bob), most", "CPU s",
    ]  # fmt: skip
    return markdown(columns, [_row(name, runs) for name in dict.fromkeys(run["name"] for run in runs)])


def _row(name: str, runs: list[dict[str, Any]]) -> list[str]:
    runs = [run for run in runs if run["name"] == name]
    means = [run["catch_ratio"]["mean"] for run in runs]
    errors = [_most(run["challenge_errors"][kind] for run in runs) for kind in ("stable", "unstable")]
    exploited = [
        _most((run["exploitability"][side] for run in runs), _lies_worth(runs[0])) for side in ("alice", "bob")
    ]
    return [
        name, shown(means), each_seed(means), f"{min(run['catch_ratio']['min'] for run in runs):.3f}",
        each_seed([run["worst_case_catch"] / run["game_value"] for run in runs]), f"{0.97 ** runs[0]['depth']:.3f}",
        ", ".join(_number(error, 4) for error in errors), ", ".join(_number(share, 3) for share in exploited),
        f"{max(run['cpu_seconds'] for run in runs):.0f}",
    ]  # fmt: skip


def _lies_worth(run: dict[str, Any]) -> float:
    """What catching them is, in reward: 2 p V."""
    return 2 * EnvConfig().p_false * run["game_value"]


def _most(values: Iterable[float | None], unit: float = 1.0) -> float | None:
    return max((value / unit for value in values if value is not None), default=None)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def figure(runs: list[dict[str, Any]], path: Path) -> None:
    """Of every run its catch ratios, what Bob guarantees, and what either could be exploited for."""
    ratios, shares, exploited = ("catch ratio", "worst-case catch / game value", "exploitability / 2pV")
    panels: dict[str, Any] = {ratios: {}, shares: {}, exploited: {}}
    for name in dict.fromkeys(run["name"] for run in runs):
        mine = [run for run in runs if run["name"] == name]
        panels[ratios][name] = {
            f"{kind} of the assignments": [run["catch_ratio"][key] for run in mine]
            for kind, key in (("mean", "mean"), ("lowest", "min"))
        }
        panels[shares][name] = {"whole game": [run["worst_case_catch"] / run["game_value"] for run in mine]}
        panels[exploited][name] = {
            side: [
                run["exploitability"][key] / _lies_worth(run) for run in mine if run["exploitability"][key] is not None
            ]
            for side, key in (("of Alice", "alice"), ("of Bob", "bob"))
        }
    dots(panels, {ratios: 0.95, exploited: 0.05}, path)


def main() -> int:
    parser = options(__doc__)
    choice(parser, "--only", SUITE)
    parser.add_argument("--learner", choices=["mmd", "distilled"], default="mmd", help="learner.name; default: mmd")
    parser.add_argument("--figure", type=Path, metavar="PATH")
    given = parsed(parser)
    tasks = [(name, seed, given.learner) for name in given.only for seed in given.seeds]
    runs = in_parallel(train_and_measure, tasks, given.jobs)
    give(runs, printed(runs), given.json)
    if given.figure:
        figure(runs, given.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
