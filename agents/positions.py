"""Where Bob can stand: every aggregator with every assignment, the rows that exact recursions run over.

Narrow aggregators are listed by all their assignments, in the order of their codes. A wide symmetric one is listed by
its number of ones, with the ones in front: enough for a Bob who treats interchangeable sub-claims alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from envs.game import Game
from envs.rules import RESPOND, State
from envs.view import view
from fbs.aggregator import Symmetric

NUMBERS_AT_ONCE = 1 << 19  # asked of a player in one call, so that a network's activations stay small


class ExactError(ValueError):
    """An exact measure that cannot be had for this problem; the message says which and why."""


@dataclass(frozen=True, eq=False)
class Positions:
    """The R pairs of an aggregator and an assignment, by aggregator. True answers are assignments too.

    Attributes:
        narrow: True where the rows of an aggregator are all its assignments in the order of their codes; False where
            they are representatives with 0, 1, ..., q ones.
        widths: int64 (A,). start: int64 (A,), the first row of each aggregator.
        aggregator: int64 (R,).
        assignment: int8 (R, Q), zeros beyond the width.
        claimed: int8 (R,), the output.
        stable: bool (R,), whether the sensitivity is at most rho.
    """

    narrow: bool
    widths: np.ndarray
    start: np.ndarray
    aggregator: np.ndarray
    assignment: np.ndarray
    claimed: np.ndarray
    stable: np.ndarray

    @cached_property
    def group(self) -> np.ndarray:
        """int64 (R,): aggregator and output in one number, 2 a + c."""
        return 2 * self.aggregator + self.claimed

    @cached_property
    def group_start(self) -> np.ndarray:
        """int64 (2 A,): where each group starts once the rows are sorted by group."""
        return np.searchsorted(np.sort(self.group), np.arange(2 * len(self.start)))

    def row(self, a: np.ndarray, z: np.ndarray) -> np.ndarray:
        """int64 (N,): the rows of assignments z (N, Q) of aggregators a (N,)."""
        if not self.narrow:
            return self.start[a] + z.sum(-1, dtype=np.int64)
        powers = 1 << np.arange(z.shape[-1] - 1, -1, -1)
        return self.start[a] + ((z * powers).sum(-1) >> (z.shape[-1] - self.widths[a]))

    def least(self, values: np.ndarray) -> np.ndarray:
        """int64 (A, 2): for each aggregator and output the row of the least of values (R,); a stable one if several."""
        order = np.lexsort((~self.stable, values, self.group))
        return order[self.group_start].reshape(-1, 2)


@lru_cache(maxsize=32)
def positions(game: Game) -> Positions:
    """The positions of a procedural NumPy game.

    Raises:
        ExactError: an aggregator is too wide to list and not symmetric.
    """
    library = game.library
    if library.tabulated:
        blocks = [_assignments(f.width) for f in library.aggregators]
    else:
        for f in library.aggregators:
            if not isinstance(f, Symmetric):
                raise ExactError(f"'{f}' is too wide to list all assignments and not symmetric; no exact value")
        blocks = [np.tri(f.width + 1, f.width, -1, dtype=np.int8) for f in library.aggregators]
    sizes = np.array([len(block) for block in blocks])
    aggregator = np.repeat(np.arange(len(blocks)), sizes)
    assignment = np.zeros((len(aggregator), game.width), np.int8)
    start = np.cumsum(sizes) - sizes
    for first, block in zip(start, blocks, strict=True):
        assignment[first : first + len(block), : block.shape[1]] = block
    claimed, stable = library.output(aggregator, assignment), library.stable(aggregator, assignment)
    return Positions(library.tabulated, library.widths, start, aggregator, assignment, claimed, stable)


def _assignments(width: int) -> np.ndarray:
    return (np.arange(1 << width)[:, None] >> np.arange(width - 1, -1, -1) & 1).astype(np.int8)


def standing(
    game: Game, phase: int, level: Any, claimed: np.ndarray, truth: np.ndarray, menu: np.ndarray,
    answers: np.ndarray | None = None, assignment: np.ndarray | None = None, truths: np.ndarray | None = None,
    node: np.ndarray | None = None,
) -> State:  # fmt: skip
    """N debates in a phase, their first candidate chosen; what happened before is left blank, since no player sees it.

    Args:
        level: int64 (N,), or one for all. claimed, truth: int8 (N,). menu: int64 (N, K).
        answers: int8 (N, K, Q), true answers on the menu. assignment, truths: int8 (N, Q). node: int64 (N,).
    """
    n = len(claimed)
    integers, bits, rows = np.zeros(n, np.int64), np.zeros(n, np.int8), np.zeros((n, game.width), np.int8)
    return State(
        phase=phase, path=(), node=integers if node is None else node, level=integers + level, claimed=claimed,
        truth=truth, root_claimed=claimed, root_truth=truth, menu=menu,
        answers=np.zeros((n, game.menu, game.width), np.int8) if answers is None else answers, choice=integers,
        assignment=rows if assignment is None else assignment, truths=rows if truths is None else truths,
        over=bits > 0, ending=integers, reward=np.zeros(n), answer=bits - 1,
    )  # fmt: skip


def alone(game: Game, candidate: np.ndarray, empty: int) -> np.ndarray:
    """Menus (N, K, ...) whose first candidate is the given one (N, ...) and whose other places are `empty`."""
    menu = np.full((len(candidate), game.menu, *candidate.shape[1:]), empty, candidate.dtype)
    menu[:, 0] = candidate
    return menu


def sees_truths(game: Game, bob: Any) -> bool:
    """Whether Bob's policy may depend on the truth of the claims."""
    return game.sees_truth or bob.needs_state


def responses(
    game: Game, bob: Any, aggregator: np.ndarray, assignment: np.ndarray, level: np.ndarray, claimed: np.ndarray,
    truths: np.ndarray | None = None, node: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """float64 (N, 2 + Q): Bob's chance of each response; nothing beyond an aggregator's width.

    Without `truths` (N, Q) the claims are shown as true; a Bob whose view depends on them needs the real ones.
    """
    truths = assignment if truths is None else truths
    n = len(aggregator)
    found = np.empty((n, 2 + game.width))
    step = max(1, NUMBERS_AT_ONCE // found.shape[1])
    for low in range(0, n, step):
        rows = slice(low, low + step)
        a, y = aggregator[rows], truths[rows]
        state = standing(
            game, RESPOND, level[rows], claimed[rows], game.library.output(a, y), alone(game, a, -1),
            alone(game, 0 * y if game.adversarial else y, 0), assignment[rows], y, None if node is None else node[rows],
        )  # fmt: skip
        found[rows] = np.asarray(bob.probabilities(view(game, state, bob.needs_state)), np.float64)
    found[:, 2:][game.beyond[aggregator]] = 0
    return found


def policy(game: Game, bob: Any) -> np.ndarray:
    """float64 (d, R, 2 + Q): Bob's chance of each response at every position, levels 1 to d."""
    rows, levels = positions(game), np.arange(1, game.depth + 1)
    tile = [np.tile(x, (game.depth,) + (1,) * (x.ndim - 1)) for x in (rows.aggregator, rows.assignment)]
    level, claimed = np.repeat(levels, len(rows.aggregator)), np.tile(rows.claimed, game.depth)
    return responses(game, bob, *tile, level, claimed).reshape(game.depth, len(rows.aggregator), -1)
