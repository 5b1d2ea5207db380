"""Checkers of a committed tree: judge and honest Bob as one, who may ask so many leaves (section 5 of the paper).

A checker accepts the root claim unless some leaf that it asked contradicts what Alice claimed of it. Under the
reference oracle all her claims are true and it accepts. Under an alternative oracle, which differs on a set H of leaves
and so falsifies the root, it rejects exactly if it asks a leaf of H. So its advantage on H is the probability that it
asks one, and until it does every answer is the reference oracle's: that process alone needs to be known.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from agents.exact_trees import honest_responses
from envs.claim_tree import ClaimTree
from envs.engine import Player
from envs.game import Game
from envs.rules import SAMPLE
from fbs.aggregator import Aggregator
from fbs.committed_tree import tree_sensitivity
from fbs.sensitivity import sensitivity


@dataclass(frozen=True)
class Alternatives:
    """The alternative oracles of the lower bound: sets of false leaves, drawn by their weight in the packing.

    Attributes:
        sensitivity: R of the root.
        leaves: int64 (L,), the leaves' nodes.
        false: bool (n, L), which leaves each alternative falsifies.
        probability: float64 (n,), weight / R.
    """

    sensitivity: float
    leaves: np.ndarray
    false: np.ndarray
    probability: np.ndarray

    def bound(self, m: int) -> float:
        """What the theorem allows m queries: min(1, m / R)."""
        return min(1.0, m / self.sensitivity)


def alternatives(tree: ClaimTree) -> Alternatives:
    """From the packing with capacities R_i, composed downwards."""
    solution = tree_sensitivity(tree.first_child, tree.width, aggregators(tree), tree.claimed)
    leaves = np.flatnonzero(tree.width == 0)
    packing = solution.packing()
    false = np.array([np.isin(leaves, block) for block, _ in packing])
    weight = np.array([float(weight) for _, weight in packing])
    return Alternatives(float(solution.values[0]), leaves, false, weight / weight.sum())


def aggregators(tree: ClaimTree) -> list[Aggregator | None]:
    """The aggregator of each node, None at leaves."""
    return [tree.aggregators[number] if number >= 0 else None for number in tree.aggregator.tolist()]


def leaf_distribution(game: Game, bob: Player) -> np.ndarray:
    """float64 (L,): where one debate of this Bob with an Alice who answers as the tree claims asks the oracle."""
    tree = game.source
    reach = np.zeros(len(tree.width))
    reach[0] = 1
    for node in np.flatnonzero(tree.width):  # breadth first, so that parents come before their children
        sampling = honest_responses(game, bob, np.array([node]))[0, SAMPLE : SAMPLE + tree.width[node]]
        reach[tree.children(node)] += reach[node] * sampling
    return reach[tree.width == 0]


def independent(distribution: np.ndarray, found: Alternatives, queries: int) -> np.ndarray:
    """float64 (queries, n): the advantage on each alternative after m = 1, 2, ... independent debates."""
    missed = 1 - found.false @ distribution
    return 1 - missed ** np.arange(1, queries + 1)[:, None]


def covering(found: Alternatives, queries: int) -> np.ndarray:
    """The same of a checker who knows the packing, and asks the leaf that most of its weight not yet ruled out needs.

    It is deterministic: some alternatives it never finds, on the average it comes as close to the bound as can be.
    """
    open_, hit = np.ones(len(found.false), bool), []
    for _ in range(queries):
        leaf = ((found.probability * open_) @ found.false).argmax()
        open_ &= ~found.false[:, leaf]
        hit.append(~open_)
    return np.array(hit, float)


def re_solving(tree: ClaimTree, found: Alternatives, queries: int) -> np.ndarray:
    """The same of an adaptive checker, exact: it samples a leaf as tree-optimal Bob would, and after each answer solves
    the tree anew with the leaves that proved true left out, so that no leaf is asked twice.
    """
    reached, hit = {frozenset(): 1.0}, []
    for _ in range(queries):
        after: dict[frozenset[int], float] = {}
        for asked, chance in reached.items():
            for leaf, p in _remaining(tree, asked).items():
                after[asked | {leaf}] = after.get(asked | {leaf}, 0.0) + chance * p
        reached = after
        meets = np.zeros(len(found.false))
        for asked, chance in reached.items():
            meets += chance * found.false[:, np.isin(found.leaves, list(asked))].any(-1)
        hit.append(meets)
    return np.array(hit)


def _remaining(tree: ClaimTree, proved: frozenset[int]) -> dict[int, float]:
    """Where tree-optimal Bob asks once some leaves have proved true; the whole mass on no leaf if nothing is left."""
    values: list[Fraction] = [Fraction(node not in proved) for node in range(len(tree.width))]
    solved: dict[int, Any] = {}
    for node in np.flatnonzero(tree.width)[::-1].tolist():
        children = tree.children(node)
        f = tree.aggregators[tree.aggregator[node]]
        solved[node] = sensitivity(f, tree.claimed[children], values[children])
        values[node] = solved[node].value
    if not values[0]:
        return {-1: 1.0}
    reach, asked = np.zeros(len(tree.width)), {}
    reach[0] = 1
    for node in np.flatnonzero(tree.width).tolist():
        if reach[node]:
            reach[tree.children(node)] = reach[node] * solved[node].sampling
    for leaf in np.flatnonzero((tree.width == 0) & (reach > 0)).tolist():
        asked[leaf] = float(reach[leaf])
    return asked
