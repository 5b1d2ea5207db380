"""Aggregators: the Boolean functions f: {0,1}^q -> {0,1} that say how sub-claims decide a claim.

Four kinds: symmetric (by the number of ones: majority, and, or, parity, at least k), weighted threshold, truth table,
and the read-once composition of any of these. Each answers what a debate asks, at any width it can have:

- what is f(z), on NumPy and on torch;
- which values can an unfinished assignment still reach (`reachable`), and how many completions reach each (`tally`);
- which sensitive block of z is lightest (`lightest_block`): a block is a set of sub-claims whose flip changes f(z).

Aggregators are immutable, hashable and equal by value. `str` writes one so that `fbs.notation.parse` reads it back.

    >>> f = Threshold((3, 2, 2, 1, 1), 5)
    >>> int(f([1, 1, 1, 0, 0]))
    1
    >>> mass, block = f.lightest_block([1, 1, 1, 0, 0], [0.9, 0.5, 0.25, 0, 0])
    >>> mass, block.tolist()
    (0.75, [False, True, True, False, False])
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from operator import index
from typing import Any

import numpy as np

from fbs.aggregator_base import (
    MAX_TABLE_WIDTH,
    MAX_WIDTH,
    Aggregator,
    AggregatorError,
    Block,
    require_width,
    short,
)
from fbs.bits import encode, fold, fold_any, int8, integers, lightest_in_table, like
from fbs.knapsack import WeightError, cheapest, reaching

MAX_WEIGHT = 2**62  # of all absolute weights together, so that sums fit 64 bits

__all__ = [
    "MAX_TABLE_WIDTH",
    "MAX_WEIGHT",
    "MAX_WIDTH",
    "Aggregator",
    "AggregatorError",
    "Block",
    "Composition",
    "Symmetric",
    "Table",
    "Threshold",
    "WeightError",
    "at_least",
    "conjunction",
    "disjunction",
    "majority",
    "parity",
    "symmetric",
]


@dataclass(frozen=True)
class Symmetric(Aggregator):
    """A function of the number of ones.

    `name` is the written form ("majority", "at_least 3"), `by_count[m]` the value at m ones, (width + 1,).
    """

    name: str
    width: int
    by_count: tuple[int, ...] = field(hash=False, repr=False)

    kind = "symmetric"

    def __post_init__(self) -> None:
        require_width(self.width)
        if len(self.by_count) != self.width + 1 or not set(self.by_count) <= {0, 1}:
            raise AggregatorError(f"{self.name} needs a value 0 or 1 for each of 0, 1, ..., {self.width} ones")

    @property
    def written(self) -> str:
        return self.name

    @cached_property
    def weights(self) -> tuple[int, ...]:
        return (1,) * self.width

    @cached_property
    def threshold(self) -> int | None:
        """The number of ones that makes it true, None if more ones can make it false."""
        ones = sum(self.by_count)
        return self.width + 1 - ones if self.by_count[self.width + 1 - ones :] == (1,) * ones else None

    def __str__(self) -> str:
        return self.name if self.name.startswith("symmetric ") else f"{self.name} {self.width}"

    def least_flips(self, ones: int) -> tuple[int | None, int | None]:
        """The fewest ones, and the fewest zeros, whose flip changes f at so many ones; None where no number does."""
        other = 1 - self.by_count[ones]
        below, above = self.by_count[:ones][::-1], self.by_count[ones + 1 :]
        fewest_ones = below.index(other) + 1 if other in below else None
        fewest_zeros = above.index(other) + 1 if other in above else None
        return fewest_ones, fewest_zeros

    def _value(self, z: Any) -> Any:
        ones = z.sum(-1)
        if self.threshold is not None:
            return ones >= self.threshold
        return like(self.by_count, z)[ones]

    def _reachable(self, zero: Any, one: Any) -> tuple[Any, Any]:
        before = like((0, *accumulate(self.by_count)), one)  # before[m] = how many counts below m make f true
        fewest, most = (~zero).sum(-1), one.sum(-1)
        true_counts = before[most + 1] - before[fewest]
        return true_counts <= most - fewest, true_counts > 0

    def _probabilities(self, zero: np.ndarray, one: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mass = np.zeros((*zero.shape[:-1], self.width + 1))  # of each number of ones
        mass[..., 0] = 1.0
        for i in range(self.width):
            moved = mass[..., : i + 1] * one[..., i : i + 1]
            mass[..., : i + 1] *= zero[..., i : i + 1]
            mass[..., 1 : i + 2] += moved
        true = np.array(self.by_count, dtype=bool)
        return mass[..., ~true].sum(-1), mass[..., true].sum(-1)

    def _lightest(self, z: np.ndarray, masses: np.ndarray) -> np.ndarray | None:
        # A block that flips ones and zeros stays sensitive without equally many of both: the lightest flips one sort.
        candidates = []
        for bit, fewest in zip((1, 0), self.least_flips(int(z.sum())), strict=True):
            usable = np.flatnonzero((z == bit) & (masses != np.inf))
            if fewest is not None and fewest <= len(usable):
                candidates.append(usable[np.argsort(masses[usable], kind="stable")[:fewest]])
        if not candidates:
            return None
        block = np.zeros(self.width, dtype=bool)
        block[min(candidates, key=lambda indices: masses[indices].sum())] = True
        return block


def at_least(k: int, width: int) -> Symmetric:
    """True when at least k of the sub-claims are; constant for k = 0 and for k > width."""
    require_width(width)
    return Symmetric(f"at_least {k}", width, _from_count(k, width))


def majority(width: int) -> Symmetric:
    """True when more than half of the sub-claims are."""
    require_width(width)
    return Symmetric("majority", width, _from_count(width // 2 + 1, width))


def conjunction(width: int) -> Symmetric:
    """AND: true when every sub-claim is."""
    require_width(width)
    return Symmetric("and", width, _from_count(width, width))


def disjunction(width: int) -> Symmetric:
    """OR: true when some sub-claim is."""
    require_width(width)
    return Symmetric("or", width, _from_count(1, width))


def parity(width: int) -> Symmetric:
    """True when an odd number of the sub-claims is."""
    require_width(width)
    return Symmetric("parity", width, tuple(ones % 2 for ones in range(width + 1)))


def symmetric(by_count: tuple[int, ...]) -> Symmetric:
    """Any function of the number of ones, by its value at 0, 1, 2, ... ones."""
    by_count = tuple(map(int, by_count))
    return Symmetric("symmetric " + "".join(map(str, by_count)), len(by_count) - 1, by_count)


@dataclass(frozen=True)
class Threshold(Aggregator):
    """True when the weights of the true sub-claims sum to at least the threshold.

    Integers; a weight may be negative (the sub-claim speaks against) or zero.
    """

    weights: tuple[int, ...]
    threshold: int

    kind = "threshold"

    def __post_init__(self) -> None:
        require_width(len(self.weights))
        try:
            object.__setattr__(self, "weights", tuple(map(index, self.weights)))
            object.__setattr__(self, "threshold", index(self.threshold))
        except TypeError:
            raise AggregatorError("the weights and the threshold must be whole numbers; scale them up") from None
        if sum(map(abs, self.weights)) + abs(self.threshold) > MAX_WEIGHT:
            raise AggregatorError("weights too large: absolute values and the threshold must sum to at most 2**62")

    @property
    def width(self) -> int:
        return len(self.weights)

    @property
    def written(self) -> str:
        return f"threshold {','.join(map(str, self.weights))} >= {self.threshold}"

    def _value(self, z: Any) -> Any:
        return (z * like(self.weights, z)).sum(-1) >= self.threshold

    def _reachable(self, zero: Any, one: Any) -> tuple[Any, Any]:
        weights = like(self.weights, zero)
        gain = weights * one
        loss = weights * ~zero  # the weight where the sub-claim must be 1
        least = loss * (weights > 0) + gain * (weights < 0)
        most = gain * (weights > 0) + loss * (weights < 0)
        return least.sum(-1) < self.threshold, most.sum(-1) >= self.threshold

    def _probabilities(self, zero: np.ndarray, one: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights = np.array(self.weights, dtype=np.int64)
        # A negative weight on z_i is a positive one on 1 - z_i, once the threshold has moved by it.
        threshold = self.threshold - int(weights[weights < 0].sum())
        if threshold <= 0 or threshold > np.abs(weights).sum():
            certain, never = zero.prod(-1) * 0 + 1, zero.prod(-1) * 0
            return (never, certain) if threshold <= 0 else (certain, never)
        matter = weights != 0
        without = np.where(weights < 0, one, zero)[..., matter]
        included = np.where(weights < 0, zero, one)[..., matter]
        try:
            return reaching(np.abs(weights[matter]), threshold, without, included)
        except WeightError:
            if self.width > MAX_TABLE_WIDTH:
                raise
            return fold(1 - self.table(), zero, one), fold(self.table(), zero, one)

    def _lightest(self, z: np.ndarray, masses: np.ndarray) -> np.ndarray | None:
        weights = np.array(self.weights, dtype=np.int64)
        total = int((weights * z).sum())
        true = total >= self.threshold
        need = total - self.threshold + 1 if true else self.threshold - total  # how far the sum must move
        gains = weights * (2 * z - 1 if true else 1 - 2 * z)
        usable = np.flatnonzero((gains > 0) & (masses != np.inf))
        try:
            chosen = cheapest(gains[usable], need, masses[usable])
        except WeightError:
            if self.width > MAX_TABLE_WIDTH:
                raise
            return lightest_in_table(self.table(), z, masses)
        if chosen is None:
            return None
        block = np.zeros(self.width, dtype=bool)
        block[usable[chosen]] = True
        return block


@dataclass(frozen=True)
class Table(Aggregator):
    """Any function of at most MAX_TABLE_WIDTH sub-claims, by its value at each assignment in the order of the codes."""

    bits: tuple[int, ...]

    kind = "table"
    threshold = None

    def __post_init__(self) -> None:
        size = len(self.bits)
        if size < 2 or size & (size - 1) or size > 2**MAX_TABLE_WIDTH or not set(self.bits) <= {0, 1}:
            sizes = f"2, 4, 8, ... or 2**{MAX_TABLE_WIDTH}"
            raise AggregatorError(f"a table needs {sizes} values, each 0 or 1, not these {size}")
        object.__setattr__(self, "bits", tuple(map(int, self.bits)))

    @property
    def width(self) -> int:
        return len(self.bits).bit_length() - 1

    @property
    def weights(self) -> tuple[int, ...]:
        return (1,) * self.width

    @property
    def written(self) -> str:
        return "table " + "".join(map(str, self.bits))

    @cached_property
    def _table(self) -> np.ndarray:
        values = np.array(self.bits, dtype=np.uint8)
        values.flags.writeable = False
        return values

    def _value(self, z: Any) -> Any:
        return like(self._table, z)[encode(z)]

    def _reachable(self, zero: Any, one: Any) -> tuple[Any, Any]:
        true = like(self._table, zero) == 1
        return fold_any(~true, zero, one), fold_any(true, zero, one)

    def _probabilities(self, zero: np.ndarray, one: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return fold(1 - self._table, zero, one), fold(self._table, zero, one)

    def _lightest(self, z: np.ndarray, masses: np.ndarray) -> np.ndarray | None:
        return lightest_in_table(self._table, z, masses)


@dataclass(frozen=True)
class Composition(Aggregator):
    """outer(parts[0](first sub-claims), parts[1](the next ones), ...); no sub-claim is read twice."""

    outer: Aggregator
    parts: tuple[Aggregator, ...]

    kind = "composition"
    threshold = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if len(self.parts) != self.outer.width:
            raise AggregatorError(f"{short(self.outer)} takes {self.outer.width} parts, not {len(self.parts)}")
        require_width(self.width)

    @cached_property
    def width(self) -> int:
        return sum(part.width for part in self.parts)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the sub-claims of each part are."""
        ends = accumulate((part.width for part in self.parts), initial=0)
        return tuple(slice(start, end) for start, end in pairwise(ends))

    @cached_property
    def weights(self) -> tuple[int, ...]:
        return (1,) * self.width

    @property
    def written(self) -> str:
        return f"{self.outer.written}({', '.join(map(str, self.parts))})"

    def part_values(self, z: Any) -> Any:
        """What the parts answer: int8 (..., number of parts)."""
        z = integers(z)
        self._check_width(z.shape)
        values = int8(z[..., : len(self.parts)] * 0)
        for j, (part, place) in enumerate(zip(self.parts, self.slices, strict=True)):
            values[..., j] = part(z[..., place])
        return values

    def _value(self, z: Any) -> Any:
        return self.outer(self.part_values(z))

    def _reachable(self, zero: Any, one: Any) -> tuple[Any, Any]:
        can_be_0, can_be_1 = zero[..., : len(self.parts)] & False, zero[..., : len(self.parts)] & False
        for j, (part, place) in enumerate(zip(self.parts, self.slices, strict=True)):
            can_be_0[..., j], can_be_1[..., j] = part._reachable(zero[..., place], one[..., place])
        return self.outer._reachable(can_be_0, can_be_1)

    def _probabilities(self, zero: np.ndarray, one: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pairs = [
            part._probabilities(zero[..., place], one[..., place])
            for part, place in zip(self.parts, self.slices, strict=True)
        ]
        return self.outer._probabilities(np.stack([p[0] for p in pairs], -1), np.stack([p[1] for p in pairs], -1))

    def _lightest(self, z: np.ndarray, masses: np.ndarray) -> np.ndarray | None:
        blocks = [part._lightest(z[place], masses[place]) for part, place in zip(self.parts, self.slices, strict=True)]
        part_masses = np.full(len(blocks), np.inf, dtype=masses.dtype)
        for j, (block, place) in enumerate(zip(blocks, self.slices, strict=True)):
            if block is not None:
                part_masses[j] = masses[place][block].sum()
        flipped = self.outer._lightest(self.part_values(z), part_masses)
        if flipped is None:
            return None
        return np.concatenate(
            [
                block if flip else np.zeros(part.width, dtype=bool)
                for flip, block, part in zip(flipped, blocks, self.parts, strict=True)
            ]
        )


def _from_count(k: int, width: int) -> tuple[int, ...]:
    """0 below k ones, 1 from k ones on."""
    if k < 0:
        raise AggregatorError(f"at_least needs a number of 0 or more, not {k}")
    zeros = min(k, width + 1)
    return (0,) * zeros + (1,) * (width + 1 - zeros)
