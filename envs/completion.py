"""Which bits Alice may say next, while she answers the sub-claims one at a time.

An unfinished assignment is a *prefix*: the answers to the first sub-claims. A bit may follow it if some choice of the
answers after that still gives the output that is asked for, so whoever keeps to these bits ends on a legal assignment.
The set of bits that may follow is written as a number, `allowed`: 1 for {0}, 2 for {1}, 3 for both, 0 for neither.

A lie set is built the same way: its bit at a sub-claim flips Alice's answer there, and the *truths* so far are the
prefix that must still be able to give the real truth of the claim.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from envs.library import Library
from fbs.aggregator import Aggregator

FLIPPED = (0, 2, 1, 3)  # `allowed` after 0 and 1 have swapped names


class Prefix(Protocol):
    """An assignment being written."""

    def allowed(self) -> int:
        """The bits that may follow, as a number from 0 to 3."""

    def push(self, bit: int) -> int:
        """Answer the next sub-claim, which must not be the last, and return what is allowed after it."""


class Completions:
    """Prefixes for the aggregators of a library: from tables where it is tabulated, else worked out at each bit."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._tables: dict[tuple[int, int], bytes] = {}

    def start(self, a: int, output: int) -> Prefix:
        """The empty prefix of an assignment at which aggregator a gives `output`."""
        f = self._library.aggregators[a]
        if not self._library.tabulated:
            return WidePrefix(f, output)
        if (a, output) not in self._tables:
            self._tables[a, output] = prefix_table(f, output)
        return TabulatedPrefix(self._tables[a, output])


def prefix_table(f: Aggregator, output: int) -> bytes:
    """`allowed` for every prefix: 2**width numbers, that of prefix p of length i at position 2**i + p (0 is unused)."""
    reachable = f.table() == output
    layers = []
    while len(reachable) > 1:
        pairs = reachable.reshape(-1, 2)
        layers.append(pairs @ np.array([1, 2], np.uint8))
        reachable = pairs.any(-1)
    return b"\0" + np.concatenate(layers[::-1]).astype(np.uint8).tobytes()


class TabulatedPrefix:
    """A prefix of an aggregator whose truth table fits in memory: a walk down a binary tree laid out as a heap."""

    __slots__ = ("_place", "_table")

    def __init__(self, table: bytes) -> None:
        self._table = table
        self._place = 1

    def allowed(self) -> int:
        return self._table[self._place]

    def push(self, bit: int) -> int:
        place = self._place = 2 * self._place + bit
        return self._table[place]


class WidePrefix:
    """A prefix of any aggregator: two rows of possible values, one for each bit that might come next."""

    __slots__ = ("_aggregator", "_length", "_one", "_output", "_zero")

    def __init__(self, f: Aggregator, output: int) -> None:
        self._aggregator, self._output = f, output
        self._zero = np.ones((2, f.width), bool)  # may the sub-claim be answered 0
        self._one = np.ones((2, f.width), bool)
        self._length = 0

    def allowed(self) -> int:
        i = self._length
        self._zero[:, i] = (True, False)
        self._one[:, i] = (False, True)
        after_0, after_1 = self._aggregator.reachable(self._zero, self._one)[self._output]
        return int(after_0) + 2 * int(after_1)

    def push(self, bit: int) -> int:
        self._zero[:, self._length] = not bit
        self._one[:, self._length] = bit
        self._length += 1
        return self.allowed()
