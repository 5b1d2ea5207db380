"""Maximise entropy over the optimal face of a small cover program.

    face  {P >= 0 : matrix P >= 1, sum_g P_g = 1},  matrix[B, g] = counts[B, g] * W / totals[g]

A dual optimum tells which rows hold with equality all over the face and which masses are 0 all over it, by
complementary slackness, but not all of them: a homogenised linear program finds the rest together with a point where
everything else is strict. From that point a primal-dual interior point method goes to the maximum; Newton steps on the
rows that it finds active make it exact.
"""

from __future__ import annotations

import numpy as np

from fbs.linear_program import LinearProgram

_ZERO = 1e-9  # duals, slack capacity and singular values below this, relative to their scale, are rounding
_SMALL_GAP = 1e-13
_SMALL_RESIDUAL = 1e-6  # rounding may leave that much in the last, ill-conditioned steps; Newton steps do the rest
_MAX_STEPS = 200


class EntropyError(ArithmeticError):
    """The interior point method did not converge."""


def maximum_entropy_masses(counts: np.ndarray, totals: np.ndarray, log_multiplicities: np.ndarray) -> np.ndarray | None:
    """Among optima of min totals . t s.t. counts t >= 1 the P_g = totals_g t_g / W of largest -sum_g P_g ln(P_g / m_g).

    Args:
        counts: nonnegative (number of blocks, number of groups).
        totals: finite and nonnegative (number of groups,). Groups that cost nothing get no mass and satisfy their
            blocks.
        log_multiplicities: ln m (number of groups,).

    Returns:
        float64 (number of groups,), sums to 1; None if W is 0.

    Raises:
        EntropyError: no convergence.
    """
    costly = totals > 0
    counts = counts[(counts[:, ~costly] == 0).all(axis=1)][:, costly]
    if not len(counts):
        return None
    solution = LinearProgram(totals[costly], counts).solve()
    matrix = counts * (solution.value / totals[costly])
    loads = solution.duals @ counts / totals[costly]
    masses = np.zeros(len(totals))
    masses[costly] = _optimum(
        matrix, solution.duals > _ZERO * solution.value, loads > 1 - _ZERO, log_multiplicities[costly]
    )
    masses = np.maximum(masses, 0)  # a face that is a point is solved for, and zeros come out as rounding
    return masses / masses.sum()


def _optimum(matrix: np.ndarray, tight: np.ndarray, support: np.ndarray, log_multiplicities: np.ndarray) -> np.ndarray:
    """P over all groups, from rows known to be tight and groups that may have mass."""
    masses = np.zeros(len(support))
    directions = _null_space(matrix[tight][:, support])
    if not directions.shape[1]:
        masses[support] = _on_rows(matrix[tight][:, support], np.zeros(support.sum()))
        return masses
    tight, support, inside = _relative_interior(matrix, tight, support)
    rows = matrix[:, support]
    masses[support] = _maximise(rows[tight], rows[~tight], inside, log_multiplicities[support])
    return masses


def _relative_interior(
    matrix: np.ndarray, tight: np.ndarray, support: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows that are tight all over the face, the groups with mass somewhere on it, and a point (number of these,)
    where all other rows are strict and all these groups have mass.

    Over the cone of the face, {(P, s) : P / s on the face}, as many as possible of the slacks that may exceed 0 are
    pushed to 1. The cone being closed under addition, one point does it for all.
    """
    columns, loose = np.flatnonzero(support), np.flatnonzero(~tight)
    n, r = len(columns), len(loose)
    scale = np.ones((len(matrix), 1))
    equal = np.hstack([matrix[tight][:, columns], -scale[tight], np.zeros((tight.sum(), n + r))])
    positive = np.hstack([np.eye(n), np.zeros((n, 1)), -np.eye(n), np.zeros((n, r))])
    strict = np.hstack([matrix[loose][:, columns], -scale[loose], np.zeros((r, n)), -np.eye(r)])
    cost = np.concatenate([np.zeros(n + 1), -np.ones(n + r)])
    upper = np.concatenate([np.zeros(len(equal)), np.full(n + r, np.inf)])
    bounds = np.concatenate([np.full(n + 1, np.inf), np.ones(n + r)])
    x = LinearProgram(cost, np.vstack([equal, positive, strict]), 0.0, upper, bounds).solve().x
    has_mass, is_strict = x[n + 1 : 2 * n + 1] > 0.5, x[2 * n + 1 :] > 0.5
    tight, support = tight.copy(), support.copy()
    tight[loose[~is_strict]] = True
    support[columns[~has_mass]] = False
    return tight, support, x[:n][has_mass] / x[n]


def _maximise(equal: np.ndarray, above: np.ndarray, inside: np.ndarray, log_multiplicities: np.ndarray) -> np.ndarray:
    """argmax of -sum P ln(P / m) s.t. equal P = 1, above P >= 1, from a strictly feasible point."""
    start = _on_rows(equal, inside)
    point, active = _interior_point(_null_space(equal), above, start, log_multiplicities)
    rows = np.vstack([equal, above[active]])
    polished = _newton(rows, _on_rows(rows, point), log_multiplicities)
    return polished if polished is not None and (above @ polished >= 1 - _ZERO).all() else point


def _interior_point(
    directions: np.ndarray, above: np.ndarray, point: np.ndarray, log_multiplicities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Primal-dual path following along `directions` (n, k). Returns the optimum and which rows of `above` bind."""
    slack = above @ point - 1
    prices = 0.1 / np.maximum(slack, 0.1)  # Lagrange multipliers of the rows
    for _ in range(_MAX_STEPS):
        gradient = np.log(point) - log_multiplicities + 1
        residual = directions.T @ (gradient - above.T @ prices)
        gap = slack @ prices
        if gap <= _SMALL_GAP and np.abs(residual).max(initial=0) <= _SMALL_RESIDUAL:
            return point, prices > slack
        target = 0.1 * gap / max(len(slack), 1)
        curved = above @ directions
        hessian = directions.T @ (directions / point[:, None]) + curved.T @ (curved * (prices / slack)[:, None])
        move = directions @ np.linalg.solve(hessian, -directions.T @ (gradient - above.T @ (target / slack)))
        slack_move = above @ move
        price_move = target / slack - prices - prices / slack * slack_move
        step = min(_step(point, move), _step(slack, slack_move), _step(prices, price_move))
        point, slack, prices = point + step * move, slack + step * slack_move, prices + step * price_move
    raise EntropyError(
        f"interior point method: gap {gap:.1e}, residual {np.abs(residual).max():.1e} after {_MAX_STEPS} steps"
    )


def _step(values: np.ndarray, moves: np.ndarray) -> float:
    """The longest step, at most 1, that keeps positive values positive."""
    ratios = -moves / values
    return min(1.0, 0.99 / ratios.max(initial=0.5))


def _newton(rows: np.ndarray, point: np.ndarray, log_multiplicities: np.ndarray) -> np.ndarray | None:
    """Maximise entropy subject to rows P = 1 from a point nearby; None if that leaves the positive masses."""
    directions = _null_space(rows)
    for _ in range(8):
        if not (point > 0).all():
            return None
        gradient = directions.T @ (np.log(point) - log_multiplicities)
        move = directions @ np.linalg.solve(directions.T @ (directions / point[:, None]), -gradient)
        point = point + _step(point, move) * move
    return _on_rows(rows, point)


def _on_rows(rows: np.ndarray, point: np.ndarray) -> np.ndarray:
    """The nearest point with rows P = 1."""
    return point + np.linalg.lstsq(rows, 1 - rows @ point, rcond=_ZERO)[0]


def _null_space(rows: np.ndarray) -> np.ndarray:
    """Orthonormal directions (n, k) along which no row changes."""
    if not len(rows):
        return np.eye(rows.shape[1])
    _, singular, right = np.linalg.svd(rows)
    rank = int((singular > _ZERO * singular[0]).sum())
    return right[rank:].T
