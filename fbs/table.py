"""Cover programs of narrow aggregators, by listing the minimal sensitive blocks; all assignments at once to width 10.

Which blocks are sensitive is read off the truth table. Only the minimal ones constrain the cover, and a block is
minimal if it is sensitive and no block with one sub-claim less contains a sensitive one.

    >>> from fbs.notation import parse
    >>> table = SensitivityTable(parse("threshold 3,2,2,1,1 >= 5"))
    >>> table.exact(0b11111).value
    Fraction(9, 5)
    >>> table.value[[0b11111, 0b01110]].round(12).tolist()
    [1.8, 3.0]
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from fbs.aggregator import Aggregator
from fbs.bits import all_assignments, encode
from fbs.certificate import Certificate, Number, Packing
from fbs.cover_simplex import solve_cover, solve_covers
from fbs.interchange import representatives
from fbs.linear_program import exact_basic_solution

MAX_TABULATED_WIDTH = 10
_AT_ONCE = 256  # programs solved together


class TableWidthError(ValueError):
    """An aggregator too wide to tabulate all its assignments."""


def minimal_blocks(sensitive: np.ndarray) -> np.ndarray:
    """bool (..., 2**q): which of the blocks, by code, are sensitive and contain no smaller sensitive block.

    Args:
        sensitive: bool (..., 2**q).
    """
    width = sensitive.shape[-1].bit_length() - 1
    reached, spare = sensitive.copy(), np.zeros_like(sensitive)  # contains a sensitive block; so without one sub-claim
    halves = [(*sensitive.shape[:-1], 2**i, 2, 2 ** (width - 1 - i)) for i in range(width)]
    for shape in halves:
        pairs = reached.reshape(shape)
        pairs[..., 1, :] |= pairs[..., 0, :]
    for shape in halves:
        spare.reshape(shape)[..., 1, :] |= reached.reshape(shape)[..., 0, :]
    return sensitive & ~spare


def minimal_blocks_at(aggregator: Aggregator, assignment: tuple[int, ...]) -> np.ndarray:
    """Minimal sensitive blocks at one assignment: bool (number of blocks, width), read-only. At most 16 wide."""
    return _minimal_blocks_at(aggregator, int(encode(np.array(assignment, dtype=np.int64))))


@lru_cache(maxsize=4096)
def _minimal_blocks_at(aggregator: Aggregator, code: int) -> np.ndarray:
    values = aggregator.table()
    sensitive = values[np.arange(len(values)) ^ code] != values[code]
    blocks = all_assignments(aggregator.width)[minimal_blocks(sensitive)].astype(bool)
    blocks.flags.writeable = False
    return blocks


def table_certificate(
    aggregator: Aggregator, assignment: tuple[int, ...], capacities: tuple[Number, ...]
) -> Certificate:
    """By listing the minimal blocks, up to width 16. The cover is basic, and exact if the capacities are fractions."""
    return listed_certificate(aggregator, assignment, capacities, minimal_blocks_at(aggregator, assignment))


def listed_certificate(
    aggregator: Aggregator, assignment: tuple[int, ...], capacities: tuple[Number, ...], blocks: np.ndarray
) -> Certificate:
    """Certificate from all minimal blocks, bool (number of blocks, width)."""
    solution = solve_cover(blocks, np.array(capacities, dtype=np.float64))
    exact = exact_basic_solution(blocks, capacities, solution) if isinstance(capacities[0], Fraction) else None
    cover, weights = exact or (solution.x.tolist(), solution.duals.tolist())
    packing = _packing(blocks, weights)
    value = sum((c * t for c, t in zip(capacities, cover, strict=True)), start=cover[0] * 0)
    return Certificate(aggregator, assignment, capacities, value, tuple(cover), packing, exact is not None)


def _packing(blocks: np.ndarray, weights: list[Number]) -> Packing:
    """The blocks, bool (number of blocks, width), that have weight, as increasing indices."""
    return tuple(
        (tuple(np.flatnonzero(block).tolist()), weight) for block, weight in zip(blocks, weights, strict=True) if weight
    )


class SensitivityTable:
    """The cover programs of one aggregator at all 2**q assignments, indexed by code; q at most MAX_TABULATED_WIDTH.

    Assignments that differ only by a permutation of interchangeable sub-claims are solved once.

    Attributes:
        aggregator: f.
        minimal: bool (2**q, 2**q): at which assignment (row) which block (column, by code) is minimal and sensitive.

    Raises:
        TableWidthError: the aggregator is too wide.
    """

    def __init__(self, aggregator: Aggregator):
        if aggregator.width > MAX_TABULATED_WIDTH:
            raise TableWidthError(
                f"{aggregator.width} sub-claims are too many to tabulate, at most {MAX_TABULATED_WIDTH}; "
                "fbs.sensitivity.sensitivity solves single assignments of any width"
            )
        self.aggregator = aggregator
        values, codes = aggregator.table(), np.arange(2**aggregator.width)
        self.minimal = minimal_blocks(values[codes[:, None] ^ codes] != values[:, None])
        self._representative, self._order = representatives(aggregator)

    @property
    def value(self) -> np.ndarray:
        """Fractional block sensitivity of every assignment: float64 (2**q,), 0 if f is constant."""
        return self._plain[0]

    @property
    def cover(self) -> np.ndarray:
        """A basic optimal cover t for every assignment: float64 (2**q, q)."""
        return self._plain[1]

    def blocks(self, code: int) -> np.ndarray:
        """Minimal sensitive blocks of an assignment: bool (number of blocks, q)."""
        return all_assignments(self.aggregator.width)[self.minimal[code]].astype(bool)

    def packing(self, code: int) -> Packing:
        """An optimal packing of an assignment: minimal sensitive blocks with weights, floats, that sum to its value."""
        representative = int(self._representative[code])
        return self._placed(_packing(self.blocks(representative), self._plain[2][representative]), code)

    def _placed(self, packing: Packing, code: int) -> Packing:
        """A packing at the representative of an assignment as one at the assignment."""
        place = self._order[code].tolist()
        return tuple((tuple(sorted(place[k] for k in block)), weight) for block, weight in packing)

    def exact(self, code: int) -> Certificate:
        """The certificate of an assignment in fractions, with the cover of this table."""
        ones = (Fraction(1),) * self.aggregator.width
        representative = self._representative[code]
        assignments = all_assignments(self.aggregator.width)
        found = listed_certificate(
            self.aggregator, tuple(assignments[representative].tolist()), ones, self.blocks(representative)
        )
        place = self._order[code].tolist()
        cover = [found.cover[0]] * len(place)
        for k, weight in zip(place, found.cover, strict=True):
            cover[k] = weight
        z = tuple(assignments[code].tolist())
        packing = self._placed(found.packing, code)
        return Certificate(self.aggregator, z, ones, found.value, tuple(cover), packing, found.exact)

    def weighted(self, cost0: float, cost1: float) -> np.ndarray:
        """Values of min sum_i c_i t_i over covers, c_i = cost1 where z_i is 1 and cost0 where it is 0: float64 (2**q,).

        An infinite cost keeps t_i at 0, and the value is infinite where some block then has no weight. 0 if f is
        constant.
        """
        return self.weighted_cover(cost0, cost1)[0]

    def weighted_cover(self, cost0: float, cost1: float) -> tuple[np.ndarray, np.ndarray]:
        """Values (2**q,) and basic optimal covers (2**q, q) of `weighted`, float64; nan where the value is infinite."""
        if cost0 == cost1 and 0 < cost0 < np.inf:
            return self.value * cost0, self.cover
        return self._solve(cost0, cost1)[:2]

    @cached_property
    def _plain(self) -> tuple[np.ndarray, np.ndarray, dict[int, list[float]]]:
        values, covers, weights = self._solve(1.0, 1.0)
        values.flags.writeable = covers.flags.writeable = False
        return values, covers, weights

    def _solve(self, cost0: float, cost1: float) -> tuple[np.ndarray, np.ndarray, dict[int, list[float]]]:
        """Values and covers of all assignments, and the packing weights of the representatives' blocks."""
        assignments = all_assignments(self.aggregator.width)
        values, covers, weights = np.zeros(len(assignments)), np.zeros(assignments.shape), {}
        counts = self.minimal.sum(axis=1)
        codes = np.unique(self._representative)
        codes = codes[np.argsort(counts[codes], kind="stable")]  # programs of like size are solved together
        for some in np.split(codes, range(_AT_ONCE, len(codes), _AT_ONCE)):
            costs = np.where(assignments[some] == 1, cost1, cost0)
            values[some], covers[some], found = _cheapest_covers(self._filled_up(some), costs)
            weights.update(zip(some.tolist(), found, strict=True))
        spread = np.empty_like(covers)
        np.put_along_axis(spread, self._order, covers[self._representative], axis=1)
        return values[self._representative], spread, weights

    def _filled_up(self, codes: np.ndarray) -> np.ndarray:
        """The minimal blocks of some assignments, bool (n, M, q): as many for each, with rows of zeros behind."""
        row, block = np.nonzero(self.minimal[codes])
        counts = np.bincount(row, minlength=len(codes))
        place = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        blocks = np.zeros((len(codes), counts.max(), self.aggregator.width), dtype=bool)
        blocks[row, place] = all_assignments(self.aggregator.width)[block]
        return blocks

    def max_entropy(self, cost0: float = 1.0, cost1: float = 1.0, codes: np.ndarray | None = None) -> np.ndarray:
        """The maximum-entropy optimal sampling distribution of `weighted`, by default of the plain program.

        Args:
            cost0, cost1: as in `weighted`.
            codes: the assignments wanted, int (n,); all by default.

        Returns:
            float64 (n, q), p_i in proportion to c_i t_i; rows of nan where the value is 0 or infinite.
        """
        from fbs.max_entropy import listed_optimum

        codes = np.arange(2**self.aggregator.width) if codes is None else np.asarray(codes)
        assignments, found = all_assignments(self.aggregator.width), {}
        for code in np.unique(self._representative[codes]).tolist():
            costs = np.where(assignments[code] == 1, cost1, cost0)
            found[code] = listed_optimum(self.aggregator, assignments[code], self.blocks(code), costs)
        spread = np.empty((len(codes), self.aggregator.width))
        rows = np.array([found[code] for code in self._representative[codes].tolist()]).reshape(spread.shape)
        np.put_along_axis(spread, self._order[codes], rows, axis=1)
        return spread


def _cheapest_covers(blocks: np.ndarray, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[list[float]]]:
    """Values (n,), basic covers (n, q), and for each program the weights of its blocks in a packing.

    blocks: bool (n, M, q), rows of zeros being none; costs: (n, q), infinite where a cover must not spend.
    """
    payable = np.isfinite(costs)
    affordable = blocks & payable[:, None, :]
    unpaid = (blocks.any(axis=2) & ~affordable.any(axis=2)).any(axis=1)
    costs = np.where(payable, costs, 0.0)
    solved = solve_covers(affordable, costs)
    values = np.where(unpaid, np.inf, (costs * solved.cover).sum(axis=1))
    covers = np.where(unpaid[:, None], np.nan, solved.cover)
    counts = blocks.any(axis=2).sum(axis=1).tolist()
    return values, covers, [row[:count] for row, count in zip(solved.weights.tolist(), counts, strict=True)]
