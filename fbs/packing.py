"""Packings from loads: draw sets of a fixed size, and join packings of disjoint sub-claims, with few blocks.

Both go by quantiles. A packing of total weight W is a line of length W, each block holding a stretch as long as its
weight.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from fbs.certificate import Number, Packing

_NEGLIGIBLE = 1e-14  # stretches of a normalised line that come from rounding, not from the packing


def systematic_packing(loads: Sequence[Number], size: int) -> Packing:
    """Weighted sets of `size` items that load each item exactly as asked (systematic sampling, Madow 1949).

    Lay the loads end to end on a line of length size * W and take the items at u, u + W, u + 2W, ...: no item is longer
    than W, so the items differ. As u runs through [0, W) the set changes only where an item ends.

    Args:
        loads: nonnegative (n,), none above sum / size. Fractions give an exact packing.
        size: at least 1.

    Returns:
        At most n sets of indices with weights that sum to W = sum(loads) / size; none if all loads are 0.
    """
    if not any(loads):
        return ()
    exact = all(isinstance(load, (int, Fraction)) for load in loads)
    if exact:
        denominator = math.lcm(*(Fraction(load).denominator for load in loads))
        unit = Fraction(1, 2 * size * denominator)  # makes W and the middle of each stretch whole numbers
        ends = np.array(list(accumulate(int(load / unit) for load in loads)), dtype=object)
        if ends[-1] < 2**62:
            ends = ends.astype(np.int64)
        period = ends[-1] // size
    else:
        unit = 1.0
        ends = np.cumsum(np.array(loads, dtype=np.float64))
        period = ends[-1] / size
    starts = period * np.arange(size)
    packing = []
    for low, high in _stretches(np.append(ends % period, [0, period]).tolist(), period):
        chosen = np.searchsorted(
            ends, starts + (low + high) / 2 if not exact else starts + (low + high) // 2, side="right"
        )
        packing.append((tuple(chosen.tolist()), (high - low) * unit))
    return tuple(packing)


def coupled_packing(packings: Sequence[Packing]) -> Packing:
    """Unions of one block of each packing, driven by a common quantile.

    Args:
        packings: over disjoint sub-claims, each of positive weight.

    Returns:
        A packing of weight 1 whose share of any one packing's blocks is as in that packing. It has at most as many
        blocks as they have together.
    """
    ends = [_normalised_ends(packing) for packing in packings]
    merged = []
    for low, high in _stretches([0, 1, *(end for line in ends for end in line)], 1):
        middle = (low + high) / 2
        blocks = [packing[bisect_right(line, middle)][0] for packing, line in zip(packings, ends, strict=True)]
        merged.append((tuple(sorted(i for block in blocks for i in block)), high - low))
    return tuple(merged)


def _normalised_ends(packing: Packing) -> list[Number]:
    """Where each block's stretch ends on a line of length 1; the last end is 1 up to rounding and left out."""
    ends = list(accumulate(weight for _, weight in packing))
    return [end / ends[-1] for end in ends[:-1]]


def _stretches(points: Sequence[Any], length: Any) -> Iterator[tuple[Any, Any]]:
    """Neighbouring points of a line, in order, without the gaps that are only rounding."""
    points = sorted(set(points))
    negligible = _NEGLIGIBLE * length if any(isinstance(point, float) for point in points) else 0
    return ((low, high) for low, high in pairwise(points) if high - low > negligible)
