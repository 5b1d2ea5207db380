"""Whether honesty emerges: Alice chooses what to claim at the root, where lying can only lose.

    python -m benchmarks.honesty [--seeds 0 1 2] [--jobs 2] [--json PATH] [--figure PATH]

Games of falling value V, the chance that the best lie is caught; what honesty is worth to Alice is 2 V. In each of them
Alice learns against LP Bob, and beside a Bob who learns; and beside one by PPO, from sampled rewards alone. Printed are
how honest she ends, how many rounds it took her to be honest 99 times in 100 from then on, and the entropy of her
claim. The temperature of her claim, what honesty is worth over the log-odds that she is honest, has to fall below
2 V / ln 99 for that; it stands beside. Takes about twenty minutes of one core and seed.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agents.learner_config import LearnerConfig
from benchmarks.runs import choice, in_parallel, markdown, options, parsed, shown, train
from envs.config import EnvConfig, ProblemConfig
from fbs.command import give

THRESHOLD = "threshold 3,2,2,1,1 >= 5"
# name: aggregator, rho, depth
GAMES = {
    "majority 3, depth 1": ("majority 3", 2.0, 1),
    "threshold, depth 1": (THRESHOLD, 3.0, 1),
    "majority 3, depth 2": ("majority 3", 2.0, 2),
    "threshold, depth 2": (THRESHOLD, 3.0, 2),
    "parity 4, depth 2": ("parity 4", 4.0, 2),
    "threshold, depth 3": (THRESHOLD, 3.0, 3),
    "parity 4, depth 3": ("parity 4", 4.0, 3),
}
BOBS = {"lp": "LP Bob", "learned": "a Bob who learns", "ppo": "a Bob who learns, both by PPO"}
ROUNDS, EVERY, HONEST = 150, 2, 0.99


def learn(name: str, bob: str, seed: int) -> dict[str, Any]:
    """One run: the last iterate's honesty over the rounds, and the averaged copy's at the end."""
    from agents.configuration import CONFIGS, load_file
    from agents.exact import game_value
    from agents.measures import honesty_rate

    aggregator, rho, depth = GAMES[name]
    env = EnvConfig(rho=rho, depth=depth, root_claim="free")
    learner = load_file(CONFIGS / "ppo.yaml").learner if bob == "ppo" else LearnerConfig(bob=bob)
    learner = replace(learner, iterations=ROUNDS)

    def look(game: Any, players: dict[str, Any]) -> tuple[float, float]:
        return honesty_rate(game, players["alice_last"]), honesty_rate(game, players["alice"])

    run = train(env, ProblemConfig(aggregators=[aggregator]), learner, seed, EVERY, look)
    value = game_value(run.game)
    honesty = [(done, last) for done, _, (last, _) in run.curve]
    short = [done for done, last in honesty if last < HONEST]
    end = run.curve[-1][2]
    lying = max(1 - end[0], 1e-12)
    return {
        "name": name, "bob": bob, "seed": seed, "depth": depth, "value": value, "curve": honesty,
        "honesty": end[0], "averaged": end[1],
        "rounds": None if short and short[-1] == ROUNDS else (short[-1] if short else 0) + EVERY,
        "entropy": -(lying * math.log(lying) + (1 - lying) * math.log1p(-lying)),
        "temperature": 2 * value / math.log((1 - lying) / lying),
    }  # fmt: skip


def printed(runs: list[dict[str, Any]]) -> str:
    """The table, in Markdown."""
    columns = [
        "game", "1 / V", "Alice learns against", "honesty at the end (95% interval)", "least", "averaged copy, least",
        "rounds until 99% honest, each seed", "entropy of the claim (nats), largest", "temperature", "2 V / ln 99",
    ]  # fmt: skip
    rows = []
    for name, bob in dict.fromkeys((run["name"], run["bob"]) for run in runs):
        mine = [run for run in runs if (run["name"], run["bob"]) == (name, bob)]
        honesty, value = [run["honesty"] for run in mine], mine[0]["value"]
        rows.append([
            name, f"{1 / value:.0f}", BOBS[bob], shown(honesty, 4), f"{min(honesty):.4f}",
            f"{min(run['averaged'] for run in mine):.4f}",
            ", ".join("-" if run["rounds"] is None else str(run["rounds"]) for run in mine),
            f"{max(run['entropy'] for run in mine):.1e}", f"{max(run['temperature'] for run in mine):.1e}",
            f"{2 * value / math.log(99):.1e}",
        ])  # fmt: skip
    return markdown(columns, rows)


def figure(runs: list[dict[str, Any]], path: Path) -> None:
    """Left, honesty over the rounds; right, the rounds needed against 1 / V."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(10, 4), layout="constrained")
    left, right = drawing.subplots(1, 2)
    names = list(dict.fromkeys(run["name"] for run in runs))
    colours = dict(zip(names, colormaps["viridis"](np.linspace(0, 0.9, len(names))), strict=True))
    styles = {"lp": ("--", "s"), "learned": ("-", "o"), "ppo": (":", "x")}
    for run in runs:
        line, marker = styles[run["bob"]]
        rounds, honesty = zip(*run["curve"], strict=True)
        left.plot(rounds, honesty, line, color=colours[run["name"]], linewidth=1)
        if run["rounds"]:
            right.plot(1 / run["value"], run["rounds"], marker, color=colours[run["name"]], alpha=0.7)
    for name in names:
        left.plot([], [], color=colours[name], label=name)
    for bob, (line, marker) in styles.items():
        left.plot([], [], line, color="#555555", label=f"against {BOBS[bob]}")
        right.plot([], [], marker, color="#555555", label=f"against {BOBS[bob]}")
    left.axhline(HONEST, color="#999999", linewidth=1, linestyle=":")
    left.set(xlabel="rounds of self-play", ylabel="how often Alice claims the truth", ylim=(0, 1.02))
    left.legend(fontsize=7)
    right.set(xlabel="1 / V, debates until the best lie is caught once", ylabel="rounds until 99% honest", xscale="log")
    right.set_xticks([2**n for n in range(1, 7)], [str(2**n) for n in range(1, 7)])
    right.minorticks_off()
    right.set_ylim(0, 1.4 * max([run["rounds"] or 0 for run in runs] + [1]))
    right.legend(fontsize=8, loc="upper left")
    drawing.savefig(path, dpi=150)


def main() -> int:
    parser = options(__doc__)
    choice(parser, "--games", GAMES)
    choice(parser, "--against", BOBS)
    parser.add_argument("--figure", type=Path, metavar="PATH")
    given = parsed(parser)
    tasks = [(name, bob, seed) for name in given.games for bob in given.against for seed in given.seeds]
    runs = in_parallel(learn, tasks, given.jobs)
    give(runs, printed(runs), given.json)
    if given.figure:
        figure(runs, given.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
