"""Exact play of claim trees, whose answers are fixed: Alice's best response, and how far honesty gets.

With F(leaf, c) Bob's share of the prize at a leaf of which c is claimed, bottom up

    F(u, c) = min over z in f_u^-1(c) of [ p_challenge unstable(z) + sum_i p_i F(child i, z_i) ]

over all assignments where u has few children. Where it has many and f is symmetric, a Bob who treats interchangeable
sub-claims alike gives each of the m ones p_1 and each of the zeros p_0: the m children with the least
p_1 F(i, 1) - p_0 F(i, 0) are claimed true, and m is searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.exact import leaf_share
from agents.positions import ExactError, responses, sees_truths
from agents.scripted import Certain, groups
from envs.config import NARROW
from envs.game import Game
from envs.rules import CHALLENGE, CLAIM, SAMPLE
from envs.view import View
from fbs.aggregator import Symmetric

WIDEST = 4096  # children of one claim
NUMBERS_AT_ONCE = 1 << 22  # policy entries in memory together


@dataclass(frozen=True, eq=False)
class TreeResponse(Certain):
    """Alice's best response to a Bob on a claim tree, as a player.

    Attributes:
        catch: float64 (N, 2), Bob's least share of the prize at each node if that bit is claimed.
        answers: int8 (2, N), what she answers at each node if that bit is claimed of its parent.
    """

    game: Game
    catch: np.ndarray
    answers: np.ndarray

    needs_state = True  # for the node

    def act(self, seen: View, u: Any) -> np.ndarray:
        tree, node = self.game.source, seen.state.node
        if seen.phase == CLAIM:
            return self.catch[node].argmin(-1)
        children = np.minimum(tree.first_child[node, None] + np.arange(self.game.width), len(tree.width) - 1)
        return np.where(self.game.beyond[seen.aggregator], 0, self.answers[seen.claimed[:, None], children])


def best_response_on_tree(game: Game, bob: Any) -> TreeResponse:
    """Alice's exact best response to Bob on a claim tree. Among equals she prefers what is stable.

    Raises:
        ExactError: a claim has too many children for this Bob and aggregator; it is named.
    """
    tree = game.source
    count = len(tree.width)
    catch, answers = np.ones((count, 2)), np.zeros((2, count), np.int8)
    leaves, share = tree.width == 0, leaf_share(game)
    catch[leaves] = share[:, tree.answer[leaves]].T
    for level in range(1, tree.depth + 1):
        nodes = np.flatnonzero(tree.level == level)
        for _, some in groups(tree.aggregator[nodes]):
            _respond_at(game, bob, nodes[some], catch, answers)
    return TreeResponse(game, catch, answers)


def _respond_at(game: Game, bob: Any, nodes: np.ndarray, catch: np.ndarray, answers: np.ndarray) -> None:
    """Fill in catch at some nodes of one level and aggregator, and the answers to their children."""
    tree, f = game.source, game.library.aggregators[game.source.aggregator[nodes[0]]]
    if f.width > NARROW and not isinstance(f, Symmetric):
        _refuse(game, nodes[0], f"its aggregator is not symmetric and has more than {NARROW} children")
    if f.width > NARROW and sees_truths(game, bob):
        _refuse(game, nodes[0], f"it has more than {NARROW} children and this Bob knows more than what is claimed")
    if f.width > WIDEST:
        _refuse(game, nodes[0], f"it has more than {WIDEST} children")
    respond = _narrow if f.width <= NARROW else _wide
    size = (1 << f.width) * f.width if f.width <= NARROW else f.width**2
    for some in np.array_split(nodes, -(-len(nodes) * size // NUMBERS_AT_ONCE)):
        children = tree.first_child[some, None] + np.arange(f.width)
        for bit, (value, z) in enumerate(respond(game, bob, some, catch[children])):
            catch[some, bit] = value
            answers[bit, children] = z


def _refuse(game: Game, node: int, reason: str) -> None:
    path = game.source.path(node)
    raise ExactError(f"no exact best response at claim '{path or 'root'}' ({game.source.text[node][:80]!r}): {reason}")


Responses = list[tuple[np.ndarray, np.ndarray]]  # for each claimed bit, Bob's share (n,) and the answers (n, w)


def _narrow(game: Game, bob: Any, nodes: np.ndarray, below: np.ndarray) -> Responses:
    """By listing all assignments; `below` (n, w, 2) is the catch at the children."""
    width = below.shape[1]
    z = (np.arange(1 << width)[:, None] >> np.arange(width - 1, -1, -1) & 1).astype(np.int8)
    if sees_truths(game, bob):
        table = np.stack([_responses(game, bob, node, z) for node in nodes])
    else:
        table = _responses(game, bob, nodes[0], z)[None]
    f = game.library.aggregators[game.source.aggregator[nodes[0]]]
    stable = _stable(game, nodes[0], z)
    by_answer = table[:, :, SAMPLE : SAMPLE + width, None] * (z[:, :, None] == np.arange(2))
    shares = (by_answer.reshape(len(table), len(z), -1) @ below.reshape(len(nodes), -1, 1))[..., 0]
    shares = shares + table[:, :, CHALLENGE] * ~stable
    return [_least(np.where(f(z) == bit, shares, np.inf), stable, z) for bit in (0, 1)]


def _least(shares: np.ndarray, stable: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least of shares (n, M), and the z that has it; without one it is 1, for Alice loses on arrival."""
    least = shares.min(-1)
    best = ((shares == least[:, None]) * (1 + stable)).argmax(-1)
    return np.where(np.isinf(least), 1.0, least), z[best]


def _wide(game: Game, bob: Any, nodes: np.ndarray, below: np.ndarray) -> Responses:
    """By how many ones; `below` (n, w, 2) is the catch at the children."""
    width = below.shape[1]
    ladder = np.tri(width + 1, width, -1, dtype=np.int8)
    table, stable = _responses(game, bob, nodes[0], ladder), _stable(game, nodes[0], ladder)
    sampling, count = table[:, SAMPLE : SAMPLE + width], np.arange(width + 1)
    of_one = (sampling * ladder).sum(-1) / np.maximum(count, 1)
    of_zero = (sampling * (1 - ladder)).sum(-1) / np.maximum(width - count, 1)
    outputs = game.library.aggregators[game.source.aggregator[nodes[0]]](ladder)
    values, answers = np.ones((2, len(nodes))), np.zeros((2, len(nodes), width), np.int8)
    for n, children in enumerate(below):
        gain = of_one[:, None] * children[:, 1] - of_zero[:, None] * children[:, 0]
        order = gain.argsort(-1)
        ones = (np.take_along_axis(gain, order, -1) * ladder).sum(-1)
        shares = ones + of_zero * children[:, 0].sum() + table[:, CHALLENGE] * ~stable
        for bit in (0, 1):
            value, best = _least(np.where(outputs == bit, shares, np.inf)[None], stable, count)
            values[bit, n] = value[0]
            answers[bit, n, order[best[0], : best[0]]] = 1
    return list(zip(values, answers, strict=True))


def _responses(game: Game, bob: Any, node: int, z: np.ndarray) -> np.ndarray:
    """float64 (n, 2 + Q): Bob's responses at a node to assignments z (n, w)."""
    tree, n = game.source, len(z)
    a = np.full(n, tree.aggregator[node])
    padded, truths = np.zeros((n, game.width), np.int8), np.zeros((n, game.width), np.int8)
    padded[:, : z.shape[1]] = z
    truths[:, : z.shape[1]] = tree.answer[tree.children(node)]
    claimed = game.library.aggregators[tree.aggregator[node]](z)
    return responses(game, bob, a, padded, np.full(n, tree.level[node]), claimed, truths, np.full(n, node))


def _stable(game: Game, node: int, z: np.ndarray) -> np.ndarray:
    padded = np.zeros((len(z), game.width), np.int8)
    padded[:, : z.shape[1]] = z
    return np.asarray(game.library.stable(np.full(len(z), game.source.aggregator[node]), padded))


def true_positions(game: Game) -> tuple[np.ndarray, np.ndarray]:
    """The claims above level 0 as honest Alice answers them: nodes int64 (n,), and bool (n,) whether each is stable."""
    tree = game.source
    nodes = np.flatnonzero(tree.width > 0)
    stable = np.zeros(len(nodes), bool)
    step = max(1, NUMBERS_AT_ONCE // game.width)
    for low in range(0, len(nodes), step):
        some = nodes[low : low + step]
        stable[low : low + step] = game.library.stable(tree.aggregator[some], _true_answers(game, some))
    return nodes, stable


def _true_answers(game: Game, nodes: np.ndarray) -> np.ndarray:
    return game.tree_menu(nodes)[1][:, 0]


def honest_responses(game: Game, bob: Any, nodes: np.ndarray) -> np.ndarray:
    """float64 (n, 2 + Q): Bob's responses to true answers at some nodes."""
    tree, answers = game.source, _true_answers(game, nodes)
    return responses(
        game, bob, tree.aggregator[nodes], answers, tree.level[nodes], tree.answer[nodes], answers, nodes
    )  # fmt: skip


def honest_challenges(game: Game, bob: Any) -> tuple[np.ndarray, np.ndarray]:
    """How likely Bob challenges each claim above level 0 at its true answers, float64 (n,), and if it is stable."""
    nodes, stable = true_positions(game)
    challenges = np.zeros(len(nodes))
    step = max(1, NUMBERS_AT_ONCE // game.width)
    for low in range(0, len(nodes), step):
        challenges[low : low + step] = honest_responses(game, bob, nodes[low : low + step])[:, CHALLENGE]
    return challenges, stable


def honest_unstable(game: Game, bob: Any) -> float:
    """The exact probability that honest Alice meets an unstable claim in a debate with Bob on a claim tree."""
    tree = game.source
    nodes, stable = true_positions(game)
    reach = np.zeros(len(tree.width))  # of each claim, with only stable ones on the way
    reach[0] = 1
    step = max(1, NUMBERS_AT_ONCE // game.width)
    low, high = 0, 1  # the nodes at one distance from the root
    while low < high:
        layer = nodes[stable & (nodes >= low) & (nodes < high) & (reach[nodes] > 0)]
        for first in range(0, len(layer), step):
            some = layer[first : first + step]
            sampling = honest_responses(game, bob, some)[:, SAMPLE:] * reach[some, None]
            inside = np.arange(game.width) < tree.width[some, None]
            reach[(tree.first_child[some, None] + np.arange(game.width))[inside]] = sampling[inside]
        low, high = high, high + int(tree.width[low:high].sum())
    return float(reach[nodes[~stable]].sum())
