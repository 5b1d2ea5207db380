"""Values and Alice's best responses of procedural games, by recursion over levels and nothing sampled.

Everything is counted in Bob's share of the prize, (his reward + 1) / 2: the probability that he catches the claim, less
half a query cost where the oracle is asked. With F_0(c, t) the share at a leaf of claimed bit c and truth t, a claim of
level k is worth to Alice's best response

    F_k(c, t) = E over menus of min over candidates a of min over z in f_a^-1(c) of
                [ p_challenge unstable(a, z) + min over truths y in f_a^-1(t) of sum_i p_i F_{k-1}(z_i, y_i) ]

with the adversarial oracle. With the random oracle a candidate is a pair (a, y) and there is no inner minimum. The
inner sums over all y are made at once, one sub-claim at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from agents.positions import ExactError, Positions, policy, positions, responses, sees_truths
from agents.scripted import Certain
from envs.game import Game
from envs.rules import ASSIGN, CHALLENGE, CLAIM, DECOMPOSE, LIE, SAMPLE
from envs.view import View
from fbs.sensitivity import sensitivity

SUMS_AT_ONCE = 1 << 22  # (assignment, truths) pairs held in memory together


class Solution(NamedTuple):
    """The adversarial game, solved.

    Attributes:
        values: float64 (d + 1, 2), V_k(c): Bob's best guaranteed probability of catching a false claim.
        positions: float64 (d, R), the same once Alice has committed to a position's assignment, were it stable.
    """

    values: np.ndarray
    positions: np.ndarray


def adversarial_twin(game: Game) -> Game:
    """The game itself if its oracle is adversarial, otherwise the same game with that oracle."""
    return game if game.adversarial else _twin(game)


@lru_cache(maxsize=8)
def _twin(game: Game) -> Game:
    return game.evaluation(oracle="adversarial")


@lru_cache(maxsize=32)
def solve(game: Game) -> Solution:
    """Solve a procedural game with the adversarial oracle, noise and query cost left out and truths hidden from Bob.

        V_0 = 1,   V_k(c) = min over stable z in f^-1(c) of 1 / (min sum_i t_i / V_{k-1}(z_i) over covers t)

    and with menus the mean over menus of the least candidate; one without a stable z counts as 1, being challenged.

    Raises:
        ExactError: an aggregator is wide and not symmetric.
    """
    rows = positions(game)
    values, at_positions = np.ones((game.depth + 1, 2)), np.ones((game.depth, len(rows.aggregator)))
    for level in range(1, game.depth + 1):
        at_positions[level - 1] = _catch_after_assigning(game, rows, values[level - 1])
        stable = np.where(rows.stable, at_positions[level - 1], 1.0)
        least = stable[rows.least(stable)]
        for bit in (0, 1):
            values[level, bit] = expected_least(game, bit, least[deck_keys(game, bit), bit])
    return Solution(values, at_positions)


def game_values(game: Game) -> np.ndarray | None:
    """float64 (d + 1, 2): V_k(c), Bob's best guaranteed probability of catching a false claim of level k.

    The adversarial oracle without noise. A Bob who sees truths catches every false claim, so there it is 1. None where
    no value is known: the random oracle, claim trees, and wide aggregators that are not symmetric.
    """
    if game.tree is not None or not game.adversarial:
        return None
    if game.sees_truth:
        return np.ones((game.depth + 1, 2))
    try:
        return solve(game).values
    except ExactError:
        return None


def with_noise(game: Game, catch: Any) -> Any:
    """The probability that Bob wins when the debate ends at a false leaf with probability `catch`."""
    return game.noise + (1 - 2 * game.noise) * catch


def bound(game: Game) -> float:
    """The paper's guarantee, rho^-d."""
    return float(game.env.rho) ** -game.depth


def game_value(game: Game) -> float | None:
    """Bob's best guaranteed probability of winning against a false root claim, over both claimed bits; None if unknown.

    Oracle noise is counted in, a query cost is not.
    """
    values = game_values(game)
    return None if values is None else float(with_noise(game, values[-1].mean()))


def _catch_after_assigning(game: Game, rows: Positions, below: np.ndarray) -> np.ndarray:
    """float64 (R,): the value of the cover program with weights 1 / V(z_i), inverted; V is `below` (2,)."""
    cost0, cost1 = 1 / below
    if rows.narrow:
        return 1 / np.concatenate([table.weighted(cost0, cost1) for table in game.library.sensitivity_tables])
    sensitivities = np.empty(len(rows.aggregator))
    for row, a in enumerate(rows.aggregator):
        f = game.library.aggregators[a]
        z = rows.assignment[row, : f.width]
        sensitivities[row] = sensitivity(f, z, np.where(z == 1, cost1, cost0)).value
    return 1 / sensitivities


def expected_least(game: Game, bit: int, values: np.ndarray) -> float:
    """The mean over menus of the least value on them, for values (E,) of the deck's entries for `bit`.

    Candidates are independent draws, given that one is stable: with P the probability that none is,
    E[least | one is] = (E[least] - P E[least | none is]) / (1 - P).
    """
    deck, menu = game.deck, game.menu
    entries = slice(deck.first[bit], deck.last[bit] + 1)
    probability, stable = deck.probability[entries], deck.stable[entries]
    if menu == 1:
        return float(probability[stable] @ values[stable] / probability[stable].sum())
    every = _share_of_least(probability, values, menu)
    none = _share_of_least(probability[~stable], values[~stable], menu)
    return float((every - none) / (1 - probability[~stable].sum() ** menu))


def _share_of_least(probability: np.ndarray, values: np.ndarray, draws: int) -> float:
    """E[least of so many draws; all among these entries]."""
    order = np.argsort(values, kind="stable")
    at_least = np.append(probability[order][::-1].cumsum()[::-1], 0.0)  # mass of this entry and all greater ones
    return float(values[order] @ (at_least[:-1] ** draws - at_least[1:] ** draws))


def deck_keys(game: Game, bit: int) -> np.ndarray:
    """int64 (E,): the candidates in the deck for `bit`: aggregators, with the random oracle rows of true answers."""
    deck = game.deck
    entries = slice(deck.first[bit], deck.last[bit] + 1)
    a = deck.aggregator[entries]
    if game.adversarial:
        return a
    rows = positions(game)
    return rows.start[a] + (deck.code[entries] >> (game.width - rows.widths[a]))


def leaf_share(game: Game) -> np.ndarray:
    """float64 (2 claimed, 2 truth): Bob's share of the prize at a leaf."""
    wrong = 1 - np.eye(2)
    return game.noise + (1 - 2 * game.noise) * wrong - game.query_cost / 2


@dataclass(frozen=True, eq=False)
class AliceResponse(Certain):
    """Alice's best response to a Bob in a procedural game, as a player.

    A candidate's key is its aggregator, with the random oracle the position of its true answers.

    Attributes:
        catch: float64 (d + 1, 2 claimed, 2 truth), Bob's least share of the prize.
        value: float64 (d + 1, 2, 2, keys), the same of each candidate.
        choice: int64 (d + 1, 2, 2, keys), the position of the assignment that attains it.
        lies: int8 (d + 1, 2 truth, R, Q), the best lies at each position; None with the random oracle.
    """

    game: Game
    catch: np.ndarray
    value: np.ndarray
    choice: np.ndarray
    lies: np.ndarray | None

    def act(self, seen: View, u: Any) -> np.ndarray:
        rows = positions(self.game)
        level, claimed, truth = seen.level, seen.claimed, seen.truth
        if seen.phase == CLAIM:
            return self.catch[self.game.depth, :, truth].argmin(-1)
        if seen.phase == DECOMPOSE:
            keys = seen.menu
            if not self.game.adversarial:
                flat = rows.row(seen.menu.ravel(), seen.answers.reshape(-1, self.game.width))
                keys = flat.reshape(seen.menu.shape)
            return self.value[level[:, None], claimed[:, None], truth[:, None], keys].argmin(-1)
        if seen.phase == ASSIGN:
            key = seen.aggregator if self.game.adversarial else rows.row(seen.aggregator, seen.truths)
            return rows.assignment[self.choice[level, claimed, truth, key]]
        assert seen.phase == LIE
        return self.lies[level, truth, rows.row(seen.aggregator, seen.assignment)]


def best_response_alice(game: Game, bob: Any) -> AliceResponse:
    """Alice's exact best response to Bob, and Bob's share of the prize against it.

    Args:
        game: A procedural NumPy game; trembles are left out. Wide symmetric aggregators are solved for a Bob who treats
            interchangeable sub-claims alike; for any other, the response is one of Alice's good ones, not the best.
        bob: Any player of this game without memory; one that sees truths needs narrow aggregators.

    Raises:
        ExactError: aggregators too wide for what is asked.
    """
    rows = positions(game)
    keys = len(rows.start) if game.adversarial else len(rows.aggregator)
    catch = np.zeros((game.depth + 1, 2, 2))
    value, choice = np.zeros((game.depth + 1, 2, 2, keys)), np.zeros((game.depth + 1, 2, 2, keys), np.int64)
    lies = np.zeros((game.depth + 1, 2, len(rows.aggregator), game.width), np.int8) if game.adversarial else None
    if not rows.narrow and sees_truths(game, bob):
        raise ExactError("a Bob who sees truths has an exact best response only where aggregators are narrow")
    table = None if sees_truths(game, bob) else policy(game, bob)
    catch[0] = leaf_share(game)
    for level in range(1, game.depth + 1):
        at_level = None if table is None else table[level - 1]
        if not game.adversarial:
            value[level], choice[level] = _best_assignments(game, bob, level, catch[level - 1], at_level)
        else:
            least, lies[level] = best_lies(game, bob, level, catch[level - 1], at_level)
            for truth in (0, 1):
                choice[level, :, truth] = rows.least(least[truth]).T
                value[level, :, truth] = least[truth][choice[level, :, truth]]
        for claimed, truth in np.ndindex(2, 2):
            bit = claimed if game.adversarial else truth
            values = value[level, claimed, truth, deck_keys(game, bit)]
            catch[level, claimed, truth] = expected_least(game, bit, values)
    return AliceResponse(game, catch, value, choice, lies)


def _best_assignments(
    game: Game, bob: Any, level: int, below: np.ndarray, table: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Random oracle: least share and best position, (2 claimed, 2 truth, R truths); the same for both truths."""
    rows = positions(game)
    value, choice = np.zeros((2, 2, len(rows.aggregator))), np.zeros((2, 2, len(rows.aggregator)), np.int64)
    for block, shares in _shares(game, bob, level, below, table):
        for claimed in (0, 1):
            allowed = np.where((rows.claimed[block] == claimed)[:, :, None], shares, np.inf)
            least = allowed.min(1)
            best = ((allowed == least[:, None]) * (1 + rows.stable[block])[:, :, None]).argmax(1)
            value[claimed, :, block] = least[..., None]
            choice[claimed, :, block] = (block[:, :1] + best)[..., None]
    return value, choice


def best_lies(
    game: Game, bob: Any, level: int, below: np.ndarray, table: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Adversarial oracle: least share (2 truth, R) and best lies (2 truth, R, Q) at each position."""
    rows = positions(game)
    if not rows.narrow:
        return _best_lies_wide(game, below, table)
    least, truths = np.zeros((2, len(rows.aggregator))), np.zeros((2, len(rows.aggregator)), np.int64)
    for block, shares in _shares(game, bob, level, below, table):
        for truth in (0, 1):
            allowed = np.where((rows.claimed[block] == truth)[:, None], shares, np.inf)
            best = allowed.argmin(-1)
            least[truth, block] = np.take_along_axis(allowed, best[..., None], -1)[..., 0]
            truths[truth, block] = block[:, :1] + best
    return least, rows.assignment[truths] ^ rows.assignment


def _best_lies_wide(game: Game, below: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same from lightest blocks: a lie never lowers Bob's share where he does not see truths."""
    rows, bits = positions(game), np.arange(2)
    assignment, sampling = rows.assignment, table[:, SAMPLE:]
    extra = below[bits, 1 - bits] - below[bits, bits]
    base = table[:, CHALLENGE] * ~rows.stable + (sampling * below[bits, bits][assignment]).sum(-1)
    masses = np.maximum(sampling * extra[assignment], 0)
    least = np.stack([base, base])
    lies = np.zeros((2, *assignment.shape), np.int8)
    for row, (a, output) in enumerate(zip(rows.aggregator, rows.claimed, strict=True)):
        f = game.library.aggregators[a]
        mass, block = f.lightest_block(assignment[row, : f.width], masses[row, : f.width])
        least[1 - output, row] += mass
        lies[1 - output, row, : f.width] = block
    return least, lies


def _shares(
    game: Game, bob: Any, level: int, below: np.ndarray, table: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Bob's share for every assignment and every truths of it, some aggregators of one width w at a time.

    Yields:
        (rows int64 (n, 2^w), shares float64 (n, 2^w assignments, 2^w truths)).
    """
    rows = positions(game)
    for width in np.unique(rows.widths):
        size = 1 << int(width)
        starts = rows.start[rows.widths == width]
        for some in np.array_split(starts, -(-len(starts) * size * size // SUMS_AT_ONCE)):
            block = some[:, None] + np.arange(size)
            if table is None:
                yield block, _shares_seeing_truths(game, bob, level, below, block)
            else:
                sampled = table[block, SAMPLE : SAMPLE + width, None] * below[rows.assignment[block, :width]]
                challenged = table[block, CHALLENGE] * ~rows.stable[block]
                yield block, sums_over_truths(sampled) + challenged[..., None]


def sums_over_truths(terms: np.ndarray) -> np.ndarray:
    """float64 (..., 2^w): sum_i terms[..., i, y_i] for every y in the order of the codes, from terms (..., w, 2)."""
    sums = np.zeros((*terms.shape[:-2], 1))
    for i in range(terms.shape[-2]):
        sums = (sums[..., None] + terms[..., i, None, :]).reshape(*terms.shape[:-2], -1)
    return sums


def _shares_seeing_truths(game: Game, bob: Any, level: int, below: np.ndarray, block: np.ndarray) -> np.ndarray:
    """The same for a Bob whose policy depends on the truths."""
    rows = positions(game)
    z = np.broadcast_to(block[:, :, None], (*block.shape, block.shape[1])).ravel()
    y = np.broadcast_to(block[:, None, :], (*block.shape, block.shape[1])).ravel()
    assignment, truths = rows.assignment[z], rows.assignment[y]
    levels = np.full(len(z), level)
    table = responses(game, bob, rows.aggregator[z], assignment, levels, rows.claimed[z], truths)
    shares = table[:, CHALLENGE] * ~rows.stable[z] + (table[:, SAMPLE:] * below[assignment, truths]).sum(-1)
    return shares.reshape(*block.shape, block.shape[1])
