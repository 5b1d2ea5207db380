"""The cover program of symmetric aggregators in closed form, at any width.

A minimal sensitive block flips ones only or zeros only, and any a ones do (any b zeros) where a (b) is the fewest whose
flip changes f: flipping x ones and y zeros reaches a count that |x - y| flips of one sort reach too. So the program
splits in two, each over the a-subsets of m items with capacities c:

    value    W = min over j < a of (sum of all capacities but the j largest) / (a - j)
    cover    1 / (a - j) on all items but those j
    packing  loads min(c_i, W), drawn a at a time by systematic sampling

With unit capacities this is m / a for the ones plus (q - m) / b for the zeros.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import accumulate, compress
from operator import not_

from fbs.aggregator import Symmetric
from fbs.certificate import Certificate, Number, Packing
from fbs.packing import systematic_packing


def symmetric_certificate(
    aggregator: Symmetric, assignment: tuple[int, ...], capacities: tuple[Number, ...]
) -> Certificate:
    """Closed form; exact if the capacities are fractions. `assignment` and `capacities` are (width,)."""
    exact = isinstance(capacities[0], Fraction)
    zero = Fraction(0) if exact else 0.0
    value, sides, weights, free = zero, [], {0: zero, 1: zero}, []
    for bit, fewest in zip((1, 0), aggregator.least_flips(sum(assignment)), strict=True):
        if fewest is None:
            continue
        on_side = assignment if bit else tuple(map(not_, assignment))
        items = list(compress(range(aggregator.width), on_side))
        side_value, spared = subset_cover(list(compress(capacities, on_side)), fewest)
        weights[bit] = (zero + 1) / (fewest - len(spared))
        free += [items[j] for j in spared]
        value += side_value
        sides.append((items, fewest, side_value))
    cover = list(map(weights.__getitem__, assignment))
    for i in free:
        cover[i] = zero
    source = partial(_packing, tuple(sides), capacities)
    return Certificate(aggregator, assignment, capacities, value, tuple(cover), source, exact)


def subset_cover(capacities: list[Number], size: int) -> tuple[Number, list[int]]:
    """Cheapest cover of all `size`-subsets: (its value W, the items it spares).

    The others weigh 1 / (size - number of spared items) each.
    """
    if size < len(capacities) == capacities.count(capacities[0]):
        return capacities[0] * len(capacities) / size, []  # W is above every capacity, so none is worth sparing
    by_capacity = sorted(range(len(capacities)), key=capacities.__getitem__)
    sums = list(accumulate(capacities[i] for i in by_capacity))
    value, spared = min((sums[len(sums) - 1 - j] / (size - j), j) for j in range(size))
    return value, by_capacity[len(sums) - spared :]


def _packing(sides: tuple[tuple[list[int], int, Number], ...], capacities: tuple[Number, ...]) -> Packing:
    blocks = []
    for items, fewest, side_value in sides:
        for chosen, weight in systematic_packing([min(capacities[i], side_value) for i in items], fewest):
            blocks.append((tuple(items[j] for j in chosen), weight))
    return tuple(blocks)
