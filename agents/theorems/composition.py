"""Composition: the sensitivity of a whole committed tree lies between products of its claims' own, and sampling with
the whole tree in view gains something.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import fbs
from agents.audit import audit
from agents.theorems import figures
from agents.theorems.lab import THRESHOLD, Lab, Topic
from agents.theorems.rows import Row, exact
from agents.theorems.trees import committed, level_by_level, random_tree
from envs.claim_tree import ClaimTree

STREAM = 6
SELF_DUAL = ("majority 3", "majority 5", THRESHOLD, "majority 7")

STATEMENT = (
    "Commit every answer of a tree before Bob samples, and the tree is one function of its leaves. Its fractional "
    "block sensitivity R lies between the smallest and the largest product of the claims' own sensitivities along a "
    "path from the root to a leaf, and equals that product where all claims of a level are equally sensitive (the ρ^d "
    "of the paper).",
    "Where they are not, sampling claim by claim is not the best one can do. Weighing each sub-claim by R of what is "
    "below it, tree-optimal Bob catches a lie about the root with probability 1/R, and no way of choosing one leaf "
    "does better.",
)
SOURCE = "section 5, the composition lemma; sampling with the whole tree in view is not in the paper"
CAPTION = (
    "Left: worst-case catch probability of local and tree-optimal sampling on random trees, with the tree of "
    "majorities claimed 110, 111, 000 (star). Right: R of the same trees between the smallest and largest path "
    "product (bars), in the order of R."
)


class Measured(NamedTuple):
    """One committed tree.

    Attributes:
        sensitivity: R of the root. smallest, largest: products of local sensitivities along a path.
        local, tree_optimal: worst-case catch probability of sampling claim by claim, and with the tree in view.
    """

    sensitivity: float
    smallest: float
    largest: float
    local: float
    tree_optimal: float


def measure(tree: ClaimTree) -> Measured:
    """Everything about one tree, by `agents.audit`."""
    report = audit(tree, rho=1000.0)
    smallest, largest = path_products(tree, {claim["path"]: claim["fbs"] for claim in report["claims"]})
    catch = report["worst_case_catch"]
    return Measured(report["tree_sensitivity"], smallest, largest, catch["local"], catch["tree_optimal"])


def path_products(tree: ClaimTree, local: dict[str, float]) -> tuple[float, float]:
    """The smallest and the largest product of the claims' sensitivities along a path; `local` by path."""
    product = np.ones(len(tree.width))
    for node in range(len(tree.width)):  # parents first
        if tree.width[node]:
            product[tree.children(node)] = product[node] * local[tree.path(node)]
    leaves = product[tree.width == 0]
    return float(leaves.min()), float(leaves.max())


def study(lab: Lab) -> Topic:
    """The experiment."""
    rng = np.random.default_rng([lab.seed, STREAM])
    trees = [measure(random_tree(rng, 2 + number % 2))
             for number in lab.bar(range(lab.trees), "composition")]  # fmt: skip
    table = np.array(trees)
    ratio = table[:, 4] / table[:, 3]
    rows = _sandwich(table, lab) + _equal_levels(rng, lab) + _famous() + _gains(ratio, lab)
    better = ratio > 1 + 1e-9
    findings = (
        f"On {better.mean():.0%} of {lab.trees} random trees of depth 2 and 3 tree-optimal sampling beats local "
        f"sampling: by {ratio[better].mean() - 1:.0%} on the average of these, at most by a factor of "
        f"{ratio.max():.2f}. The smallest ratio of the two is {ratio.min():.4g}.",
    )
    return Topic("Composition", SOURCE, STATEMENT, tuple(rows), findings, _figure(table), CAPTION)


def _sandwich(table: np.ndarray, lab: Lab) -> list[Row]:
    sensitivity, smallest, largest = table[:, 0], table[:, 1], table[:, 2]
    setting = f"{lab.trees} random trees of depth 2 and 3; the closest case"
    return [
        exact("R is at least the smallest product of local sensitivities along a path (R over the product)", setting,
              (sensitivity / smallest).min(), ">=", 1),
        exact("R is at most the largest product of local sensitivities along a path (R over the product)", setting,
              (sensitivity / largest).max(), "<=", 1),
    ]  # fmt: skip


def _equal_levels(rng: np.random.Generator, lab: Lab) -> list[Row]:
    """R equals the product where all claims of a level are equally sensitive: exact fractions."""
    rows = []
    for depth in (1, 2, 3):
        worst = Fraction(0)
        for _ in range(20 if lab.quick else 100):
            parts, product = [], Fraction(1)
            for _ in range(depth):
                f = fbs.parse(SELF_DUAL[rng.integers(len(SELF_DUAL))])
                z = rng.integers(0, 2, f.width)
                z = z if f(z) else 1 - z
                product *= fbs.sensitivity(f, z).value
                parts.append((f, z))
            worst = max(worst, abs(_root(level_by_level(parts)) - product))
        rows.append(exact("R equals the product of the levels' sensitivities where a level's claims are equally "
                          "sensitive (largest difference)",
                          f"{20 if lab.quick else 100} random trees of depth {depth}, fractions",
                          worst, "=", 0))  # fmt: skip
    return rows


def _root(tree: ClaimTree) -> Any:
    functions = [tree.aggregators[number] if number >= 0 else None for number in tree.aggregator.tolist()]
    return fbs.tree_sensitivity(tree.first_child, tree.width, functions, tree.claimed).values[0]


def _famous() -> list[Row]:
    found = measure(famous_tree())
    setting = "majority of three majorities of three, claimed 110, 111, 000"
    return [
        exact("Local sampling catches with probability 1/4", setting, found.local, "=", 1 / 4),
        exact("Tree-optimal sampling catches with probability 2/7", setting, found.tree_optimal, "=", 2 / 7),
        exact(
            "Tree-optimal sampling catches with probability 1/R",
            setting,
            found.tree_optimal,
            "=",
            1 / found.sensitivity,
        ),
    ]


def famous_tree() -> ClaimTree:
    """Where tree-optimal sampling beats local sampling, 2/7 to 1/4."""
    return committed([("majority", "110"), ("majority", "111"), ("majority", "000")], "majority")


def _gains(ratio: np.ndarray, lab: Lab) -> list[Row]:
    setting = f"{lab.trees} random trees of depth 2 and 3"
    return [
        exact("Tree-optimal sampling is never worse than local sampling (smallest ratio of catch probabilities)",
              setting,
              ratio.min(), ">=", 1),
        exact("Tree-optimal sampling is often better than local sampling (share of trees)",
              setting, (ratio > 1 + 1e-9).mean(), ">", 0),
        exact("Tree-optimal sampling is better on the average (mean ratio of catch probabilities)",
              setting, ratio.mean(), ">", 1),
    ]  # fmt: skip


def _figure(table: np.ndarray) -> Any:
    figure, (left, right) = figures.canvas(2, height=3.2)
    left.plot([0.01, 1], [0.01, 1], color="#999999", linewidth=0.8)
    left.plot(table[:, 3], table[:, 4], **figures.style("tree_optimal",
                                                        linestyle="", marker=".", markersize=4, alpha=0.6,
                                                        label="random trees"))  # fmt: skip
    found = measure(famous_tree())
    left.plot([found.local], [found.tree_optimal], "*", color="black", markersize=10, label="1/4 and 2/7")
    for axis in (left.set_xscale, left.set_yscale):
        axis("log")
    figures.label(left, "catch probability, local sampling", "catch probability, tree-optimal")
    figures.legend(left, loc="lower right")
    order = np.argsort(table[:, 0])[:: max(1, len(table) // 100)]
    place = np.arange(len(order))
    right.vlines(place, table[order, 1], table[order, 2], color="#bbbbbb", linewidth=1.6,
                 label="smallest to largest path product")  # fmt: skip
    right.plot(place, table[order, 0], ".", color="black", markersize=4, label="R of the whole tree")
    right.set_yscale("log")
    figures.label(right, "trees, by R", "sensitivity")
    figures.legend(right, loc="upper left")
    return figure
