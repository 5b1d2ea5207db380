"""Sums of integer weights: how likely they reach a threshold, and the cheapest way to reach it.

Both are dynamic programs over the sums 0, 1, ..., threshold, the last standing for "at least the threshold", so the
cost is (number of weights) * (threshold) however many subsets there are. Weights are divided by their greatest common
divisor first; what is still too large for an array is refused by `WeightError` before anything is allocated.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

MAX_SUMS = 1_000_000  # distinct sums that the dynamic programs keep
MAX_CELLS = 500_000_000  # bytes of the record from which a cheapest subset is read back


class WeightError(ValueError):
    """Integer weights too large for the dynamic programs."""


def reduced(weights: np.ndarray, threshold: int) -> tuple[np.ndarray, int]:
    """The same condition sum >= threshold over smaller numbers.

    Args:
        weights: positive int64 (n,).
        threshold: positive.

    Returns:
        weights divided by their greatest common divisor and cut to the threshold (more than enough is enough), and the
        threshold divided and rounded up.
    """
    divisor = math.gcd(*weights.tolist()) or 1
    threshold = -(-threshold // divisor)
    return np.minimum(weights // divisor, threshold), threshold


def too_many_sums(threshold: int) -> WeightError:
    return WeightError(
        f"weights too large: {threshold} different sums matter, at most {MAX_SUMS} can be kept; "
        "divide the weights and the threshold by a common factor, or round them"
    )


def reaching(
    weights: np.ndarray, threshold: int, without: np.ndarray, included: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split the total mass of all subsets by whether their weights reach the threshold.

    Args:
        weights: positive int64 (n,).
        threshold: positive.
        without, included: float64 (..., n), the factor that item i brings when it is left out or taken.

    Returns:
        (short, reached), float64 (...,) each.

    Raises:
        WeightError: the threshold, after division, exceeds MAX_SUMS.
    """
    weights, threshold = reduced(weights, threshold)
    if threshold > MAX_SUMS:
        raise too_many_sums(threshold)
    mass = np.zeros((*without.shape[:-1], threshold + 1))  # mass[..., s] of the sum s, the last of all sums above
    mass[..., 0] = 1.0
    for i, weight in enumerate(weights.tolist()):
        moved = mass * included[..., i : i + 1]
        mass *= without[..., i : i + 1]
        mass[..., weight:] += moved[..., : threshold + 1 - weight]
        mass[..., threshold] += moved[..., threshold + 1 - weight :].sum(-1)
    return mass[..., :threshold].sum(-1), mass[..., threshold]


def comparable(masses: np.ndarray) -> np.ndarray:
    """Masses as numbers that an array adds and compares quickly: fractions become integers in proportion.

    The integers are int64 where their sum fits, else Python's own in an object array.
    """
    if masses.dtype != object:
        return masses
    fractions = [Fraction(mass) for mass in masses.tolist()]
    denominator = math.lcm(*(mass.denominator for mass in fractions))
    integers = [int(mass * denominator) for mass in fractions]
    return np.array(integers, dtype=np.int64 if sum(integers) < 2**61 else object)


def cheapest(gains: np.ndarray, need: int, masses: np.ndarray) -> np.ndarray | None:
    """The subset of least mass whose gains sum to at least `need`; no item of it can be spared.

    Args:
        gains: positive int64 (n,).
        need: positive.
        masses: finite and nonnegative, float64 or an object array of fractions (n,).

    Returns:
        bool (n,), or None if all items together gain too little.

    Raises:
        WeightError: the sums are too many to keep.
    """
    if gains.sum() < need:
        return None
    masses = comparable(masses)
    chosen = masses == 0
    rest = np.flatnonzero(~chosen)
    need_now = need - int(gains[chosen].sum())
    if need_now > 0:
        chosen[rest[_cheapest_positive(gains[rest], need_now, masses[rest])]] = True
    return _without_spare(chosen, gains, need)


def _cheapest_positive(gains: np.ndarray, need: int, masses: np.ndarray) -> np.ndarray:
    """Indices of the cheapest subset, by a table best[s] = least mass that gains at least s."""
    gains, need = reduced(gains, need)
    if need > MAX_SUMS:
        raise too_many_sums(need)
    if need * len(gains) > MAX_CELLS:
        raise WeightError(f"{len(gains)} weights and {need} sums are too many to search: round the weights")
    unreached = np.inf if masses.dtype == np.float64 else 2 * int(masses.sum()) + 1
    best = np.full(need + 1, unreached, dtype=masses.dtype)
    best[0] = 0
    taken = np.zeros((len(gains), need + 1), dtype=bool)
    candidate = np.empty_like(best)
    for i, (gain, mass) in enumerate(zip(gains.tolist(), masses, strict=True)):
        candidate[gain:] = best[: need + 1 - gain] + mass
        candidate[:gain] = best[0] + mass  # more than enough is enough
        np.less(candidate, best, out=taken[i], casting="unsafe")
        np.minimum(candidate, best, out=best)
    indices = []
    for i in reversed(range(len(gains))):
        if taken[i, need]:
            indices.append(i)
            need = max(need - int(gains[i]), 0)
    return np.array(indices, dtype=np.int64)


def _without_spare(chosen: np.ndarray, gains: np.ndarray, need: int) -> np.ndarray:
    """Drop the items, least gain first, that the others can do without; in a cheapest subset they cost nothing."""
    excess = int(gains[chosen].sum()) - need
    for i in sorted(np.flatnonzero(chosen), key=lambda i: gains[i]):
        if gains[i] > excess:
            break
        excess -= int(gains[i])
        chosen[i] = False
    return chosen
