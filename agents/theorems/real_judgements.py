"""On real judgements: a crowd's answers as the oracle, its majorities as the claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fbs
from agents import players
from agents.alices import HonestAlice
from agents.exact import bound
from agents.exact_trees import best_response_on_tree, honest_unstable
from agents.match import play
from agents.theorems import figures
from agents.theorems.crowds import Crowd
from agents.theorems.lab import Lab, Topic
from agents.theorems.rows import Row, enough, exact, sampled
from envs.config import EnvConfig
from envs.game import Game

STREAM = 9
RHOS = tuple(range(2, 11))
SHOWN = 4.0  # at which two thirds are just stable, as in the paper
RESAMPLES = 2000

STATEMENT = (
    "Each row of a crowd CSV is one person's answer, and so one answer of the oracle. A task is claimed by the "
    "majority of its own people; the root claims that at least half of the tasks are answered yes. A majority is "
    "stable at ρ roughly if a share ρ / (2(ρ - 1)) of the people agree: nearly everybody at ρ = 2, two thirds at ρ = "
    "4, just more than half as ρ grows.",
    "How many of the tasks are stable, how often does LP Bob catch a planted lie, and are the sensitive tasks the "
    "ones where the crowd is wrong? The last is no theorem: it is whether the stability rule, which knows no truth, "
    "points at the right tasks.",
)
UNKNOWN = (
    "What is true of the tasks was not given (--crowd_truth), so whether sensitive tasks are the ones where the crowd "
    "is wrong stays open."
)
MADE_UP = (
    "This crowd is made up: its members err on hard tasks because they were made to. For judgements that people really "
    "made give --crowd, and --crowd_truth if it is known."
)
SOURCE = "the motivating example of section 1.2"
CAPTION = (
    "Left: share of stable tasks, and honest Alice's wins. Middle: LP Bob's catch probability of the best lie about "
    "the root, and the least of a lie about one task, beside ρ^-2 and 1/ρ. Right: how often the crowd is wrong on "
    "stable and on unstable tasks; above the bars, how many there are."
)


@dataclass(frozen=True)
class AtRho:
    """A crowd at one rho.

    Attributes:
        stable: bool (n,), which tasks are stable at their people's answers. catch: LP Bob, of a lie about the root.
        task_catch: float64 (n,), of a lie about a task that he stands at. honest: Alice's wins against him.
    """

    rho: float
    game: Game
    stable: np.ndarray
    catch: float
    task_catch: np.ndarray
    honest: float


def task_sensitivities(crowd: Crowd) -> np.ndarray:
    """float64 (n,): the sensitivity of each task's majority at its people's answers."""
    tree = crowd.tree
    return np.array([
        float(fbs.sensitivity(tree.aggregators[tree.aggregator[task]], tree.answer[tree.children(task)]).value)
        for task in crowd.tasks
    ])  # fmt: skip


def stable_by_counting(crowd: Crowd, rho: float) -> float:
    """The share of stable tasks by the margin alone: the winning side has w people, of whom b could change their mind
    before the majority tips, and w <= rho b."""
    tree = crowd.tree
    stable = []
    for task in crowd.tasks:
        people, yes = int(tree.width[task]), int(tree.answer[tree.children(task)].sum())
        won = yes > people // 2
        winners = yes if won else people - yes
        tipping = yes - people // 2 if won else people // 2 + 1 - yes
        stable.append(winners <= rho * tipping * (1 + 1e-9))
    return float(np.mean(stable))


def measure(crowd: Crowd, rho: float) -> AtRho:
    """Everything at one rho, exact."""
    tree = crowd.tree
    game = Game(EnvConfig(rho=rho, tremble=0.0, p_false=1.0), tree)
    lp = players.bob("lp", game)
    catch = best_response_on_tree(game, lp).catch
    tasks = crowd.tasks
    return AtRho(rho, game, fbs.stable(task_sensitivities(crowd), rho), float(catch[0, 1 - tree.answer[0]]),
                 catch[tasks, 1 - tree.answer[tasks]], 1 - honest_unstable(game, lp))  # fmt: skip


def study(lab: Lab) -> Topic:
    """The experiment."""
    crowd, rows = lab.crowd, []
    found = [measure(crowd, float(rho)) for rho in lab.bar(RHOS, "real judgements")]
    for at in found:
        rows += _rows_at(at, crowd, lab)
    rows += _played(found, lab)
    findings = [_findings(found, crowd)]
    if crowd.wrong is None:
        findings.append(UNKNOWN)
    else:
        error_rows = _error_rows(crowd, lab)
        rows += error_rows
        findings.append(_verdict(error_rows[0]))
    if crowd.synthetic:
        findings.append(MADE_UP)
    caption = f"{crowd.about}. {CAPTION}"
    return Topic("On real judgements", SOURCE, STATEMENT, tuple(rows), tuple(findings), _figure(found, crowd), caption)


def _rows_at(at: AtRho, crowd: Crowd, lab: Lab) -> list[Row]:
    setting = f"{crowd.about.partition(' (')[0]}, ρ = {at.rho:g}"
    return [
        exact("The share of tasks whose majority is stable is what counting the margins gives",
              setting, at.stable.mean(),
              "=", stable_by_counting(crowd, at.rho)),
        exact("A lie planted at the root is caught with a probability of at least ρ^-2",
              f"{setting}; best-response Alice",
              at.catch, ">=", bound(at.game)),
        exact("A lie about any single task is caught with a probability of at least 1/ρ",
              f"{setting}; the least over tasks",
              at.task_catch.min(), ">=", 1 / at.rho),
    ]  # fmt: skip


def _played(found: list[AtRho], lab: Lab) -> list[Row]:
    rows = []
    debates = lab.debates // 10
    for at in found:
        if at.rho not in (2, SHOWN, 10) or not enough(debates * at.catch):
            continue
        lp = players.bob("lp", at.game)
        counts = play(at.game, best_response_on_tree(at.game, lp), lp, debates, [lab.seed, STREAM, int(at.rho)], 1024)
        rows.append(sampled("Played: a lie planted at the root is caught with a probability of at least ρ^-2",
                            f"ρ = {at.rho:g}, {debates:,} debates; exact {at.catch:.4g}",
                            counts.caught, counts.false, ">=",
                            bound(at.game), debates * at.catch))  # fmt: skip
        if at.honest == 0:
            continue
        honest = play(at.game, HonestAlice(at.game), lp, debates, [lab.seed, STREAM, 100 + int(at.rho)], 1024)
        rows.append(sampled("Played: honest Alice wins at least as often as the recursion says",
                            f"ρ = {at.rho:g}, {debates:,} debates", honest.alice_wins, honest.debates, ">=",
                            at.honest))  # fmt: skip
    return rows


def _error_rows(crowd: Crowd, lab: Lab) -> list[Row]:
    """Are sensitive tasks the ones where the crowd is wrong?"""
    from scipy.stats import fisher_exact, mannwhitneyu

    sensitivity, wrong = task_sensitivities(crowd), crowd.wrong
    if wrong.all() or not wrong.any():
        return [exact("The crowd is wrong on some tasks and right on others (share of tasks it is wrong on): nothing "
                      "to tell apart", crowd.about, wrong.mean(), "=", wrong.mean())]  # fmt: skip
    rng = np.random.default_rng([lab.seed, STREAM])
    p_value = mannwhitneyu(sensitivity[wrong], sensitivity[~wrong], alternative="less").pvalue
    rows = [_estimate(
        "Sensitive tasks are the ones where the crowd is wrong: a wrong one is more sensitive than a right one "
        "(probability, ties half; 1/2 is chance)", f"{int(wrong.sum())} wrong of {len(wrong)} tasks",
        area_under_curve, (sensitivity, wrong), rng, 0.5, p_value)]  # fmt: skip
    unstable = ~fbs.stable(sensitivity, SHOWN)
    if unstable.any() and not unstable.all():
        table = [[int((wrong & unstable).sum()), int((~wrong & unstable).sum())],
                 [int((wrong & ~unstable).sum()), int((~wrong & ~unstable).sum())]]  # fmt: skip
        rows.append(_estimate(
            "The crowd is wrong more often where it is unstable (difference of error rates)",
            f"ρ = {SHOWN:g}: wrong on {table[0][0]} of {sum(table[0])} unstable and {table[1][0]} of {sum(table[1])} "
            "stable tasks", _difference, (unstable, wrong), rng, 0.0, fisher_exact(table, "less").pvalue))  # fmt: skip
    return rows


def area_under_curve(score: np.ndarray, positive: np.ndarray) -> float:
    """The probability that a positive scores higher than a negative, ties counted half."""
    pairs = score[positive][:, None] - score[~positive][None, :]
    return float(((pairs > 0) + 0.5 * (pairs == 0)).mean())


def _difference(unstable: np.ndarray, wrong: np.ndarray) -> float:
    return float(wrong[unstable].mean() - wrong[~unstable].mean())


def _estimate(
    claim: str, setting: str, statistic: Callable[..., float], data: tuple[np.ndarray, ...], rng: np.random.Generator,
    chance: float, p_value: float,
) -> Row:  # fmt: skip
    """A row about data that are there once: interval by bootstrap over tasks, test against the claim."""
    count, values = len(data[0]), []
    with np.errstate(invalid="ignore"):
        while len(values) < RESAMPLES:
            chosen = rng.integers(0, count, count)
            resampled = [column[chosen] for column in data]
            if all(column.dtype != bool or 0 < column.sum() < count for column in resampled):
                values.append(statistic(*resampled))
    low, high = np.quantile(values, (0.025, 0.975))
    return Row(claim, f"{setting}; interval by {RESAMPLES:,} bootstrap samples",
                      statistic(*data), float(low), float(high),
               ">=", chance, float(p_value))  # fmt: skip


def _findings(found: list[AtRho], crowd: Crowd) -> str:
    at = next(at for at in found if at.rho == SHOWN)
    return (
        f"At ρ = {SHOWN:g} (two thirds must agree) {at.stable.mean():.0%} of the tasks are stable. LP Bob catches the "
        f"best lie about the root with probability {at.catch:.3g}, the guarantee being {bound(at.game):.3g}; honest "
        f"Alice wins {at.honest:.1%} of her debates, the rest being true but sensitive claims."
    )


def _verdict(row: Row) -> str:
    if row.low > row.bound:
        return (
            "Yes, sensitive tasks are where the crowd is wrong: a task it is wrong about is more sensitive than one "
            f"it is right about with probability {row.value:.2f} (95%: {row.low:.2f} to {row.high:.2f}). The rule "
            "knows no truth, yet what it refuses is what deserves doubt."
        )
    if row.high < row.bound:
        return (
            "No, here the crowd is wrong where it is sure: a task it is wrong about is more sensitive than one it is "
            f"right about with probability {row.value:.2f} only (95%: {row.low:.2f} to {row.high:.2f})."
        )
    return (
        "Whether sensitive tasks are where the crowd is wrong cannot be told from these data: probability "
        f"{row.value:.2f} (95%: {row.low:.2f} to {row.high:.2f}), chance is 0.5."
    )


def _figure(found: list[AtRho], crowd: Crowd) -> Any:
    figure, (left, middle, right) = figures.canvas(3, height=3.5)
    rhos = np.array([at.rho for at in found])
    left.plot(rhos, [at.stable.mean() for at in found], color="black", marker="o", markersize=4, label="stable tasks")
    left.plot(rhos, [at.honest for at in found], **figures.style("honest_alice", label="honest Alice wins"))
    left.set_ylim(-0.03, 1.03)
    figures.label(left, "ρ", "share")
    figures.legend_under(left)
    middle.plot(rhos, [at.catch for at in found], **figures.style("lp", label="lie, root"))
    middle.plot(rhos, rhos**-2.0, label=r"bound $\rho^{-2}$", **figures.BOUND)
    middle.plot(rhos, [at.task_catch.min() for at in found],
                **figures.style("lp", linestyle=(0, (1, 1)), marker="v", label="lie, task"))  # fmt: skip
    middle.plot(rhos, 1 / rhos, label=r"bound $1/\rho$", **{**figures.BOUND, "linestyle": (0, (1, 2))})
    middle.set_yscale("log")
    figures.label(middle, "ρ", "LP Bob's catch probability")
    figures.legend_under(middle, 2)
    if crowd.wrong is None:
        right.text(0.5, 0.5, "the truth was not given", ha="center", transform=right.transAxes, fontsize=8.5)
    else:
        _plot_errors(right, found, crowd.wrong)
    figures.label(right, "ρ", "share of tasks the crowd is wrong on")
    return figure


def _plot_errors(axis: Any, found: list[AtRho], wrong: np.ndarray) -> None:
    for side, colour, offset, text in ((False, "#d7301f", -0.17, "unstable"), (True, "#525252", 0.17, "stable")):
        at = [(item.rho, wrong[item.stable == side]) for item in found if (item.stable == side).any()]
        axis.bar([rho + offset for rho, _ in at], [part.mean() for _, part in at], 0.32, color=colour, label=text)
        for rho, part in at:
            axis.text(rho + offset, part.mean() + 0.01, str(len(part)), ha="center", fontsize=6.5)
    axis.axhline(wrong.mean(), label="all tasks", **{**figures.BOUND, "linewidth": 0.8})
    figures.legend_under(axis, 2)
