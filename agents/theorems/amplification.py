"""Amplification (section 4 of the paper): independent debates, the claim rejected if Bob wins any of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents import players
from agents.theorems import figures
from agents.theorems.lab import THRESHOLD, Lab, Topic, procedural
from agents.theorems.pairs import guarantee
from agents.theorems.rows import FEWEST, Row, exact, sampled
from envs.engine import debate, draws

STREAM = 3
SETTINGS = ((2, 1), (2, 2), (3, 2), (3, 3))  # rho, depth
TARGETS = (10, 100)  # n: an error of at most 1/n is wanted

STATEMENT = (
    "A false claim slips through one debate with probability at most 1 - ρ^-d. Hold m debates independently and reject "
    "the claim if Bob wins any: a true claim is still never rejected, and a false one slips through with probability "
    "at most (1 - ρ^-d)^m. So m = ⌈ρ^d ln n⌉ debates make the error at most 1/n.",
)
SOURCE = "section 4, after the theorem on soundness"
CAPTION = (
    "How often a false claim slips through m debates. Lines: (1 - V)^m. Dots: trials of m debates between worst-case "
    "Alice and LP Bob. Dashed: the errors wanted; dotted: m = ⌈ρ^d ln n⌉, which meets each line where it should."
)


@dataclass(frozen=True)
class Setting:
    """Trials of many debates each.

    Attributes:
        rho, depth: The game. value: LP Bob's exact catch probability.
        slipped: int64 (m,), in how many trials a false claim slipped through the first 1, 2, ..., m debates.
        trials: Of how many.
    """

    rho: int
    depth: int
    value: float
    slipped: np.ndarray
    trials: int

    @property
    def name(self) -> str:
        return f"ρ = {self.rho}, d = {self.depth}"

    def debates_for(self, n: int) -> int:
        """m = ⌈ρ^d ln n⌉."""
        return math.ceil(self.rho**self.depth * math.log(n))


def measure(rho: int, depth: int, lab: Lab) -> Setting:
    """Worst-case Alice against LP Bob: so many trials of as many debates as the largest n asks for."""
    game = procedural(THRESHOLD, rho=float(rho), depth=depth)
    alice, bob = players.alice("worst_case", game), players.bob("lp", game)
    value, trials = guarantee(game, bob), 4000 if lab.quick else 20_000
    m = math.ceil(rho**depth * math.log(max(TARGETS)))
    uniform = draws([lab.seed, STREAM, rho, depth])
    alive, slipped = np.ones(trials, bool), []
    for _ in range(m):  # the m-th debate of all trials at once
        alive &= debate(game, alice, bob, trials, uniform).reward > 0
        slipped.append(int(alive.sum()))
    return Setting(rho, depth, value, np.array(slipped), trials)


def rows_of(setting: Setting) -> list[Row]:
    """Predicted and measured errors at m = ⌈ρ^d ln n⌉, and that half as many are too few."""
    rows = []
    for n in TARGETS:
        m = setting.debates_for(n)
        predicted, where = (1 - setting.value) ** m, f"{setting.name}, n = {n}: m = {m} debates"
        slipped = int(setting.slipped[m - 1])
        rows.append(exact("m debates leave an error of at most 1/n", where, predicted, "<=", 1 / n))
        if setting.trials * m * setting.value >= FEWEST:
            ratio = slipped / setting.trials / predicted
            rows.append(sampled("Played: m debates leave an error of at most 1/n",
                                f"{where}, {setting.trials:,} trials; predicted "
                                f"{predicted:.4g}, measured over predicted {ratio:.3f}",
                                slipped, setting.trials, "<=", 1 / n, setting.trials * m * setting.value))  # fmt: skip
        half = math.ceil(m / 2)
        rows.append(exact("Half as many debates do not: the error is above 1/n", f"{setting.name}, n = {n}: {half} "
                          "debates", (1 - setting.value) ** half, ">", 1 / n))  # fmt: skip
    return rows


def study(lab: Lab) -> Topic:
    """The experiment."""
    settings = [measure(rho, depth, lab) for rho, depth in lab.bar(SETTINGS, "amplification")]
    rows = [row for setting in settings for row in rows_of(setting)]
    ratios = [
        s.slipped[s.debates_for(n) - 1] / s.trials / (1 - s.value) ** s.debates_for(n)
        for s in settings for n in TARGETS
    ]  # fmt: skip
    findings = (
        f"Measured errors are {min(ratios):.2f} to {max(ratios):.2f} times the predicted ones. Where the bound on one "
        "debate is attained, as here, m is right up to rounding: with half as many debates the error is the square "
        "root of what was wanted.",
        "The rule is fragile in one way: it rests on an oracle that never errs (see Beyond the paper).",
    )
    return Topic("Amplification", SOURCE, STATEMENT, tuple(rows), findings, _figure(settings), CAPTION)


def _figure(settings: list[Setting]) -> Any:
    figure, axes = figures.canvas(len(settings), height=2.9, sharey=True)
    for axis, setting in zip(axes, settings, strict=True):
        m = np.arange(1, len(setting.slipped) + 1)
        shown = np.unique(np.geomspace(1, len(m), 16).round().astype(int))
        axis.plot(m, (1 - setting.value) ** m, **figures.style("lp", marker="", label="predicted, $(1 - V)^m$"))
        measured = setting.slipped[shown - 1] / setting.trials
        axis.plot(shown[measured > 0], measured[measured > 0],
                  **figures.style("lp", linestyle="", markersize=4, label="measured"))  # fmt: skip
        for n in TARGETS:
            axis.axhline(1 / n, **{**figures.BOUND, "linewidth": 0.8}, label="error wanted, 1/n")
            axis.axvline(setting.debates_for(n), color="#999999", linewidth=0.8, linestyle=":")
        axis.set_yscale("log")
        axis.set_ylim(0.004, 1.3)
        figures.whole_numbers(axis)
        figures.label(axis, "debates m", "error" if setting is settings[0] else "", setting.name)
    figures.legend_below(figure, 3)
    return figure
