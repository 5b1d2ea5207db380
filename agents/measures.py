"""How good a pair of players is: everything that is measured of it (tremble 0, policies played by sampling).

p(i | z) is the unconditional probability that Bob samples i: mass on accepting or challenging catches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from agents import exact
from agents.alices import HonestAlice
from agents.exact import best_response_alice, bound, game_value, game_values, solve
from agents.exact_bob import best_response_bob, root_claims
from agents.exact_trees import best_response_on_tree, honest_challenges, honest_unstable
from agents.match import interval, play, playing_field, tally
from agents.positions import ExactError, policy, positions, sees_truths
from envs.engine import Player, debate, draws
from envs.game import Game
from envs.rules import CHALLENGE, RESPOND, SAMPLE
from fbs.optimal_face import optimal_face_distance

FACE_POSITIONS = 512  # `optimal_face_tv` solves a linear program at each; of more positions a fixed sample is taken
PAIR, COMPLETENESS, CROSS_PLAY = range(3)  # streams of draws

Rate = dict[str, float] | None


def evaluate(game: Game, alice: Player, bob: Player, debates: int = 2048, seed: int = 0) -> dict[str, Any]:
    """All that is measured of a pair.

    What is exact depends on the policies alone; `debates` and `seed` go into the rates with an interval and
    `true_sub_claims`. Whatever is not known for this problem is None.

    Args:
        game: Any NumPy game; trembles are left out. Evaluating on the same object again is faster.
        alice, bob: The players, without memory.
        debates: How many are played of this pair, and of honest Alice with this Bob.
        seed: Of their draws.

    Returns:
        `game_value`, `game_value_by_bit` [of root claim 0, of 1], `bound`;
        `worst_case_catch`, `catch_ratio` {mean, min}, `optimal_face_tv`, `challenge_errors` {stable, unstable}: of Bob;
        `exploitability` {alice, bob} and `nash_conv`, in reward; `honesty_rate` of Alice (free root claim);
        `true_sub_claims`, the share of her sub-claims that are true; `alice_win_rate`, `catch_rate` of the pair and
        `completeness`, honest Alice's win rate, each {mean, low, high}; `honest_unstable` (claim trees).
    """
    values = game_values(game)
    found: dict[str, Any] = {
        "game_value": game_value(game),
        "game_value_by_bit": None if values is None else exact.with_noise(game, values[-1]).tolist(),
        "bound": bound(game),
        **bob_measures(game, bob),
        **exploitability(game, alice, bob),
        "honesty_rate": honesty_rate(game, alice),
        **_played(game, alice, bob, debates, seed),
        "completeness": completeness(game, bob, debates, seed),
    }
    if game.tree is not None:
        found["honest_unstable"] = honest_unstable(game, bob)
    return found


@lru_cache(maxsize=16)
def measured(game: Game) -> Game:
    """The game that catch probabilities are measured on: the adversarial oracle where possible, and no query cost."""
    twin = game if game.tree is not None else exact.adversarial_twin(game)
    return twin if twin.query_cost == 0 else twin.evaluation(query_cost=0.0)


def bob_measures(game: Game, bob: Player) -> dict[str, Any]:
    """What is measured of Bob alone: worst_case_catch, catch_ratio, optimal_face_tv, challenge_errors.

    Measured with the adversarial oracle, also where a procedural game's is random; on a claim tree with its answers,
    and without catch_ratio and optimal_face_tv. None where no exact answer is to be had; catch_ratio and
    challenge_errors are then objects of None.
    """
    twin = measured(game)
    found: dict[str, Any] = {
        "worst_case_catch": None,
        "catch_ratio": {"mean": None, "min": None},
        "optimal_face_tv": None,
        "challenge_errors": {"stable": None, "unstable": None},
    }
    if twin.tree is not None:
        found["challenge_errors"] = challenge_errors(*honest_challenges(twin, bob))
    try:
        root = _shares_against(twin, bob)
        truths = (0, 1) if twin.tree is None else (int(twin.source.answer[0]),)
        found["worst_case_catch"] = float(np.mean([root[1 - truth, truth] for truth in truths]))
        if twin.tree is not None or sees_truths(twin, bob):
            return found
        table, rows = policy(twin, bob), positions(twin)
        met = can_be_met(twin)
        stable = np.broadcast_to(rows.stable[met], (len(table), int(met.sum())))
        found["challenge_errors"] = challenge_errors(table[:, met, CHALLENGE], stable)
        ratios = catch_ratios(twin, table)
        found["catch_ratio"] = {"mean": float(ratios.mean()), "min": float(ratios.min())}
        found["optimal_face_tv"] = optimal_face_tv(twin, table)
    except ExactError:
        pass
    return found


def _shares_against(game: Game, bob: Player) -> np.ndarray:
    """float64 (2 claimed, 2 truth): Bob's share of the prize at the root against Alice's best response."""
    if game.tree is None:
        return best_response_alice(game, bob).catch[-1]
    return np.repeat(best_response_on_tree(game, bob).catch[0][:, None], 2, axis=1)


def catch_ratios(game: Game, table: np.ndarray) -> np.ndarray:
    """float64 (d, S): how much of the best possible catch a sampling keeps, at the S stable positions of each level.

    min over sensitive B of sum_{i in B} p_i V_{k-1}(z_i), divided by its maximum over p.

    Args:
        game: With the adversarial oracle.
        table: float64 (d, R, 2 + Q), Bob's responses at `agents.positions.positions(game)`.
    """
    rows, solution = positions(game), solve(game)
    own = np.arange(len(rows.claimed))
    ratios = []
    for level in range(1, game.depth + 1):
        caught = np.diag(solution.values[level - 1])[:, ::-1]  # V(c) where the truth is 1 - c, nothing where it is c
        least, _ = exact.best_lies(game, None, level, caught, table[level - 1])
        ratios.append((least[1 - rows.claimed, own] / solution.positions[level - 1])[rows.stable])
    return np.stack(ratios)


def can_be_met(game: Game) -> np.ndarray:
    """bool (R,): the positions that Bob can be asked about, with the adversarial oracle.

    A menu always has a candidate with a stable assignment for the claimed bit, so where menus have one candidate the
    others are never seen.
    """
    rows = positions(game)
    if game.menu > 1:
        return np.ones(len(rows.group), bool)
    offered = np.zeros(2 * len(rows.start), bool)
    offered[rows.group[rows.stable]] = True
    return offered[rows.group]


def optimal_face_tv(game: Game, table: np.ndarray) -> float:
    """Mean total variation distance of Bob's sampling to the nearest optimum of the weighted cover program.

    Over levels and stable positions, or a fixed sample of `FACE_POSITIONS` of them; 1 where he never samples.
    """
    rows, values = positions(game), solve(game).values
    places = np.argwhere(np.broadcast_to(rows.stable, table.shape[:2]))
    if len(places) > FACE_POSITIONS:
        places = np.random.default_rng(0).choice(places, FACE_POSITIONS, replace=False)
    distances = []
    for below, row in places:
        f = game.library.aggregators[rows.aggregator[row]]
        z = rows.assignment[row, : f.width]
        sampling = table[below, row, SAMPLE : SAMPLE + f.width]
        distances.append(optimal_face_distance(f, z, sampling, 1 / values[below][z]))
    return float(np.mean(distances))


def challenge_errors(challenges: np.ndarray, stable: np.ndarray) -> dict[str, float | None]:
    """Mean probability of challenging what is stable, and of not challenging what is not; None where there is none."""
    wrong, missed = challenges[stable], 1 - challenges[~stable]
    return {
        "stable": float(wrong.mean()) if wrong.size else None,
        "unstable": float(missed.mean()) if missed.size else None,
    }


def exploitability(game: Game, alice: Player, bob: Player) -> dict[str, Any]:
    """What exact best responses gain in expected reward: `exploitability` {alice, bob} and their sum `nash_conv`.

    With W Bob's expected share of the prize, (reward + 1) / 2, between perfect players, best-response Alice gains
    2 (W - her W) over the game's value, which is the exploitability of `bob`; best-response Bob gains 2 (his W - W),
    that of `alice`. Where W is not known (the random oracle, a query cost) only the sum is; None where nothing is, as
    for a Bob who sees more than the game shows.
    """
    value = _perfect_share(game)
    against_bob = against_alice = None
    if game.sees_truth or not bob.needs_state:
        with suppress(ExactError):
            against_bob = _root_mean(game, _shares_against(game, bob))
    if game.tree is None:
        with suppress(ExactError):
            against_alice = float(best_response_bob(game, alice).sum())
    return {
        "exploitability": {"alice": _gain(value, against_alice), "bob": _gain(against_bob, value)},
        "nash_conv": _gain(against_bob, against_alice),
    }


def _gain(low: float | None, high: float | None) -> float | None:
    """The reward between two shares; what is only rounding is none."""
    if low is None or high is None:
        return None
    return 0.0 if abs(high - low) < 1e-12 else 2 * (high - low)


def _perfect_share(game: Game) -> float | None:
    """Bob's expected share of the prize between perfect players: a true claim is worth only the noise to him."""
    values = game_values(game)
    if values is None or game.query_cost > 0:
        return None
    shares = np.full((2, 2), game.noise)
    shares[[0, 1], [1, 0]] = exact.with_noise(game, values[-1])
    return _root_mean(game, shares)


def _root_mean(game: Game, shares: np.ndarray) -> float:
    """The mean share at the root, of shares (2 claimed, 2 truth) there, over how root claims are dealt or chosen."""
    truths = (0, 1) if game.tree is None else (int(game.source.answer[0]),)
    if game.free_root:
        return float(np.mean([shares[:, truth].min() for truth in truths]))
    # An assigned claim is uniform in the bit; by symmetry the truths are, given whether it is false.
    return float(np.mean([game.p_false * shares[1 - t, t] + (1 - game.p_false) * shares[t, t] for t in truths]))


def honesty_rate(game: Game, alice: Player) -> float | None:
    """How often Alice claims the truth at the root, both truths weighing the same; None where she does not choose."""
    if not game.free_root:
        return None
    truthful = np.diag(root_claims(game, alice))
    return float(truthful.mean() if game.tree is None else truthful[game.source.answer[0]])


def _played(game: Game, alice: Player, bob: Player, debates: int, seed: int) -> dict[str, Any]:
    """The rates of debates between the pair, and the share of true ones among the sub-claims that Alice makes."""
    field, record = playing_field(game, isinstance(alice, HonestAlice)), []
    counts = tally(debate(field, alice, bob, debates, draws([seed, PAIR]), record))
    true = total = 0
    for state, _ in record:
        if state.phase == RESPOND:
            inside = ~field.beyond[state.menu[np.arange(debates), state.choice]] & ~state.over[:, None]
            true += int(((state.assignment == state.truths) & inside).sum())
            total += int(inside.sum())
    return {
        "true_sub_claims": true / total if total else None,
        "alice_win_rate": interval(counts.alice_wins, counts.debates),
        "catch_rate": interval(counts.caught, counts.false),
    }


def completeness(game: Game, bob: Player, debates: int, seed: int) -> Rate:
    """Honest Alice's win rate against this Bob."""
    return interval(play(game, HonestAlice(game), bob, debates, [seed, COMPLETENESS]).alice_wins, debates)


def cross_play(
    game: Game, alices: Mapping[str, Player], bobs: Mapping[str, Player], debates: int, seed: int
) -> dict[str, dict[str, Rate]]:
    """Alice's win rate, {mean, low, high} with a 95% interval, for each Alice (first key) against each Bob.

    Honest Alice is dealt only true root claims. Each pair has its own stream of draws, so that leaving a player out
    changes no other's numbers unless it stood before.
    """
    return {
        name: {
            other: interval(play(game, alice, bob, debates, [seed, CROSS_PLAY, row, column]).alice_wins, debates)
            for column, (other, bob) in enumerate(bobs.items())
        }
        for row, (name, alice) in enumerate(alices.items())
    }
