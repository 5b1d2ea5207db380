"""The learners beside each other on the default game: who arrives, who cycles.

    python -m benchmarks.controls [--learners mmd tabular nfsp ppo] [--seeds 0 1 2] [--json PATH] [--figure PATH]

Every learner plays as many debates as its configuration in configs/ says, and is measured exactly on the way: the
worst-case catch of its reported Bob over the game value, his mean catch ratio, and what either side could be exploited
for. Takes about twenty minutes of one core.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runs import choice, in_parallel, markdown, options, parsed, shown, train
from fbs.command import give

CONFIGURATIONS = {"mmd": "default", "tabular": "tabular", "nfsp": "nfsp", "ppo": "ppo"}
WRITTEN = {
    "mmd": "magnetic mirror descent, networks (the default)",
    "tabular": "magnetic mirror descent, tables",
    "nfsp": "neural fictitious self-play",
    "ppo": "PPO on sampled returns",
}
COLOURS = {"mmd": "#1f7a74", "tabular": "#7a7a7a", "nfsp": "#e8963a", "ppo": "#b5475d"}
LOOKS = 40  # along the training


def learn(name: str, seed: int) -> dict[str, Any]:
    """One run: its measures over the training."""
    from agents.configuration import CONFIGS, load_file
    from agents.measures import bob_measures, evaluate

    config = load_file(CONFIGS / f"{CONFIGURATIONS[name]}.yaml")

    def look(game: Any, players: dict[str, Any]) -> dict[str, Any]:
        averaged, last = (bob_measures(game, players[bob]) for bob in ("bob", "bob_last"))
        return {
            "share": averaged["worst_case_catch"], "share_last": last["worst_case_catch"],
            "ratio": averaged["catch_ratio"]["mean"],
        }  # fmt: skip

    every = max(1, config.learner.iterations // LOOKS)
    run = train(config.env, config.problem, config.learner, seed, every, look)
    end = evaluate(run.game, run.players["alice"], run.players["bob"])
    curve = [(done, seconds, {**look, "share": look["share"] / end["game_value"],
                              "share_last": look["share_last"] / end["game_value"]})
             for done, seconds, look in run.curve]  # fmt: skip
    return {
        "learner": name, "seed": seed, "rounds": config.learner.iterations, "cpu_seconds": run.cpu_seconds,
        "debates": 0 if name == "tabular" else config.learner.iterations * config.learner.batch,
        "curve": curve, "end": end,
    }  # fmt: skip


def printed(runs: list[dict[str, Any]]) -> str:
    """The table, in Markdown."""
    columns = [
        "learner", "debates", "CPU s", "worst-case catch / game value (95% interval)", "least seed",
        "over the last half, last iterate: least, most", "mean catch ratio", "exploitability of Alice, of Bob, most",
    ]  # fmt: skip
    rows = []
    for name in dict.fromkeys(run["learner"] for run in runs):
        mine = [run for run in runs if run["learner"] == name]
        share = [run["curve"][-1][2]["share"] for run in mine]
        half = [look["share_last"] for run in mine for done, _, look in run["curve"] if 2 * done >= run["rounds"]]
        exploited = [max(run["end"]["exploitability"][side] for run in mine) for side in ("alice", "bob")]
        rows.append([
            WRITTEN[name], f"{mine[0]['debates']:,}", f"{np.median([run['cpu_seconds'] for run in mine]):.0f}",
            shown(share), f"{min(share):.3f}", f"{min(half):.3f}, {max(half):.3f}",
            shown([run["end"]["catch_ratio"]["mean"] for run in mine]), f"{exploited[0]:.4f}, {exploited[1]:.4f}",
        ])  # fmt: skip
    return markdown(columns, rows)


def figure(runs: list[dict[str, Any]], path: Path) -> None:
    """Worst-case catch over the game value along the training: the last iterate, and the reported Bob."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(10, 3.6), layout="constrained")
    panels = drawing.subplots(1, 2, sharey=True)
    for run in runs:
        progress = [done / run["rounds"] for done, _, _ in run["curve"]]
        for panel, key in zip(panels, ("share_last", "share"), strict=True):
            values = [look[key] for _, _, look in run["curve"]]
            panel.plot(progress, values, color=COLOURS[run["learner"]], linewidth=1, alpha=0.8)
    for name in dict.fromkeys(run["learner"] for run in runs):
        panels[1].plot([], [], color=COLOURS[name], label=WRITTEN[name])
    for panel, title in zip(panels, ("last iterate", "averaged Bob, the one reported"), strict=True):
        panel.axhline(1, color="#333333", linewidth=0.8, linestyle=":")
        panel.set(title=title, xlabel="part of the training, a line a seed", ylim=(-0.02, 1.05))
    panels[0].set(ylabel="worst-case catch / game value")
    panels[1].legend(fontsize=7, loc="center right", bbox_to_anchor=(1, 0.45))
    drawing.savefig(path, dpi=150)


def main() -> int:
    parser = options(__doc__)
    choice(parser, "--learners", CONFIGURATIONS)
    parser.add_argument("--figure", type=Path, metavar="PATH")
    given = parsed(parser)
    runs = in_parallel(learn, [(name, seed) for name in given.learners for seed in given.seeds], given.jobs)
    give(runs, printed(runs), given.json)
    if given.figure:
        figure(runs, given.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
