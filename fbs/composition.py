"""The cover program of a read-once composition, from those of its parts.

A minimal sensitive block of outer(part_1, ..., part_r) flips a block J of parts, each by one of its own blocks. With
R_j the value of part j, under its capacities, and (u, w) cover and packing of the outer function at the parts' answers
with capacities R_j:

    value    that of the outer program
    cover    u_j t_i for sub-claim i of part j
    packing  each outer block J with its weight, the parts' packings joined by a common quantile

A part that cannot change has R_j = 0: covering it costs nothing, and no packing may use it.
"""

from __future__ import annotations

from functools import partial

from fbs.aggregator import Composition
from fbs.certificate import Certificate, Number, Packing
from fbs.packing import coupled_packing
from fbs.sensitivity import sensitivity, solve


def composition_certificate(
    aggregator: Composition, assignment: tuple[int, ...], capacities: tuple[Number, ...]
) -> Certificate:
    """By recursion over the parts; exact if the capacities are fractions and all parts are."""
    parts = [
        solve(part, assignment[place], capacities[place])
        for part, place in zip(aggregator.parts, aggregator.slices, strict=True)
    ]
    outer = sensitivity(aggregator.outer, aggregator.part_values(assignment), [part.value for part in parts])
    cover = tuple(weight * t for weight, part in zip(outer.cover, parts, strict=True) for t in part.cover)
    exact = outer.exact and all(part.exact for part in parts)
    source = partial(_packing, aggregator, outer, tuple(parts))
    return Certificate(aggregator, assignment, capacities, outer.value, cover, source, exact)


def _packing(aggregator: Composition, outer: Certificate, parts: tuple[Certificate, ...]) -> Packing:
    shifted = [
        tuple((tuple(place.start + i for i in block), weight) for block, weight in part.packing)
        for part, place in zip(parts, aggregator.slices, strict=True)
    ]
    return tuple(
        (block, weight * share)
        for flipped, weight in outer.packing
        if weight
        for block, share in coupled_packing([shifted[j] for j in flipped])
    )
