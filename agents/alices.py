"""Scripted Alices: who defends the claims by rule."""

from __future__ import annotations

from functools import lru_cache
from math import lgamma
from typing import Any

import numpy as np

from agents.exact import solve
from agents.positions import ExactError, positions
from agents.scripted import Certain, PlayerError, groups, sample
from envs.config import NARROW
from envs.game import Game
from envs.rules import ASSIGN, CLAIM, DECOMPOSE
from envs.view import View, legal_moves
from fbs.aggregator import Aggregator, Symmetric
from fbs.sensitivity import sensitivity


class HonestAlice(Certain):
    """Claims the truth, picks the first stable candidate and answers by the truth.

    With the adversarial oracle there is no truth below before she sets it: she assigns the first stable answers and
    lies nowhere. A false claim that she did not choose has no honest defence: she answers by the truth and loses, or
    with the adversarial oracle lies as she must.
    """

    def __init__(self, game: Game) -> None:
        self._adversarial = game.adversarial
        if game.adversarial:
            found = [[_first_stable(game, f, bit) for bit in (0, 1)] for f in game.library.aggregators]
            self._stable = np.array([[stable for _, stable in pair] for pair in found])
            self._assignment = np.zeros((len(found), 2, game.width), np.int8)
            for a, bit in np.ndindex(len(found), 2):
                row = found[a][bit][0]
                self._assignment[a, bit, : len(row)] = row

    def act(self, seen: View, u: Any) -> np.ndarray:
        claimed, truth, library = seen.claimed, seen.truth, seen.game.library
        if seen.phase == CLAIM:
            return truth
        if seen.phase == DECOMPOSE:
            on_menu = seen.menu >= 0
            if self._adversarial:
                stable = self._stable[seen.menu, claimed[:, None]]
            else:
                answers = seen.answers.reshape(-1, seen.game.width)
                stable = library.stable(np.maximum(seen.menu, 0).ravel(), answers).reshape(seen.menu.shape)
            return (on_menu & stable).argmax(-1)
        if seen.phase == ASSIGN:
            return self._assignment[seen.aggregator, claimed] if self._adversarial else seen.truths
        other = self._assignment[seen.aggregator, truth] ^ seen.assignment
        return np.where((truth == claimed)[:, None], 0, other)


def _first_stable(game: Game, f: Aggregator, bit: int) -> tuple[np.ndarray, bool]:
    """An assignment of output `bit`, int8 (q,), and whether it is stable: the first stable one if any is."""
    if f.width <= NARROW:
        rows = (np.arange(1 << f.width)[:, None] >> np.arange(f.width - 1, -1, -1) & 1).astype(np.int8)
    elif isinstance(f, Symmetric):
        rows = np.tri(f.width + 1, f.width, -1, dtype=np.int8)
    else:  # a threshold, as procedural problems have no other; it is least sensitive furthest on its side
        positive = (np.array(f.weights) > 0).astype(np.int8)
        rows = np.stack([1 - positive, positive])
    rows = rows[f(rows) == bit]
    a = np.full(len(rows), game.library.aggregators.index(f))
    padded = np.zeros((len(rows), game.width), np.int8)
    padded[:, : f.width] = rows
    stable = np.asarray(game.library.stable(a, padded))
    return rows[stable.argmax()], bool(stable.any())


class MinimaxAlice:
    """An equilibrium Alice of the adversarial game: V_k(c) is all that any Bob gets from a false claim of hers.

    She takes the candidate and assignment of least value, and draws her lies from the packing of the cover program with
    capacities 1 / V_{k-1}(z_i): block B with probability in proportion to its weight. True claims she defends alike,
    without a lie. Free to choose, she claims the truth.

    Raises:
        PlayerError: no game value is known.
    """

    needs_state = False

    def __init__(self, game: Game) -> None:
        try:
            self._solution, self._rows = solve(game), positions(game)
        except ExactError as error:
            raise PlayerError(f"Alice `worst_case` is not known here: {error}; play `random` or `honest`") from None
        self._game = game
        # An unstable assignment loses true claims too: worse than a stable one that is always caught.
        stable = np.where(self._rows.stable, self._solution.positions, np.inf)
        self._choice = np.stack([self._rows.least(at_level) for at_level in stable])
        self._value = np.stack([v[rows] for v, rows in zip(stable, self._choice, strict=True)])
        self._packing = lru_cache(maxsize=None)(self._solve_packing)

    def act(self, seen: View, u: np.ndarray) -> np.ndarray:
        if seen.phase == CLAIM:
            return seen.truth
        below = seen.level - 1
        if seen.phase == DECOMPOSE:
            return self._value[below[:, None], seen.menu, seen.claimed[:, None]].argmin(-1)
        if seen.phase == ASSIGN:
            return self._rows.assignment[self._choice[below, seen.aggregator, seen.claimed]]
        lies = np.zeros(seen.assignment.shape, np.int8)
        for level, row, false in self._false(seen):
            cumulative, blocks = self._packing(level, row)
            lies[false] = blocks[np.searchsorted(cumulative, u[false, 0], side="right")]
        return lies

    def probabilities(self, seen: View) -> np.ndarray:
        """float64 (N, M), in the order of `envs.view.legal_moves`."""
        if seen.phase in (CLAIM, DECOMPOSE, ASSIGN):
            move = self.act(seen, np.zeros((len(seen.active), 1)))
            move = seen.game.library.code(move) if seen.phase == ASSIGN else move
            size = {CLAIM: 2, DECOMPOSE: seen.game.menu, ASSIGN: 1 << seen.game.width}[seen.phase]
            return (np.asarray(move)[:, None] == np.arange(size)).astype(np.float64)
        policy = np.zeros((len(seen.active), 1 << seen.game.width))
        policy[:, 0] = 1
        for level, row, false in self._false(seen):
            cumulative, blocks = self._packing(level, row)
            policy[false, 0] = 0
            policy[false[:, None], seen.game.library.code(blocks)] = np.diff(cumulative, prepend=0)
        return policy

    def _false(self, seen: View) -> list[tuple[int, int, np.ndarray]]:
        """The false claims that are debated, by level and position: (level, position, int64 indices)."""
        false = np.flatnonzero(seen.active & (seen.truth != seen.claimed))
        positions_of = self._rows.row(seen.aggregator[false], seen.assignment[false])
        size = len(self._rows.aggregator)
        keys = seen.level[false] * size + positions_of
        return [(key // size, key % size, false[some]) for key, some in groups(keys)]

    def _solve_packing(self, level: int, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Cumulative probabilities (n,) and lies int8 (n, Q) of the packing at a position; the last reaches 1."""
        f = self._game.library.aggregators[self._rows.aggregator[row]]
        z = self._rows.assignment[row, : f.width]
        packing = sensitivity(f, z, 1 / self._solution.values[level - 1][z]).packing
        lies = np.zeros((len(packing), self._game.width), np.int8)
        for flips, (block, _) in zip(lies, packing, strict=True):
            flips[list(block)] = 1
        cumulative = np.cumsum([float(weight) for _, weight in packing])
        cumulative /= cumulative[-1]
        return cumulative, lies


class RandomAlice:
    """Uniform over the legal moves."""

    needs_state = False

    def act(self, seen: View, u: np.ndarray) -> np.ndarray:
        if seen.phase == CLAIM:
            return (u[:, 0] < 0.5).astype(np.int8)
        if seen.phase == DECOMPOSE:
            return sample((seen.menu >= 0).astype(np.float64), u[:, 0])
        bit = seen.claimed if seen.phase == ASSIGN else seen.truth
        z = _uniform_assignments(seen, np.asarray(bit, np.int64), u)
        return z if seen.phase == ASSIGN else z ^ seen.assignment

    def probabilities(self, seen: View) -> np.ndarray:
        """float64 (N, M), in the order of `envs.view.legal_moves`."""
        legal = legal_moves(seen)
        return legal / np.maximum(legal.sum(-1, keepdims=True), 1)


def _uniform_assignments(seen: View, bit: np.ndarray, u: np.ndarray) -> np.ndarray:
    """int8 (N, Q): uniform assignments of output `bit` (N,); zeros where the debate is over."""
    library, a = seen.game.library, seen.aggregator
    if library.tabulated:
        rank = (u[:, 0] * library.preimage_size[a, bit]).astype(np.int64)
        return library.bits[library.preimage[a, bit, rank]]
    z = np.zeros((len(a), seen.game.width), np.int8)
    active = np.flatnonzero(seen.active)
    for label, some in groups(2 * a[active] + bit[active]):
        rows = active[some]
        f = library.aggregators[label // 2]
        draw = _uniform_symmetric if isinstance(f, Symmetric) else _uniform
        z[rows, : f.width] = draw(f, label % 2, u[rows, : 1 + f.width])
    return z


def _uniform_symmetric(f: Symmetric, bit: int, u: np.ndarray) -> np.ndarray:
    """Draw how many ones, then which."""
    counts = np.flatnonzero(np.array(f.by_count) == bit)
    log_ways = np.array([-lgamma(m + 1) - lgamma(f.width - m + 1) for m in counts])
    ways = np.exp(log_ways - log_ways.max())
    ones = counts[sample(np.broadcast_to(ways, (len(u), len(ways))), u[:, 0])]
    return (u[:, 1:].argsort(-1).argsort(-1) < ones[:, None]).astype(np.int8)


def _uniform(f: Aggregator, bit: int, u: np.ndarray) -> np.ndarray:
    """Draw one sub-claim after the other, weighing each by how many completions give the bit."""
    one = np.full((len(u), f.width), 0.5)
    for i in range(f.width):
        tried = one.copy()
        tried[:, i] = 1
        with_one = f.tally(1 - tried, tried)[bit]
        tried[:, i] = 0
        with_zero = f.tally(1 - tried, tried)[bit]
        one[:, i] = u[:, 1 + i] * (with_zero + with_one) < with_one
    return one.astype(np.int8)
