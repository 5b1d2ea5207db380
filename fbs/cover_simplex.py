"""Small cover programs, many at a time: the simplex method with the tableaux of all programs in one array.

A packing program starts from the empty packing, which is feasible, so there is no first phase; the cover is read off
the reduced costs of the slacks. The programs pivot together, each on its own entry, until all are optimal: a hundred of
them take about as long as one.

    >>> pairs = np.array([[[1, 1, 0], [1, 0, 1], [0, 1, 1]]])  # three sub-claims, every two of them a block
    >>> solution = solve_covers(pairs, np.ones((1, 3)))
    >>> solution.cover.tolist(), solution.weights.tolist()
    ([[0.5, 0.5, 0.5]], [[0.5, 0.5, 0.5]])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fbs.linear_program import LinearProgramError, LinearSolution

_ZERO = 1e-10  # reduced costs and pivots smaller than this are rounding
_GREEDY = 20  # pivots for each sub-claim before the rule that cannot cycle takes over
_MAX_PIVOTS = 20_000


@dataclass(frozen=True)
class Covers:
    """Optimal basic solutions of N programs with M blocks of q sub-claims.

    Attributes:
        cover: t, float64 (N, q).
        weights: w, float64 (N, M).
        basis: int64 (N, q): what is basic in the packing program: m for block m, M + i for the slack of sub-claim i.
    """

    cover: np.ndarray
    weights: np.ndarray
    basis: np.ndarray


def solve_covers(blocks: np.ndarray, capacities: np.ndarray) -> Covers:
    """Solve min capacities . t s.t. blocks t >= 1, t >= 0, and its dual, the packing program.

    Args:
        blocks: 0/1 (N, M, q). Rows of zeros are no blocks; programs with fewer than M blocks are filled up with them.
        capacities: finite and nonnegative (N, q).

    Raises:
        LinearProgramError: no end, which exact arithmetic excludes.
    """
    programs, count, width = blocks.shape
    tableau = np.zeros((programs, width + 1, count + width + 1))  # last row: reduced costs; last column: right sides
    tableau[:, :width, :count] = blocks.swapaxes(1, 2)
    tableau[:, :width, count:-1] = np.eye(width)
    tableau[:, :width, -1] = capacities
    tableau[:, width, :count] = -blocks.any(axis=2).astype(np.float64)
    basis = np.tile(np.arange(count, count + width), (programs, 1))
    solved = Covers(np.zeros((programs, width)), np.zeros((programs, count)), basis.copy())
    left = np.arange(programs)
    for pivots in range(_MAX_PIVOTS):
        cycling = pivots >= _GREEDY * width
        improves = tableau[:, width, :-1] < -_ZERO
        unfinished = improves.any(axis=1)
        if 2 * unfinished.sum() <= len(left):
            _keep(solved, left[~unfinished], tableau[~unfinished], basis[~unfinished])
            left, tableau, basis, improves = (array[unfinished] for array in (left, tableau, basis, improves))
            unfinished = unfinished[unfinished]
        if not len(left):
            return solved
        entering = (improves if cycling else -tableau[:, width, :-1]).argmax(axis=1)
        _pivot(tableau, basis, np.where(unfinished, entering, basis[:, 0]), cycling)  # a basic column changes nothing
    raise LinearProgramError(f"{len(left)} cover programs of {width} sub-claims: no optimum after {_MAX_PIVOTS} pivots")


def solve_cover(blocks: np.ndarray, capacities: np.ndarray) -> LinearSolution:
    """One program, blocks 0/1 (M, q) and capacities (q,), with its basis; errors as in `solve_covers`."""
    solved = solve_covers(blocks[None], capacities[None])
    cover, basis, count = solved.cover[0], solved.basis[0], len(blocks)
    weighted = np.sort(basis[basis < count])
    uncovered = basis[basis >= count] - count
    columns = np.setdiff1d(np.arange(len(capacities)), uncovered)
    return LinearSolution(float(capacities @ cover), cover, solved.weights[0], columns, weighted)


def _pivot(tableau: np.ndarray, basis: np.ndarray, entering: np.ndarray, cycling: bool) -> None:
    """Let a column enter the basis of each program."""
    every = np.arange(len(tableau))
    column = tableau[every, :, entering]
    usable = column[:, :-1] > _ZERO
    ratios = np.where(usable, tableau[:, :-1, -1], np.inf) / np.where(usable, column[:, :-1], 1.0)
    leaving = ratios.argmin(axis=1)
    if cycling:  # Bland's rule: of the rows that tie the one whose variable comes first
        ties = ratios <= ratios.min(axis=1, keepdims=True) + _ZERO
        leaving = np.where(ties, basis, basis.max() + 1).argmin(axis=1)
    row = tableau[every, leaving] / column[every, leaving][:, None]
    tableau -= column[:, :, None] * row[:, None, :]
    tableau[every, leaving] = row
    basis[every, leaving] = entering


def _keep(solved: Covers, programs: np.ndarray, tableau: np.ndarray, basis: np.ndarray) -> None:
    """Read the solutions of finished programs off their tableaux."""
    count = solved.weights.shape[1]
    solved.cover[programs] = np.maximum(tableau[:, -1, count:-1], 0)
    place, row = np.nonzero(basis < count)
    solved.weights[programs[place], basis[place, row]] = np.maximum(tableau[place, row, -1], 0)
    solved.basis[programs] = basis
