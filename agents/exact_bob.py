"""Bob's exact best response to a given Alice in a procedural game, with perfect recall.

Alice's policy is a function of the present claim, so what Bob has seen matters only through his belief that the claim
is false. Whatever he plans from a claim of level k and claimed bit c on earns (x_false, x_true), his share of the prize
if the claim is false and if it is true. The attainable pairs form a convex set, of which only the upper right boundary,
the *frontier*, can be best for any belief. It is a chain of vertices, and it is built from the frontiers one level
below: after an assignment (a, z) Bob accepts (0, 0), challenges (u, u) with u = 1 where it is unstable, or samples i
and goes on along the frontier of z_i, false with the probability that Alice lies there. The frontier of the claim is
the Minkowski sum of these over all (a, z), each weighed by how likely it is if the claim is false and if it is true.

Sums of chains are sorted merges of their edges, so nothing is approximated and no history is listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from agents.exact import deck_keys, leaf_share
from agents.positions import ExactError, Positions, alone, positions, standing
from envs.game import Game
from envs.rules import ASSIGN, CLAIM, DECOMPOSE, LIE
from envs.view import view

MENUS = 1 << 16  # menus listed for one claim
PAIRS_AT_ONCE = 1 << 20  # (assignment, truths) pairs in memory together
MAX_PAIRS = 1 << 24  # and in all
MAX_POINTS = 1 << 22  # of which a level's frontiers are made


class Frontier(NamedTuple):
    """What Bob can attain at a claim, whatever his belief.

    Attributes:
        vertices: float64 (n, 2), pairs (x_false, x_true) by falling x_false.
        slopes: float64 (n - 1,), x_false given up for each x_true gained from one vertex to the next; rising.
    """

    vertices: np.ndarray
    slopes: np.ndarray


class Tables(NamedTuple):
    """What Alice does at one level; s is 0 if the claim is false, 1 if it is true.

    Attributes:
        weight: float64 (2 s, R), probability of each position given its claimed bit and s.
        lies: float64 (2 s, R, Q), the same with sub-claim i a lie.
        lost: float64 (2 c, 2 s), probability that she makes an illegal move, which wins for Bob.
    """

    weight: np.ndarray
    lies: np.ndarray
    lost: np.ndarray


def best_response_bob(game: Game, alice: Any) -> np.ndarray:
    """float64 (2,): what Bob's best response to Alice adds to his share of the prize, by the claimed bit at the root.

    Their sum is his expected share (his reward + 1) / 2, over the root claims as they are dealt or as Alice makes them.

    Args:
        game: A narrow procedural NumPy game; trembles are left out.
        alice: Any player of it whose policy is a function of the present claim, and after her choice of a candidate no
            longer of the others.

    Raises:
        ExactError: too much to enumerate, or a wide aggregator.
    """
    rows = positions(game)
    if not rows.narrow:
        raise ExactError("Bob's best response is known only where all aggregators are narrow")
    pairs = int((4.0**rows.widths).sum()) * game.depth
    if pairs > MAX_PAIRS:
        raise ExactError(f"Bob's best response needs {pairs} pairs of assignments and truths, more than {MAX_PAIRS}")
    beliefs = _root_beliefs(game, alice)
    if game.sees_truth:
        return (beliefs * _shares_seeing_truths(game, alice)).sum(-1)
    share = leaf_share(game)
    frontiers = [Frontier(np.array([[share[c, 1 - c], share[c, c]]]), np.zeros(0)) for c in (0, 1)]
    for level in range(1, game.depth):
        tables = level_tables(game, alice, level)
        frontiers = [_frontier(rows, tables, frontiers, c) for c in (0, 1)]
    tables = level_tables(game, alice, game.depth)
    return np.array([_root_share(rows, tables, frontiers, c, beliefs[c]) for c in (0, 1)])


def _root_beliefs(game: Game, alice: Any) -> np.ndarray:
    """float64 (2 c, 2 s): probability that c is claimed at the root and is false (s = 0) or true (s = 1)."""
    if not game.free_root:
        return np.full((2, 2), 0.5) * [game.p_false, 1 - game.p_false]
    claims = root_claims(game, alice) / 2
    return np.stack([np.diag(claims[::-1]), np.diag(claims)], -1)


def root_claims(game: Game, alice: Any) -> np.ndarray:
    """float64 (2 truth, 2 claimed): how Alice claims where the root claim is hers to choose."""
    truth = np.array([0, 1], np.int8)
    state = standing(game, CLAIM, game.depth, 0 * truth, truth, np.zeros((2, game.menu), np.int64))
    return np.asarray(alice.probabilities(view(game, state, alice.needs_state)), np.float64)


def _picks(game: Game, alice: Any, level: int) -> np.ndarray:
    """float64 (2 claimed, 2 truth, keys): probability that each candidate comes to be debated, over menus."""
    rows = positions(game)
    picks = np.zeros((2, 2, len(rows.start) if game.adversarial else len(rows.aggregator)))
    for claimed, truth in np.ndindex(2, 2):
        bit = claimed if game.adversarial else truth
        keys, entries = deck_keys(game, bit), slice(game.deck.first[bit], game.deck.last[bit] + 1)
        probability, stable = game.deck.probability[entries], game.deck.stable[entries]
        if len(keys) ** game.menu > MENUS:
            raise ExactError(f"Bob's best response needs {len(keys)}^{game.menu} menus, more than {MENUS}")
        menus = np.stack(np.meshgrid(*[np.arange(len(keys))] * game.menu, indexing="ij"), -1).reshape(-1, game.menu)
        menus = menus[stable[menus].any(-1)]
        chance = probability[menus].prod(-1)
        chance /= chance.sum()
        chosen = np.ones((len(menus), 1))
        if game.menu > 1:
            bits = np.full(len(menus), 1, np.int8)
            a = keys[menus] if game.adversarial else rows.aggregator[keys[menus]]
            answers = None if game.adversarial else rows.assignment[keys[menus]]
            state = standing(game, DECOMPOSE, level, bits * claimed, bits * truth, a, answers)
            chosen = np.asarray(alice.probabilities(view(game, state, alice.needs_state)), np.float64)
        np.add.at(picks[claimed, truth], keys[menus], chance[:, None] * chosen)
    return picks


def level_tables(game: Game, alice: Any, level: int) -> Tables:
    """Alice's policy at the claims of one level, as Bob's best response needs it."""
    rows = positions(game)
    weight, lies = np.zeros((2, len(rows.aggregator))), np.zeros((2, len(rows.aggregator), game.width))
    for truth, z, y, mass in _joint(game, alice, level):
        true = (rows.claimed[z] == truth).astype(np.int64)
        np.add.at(weight, (true, z), mass.sum(-1))
        flips = rows.assignment[y] != rows.assignment[z][:, None]
        np.add.at(lies, (true, z), (mass[:, None] @ flips)[:, 0])
    played = np.stack([weight[:, rows.claimed == c].sum(-1) for c in (0, 1)])
    return Tables(weight, lies, 1 - played)


def _joint(game: Game, alice: Any, level: int) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """How likely each assignment is together with each truths of its sub-claims, some rows at a time.

    Yields:
        (truth, z int64 (n,), y int64 (n, 2^w), mass float64 (n, 2^w)): the probability of position z with the truths of
        position y, given the claimed bit of z and the claim's truth. Mass on illegal moves is missing.
    """
    rows, picks = positions(game), _picks(game, alice, level)
    pairs = _lying if game.adversarial else _answering
    for width in np.unique(rows.widths):
        size = 1 << int(width)
        numbers = np.flatnonzero(rows.widths == width)
        for some in np.array_split(numbers, -(-len(numbers) * size * size // PAIRS_AT_ONCE)):
            yield from pairs(game, alice, level, picks, some, rows.start[some][:, None] + np.arange(size))


Pairs = Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]


def _lying(game: Game, alice: Any, level: int, picks: np.ndarray, numbers: np.ndarray, block: np.ndarray) -> Pairs:
    """`_joint` of some aggregators with the adversarial oracle; block int64 (n, 2^w) are their rows."""
    rows, library = positions(game), game.library
    a, claimed = np.repeat(numbers, 2), np.tile(np.array([0, 1], np.int8), len(numbers))
    for truth in (0, 1):
        state = standing(game, ASSIGN, level, claimed, 0 * claimed + np.int8(truth), alone(game, a, -1))
        policy = np.asarray(alice.probabilities(view(game, state, alice.needs_state)), np.float64)
        z = block.ravel()
        bit, number, code = rows.claimed[z], rows.aggregator[z], library.code(rows.assignment[z])
        likely = policy[2 * np.searchsorted(numbers, number) + bit, code] * picks[bit, truth, number]
        z, likely = z[likely > 0], likely[likely > 0]
        number, assignment = rows.aggregator[z], rows.assignment[z]
        if not len(z):
            continue
        truths = np.full(len(z), truth, np.int8)
        state = standing(game, LIE, level, rows.claimed[z], truths, alone(game, number, -1), None, assignment)
        policy = np.asarray(alice.probabilities(view(game, state, alice.needs_state)), np.float64)
        y = rows.start[number][:, None] + np.arange(block.shape[1])
        flips = library.code(rows.assignment[y]) ^ library.code(assignment)[:, None]
        mass = np.take_along_axis(policy, flips, -1) * (rows.claimed[y] == truth)
        yield truth, z, y, mass * likely[:, None]


def _answering(game: Game, alice: Any, level: int, picks: np.ndarray, numbers: np.ndarray, block: np.ndarray) -> Pairs:
    """`_joint` of some aggregators with the random oracle; block int64 (n, 2^w) are their rows."""
    rows = positions(game)
    y = block.ravel()
    truth, number = rows.claimed[y], rows.aggregator[y]
    codes = game.library.code(rows.assignment[block[0]])
    for claimed in (0, 1):
        answers = alone(game, rows.assignment[y], 0)
        bits = np.full(len(y), claimed, np.int8)
        state = standing(game, ASSIGN, level, bits, truth, alone(game, number, -1), answers, None, rows.assignment[y])
        policy = np.asarray(alice.probabilities(view(game, state, alice.needs_state)), np.float64)[:, codes]
        policy = policy.reshape(*block.shape, block.shape[1]).swapaxes(1, 2)  # (n, assignments, truths)
        policy = policy * (rows.claimed[block] == claimed)[:, :, None]
        for bit in (0, 1):
            mass = policy * (picks[claimed, bit, block] * (rows.claimed[block] == bit))[:, None]
            truths = np.broadcast_to(block[:, None], mass.shape).reshape(-1, block.shape[1])
            yield bit, block.ravel(), truths, mass.reshape(-1, block.shape[1])


def _shares_seeing_truths(game: Game, alice: Any) -> np.ndarray:
    """float64 (2 c, 2 s): the best share at the root of a Bob who sees every truth, so that he knows what is false."""
    rows = positions(game)
    below = leaf_share(game)  # (claimed, truth)
    for level in range(1, game.depth + 1):
        value, played = np.zeros((2, 2)), np.zeros((2, 2))
        for truth, z, y, mass in _joint(game, alice, level):
            sampled = below[rows.assignment[z][:, None], rows.assignment[y]]
            sampled[np.broadcast_to(game.beyond[rows.aggregator[z]][:, None], sampled.shape)] = -np.inf
            best = np.maximum(sampled.max(-1), (~rows.stable[z]).astype(np.float64)[:, None])
            np.add.at(value, (rows.claimed[z], truth), (mass * best).sum(-1))
            np.add.at(played, (rows.claimed[z], truth), mass.sum(-1))
        below = value + 1 - played
    return np.array([[below[c, 1 - c], below[c, c]] for c in (0, 1)])


def _frontier(rows: Positions, tables: Tables, below: list[Frontier], c: int) -> Frontier:
    """The frontier of a claim of c, from those one level below."""
    reached = np.flatnonzero((rows.claimed == c) & (tables.weight.sum(0) > 0))
    lengths = np.array([len(frontier.vertices) for frontier in below])
    size = int(lengths[rows.assignment[reached]].sum())
    if size > MAX_POINTS:
        raise ExactError(f"Bob's best response needs {size} plans at one level, more than {MAX_POINTS}")
    start, edges = tables.lost[c].copy(), []
    for row in reached:
        weight, lies = tables.weight[:, row], tables.lies[:, row]
        points = [np.zeros((1, 2)), weight[None] * ~rows.stable[row]]
        for i in range(rows.widths[rows.aggregator[row]]):
            plans = below[rows.assignment[row, i]].vertices
            points.append(plans[:, :1] * lies[:, i] + plans[:, 1:] * (weight - lies[:, i]))
        chain = upper_right_chain(np.concatenate(points))
        start += chain[0]
        edges.append(np.diff(chain, axis=0))
    edges = np.concatenate(edges) if edges else np.zeros((0, 2))
    slopes = -edges[:, 0] / edges[:, 1]
    order = np.argsort(slopes, kind="stable")  # a sum of convex chains is their edges in order
    return Frontier(np.concatenate([start[None], start + np.cumsum(edges[order], axis=0)]), slopes[order])


def upper_right_chain(points: np.ndarray) -> np.ndarray:
    """float64 (n, 2): the vertices of the convex hull that are largest in some direction >= 0, by falling x."""
    points = points[np.lexsort((-points[:, 1], -points[:, 0]))]
    higher = points[:, 1] > np.concatenate([[-np.inf], np.maximum.accumulate(points[:-1, 1])])
    chain: list[tuple[float, float]] = []
    for x, y in points[higher].tolist():
        while len(chain) > 1:
            (x0, y0), (x1, y1) = chain[-2:]
            if (x0 - x1) * (y - y1) < (x1 - x) * (y1 - y0):
                break
            chain.pop()
        chain.append((x, y))
    return np.array(chain)


def _root_share(rows: Positions, tables: Tables, below: list[Frontier], c: int, belief: np.ndarray) -> float:
    """Bob's share at a root claim of c, for the probabilities that it is false and true."""
    here = rows.claimed == c
    weight, lies = belief @ tables.weight[:, here], np.tensordot(belief, tables.lies[:, here], 1)
    z, inside = rows.assignment[here], np.arange(rows.assignment.shape[1]) < rows.widths[rows.aggregator[here], None]
    sampled = np.zeros(lies.shape)
    for bit in (0, 1):
        at = inside & (z == bit)
        sampled[at] = _support(below[bit], lies[at], (weight[:, None] - lies)[at])
    sampled = np.where(inside, sampled, -np.inf)
    best = np.maximum(np.maximum(sampled.max(-1), weight * ~rows.stable[here]), 0)
    return float(best.sum() + belief @ tables.lost[c])


def _support(frontier: Frontier, false: np.ndarray, true: np.ndarray) -> np.ndarray:
    """float64 (n,): max over a frontier's vertices of false x_false + true x_true, for nonnegative weights (n,)."""
    odds = np.divide(true, false, out=np.full(len(true), np.inf), where=false > 0)
    best = frontier.vertices[np.searchsorted(frontier.slopes, odds)]
    return false * best[:, 0] + true * best[:, 1]
