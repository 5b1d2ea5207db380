"""Cover programs: tables of all assignments beside cvxpy, wide weighted thresholds, wide majorities.

Every instance that is timed is new, since answers are kept, and answers are checked: tables of width 8 and 10 against
cvxpy at each assignment (`fbs.reference`), wide ones by verifying their certificates, which calls no solver (cvxpy
could not list the blocks of a threshold this wide).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measurement import Budget, Curve, Result, Row, Skipped, Target, ratios, seconds_of
from fbs.aggregator import Aggregator, Table, Threshold, majority
from fbs.bits import all_assignments
from fbs.certificate import Certificate
from fbs.sensitivity import sensitivity
from fbs.table import SensitivityTable

LIMITS = {8: 0.3, 10: 3.0}  # seconds for all assignments of a truth table of that width
SAMPLE = 40  # assignments that cvxpy is timed on
AGREEMENT = 1e-6  # the reference's own accuracy
TABLE_WIDTHS = (3, 4, 5, 6, 7, 8, 9, 10)
THRESHOLD_WIDTHS = (11, 25, 49, 99)
MAJORITY_WIDTHS = (99, 999, 9999)


class DisagreementError(AssertionError):
    """A timed answer is wrong; no number is worth printing."""


def measure(budget: Budget) -> Iterator[Result]:
    """Medians over new instances, and how each cost grows with the width."""
    rng = np.random.default_rng(0)
    solve_all(random_table(rng, 4))  # imports are not counted
    for width in (8,) if budget.quick else (8, 10):
        yield from tables(width, rng, budget)
    yield from wide(
        "weighted threshold of 99, weights to 50, one z, exact", lambda width: random_threshold(rng, width),
        THRESHOLD_WIDTHS, 99, Target(at_most=0.06), rng, budget, calls=3,
    )  # fmt: skip
    yield from wide(
        "majority of 999, one z, exact", majority, MAJORITY_WIDTHS, 999, Target(at_most=0.0002), rng, budget, calls=100,
    )  # fmt: skip
    widths = TABLE_WIDTHS[:-2] if budget.quick else TABLE_WIDTHS
    yield growth("all assignments of a table", widths, lambda w: random_table(rng, w), solve_all, budget)


def tables(width: int, rng: np.random.Generator, budget: Budget) -> Iterator[Result]:
    """All assignments of random truth tables, and cvxpy on some of the same programs."""
    seconds, reference = [], []
    for _ in range(budget.repeats):
        f = random_table(rng, width)
        seconds.append(seconds_of(lambda f=f: solve_all(f)))
        some = rng.choice(2**width, min(SAMPLE, 2**width), replace=False)
        try:
            reference.append(check_by_cvxpy(f, some) / len(some))
        except ImportError:
            break
    what = f"value, basic cover, packing of all 2^{width} assignments of a table"
    yield Row(what, tuple(seconds), "s", Target(at_most=LIMITS[width]))
    if not reference:
        yield Skipped("cvxpy", "not installed")
        return
    yield Row(f"one of these programs by cvxpy, width {width}", tuple(reference), "s", note="timed on a sample")
    each = ratios(reference, (second / 2**width for second in seconds))
    yield Row(f"cvxpy / ours, one program, width {width}", each, "x", Target(at_least=20))
    check_by_cvxpy(f, range(2**width))
    yield Row(f"programs checked against cvxpy, width {width}", (len(reference) * SAMPLE + 2**width,), "",
              note="all agree; the last table whole")  # fmt: skip


def solve_all(f: Aggregator) -> SensitivityTable:
    """Values, covers and packings of all assignments."""
    table = SensitivityTable(f)
    table.value, table.cover  # noqa: B018
    for code in range(2**f.width):
        table.packing(code)
    return table


def check_by_cvxpy(f: Aggregator, codes: Any) -> float:
    """Seconds that cvxpy takes for some assignments; value and packing must agree."""
    from fbs.reference import reference_sensitivity

    table, assignments, seconds = SensitivityTable(f), all_assignments(f.width), 0.0
    reference_sensitivity(f, assignments[0])  # its imports are not counted
    for code in codes:
        found: list[Any] = []
        seconds += seconds_of(lambda z=assignments[code], found=found: found.append(reference_sensitivity(f, z)))
        expected, packed = found[0].value, sum(weight for _, weight in table.packing(code))
        for got in (table.value[code], table.cover[code].sum(), packed):
            if not abs(got - expected) <= AGREEMENT * max(1.0, expected):
                raise DisagreementError(f"{f} at {assignments[code].tolist()}: {got}, but cvxpy says {expected}")
    return seconds


def wide(
    name: str, new: Callable[[int], Aggregator], widths: tuple[int, ...], width: int, target: Target,
    rng: np.random.Generator, budget: Budget, calls: int,
) -> Iterator[Result]:  # fmt: skip
    """Single assignments, new ones in every call: the median at one width, and the growth over all."""
    points = []
    for q in widths:
        seconds = []
        for _ in range(budget.repeats):
            cases = [(new(q), rng.integers(0, 2, q)) for _ in range(calls)]
            found: list[Certificate] = []
            work = partial(found.extend, (sensitivity(f, z) for f, z in cases))
            seconds.append(seconds_of(work) / calls)
            for certificate in found if q <= 99 else found[: 999 // q]:  # a packing of 999 is half a million indices
                certificate.verify()
        points.append((q, float(np.median(seconds))))
        if q == width:
            yield Row(name, tuple(seconds), "s", target, "verified" if q <= 99 else "the first of each repeat verified")
    yield Curve("Solving cover programs", "width", "seconds", {name.split(" of ")[0] + ", one z": points})


def growth(
    label: str, widths: tuple[int, ...], new: Callable[[int], Aggregator], work: Callable[[Any], Any], budget: Budget
) -> Curve:
    """Median seconds by width."""
    points = []
    for width in widths:
        instances = [new(width) for _ in range(budget.repeats)]
        points.append((width, float(np.median([seconds_of(lambda f=f: work(f)) for f in instances]))))
    return Curve("Solving cover programs", "width", "seconds", {label: points})


def random_table(rng: np.random.Generator, width: int) -> Table:
    """A uniform truth table, its array made already."""
    f = Table(tuple(rng.integers(0, 2, 2**width).tolist()))
    f.table()
    return f


def random_threshold(rng: np.random.Generator, width: int) -> Threshold:
    """Weights uniform from 1 to 50, a threshold uniform among those that can be met."""
    weights = rng.integers(1, 51, width)
    return Threshold(tuple(weights.tolist()), int(rng.integers(1, weights.sum() + 1)))
