"""The lower bound (section 5 of the paper): whoever asks m leaves tells an alternative oracle from the reference oracle
with an advantage of at most m / R, on the average over the packing's alternatives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import fbs
from agents import players
from agents.theorems import figures
from agents.theorems.checkers import (
    Alternatives,
    alternatives,
    covering,
    independent,
    leaf_distribution,
    re_solving,
)
from agents.theorems.crowds import EXAMPLES
from agents.theorems.lab import THRESHOLD, Lab, Topic
from agents.theorems.rows import Row, exact
from agents.theorems.trees import committed, from_claims
from envs.claim_tree import ClaimTree
from envs.config import EnvConfig
from envs.game import Game
from envs.problem import load_problem

STATEMENT = (
    "Take any tree of claims, fix what Alice claims at every leaf, and let R be the fractional block sensitivity of "
    "the whole tree there (at least ρ^d if every claim's is at least ρ). Then there are alternative oracles under "
    "which the root claim is false, and whatever a checker does with m questions, adaptive or not, helped by Bob or "
    "not, it notices the average one with probability at most m / R. So no protocol that treats human judgement as a "
    "black box gets by with fewer questions than a constant share of ρ^d: the debate is optimal on every single "
    "instance.",
    "The alternatives come from the optimal packing, composed from the root down: weighted sets of false leaves, no "
    "leaf false with weight more than 1. The theorem needs leaves that ask different questions. Where they share a "
    "question, one answer settles many leaves and the bound breaks.",
)
SOURCE = "section 5, theorem 5.1"
CAPTION = (
    "Average advantage of each checker over the packing's alternatives, against the number of questions; dashed: "
    "min(1, m / R). Bars at the right: from the smallest to the largest single alternative after ⌈R/2⌉ questions."
)
CHECKERS = ("uniform", "learned", "lp", "tree_optimal", "re_solving", "covering")
FEW_LEAVES = 12  # that may be false: the re-solving checker is followed through every set of them


@dataclass(frozen=True)
class Instance:
    """A committed tree, its alternatives, and what each checker makes of them; `title` is for the figure.

    Attributes:
        advantages: player -> float64 (queries, n), on each alternative after m = 1, 2, ... queries.
    """

    name: str
    title: str
    tree: ClaimTree
    found: Alternatives
    advantages: dict[str, np.ndarray]

    @property
    def queries(self) -> int:
        return len(self.advantages["lp"])

    def average(self, player: str) -> np.ndarray:
        """float64 (queries,): over the alternatives, by their probability."""
        return self.advantages[player] @ self.found.probability


def instances(lab: Lab) -> list[Instance]:
    """One tree as the learned Bob knows it, one where tree-optimal is better than local, and the two shipped ones."""
    uneven = committed([("majority", "110"), ("majority", "111"), ("majority", "000")], "majority")
    papers, bridge = (load_problem(EXAMPLES / file) for file in ("published_papers.json", "footbridge.yaml"))
    return [
        _instance(f"{THRESHOLD} twice, every claim of sensitivity 3", "thresholds, R = 9", threes(), lab, True),
        _instance("majority of majorities claimed 110, 111, 000", "majorities, R = 7/2", uneven, lab),
        _instance("published_papers.json, 66 of 99 claimed", "99 papers, R = 66/17", from_claims(papers), lab),
        _instance("footbridge.yaml as claimed", "footbridge, R = 23/2", from_claims(bridge), lab),
    ]


def threes() -> ClaimTree:
    """The default threshold over itself, with assignments of sensitivity 3 everywhere: R = 9 = rho^d."""
    parts = [(THRESHOLD, "01110" if bit == "1" else "10001") for bit in "01110"]
    return committed(parts, THRESHOLD)


def _instance(name: str, title: str, tree: ClaimTree, lab: Lab, learned: bool = False) -> Instance:
    game = Game(EnvConfig(rho=50.0, tremble=0.0), tree)  # nothing is challenged: the checker asks
    found = alternatives(tree)
    queries = math.ceil(found.sensitivity)
    bobs = {player: players.bob(player, game) for player in ("uniform", "lp", "tree_optimal")}
    if learned:
        bobs["learned"] = lab.learned.bob(Game(EnvConfig(rho=3.0, tremble=0.0), tree))
    advantages = {player: independent(leaf_distribution(game, bob), found, queries) for player, bob in bobs.items()}
    advantages["covering"] = covering(found, queries)
    if found.false.any(0).sum() <= FEW_LEAVES:
        advantages["re_solving"] = re_solving(tree, found, queries)
    return Instance(
        f"{name}: R = {found.sensitivity:.4g}",
        title,
        tree,
        found,
        {player: advantages[player] for player in CHECKERS if player in advantages},
    )


def rows_of(instance: Instance) -> list[Row]:
    """For each checker the average advantage beside the bound, where it comes closest."""
    rows, found = [], instance.found
    middle = math.ceil(instance.queries / 2)
    for player, advantages in instance.advantages.items():
        average = instance.average(player)
        shares = [value / found.bound(m) for m, value in enumerate(average, 1)]
        m = 1 + int(np.argmax(shares))
        single = advantages[middle - 1]
        rows.append(exact(
            f"The average advantage of {figures.name(player)} is at most min(1, m / R), for every m up to R",
            f"{instance.name}; shown where it comes closest, m = {m}; single alternatives at m = {middle}: "
            f"{single.min():.3g} to {single.max():.3g}", average[m - 1], "<=", found.bound(m)))  # fmt: skip
        smallest = advantages[0].min()
        rows.append(exact(f"Some alternative is noticed by {figures.name(player)} with advantage at most m / R",
                          f"{instance.name}; m = 1", smallest, "<=", found.bound(1)))  # fmt: skip
    return rows


def study(lab: Lab) -> Topic:
    """The experiment."""
    cases = instances(lab)
    rows = [row for case in lab.bar(cases, "lower bound") for row in rows_of(case)]
    rows.append(exact("R of the whole tree is at least ρ^d where every claim's sensitivity is ρ", f"{cases[0].name}",
                      cases[0].found.sensitivity, ">=", 9))  # fmt: skip
    rows.append(_queries_for_certainty(cases[0]))
    rows += shared_rows()
    first = cases[0]
    close = {name: first.average(name)[-1] for name in ("lp", "covering", "learned", "uniform")}
    findings = (
        "Who comes close? The covering checker, who never asks a leaf twice and knows the packing, has an average "
        "advantage of exactly m / R for the first questions: the bound cannot be improved. On the R = 9 tree it ends "
        f"at {close['covering']:.3g} after 9 questions; LP Bob, who may ask the same leaf again, at {close['lp']:.3g} "
        f"= 1 - (1 - 1/9)^9, the learned Bob at {close['learned']:.3g}, uniform Bob at {close['uniform']:.3g}.",
        "The price of the covering checker's closeness: it is deterministic, so some single alternatives it never "
        "finds. Tree-optimal Bob treats all alternatives alike; the re-solving checker nearly does, and "
        "wastes no question.",
        "Where leaves share a question the bound does not hold, as the paper says of its AND example.",
    )
    return Topic("Lower bound", SOURCE, STATEMENT, tuple(rows), findings, _figure(cases), CAPTION)


def _queries_for_certainty(instance: Instance) -> Row:
    """The corollary: error at most epsilon under every oracle needs m >= (1 - 2 epsilon) R."""
    epsilon = 0.05
    missed = 1 - 1 / instance.found.sensitivity
    m = math.ceil(math.log(2 * epsilon) / math.log(missed))
    return exact("To err with probability at most ε takes at least (1 - 2ε) R questions",
                 f"{instance.name}; ε = {epsilon}, "
                 "questions that LP Bob needs for an advantage of 1 - 2ε", m, ">=", (1 - 2 * epsilon) * 9)  # fmt: skip


def shared_rows() -> list[Row]:
    """Trees whose leaves share questions: one answer settles several leaves."""
    rows = []
    for width in (5, 20):
        f = fbs.parse(f"and {width}")
        bound = 1 / fbs.sensitivity(f, np.ones(width, int)).value
        rows.append(exact("One question gives an advantage of at most 1 / R, though leaves share questions",
                          f"AND of {width} leaves that all ask the same question", shared_advantage(f, [0] * width),
                          "<=", bound, fails=True))  # fmt: skip
    nine = fbs.parse("majority(majority 3, majority 3, majority 3)")
    bound = 1 / fbs.sensitivity(nine, np.ones(9, int)).value
    rows.append(exact("One question gives an advantage of at most 1 / R, though leaves share questions",
                      "majority of three "
                      "majorities that ask the same three people, all say yes", shared_advantage(nine, [0, 1, 2] * 3),
                      "<=", bound, fails=True))  # fmt: skip
    return rows


def shared_advantage(f: fbs.Aggregator, question: list[int]) -> Fraction:
    """What one optimally drawn question gives at the least, all leaves claimed 1; leaf i asks question[i].

    The function of the answers has a sensitivity of its own, and sampling by its cover meets every alternative with
    probability 1 / that.
    """
    count = max(question) + 1
    answers = (np.arange(1 << count)[:, None] >> np.arange(count - 1, -1, -1) & 1).astype(np.int8)
    shared = fbs.Table(tuple(int(bit) for bit in f(answers[:, question])))
    return 1 / fbs.sensitivity(shared, np.ones(count, int)).value


def _figure(cases: list[Instance]) -> Any:
    figure, axes = figures.canvas(len(cases), height=3.4, sharey=True)
    for axis, case in zip(axes, cases, strict=True):
        m = np.arange(1, case.queries + 1)
        line = np.linspace(0, case.queries, 50)
        axis.plot(line, np.minimum(1, line / case.found.sensitivity), label="bound min(1, m/R)", **figures.BOUND)
        middle = math.ceil(case.queries / 2)
        for place, (player, advantages) in enumerate(case.advantages.items()):
            hollow = {"fillstyle": "none", "zorder": 4} if player == "learned" else {}  # it may hide LP Bob
            axis.plot(m, case.average(player), **figures.style(player, **hollow))
            single, x = advantages[middle - 1], case.queries * (1.08 + 0.045 * place)
            axis.plot([x, x], [single.min(), single.max()], color=figures.colour(player), linewidth=3,
                      solid_capstyle="butt" if single.min() < single.max() else "projecting")  # fmt: skip
        axis.axvline(case.queries * 1.04, color="#bbbbbb", linewidth=0.6)
        axis.text(case.queries * 1.19, 1.03, "single", ha="center", va="bottom", fontsize=7)
        axis.set_xticks(m[:: 1 + len(m) // 8])
        axis.set_ylim(-0.03, 1.1)
        figures.label(axis, "questions m", "advantage" if case is cases[0] else "", case.title)
    figures.legend_below(figure, 4)
    return figure
