"""Claim trees made on the spot: committed by hand, or drawn at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import fbs
from envs.claim_tree import ClaimTree
from fbs.aggregator import Aggregator


def committed(parts: Sequence[tuple[str, str]], root: str) -> ClaimTree:
    """A tree of two levels from the aggregator and the leaves' answers of each part; all is claimed as it is."""
    functions = [fbs.parse(text, len(answers)) for text, answers in parts]
    aggregators = [fbs.parse(root, len(parts)), *functions]
    leaves = [int(bit) for _, answers in parts for bit in answers]
    inner = 1 + len(parts)
    distinct = list(dict.fromkeys(aggregators))
    return _tree(distinct, [distinct.index(f) for f in aggregators] + [-1] * len(leaves), [0] * inner + leaves)


def from_claims(tree: ClaimTree) -> ClaimTree:
    """The same tree with what is claimed of its leaves as the truth: the reference oracle of the lower bound."""
    return _tree(tree.aggregators, tree.aggregator, tree.claimed, tree.source)


def level_by_level(parts: Sequence[tuple[Aggregator, np.ndarray]]) -> ClaimTree:
    """A tree whose nodes of one level are all equally sensitive.

    A node that claims 1 is assigned z, one that claims 0 its complement, which is as sensitive.

    Args:
        parts: For each level, the root's first, (f, z) with f(z) = 1 and f self-dual: f(1 - z) = 1 - f(z) for every z.
    """
    aggregators, numbers, claimed = [f for f, _ in parts], [0], [1]
    layer = [1]
    for depth, (_, z) in enumerate(parts):
        layer = [bit for claim in layer for bit in (z if claim else 1 - z).tolist()]
        claimed += layer
        numbers += [depth + 1 if depth + 1 < len(parts) else -1] * len(layer)
    return _tree(aggregators, numbers, claimed)


def random_tree(rng: np.random.Generator, depth: int, widest: int = 5) -> ClaimTree:
    """A tree with random aggregators of 3 to `widest` children, random leaves, and some branches that end early.

    The leaves are 1 with a probability that is drawn once for the tree.
    """
    aggregators: list[Aggregator] = []
    numbers, layer = [], 1
    for level in range(depth, -1, -1):
        below = 0
        for _ in range(layer):
            if level == 0 or (level < depth and rng.random() < 0.15):
                numbers.append(-1)
                continue
            f = _random_aggregator(rng, int(rng.integers(3, widest + 1)))
            if f not in aggregators:
                aggregators.append(f)
            numbers.append(aggregators.index(f))
            below += f.width
        layer = below
    return _tree(aggregators, numbers, (rng.random(len(numbers)) < rng.random()).astype(int))


def _random_aggregator(rng: np.random.Generator, width: int) -> Aggregator:
    """Majority, "at least k", or a weighted threshold that about half of all assignments meet, each as likely."""
    kind = rng.integers(3)
    if kind == 0:
        return fbs.majority(width)
    if kind == 1:
        return fbs.at_least(int(rng.integers(1, width + 1)), width)
    weights = rng.integers(1, 4, width)
    return fbs.Threshold(tuple(weights.tolist()), int(weights.sum() + 1) // 2)


def _tree(
    aggregators: Sequence[Aggregator], numbers: Sequence[int], answers: Sequence[int], source: str = "made on the spot"
) -> ClaimTree:
    count = len(numbers)
    written = [aggregators[number].written if number >= 0 else "" for number in numbers]
    text = [f"claim {node}" for node in range(count)]
    return ClaimTree.from_breadth_first(source, aggregators, numbers, answers, [-1] * count, text, written)
