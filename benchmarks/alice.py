"""Whether Alice learns to choose her decomposition, to answer truthfully and to lie well.

    python -m benchmarks.alice [--bobs lp learned] [--seeds 0 1 2] [--json PATH] [--figure PATH]

At every claim she has a menu of four candidate decompositions, stable ones and unstable ones, with truths drawn by the
random oracle. She learns against LP Bob, or beside a Bob who learns. On true claims she should take a stable candidate,
answer truthfully and win; on false ones her best lie against LP Bob is known exactly. Takes about half an hour of one
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
from benchmarks.runs import best_catch, choice, dots, each_seed, in_parallel, markdown, options, parsed, shown, train
from envs.config import EnvConfig, ProblemConfig
from fbs.command import give

ENV = EnvConfig(rho=2.0, oracle="random")
PROBLEM = ProblemConfig(aggregators=["threshold 3,2,2,1,1 >= 5", "majority 5", "at_least 2 5", "and 3", "or 4"], menu=4)
BOBS = {"lp": "LP Bob", "learned": "a Bob who learns"}
DEBATES = 100_000


def learn(bob: str, seed: int) -> dict[str, Any]:
    """One run, measured against LP Bob: true claims and false ones apart."""
    from agents.match import play
    from agents.players import bob as scripted

    run = train(ENV, PROBLEM, LearnerConfig(bob=bob), seed)
    alice, lp = run.players["alice"], scripted("lp", run.game)
    true, false = (run.game.evaluation(p_false=p) for p in (0.0, 1.0))
    won = play(true, alice, lp, DEBATES, [seed, 0])
    lost = play(false, alice, lp, DEBATES, [seed, 1])
    return {
        "bob": bob, "seed": seed, "cpu_seconds": run.cpu_seconds,
        "true_wins": won.alice_wins / won.debates, "stable": stable_choices(true, alice, lp, seed),
        "on_offer": stable_choices(true, None, lp, seed),
        "caught": lost.caught / lost.false, "least": best_catch(run.game, lp),
    }  # fmt: skip


def stable_choices(game: Any, alice: Any, bob: Any, seed: int) -> float:
    """How often the candidate Alice picks at a true claim is stable at the true answers; without an Alice, the share of
    those on offer that are."""
    from agents.alices import HonestAlice
    from envs.engine import debate, draws
    from envs.rules import ASSIGN

    record: list = []
    debate(game, alice or HonestAlice(game), bob, 20_000, draws([seed, 2]), record)
    stable, total = 0, 0
    for state, _ in record:
        if state.phase != ASSIGN:
            continue
        going = np.flatnonzero(~state.over & (state.claimed == state.truth))
        picked = state.choice[going, None] if alice else np.arange(game.menu)[None, :]
        menu, answers = state.menu[going[:, None], picked], state.answers[going[:, None], picked]
        found = game.library.stable(menu.reshape(-1), answers.reshape(-1, game.width))
        stable, total = stable + int(found.sum()), total + found.size
    return stable / total


def printed(runs: list[dict[str, Any]]) -> str:
    """The table, in Markdown."""
    columns = [
        "Alice learned against", "true claims: wins against LP Bob", "each seed", "picks a stable candidate",
        "stable on offer", "false claims: caught by LP Bob", "each seed", "her best answer to him",
        "largest difference",
    ]  # fmt: skip
    rows = []
    for bob in dict.fromkeys(run["bob"] for run in runs):
        mine = [run for run in runs if run["bob"] == bob]
        column = {key: [run[key] for run in mine] for key in mine[0]}
        off = max(abs(run["caught"] - run["least"]) for run in mine)
        rows.append([
            BOBS[bob], shown(column["true_wins"], 4), each_seed(column["true_wins"], 4), shown(column["stable"], 4),
            f"{np.mean(column['on_offer']):.3f}", shown(column["caught"], 4), each_seed(column["caught"], 4),
            f"{np.mean(column['least']):.4f}",
            f"{off:.4f}",
        ])  # fmt: skip
    return markdown(columns, rows)


def figure(runs: list[dict[str, Any]], path: Path) -> None:
    """What every Alice does on true claims, and how often LP Bob catches her false ones."""
    names = {
        "true_wins": "true claims: wins",
        "stable": "true claims: picks a stable one",
        "caught": "false claims: caught",
    }
    rows: dict[str, dict[str, list[float]]] = {name: {} for name in names.values()}
    for run in runs:
        for key, name in names.items():
            rows[name].setdefault(f"learned against {BOBS[run['bob']]}", []).append(run[key])
        rows[names["caught"]].setdefault("her best answer to him", []).append(run["least"])
    dots({"probability, against LP Bob": rows}, {}, path)


def main() -> int:
    parser = options(__doc__)
    choice(parser, "--bobs", BOBS)
    parser.add_argument("--figure", type=Path, metavar="PATH")
    given = parsed(parser)
    runs = in_parallel(learn, [(bob, seed) for bob in given.bobs for seed in given.seeds], given.jobs)
    give(runs, printed(runs), given.json)
    if given.figure:
        figure(runs, given.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
