"""Assignments of a library's aggregators, one for all that differ only by swapping interchangeable sub-claims.

Where nobody knows the sub-claims' truths, the debaters' networks cannot tell apart two sub-claims that play the same
part in the aggregator: they see the same numbers, and the networks are equivariant. Whatever is true of one assignment
is then true of its whole orbit, and it is enough to look at one of them, counted as often as the orbit has members. A
majority of 15 has 16 orbits for its 32,768 assignments.
"""

from __future__ import annotations

from itertools import product
from math import comb, log, prod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from envs.config import NARROW
from envs.game import Game
from fbs.aggregator import Aggregator, Symmetric, Threshold

MOST = 1024  # orbits of an aggregator that are listed


class Listing(NamedTuple):
    """R assignments, those of one aggregator and output together.

    Attributes:
        assignment: int64 (R, Q), padded with zeros. log_size: float64 (R,), the logarithm of the orbit's size.
        start, count: int64 (2 A,): those of aggregator a and output b are the `count[2 a + b]` from `start[2 a + b]`.
    """

    assignment: Tensor
    log_size: Tensor
    start: Tensor
    count: Tensor

    def of(self, aggregator: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers of the claim (P,) and of the row (P,) for every legal assignment of N claims, claim by claim."""
        key = 2 * aggregator + output
        count = self.count[key]
        claim = torch.arange(len(key)).repeat_interleave(count)
        before = count.cumsum(0) - count
        return claim, torch.arange(len(claim)) - before[claim] + self.start[key][claim]


def listing(game: Game) -> Listing | None:
    """The assignments of the game's library, or None where they are too many to list.

    With the random oracle Alice knows the truths, which tell the sub-claims apart: every assignment is listed there.
    """
    parts = [interchangeable(f) if game.adversarial else np.arange(f.width) for f in game.library.aggregators]
    if max(prod((np.bincount(part) + 1).tolist()) for part in parts) > MOST:
        return None
    rows, sizes, count = [], [], []
    for f, part in zip(game.library.aggregators, parts, strict=True):
        z, log_size = _representatives(part)
        output = np.asarray(f(z))
        for bit in (0, 1):
            rows.append(np.pad(z[output == bit], ((0, 0), (0, game.width - f.width))))
            sizes.append(log_size[output == bit])
            count.append(len(rows[-1]))
    count = torch.tensor(count)
    return Listing(
        torch.as_tensor(np.concatenate(rows)), torch.as_tensor(np.concatenate(sizes)), count.cumsum(0) - count, count
    )


def interchangeable(f: Aggregator) -> np.ndarray:
    """int64 (width,): the same number for sub-claims that can be swapped without a change of the aggregator.

    Wide aggregators that are neither symmetric nor thresholds count as having none.
    """
    if isinstance(f, Symmetric):
        return np.zeros(f.width, np.int64)
    if isinstance(f, Threshold):
        return np.unique(f.weights, return_inverse=True)[1]
    part = np.arange(f.width)
    if f.width <= NARROW:
        table = f.table().reshape((2,) * f.width)
        for i in range(f.width):
            for j in range(i):
                if np.array_equal(table, table.swapaxes(i, j)):  # swaps are an equivalence: the first found will do
                    part[i] = part[j]
                    break
    return np.unique(part, return_inverse=True)[1]


def _representatives(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One assignment of each orbit, int64 (R, width), and the logarithms of the orbits' sizes, float64 (R,).

    In every class the ones come first.
    """
    sizes = np.bincount(part)
    counts = np.array(list(product(*(range(size + 1) for size in sizes))), np.int64)
    rank = np.array([np.count_nonzero(part[:i] == part[i]) for i in range(len(part))])
    log_size = [sum(log(comb(int(n), k)) for n, k in zip(sizes, row, strict=True)) for row in counts.tolist()]
    return (rank < counts[:, part]).astype(np.int64), np.array(log_size)
