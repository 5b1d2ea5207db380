"""Linear programs by HiGHS, with the optimal basis, from which cover programs are solved again in fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np


class LinearProgramError(ArithmeticError):
    """The solver did not end with an optimal solution."""


@dataclass(frozen=True)
class LinearSolution:
    """An optimal basic solution of a program with m rows and n columns.

    Attributes:
        value: optimal objective.
        x: float64 (n,).
        duals: float64 (m,), nonnegative for rows bounded below.
        columns, rows: the basis: indices of the basic columns and, equally many, of the rows that hold with equality.
    """

    value: float
    x: np.ndarray
    duals: np.ndarray
    columns: np.ndarray
    rows: np.ndarray


class LinearProgram:
    """min cost . x subject to lower <= matrix x <= upper and 0 <= x <= column_upper.

    Args:
        cost: (n,).
        matrix: dense (m, n).
        lower, upper: (m,) or scalars.
        column_upper: (n,) or a scalar.
    """

    def __init__(self, cost: Any, matrix: Any, lower: Any = 1.0, upper: Any = np.inf, column_upper: Any = np.inf):
        import highspy

        self._highs = _quiet_highs()()
        self._width = len(cost)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self._width, len(matrix)
        self._scale = float(np.abs(cost).max(initial=0)) or 1.0  # the solver's tolerances are absolute
        lp.col_cost_ = np.asarray(cost, dtype=np.float64) / self._scale
        lp.col_lower_ = np.zeros(self._width)
        lp.col_upper_ = np.broadcast_to(np.float64(column_upper), (self._width,))
        lp.row_lower_ = np.broadcast_to(np.float64(lower), (len(matrix),))
        lp.row_upper_ = np.broadcast_to(np.float64(upper), (len(matrix),))
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = _compressed_rows(matrix, self._width)
        self._highs.passModel(lp)

    def add_rows(self, matrix: Any, lower: float = 1.0) -> None:
        """More rows matrix x >= lower; the next solve starts from the last basis."""
        starts, indices, values = _compressed_rows(matrix, self._width)
        bounds = np.full(len(matrix), np.float64(lower)), np.full(len(matrix), np.inf)
        self._highs.addRows(len(matrix), *bounds, len(indices), starts[:-1], indices, values)

    def solve(self) -> LinearSolution:
        """Raises LinearProgramError unless the solver reports an optimal solution."""
        import highspy

        highs = self._highs
        highs.run()
        status = highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise LinearProgramError(
                f"HiGHS ended with {highs.modelStatusToString(status)}, not with an optimal solution"
            )
        solution, basis = highs.getSolution(), highs.getBasis()
        basic = highspy.HighsBasisStatus.kBasic
        return LinearSolution(
            value=highs.getObjectiveValue() * self._scale,
            x=np.maximum(solution.col_value, 0),  # rounding may leave a bound by a hair
            duals=np.array(solution.row_dual) * self._scale,
            columns=np.array([j for j, status in enumerate(basis.col_status) if status == basic], dtype=np.int64),
            rows=np.array([i for i, status in enumerate(basis.row_status) if status != basic], dtype=np.int64),
        )


@cache
def _quiet_highs() -> type:
    import highspy

    class QuietHighs(highspy.Highs):
        def enableCallbacks(self) -> None:
            self.silent()  # before the constructor connects its log, which would print a banner
            self.setOptionValue("presolve", "off")  # the programs are small, and rows are added to a solved one
            self.setOptionValue("solver", "simplex")
            self.setOptionValue("primal_feasibility_tolerance", 1e-9)
            self.setOptionValue("dual_feasibility_tolerance", 1e-9)
            super().enableCallbacks()

    return QuietHighs


def _compressed_rows(matrix: Any, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    matrix = np.asarray(matrix, dtype=np.float64).reshape(-1, width)
    rows, columns = np.nonzero(matrix)
    starts = np.searchsorted(rows, np.arange(len(matrix) + 1)).astype(np.int32)
    return starts, columns.astype(np.int32), matrix[rows, columns]


def exact_basic_solution(
    blocks: np.ndarray, capacities: Sequence[Fraction], solution: LinearSolution
) -> tuple[list[Fraction], list[Fraction]] | None:
    """The basic cover and packing of min capacities . t s.t. blocks t >= 1 in fractions.

    Args:
        blocks: integers (m, n).
        capacities: (n,).
        solution: what the solver found; only its basis is used.

    Returns:
        (cover (n,), packing weights (m,)), both feasible and of equal value, hence optimal; None if the basis, which
        the solver judged by floating point numbers, is not optimal.
    """
    square = blocks[np.ix_(solution.rows, solution.columns)]
    basic_cover = solve_exactly(square, [Fraction(1)] * len(square))
    basic_weights = solve_exactly(square.T, [capacities[j] for j in solution.columns])
    if basic_cover is None or basic_weights is None or min([*basic_cover, *basic_weights], default=0) < 0:
        return None
    cover, weights = [Fraction(0)] * blocks.shape[1], [Fraction(0)] * len(blocks)
    for j, weight in zip(solution.columns.tolist(), basic_cover, strict=True):
        cover[j] = weight
    for i, weight in zip(solution.rows.tolist(), basic_weights, strict=True):
        weights[i] = weight
    counts = blocks.astype(int).astype(object)
    shares, whole = over_common_denominator(cover)
    if (counts @ shares < whole).any():
        return None
    parts, unit = over_common_denominator(weights)
    limits, whole = over_common_denominator(capacities)
    if (parts @ counts * whole > limits * unit).any():
        return None
    return cover, weights


def over_common_denominator(fractions: Sequence[Fraction]) -> tuple[np.ndarray, int]:
    """Numerators (n,), Python's integers in an object array, and their common denominator: quick to sum and compare."""
    denominator = math.lcm(*(fraction.denominator for fraction in fractions))
    numerators = np.empty(len(fractions), dtype=object)
    numerators[:] = [fraction.numerator * (denominator // fraction.denominator) for fraction in fractions]
    return numerators, denominator


def solve_exactly(matrix: np.ndarray, right: Sequence[Fraction]) -> list[Fraction] | None:
    """x with matrix x = right, for a square integer matrix; None if it is singular.

    Fraction-free elimination (Bareiss 1968): every intermediate number is a determinant of part of the matrix, so that
    the divisions leave no remainder and the digits grow no faster than they must.
    """
    n = len(matrix)
    denominator = math.lcm(*(y.denominator for y in right))
    rows = np.empty((n, n + 1), dtype=object)
    rows[:, :n] = matrix.astype(int).astype(object)
    rows[:, n] = [int(y * denominator) for y in right]
    previous = 1
    for k in range(n):
        nonzero = np.flatnonzero(rows[k:, k])
        if not len(nonzero):
            return None
        rows[[k, k + nonzero[0]]] = rows[[k + nonzero[0], k]]
        below = rows[k + 1 :, k + 1 :] * rows[k, k] - np.outer(rows[k + 1 :, k], rows[k, k + 1 :])
        rows[k + 1 :, k + 1 :] = below // previous
        previous = rows[k, k]
    scaled = np.zeros(n, dtype=object)  # x times the last pivot, which is the determinant: integers by Cramer's rule
    for k in reversed(range(n)):
        scaled[k] = (previous * rows[k, n] - rows[k, k + 1 : n] @ scaled[k + 1 :]) // rows[k, k]
    return [Fraction(x, previous * denominator) for x in scaled]
