"""Fractional block sensitivity of any aggregator at any assignment, with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import Any

import numpy as np

from fbs.aggregator import Aggregator, Composition, Symmetric, Threshold
from fbs.certificate import Certificate, Number
from fbs.notation import assignment as read_assignment

LISTED_WIDTH = 10  # thresholds to this width list their blocks, whose basic covers are short fractions


class SensitivityError(ValueError):
    """An assignment or capacities that do not fit the aggregator."""


def sensitivity(
    aggregator: Aggregator, assignment: Any, capacities: Sequence[Any] | np.ndarray | None = None
) -> Certificate:
    """Solve min sum_i c_i t_i over covers t of the sensitive blocks of f at z; answers that take a solver are kept.

    Symmetric aggregators in closed form, compositions from their parts, wide thresholds by generating blocks when they
    are violated, the rest by listing the minimal blocks.

    Args:
        aggregator: f of width q.
        assignment: z, 0/1 (q,), or text such as "11100".
        capacities: c, nonnegative and finite (q,), 1 by default: then the value is the fractional block sensitivity of
            section 3.3 of the paper. Integers and fractions give exact answers, floats give floats.

    Raises:
        SensitivityError: an argument that does not fit.
    """
    return solve(aggregator, checked_assignment(aggregator, assignment), checked_capacities(aggregator, capacities))


def solve(aggregator: Aggregator, assignment: tuple[int, ...], capacities: tuple[Number, ...]) -> Certificate:
    """`sensitivity` of checked arguments."""
    if isinstance(aggregator, Symmetric):
        from fbs.symmetric import symmetric_certificate

        return symmetric_certificate(aggregator, assignment, capacities)  # quicker than looking up a kept answer
    return _kept_certificate(aggregator, assignment, capacities, isinstance(capacities[0], Fraction))


@lru_cache(maxsize=16384)
def _kept_certificate(
    aggregator: Aggregator, assignment: tuple[int, ...], capacities: tuple[Number, ...], exact: bool
) -> Certificate:
    """`exact` is part of the key: 1.0 equals Fraction(1), but their answers are of different kinds."""
    if isinstance(aggregator, Composition):
        from fbs.composition import composition_certificate as certificate
    elif isinstance(aggregator, Threshold) and aggregator.width > LISTED_WIDTH:
        from fbs.threshold import threshold_certificate as certificate
    else:
        from fbs.table import table_certificate as certificate
    return certificate(aggregator, assignment, capacities)


def checked_assignment(aggregator: Aggregator, assignment: Any) -> tuple[int, ...]:
    """The assignment as a tuple of 0 and 1, or SensitivityError (NotationError for text that is not one)."""
    z = read_assignment(assignment) if isinstance(assignment, str) else np.asarray(assignment)
    if z.shape != (aggregator.width,):
        raise SensitivityError(
            f"{_short(aggregator)} needs an assignment of {aggregator.width} answers, not shape {z.shape}"
        )
    if not ((z == 0) | (z == 1)).all():
        raise SensitivityError(
            f"an assignment consists of 0 and 1, not {z.tolist() if z.size <= 20 else 'other values'}"
        )
    return tuple(z.astype(np.int8).tolist())


def checked_capacities(aggregator: Aggregator, capacities: Sequence[Any] | np.ndarray | None) -> tuple[Number, ...]:
    """The capacities as all fractions or all floats, or SensitivityError."""
    if capacities is None:
        return (Fraction(1),) * aggregator.width
    items = capacities.tolist() if isinstance(capacities, np.ndarray) else list(capacities)
    if len(items) != aggregator.width:
        raise SensitivityError(f"{_short(aggregator)} needs {aggregator.width} capacities, not {len(items)}")
    exact = all(isinstance(item, Rational) for item in items)
    numbers = tuple(Fraction(item) if exact else float(item) for item in items)
    wrong = next((i for i, number in enumerate(numbers) if not 0 <= number < float("inf")), None)
    if wrong is not None:
        raise SensitivityError(f"capacities must be finite and nonnegative; number {wrong} is {numbers[wrong]}")
    return numbers


def _short(aggregator: Aggregator) -> str:
    text = str(aggregator)
    return text if len(text) <= 60 else text[:57] + "..."
