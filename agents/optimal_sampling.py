"""The maximum-entropy optimum of the cover program at many positions at once; each is solved once and kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache

import numpy as np

from agents.scripted import groups
from envs.config import NARROW
from envs.library import Library
from fbs.aggregator import Aggregator, Symmetric
from fbs.certificate import ConstantError
from fbs.max_entropy import max_entropy_sampling
from fbs.table import SensitivityTable


def optimal_sampling(
    library: Library, a: np.ndarray, z: np.ndarray, costs: tuple[float, float] = (1.0, 1.0)
) -> np.ndarray:
    """float64 (N, Q): optimal sampling distributions over the sub-claims; uniform where no block is sensitive.

    Args:
        library: The aggregators, on NumPy.
        a: int64 (N,), aggregators. z: int8 (N, Q), their assignments.
        costs: The weight in the program's objective of a sub-claim answered 0, and of one answered 1.
    """
    sampling = np.zeros(z.shape)
    for number, rows in groups(a):
        f = library.aggregators[number]
        sampling[rows, : f.width] = _optima(f, *costs)(z[rows, : f.width])
    return sampling


@lru_cache(maxsize=4096)
def _optima(f: Aggregator, cost0: float, cost1: float) -> _Optima:
    kind = _ByCode if f.width <= NARROW else _ByCount if isinstance(f, Symmetric) else _ByAssignment
    return kind(f, cost0, cost1)


class _Optima(ABC):
    """Optimal sampling distributions (n, q) at assignments (n, q) of one aggregator."""

    def __init__(self, f: Aggregator, cost0: float, cost1: float) -> None:
        self._f, self._costs = f, np.array([cost0, cost1])

    @abstractmethod
    def __call__(self, z: np.ndarray) -> np.ndarray: ...

    def _solve(self, z: np.ndarray) -> np.ndarray:
        try:
            return max_entropy_sampling(self._f, z, self._costs[z])
        except ConstantError:
            return np.full(self._f.width, 1 / self._f.width)


class _ByCode(_Optima):
    """Narrow aggregators, in a table that is filled as assignments are met."""

    def __init__(self, f: Aggregator, cost0: float, cost1: float) -> None:
        super().__init__(f, cost0, cost1)
        self._table = _sensitivity_table(f)
        self._sampling = np.zeros((1 << f.width, f.width))
        self._known = np.zeros(1 << f.width, bool)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        code = (z * (1 << np.arange(self._f.width - 1, -1, -1))).sum(-1)
        if not self._known[code].all():
            new = np.unique(code[~self._known[code]])
            found = self._table.max_entropy(*self._costs, codes=new)
            self._sampling[new] = np.where(np.isnan(found), 1 / self._f.width, found)
            self._known[new] = True
        return self._sampling[code]


@lru_cache(maxsize=256)
def _sensitivity_table(f: Aggregator) -> SensitivityTable:
    return SensitivityTable(f)


class _ByCount(_Optima):
    """Wide symmetric aggregators: all ones share alike, and all zeros, whichever they are."""

    def __init__(self, f: Aggregator, cost0: float, cost1: float) -> None:
        super().__init__(f, cost0, cost1)
        self._shares = np.full((f.width + 1, 2), np.nan)  # of each zero and of each one, by the number of ones

    def __call__(self, z: np.ndarray) -> np.ndarray:
        ones = z.sum(-1, dtype=np.int64)
        for m in np.unique(ones[np.isnan(self._shares[ones, 0])]):
            found = self._solve((np.arange(self._f.width) < m).astype(np.int8))
            self._shares[m] = found[-1], found[0]
        return np.take_along_axis(self._shares[ones], z.astype(np.int64), -1)


class _ByAssignment(_Optima):
    """Any other aggregator, one assignment at a time."""

    def __init__(self, f: Aggregator, cost0: float, cost1: float) -> None:
        super().__init__(f, cost0, cost1)
        self._solved: dict[bytes, np.ndarray] = {}

    def __call__(self, z: np.ndarray) -> np.ndarray:
        return np.array([self._look_up(row) for row in np.ascontiguousarray(z, np.int8)])

    def _look_up(self, z: np.ndarray) -> np.ndarray:
        key = z.tobytes()
        if key not in self._solved:
            self._solved[key] = self._solve(z)
        return self._solved[key]
