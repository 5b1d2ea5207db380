"""Average case against worst case: what a Bob gains who learns where truths are drawn, and what it costs elsewhere.

    python -m benchmarks.average_case [--seeds 0 1 2] [--jobs 2] [--json PATH]

With the random oracle the sub-claims' truths are drawn before Alice answers; with the adversarial one she chooses them
as she lies. A Bob is trained under either, and both of them, LP Bob and a Bob who samples uniformly are measured
exactly against the Alice who answers him best under each oracle. Takes about ten minutes of one core.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from agents.learner_config import LearnerConfig
from benchmarks.runs import in_parallel, shown, train
from envs.config import EnvConfig, ProblemConfig

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
    from agents.exact import best_response_alice
    from agents.players import bob as scripted
    from envs.game import Game

    aggregator, rho, depth = GAMES[name]
    problem = ProblemConfig(aggregators=[aggregator])
    envs = {oracle: EnvConfig(rho=rho, depth=depth, oracle=oracle) for oracle in ORACLES}
    arenas = {oracle: Game(env, problem).evaluation() for oracle, env in envs.items()}
    bobs = {f"{kind} Bob": scripted(kind, arenas["random"]) for kind in ("lp", "uniform")}
    for oracle, env in envs.items():
        bobs[f"learned, {oracle} oracle"] = train(env, problem, LearnerConfig(), seed).players["bob"]
    rows = []
    for kind, bob in bobs.items():
        catch = {}
        for oracle, arena in arenas.items():
            best = best_response_alice(arena, bob).catch[-1]
            catch[oracle] = float(best[1, 0] + best[0, 1]) / 2
        rows.append({"name": name, "seed": seed, "bob": kind, "catch": catch})
    return rows


def printed(rows: list[dict[str, Any]]) -> str:
    """The table, in Markdown."""
    lines = [
        "| game | Bob | catches the best Alice: random oracle | least seed | adversarial oracle | least seed |",
        "|---|---|---|---|---|---|",
    ]
    for name, bob in dict.fromkeys((row["name"], row["bob"]) for row in rows):
        mine = [row["catch"] for row in rows if (row["name"], row["bob"]) == (name, bob)]
        drawn, chosen = ([catch[oracle] for catch in mine] for oracle in ORACLES)
        mine = drawn[:1] if "Bob" in bob else drawn, chosen[:1] if "Bob" in bob else chosen  # no seed in a script
        lines.append(f"| {name} | {bob} | {shown(mine[0])} | {min(drawn):.3f} | {shown(mine[1])} | {min(chosen):.3f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES), metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="SEED")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--json", type=Path, metavar="PATH")
    given = parser.parse_args()
    found = in_parallel(learn, [(name, seed) for name in given.games for seed in given.seeds], given.jobs)
    rows = [row for run in found for row in run]
    print(printed(rows))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
