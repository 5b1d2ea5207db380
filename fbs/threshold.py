"""The cover program of wide weighted thresholds.

Sub-claims of equal weight, answer and capacity form a group. The program over groups is solved by generating blocks,
the most violated of which is a knapsack. Its packing weighs count vectors ("two of these and five of those"); drawing
the counts evenly from each group turns them into blocks.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from fbs.aggregator import Threshold
from fbs.certificate import Certificate, Number, Packing
from fbs.generation import GeneratedCover, generate_cover, group_labels
from fbs.linear_program import exact_basic_solution
from fbs.packing import coupled_packing, systematic_packing

MAX_EXACT_GROUPS = 100  # of a basis solved in fractions, whose digits grow with its size


def threshold_certificate(
    aggregator: Threshold, assignment: tuple[int, ...], capacities: tuple[Number, ...]
) -> Certificate:
    """By generating blocks. Exact if the capacities are fractions and the groups not too many, else in floats."""
    z = np.array(assignment)
    masses = np.array(capacities, dtype=np.float64)
    ranks = {capacity: rank for rank, capacity in enumerate(sorted(set(capacities)))}  # fractions too close for floats
    labels = group_labels(aggregator, z, np.array([ranks[capacity] for capacity in capacities]))
    generated = generate_cover(aggregator, z, masses, labels)
    if isinstance(capacities[0], Fraction) and labels.max() < MAX_EXACT_GROUPS:
        certificate = _exact_certificate(aggregator, assignment, capacities, labels, generated)
        if certificate is not None:
            return certificate
    cover = generated.solution.x[labels]
    source = partial(_packing, labels, generated.counts, np.maximum(generated.solution.duals, 0).tolist())
    return Certificate(aggregator, assignment, capacities, float(masses @ cover), tuple(cover.tolist()), source, False)


def _exact_certificate(
    aggregator: Threshold,
    assignment: tuple[int, ...],
    capacities: tuple[Number, ...],
    labels: np.ndarray,
    generated: GeneratedCover,
) -> Certificate | None:
    """In fractions, or None if rounding hid that the basis is not optimal or that a block is missing."""
    totals = [Fraction(0)] * (int(labels.max()) + 1)
    for label, capacity in zip(labels.tolist(), capacities, strict=True):
        totals[label] += capacity
    found = exact_basic_solution(generated.counts, totals, generated.solution)
    if found is None:
        return None
    group_cover, weights = found
    cover = tuple(group_cover[label] for label in labels.tolist())
    lightest = aggregator.lightest_block(assignment, np.array(cover, dtype=object))
    if lightest is not None and lightest[0] < 1:
        return None
    value = sum((c * t for c, t in zip(totals, group_cover, strict=True)), start=Fraction(0))
    source = partial(_packing, labels, generated.counts, weights)
    return Certificate(aggregator, assignment, capacities, value, cover, source, True)


def _packing(labels: np.ndarray, counts: np.ndarray, weights: list[Number]) -> Packing:
    """Blocks whose members are drawn evenly from each group, so that a group's load spreads evenly over it."""
    members = [np.flatnonzero(labels == label).tolist() for label in range(counts.shape[1])]
    blocks = []
    for count, weight in zip(counts.tolist(), weights, strict=True):
        if not weight:
            continue
        draws = [
            tuple(
                (tuple(group[j] for j in chosen), share)
                for chosen, share in systematic_packing([1] * len(group), wanted)
            )
            for group, wanted in zip(members, count, strict=True)
            if wanted
        ]
        blocks.extend((block, weight * share) for block, share in coupled_packing(draws))
    return tuple(blocks)
