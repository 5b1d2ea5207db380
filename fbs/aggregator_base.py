"""What every aggregator answers; `fbs.aggregator` has the kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Literal

import numpy as np

from fbs.bits import all_assignments, int8, integers

MAX_WIDTH = 100_000
MAX_TABLE_WIDTH = 16

Kind = Literal["symmetric", "threshold", "table", "composition"]
Block = tuple[Any, np.ndarray]  # mass, bool (width,)


class AggregatorError(ValueError):
    """An aggregator that cannot be built, or an array that does not fit one."""


class Aggregator(ABC):
    """A Boolean function of `width` sub-claims.

    Attributes:
        width: number of sub-claims, q in the paper.
        kind: which of the four kinds this is.
        written: the written form, without a width that its surroundings give ("majority").
        weights, threshold: what a learner may see of it: integer weights (width,) and the sum that makes it true; all
            weights are 1 where sub-claims carry none, the threshold is None where no threshold says it all.
    """

    width: int
    kind: Kind
    weights: tuple[int, ...]
    threshold: int | None

    @property
    @abstractmethod
    def written(self) -> str: ...

    def __call__(self, z: Any) -> Any:
        """f(z): int8 (...,) for 0/1 arrays z (..., width) of NumPy or torch (which also comes out), or nested lists."""
        z = integers(z)
        self._check_width(z.shape)
        return int8(self._value(z))

    def reachable(self, zero: Any, one: Any) -> tuple[Any, Any]:
        """Which values an unfinished assignment can still reach; exact at any width.

        Args:
            zero, one: bool arrays (..., width) of NumPy or torch: may sub-claim i become 0, may it become 1. A free
                sub-claim is (True, True).

        Returns:
            (can_be_0, can_be_1), bool (...,) each, of the same library; neither where a sub-claim has no value left.
        """
        if not hasattr(zero, "new_zeros"):
            zero, one = np.asarray(zero, dtype=bool), np.asarray(one, dtype=bool)
        self._check_width(zero.shape)
        open_ = (zero | one).all(-1)
        can_be_0, can_be_1 = self._reachable(zero, one)
        return can_be_0 & open_, can_be_1 & open_

    def tally(self, zero: Any, one: Any) -> tuple[np.ndarray, np.ndarray]:
        """sum over z with f(z) = b of prod_i (one_i if z_i else zero_i), for b = 0 and b = 1.

        A free sub-claim is (1, 1), one fixed at 0 is (1, 0), at 1 (0, 1): the answer counts completions. With
        (1 - p, p) it is the probability of b. Counts are exact to 2**53 and infinite beyond 1e308; with more than about
        1000 free sub-claims take probabilities, from (0.5, 0.5), and ask `reachable` whether there is a completion.

        Args:
            zero, one: nonnegative floats (..., width).

        Returns:
            (f0, f1), float64 (...,) each.

        Raises:
            WeightError: a threshold whose weights are too large to sum and too many to enumerate.
        """
        zero, one = np.broadcast_arrays(np.asarray(zero, np.float64), np.asarray(one, np.float64))
        self._check_width(zero.shape)
        scale = zero + one
        share = np.divide(one, scale, out=np.zeros_like(scale), where=scale > 0)
        rest = np.divide(zero, scale, out=np.ones_like(scale), where=scale > 0)
        f0, f1 = self._probabilities(rest, share)
        with np.errstate(over="ignore", invalid="ignore"):
            total = scale.prod(-1)
            return np.where(f0 > 0, f0 * total, 0.0), np.where(f1 > 0, f1 * total, 0.0)

    def lightest_block(self, z: Any, masses: Any) -> Block | None:
        """The sensitive block of z of least total mass; it contains no smaller sensitive block.

        Args:
            z: 0/1 (width,), NumPy or a list.
            masses: nonnegative (width,): floats, or `fractions.Fraction`s for an exact answer. An infinite mass keeps a
                sub-claim out of every block.

        Returns:
            (mass, block), the mass a float or a Fraction, the block bool (width,); None if no block of finite mass is
            sensitive, as when f is constant.

        Raises:
            WeightError: a threshold whose weights are too large to sum and too many to enumerate.
        """
        z = np.asarray(z, dtype=np.int64)
        masses = np.asarray(masses)
        if z.shape != (self.width,) or masses.shape != (self.width,):
            shapes = f"{z.shape} and {masses.shape}"
            raise AggregatorError(f"{short(self)} needs one assignment and {self.width} masses, not shapes {shapes}")
        block = self._lightest(z, masses if masses.dtype == object else masses.astype(np.float64))
        if block is None:
            return None
        total = masses[block].sum()
        return (float(total) if masses.dtype != object else total), block

    def table(self) -> np.ndarray:
        """f of every assignment in the order of their codes: uint8 (2**width,), read-only.

        Raises:
            AggregatorError: wider than MAX_TABLE_WIDTH.
        """
        if self.width > MAX_TABLE_WIDTH:
            raise AggregatorError(f"{short(self)} is too wide for a truth table: at most {MAX_TABLE_WIDTH} sub-claims")
        return self._table

    def __str__(self) -> str:
        return self.written

    @cached_property
    def _table(self) -> np.ndarray:
        values = self(all_assignments(self.width)).astype(np.uint8)
        values.flags.writeable = False
        return values

    def _check_width(self, shape: tuple[int, ...]) -> None:
        if not shape or shape[-1] != self.width:
            raise AggregatorError(f"{short(self)} needs a last axis of {self.width} sub-claims, not {tuple(shape)}")

    @abstractmethod
    def _value(self, z: Any) -> Any:
        """f of integer arrays, as any 0/1 or bool array."""

    @abstractmethod
    def _reachable(self, zero: Any, one: Any) -> tuple[Any, Any]:
        """`reachable` where every sub-claim has a value left."""

    @abstractmethod
    def _probabilities(self, zero: np.ndarray, one: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`tally` where zero + one = 1."""

    @abstractmethod
    def _lightest(self, z: np.ndarray, masses: np.ndarray) -> np.ndarray | None:
        """The block of `lightest_block`, from float64 or object masses."""


def require_width(width: int) -> None:
    if not 1 <= width <= MAX_WIDTH:
        raise AggregatorError(f"an aggregator has 1 to {MAX_WIDTH} sub-claims, not {width}")


def short(aggregator: Aggregator) -> str:
    """The written form, cut to what fits a message."""
    text = str(aggregator)
    return text if len(text) <= 60 else text[:57] + "..."
