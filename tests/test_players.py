"""Scripted players: what they play, that moves follow the stated probabilities, and that they break no rule."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from table_players import FEW, UNEVEN, game

import fbs
from agents import players
from agents.alices import RandomAlice
from agents.exact import game_values
from agents.optimal_sampling import optimal_sampling
from agents.positions import alone, positions, responses, standing
from agents.scripted import PlayerError, groups, sample
from envs.claim_tree import ClaimTree
from envs.config import EnvConfig, ProblemConfig
from envs.engine import debate, draws
from envs.game import Game
from envs.rules import ACCEPT, ASSIGN, CHALLENGE, DECOMPOSE, ENDINGS, ILLEGAL, INCONSISTENT, LIE, SAMPLE
from envs.view import legal_moves, view
from fbs.max_entropy import max_entropy_sampling


def bob_at(g: Game, name: str, z: str, level: int = 1, truths: str | None = None, a: int = 0) -> np.ndarray:
    """A Bob's responses to one assignment."""
    row = np.zeros((1, g.width), np.int8)
    row[0, : len(z)] = [int(bit) for bit in z]
    real = None if truths is None else np.array([[int(bit) for bit in truths]], np.int8)
    claimed = g.library.output(np.array([a]), row)
    return responses(g, players.bob(name, g), np.array([a]), row, np.array([level]), claimed, real)[0]


# ------------------------------------------------------------------ Bobs


def test_lp_bob_samples_by_the_cover_and_challenges_what_is_unstable() -> None:
    """threshold 3,2,2,1,1 >= 5 at 11111: blocks {3, any 2}, {2, 2, 1}, ...: the cover is 3,2,2,1,1 over 5, value 9/5.

    At 01110, of sensitivity 3 (DESIGN section 3), rho 2 makes him challenge.
    """
    stable = bob_at(game(), "lp", "11111")
    assert stable[SAMPLE:] == pytest.approx(np.array([3, 2, 2, 1, 1]) / 9, abs=1e-8)
    assert stable[ACCEPT] == stable[CHALLENGE] == 0
    assert bob_at(game(rho=2.0), "lp", "01110").tolist() == [0, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("aggregators", [FEW, ["parity 4", "at_least 2 5"], ["threshold 2,1,4,5,7,5 >= 13"]])
def test_lp_bob_is_worth_the_sensitivity_everywhere(aggregators: list[str]) -> None:
    """min over sensitive blocks of p(B) = 1 / fbs, the block found by `lightest_block`, fbs as a fraction."""
    g = game(aggregators, rho=100.0)
    rows = positions(g)
    level = np.ones(len(rows.claimed), int)
    table = responses(g, players.bob("lp", g), rows.aggregator, rows.assignment, level, rows.claimed)
    for a, z, p in zip(rows.aggregator, rows.assignment, table[:, SAMPLE:], strict=True):
        f = g.library.aggregators[a]
        z, p = z[: f.width], p[: f.width]
        assert p.sum() == pytest.approx(1)
        assert f.lightest_block(z, p)[0] == pytest.approx(float(1 / Fraction(fbs.sensitivity(f, z).value)), abs=1e-8)


def test_wide_sampling_agrees_with_single_solutions() -> None:
    """Symmetric aggregators by number of ones, others one by one: both against single solutions."""
    texts = ["majority 13", "threshold 1,1,1,1,1,1,1,1,1,1,3 >= 7"]
    g = game(texts, rho=100.0)
    rng = np.random.default_rng(0)
    a = np.repeat([0, 1], 6)
    z = rng.integers(0, 2, (12, 13)).astype(np.int8)
    z[6:, 11:] = 0
    for costs in ((1.0, 1.0), (1.0, 2.5)):
        found = optimal_sampling(g.library, a, z, costs)
        for row, number, p in zip(z, a, found, strict=True):
            f = g.library.aggregators[number]
            expected = max_entropy_sampling(f, row[: f.width], np.where(row[: f.width] == 1, costs[1], costs[0]))
            assert p[: f.width] == pytest.approx(expected, abs=1e-9)
            assert (p[f.width :] == 0).all()


def test_game_optimal_bob_weighs_by_the_value_below() -> None:
    """At level 1 he is LP Bob. At level 2 of a game with V_1 = (1/3, 1/2) he is the optimum of the weighted program."""
    g = game([UNEVEN])
    below = game_values(g)[1]
    assert below == pytest.approx([1 / 3, 1 / 2])
    for z in ("000", "011", "110", "111"):
        assert bob_at(g, "game_optimal", z) == pytest.approx(bob_at(g, "lp", z), abs=1e-12)
        f, row = g.library.aggregators[0], np.array([int(bit) for bit in z])
        expected = max_entropy_sampling(f, row, 1 / below[row])
        assert bob_at(g, "game_optimal", z, level=2)[SAMPLE:] == pytest.approx(expected, abs=1e-8)


def test_constant_aggregators_are_sampled_uniformly() -> None:
    """DESIGN section 3, point 5."""
    always, text = fbs.parse("at_least 0 3"), [""] * 4
    tree = ClaimTree.from_breadth_first("test", [always], [0, -1, -1, -1], [1] * 4, [-1] * 4, text, text)
    g = Game(EnvConfig(), tree)
    assert bob_at(g, "lp", "101")[SAMPLE:].tolist() == pytest.approx([1 / 3] * 3)


def test_uninformed_and_informed_bobs() -> None:
    g = game(["majority 3", "and 2"], rho=1.5)
    assert bob_at(g, "uniform", "110").tolist() == [0, 0, *[pytest.approx(1 / 3)] * 3]
    assert bob_at(g, "uniform", "11", a=1).tolist() == [0, 0, 0.5, 0.5, 0]
    assert bob_at(g, "random", "11", a=1).tolist() == [0.25, 0.25, 0.25, 0.25, 0]
    assert bob_at(g, "informed", "110", truths="011").tolist() == [0, 0, 0.5, 0, 0.5]
    assert bob_at(g, "informed", "110", truths="110").tolist() == [0, 0, *[pytest.approx(1 / 3)] * 3]


def three_by_three(claimed: str) -> Game:
    """majority 3 of three majorities 3 of leaves that claim these bits, for example 110111000."""
    majority = fbs.parse("majority 3")
    leaves = [int(bit) for bit in claimed]
    tree = ClaimTree.from_breadth_first(
        "test", [majority], [0] * 4 + [-1] * 9, [0] * 4 + leaves, [-1] * 13, [""] * 13, ["majority"] * 4 + [""] * 9
    )
    return Game(EnvConfig(rho=4.0, tremble=0.0), tree)


def test_tree_optimal_bob_weighs_by_the_whole_tree() -> None:
    """DESIGN section 3: 110 / 111 / 000 has R = 2, 3/2 (claimed 1, 1) and 3/2 (claimed 0), and 1/R_root = 2/7.

    The root claims 110, so lies must hit child 0 or child 1; R_0 t_0 : R_1 t_1 = 2 : 3/2 with t = (1, 1, 0).
    """
    g = three_by_three("110111000")
    bob = players.bob("tree_optimal", g)
    z = np.array([[1, 1, 0], [1, 0, 1]], np.int8)
    zero = np.zeros(2, int)
    found = responses(g, bob, zero, z, zero + 2, np.ones(2, np.int8), node=zero)[:, SAMPLE:]
    assert found[0] == pytest.approx([4 / 7, 3 / 7, 0], abs=1e-9)
    assert found[1] == pytest.approx([0.5, 0, 0.5], abs=1e-9)  # not what was claimed: like LP Bob


def test_players_that_cannot_play_say_so() -> None:
    tree, procedural = three_by_three("110111000"), game()
    wide = game(["threshold 1,1,1,1,1,1,1,1,1,1,2 >= 6"], rho=6.0)
    for side, name, g, message in [
        ("bob", "tree_optimal", procedural, "needs a claim tree"),
        ("bob", "game_optimal", tree, "procedural"),
        ("bob", "game_optimal", wide, "too wide"),
        ("bob", "nobody", procedural, "no Bob is called 'nobody'.*lp, game_optimal"),
        ("bob", "best_response", procedural, "value alone"),
        ("alice", "worst_case", wide, "too wide"),
        ("alice", "lp", procedural, "no Alice is called 'lp'.*honest"),
        ("alice", "best_response", procedural, "opponent"),
    ]:
        with pytest.raises(PlayerError, match=message):
            getattr(players, side)(name, g)


# ------------------------------------------------------------------ Alices


def alice_views(g: Game, n: int = 400) -> list:
    """Views of every phase that a random pair comes to."""
    record: list = []
    debate(g, RandomAlice(), players.bob("uniform", g), n, draws(0), record)
    return [state for state, _ in record]


GAMES = [
    {},
    {"aggregators": FEW, "menu": 3, "rho": 2.0, "root_claim": "free"},
    {"aggregators": FEW, "menu": 2, "rho": 2.0, "oracle": "random"},
]


@pytest.mark.parametrize("changes", GAMES, ids=str)
@pytest.mark.parametrize("name", ["honest", "worst_case", "random"])
def test_moves_follow_the_stated_probabilities(name: str, changes: dict) -> None:
    """400 debates at each phase, 100 draws of each move: frequencies within 5.5 standard errors (all of some 10^5
    comparisons then hold with probability 0.99), impossible moves never made, possible ones legal."""
    g = game(**changes)
    alice = players.alice(name, g)
    rng = np.random.default_rng(1)
    for state in alice_views(g):
        if state.phase not in (DECOMPOSE, ASSIGN, LIE):
            continue
        seen = view(g, state)
        stated = alice.probabilities(seen)
        honest = ~((name == "honest") & (state.truth != state.claimed))  # who has no legal defence
        assert stated.sum(-1) == pytest.approx(1)
        assert (legal_moves(seen) | (stated == 0))[honest].all()
        counts = np.zeros(stated.shape)
        for _ in range(100):
            move = alice.act(seen, rng.random((len(stated), 1 + g.width)))
            move = g.library.code(move) if state.phase in (ASSIGN, LIE) else move
            counts[np.arange(len(move)), move] += 1
        assert (counts[stated == 0] == 0).all()
        error = np.abs(counts - 100 * stated) / np.sqrt(100 * np.maximum(stated * (1 - stated), 0.04))
        assert error.max() < 5.5


def test_sample_and_groups() -> None:
    p = np.array([[0.0, 0.25, 0.75, 0.0]] * 4)
    assert sample(p, np.array([0.0, 0.2499, 0.25, 1 - 1e-17])).tolist() == [1, 1, 2, 2]
    assert [(label, rows.tolist()) for label, rows in groups(np.array([3, 1, 3, 3]))] == [(1, [1]), (3, [0, 2, 3])]
    assert list(groups(np.zeros(0, int))) == []


def test_honest_alice_takes_the_first_stable_candidate() -> None:
    """At rho 2 `and 3` is stable only where false (111 is 3), `or 3` only where true, `majority 3` everywhere."""
    g = game(["and 3", "or 3", "majority 3"], 3, rho=2.0)
    alice = players.alice("honest", g)
    menu = np.array([[0, 1, 2], [0, 1, 2], [2, 1, 0], [1, 0, 0]])
    claimed = np.array([1, 0, 1, 0], np.int8)
    seen = view(g, standing(g, DECOMPOSE, 2, claimed, claimed, menu))
    assert alice.act(seen, None).tolist() == [1, 0, 0, 1]
    seen = view(g, standing(g, ASSIGN, 2, claimed, claimed, alone(g, np.array([1, 0, 2, 0]), -1)))
    assert alice.act(seen, None).tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 1], [0, 0, 0]]


def test_honest_alice_answers_by_the_truth() -> None:
    """Random oracle: the first candidate that is stable at its true answers. majority 3 at 110 is 2, at 111 3/2."""
    g = game(["majority 3"], 2, rho=1.75, oracle="random")
    alice = players.alice("honest", g)
    answers = np.array([[[1, 1, 0], [1, 1, 1]], [[1, 1, 1], [1, 0, 1]]], np.int8)
    ones = np.ones(2, np.int8)
    seen = view(g, standing(g, DECOMPOSE, 1, ones, ones, np.zeros((2, 2), int), answers))
    assert alice.act(seen, None).tolist() == [1, 0]
    seen = view(g, standing(g, ASSIGN, 1, ones, ones, np.zeros((2, 2), int), answers))
    assert alice.act(seen, None).tolist() == answers[:, 0].tolist()


def test_worst_case_alice_plays_the_packing() -> None:
    """threshold 3,2,2,1,1 >= 5 claimed true: she answers where the sensitivity is 3, in three disjoint blocks or so.

    Her lies are a packing: no sub-claim is a lie with probability above 1/3, and V_1 = 1/3 is what that gives.
    """
    g = game(depth=1)
    alice = players.alice("worst_case", g)
    one, zero = np.ones(1, np.int8), np.zeros(1, np.int8)
    z = alice.act(view(g, standing(g, ASSIGN, 1, one, zero, np.zeros((1, 1), int))), np.zeros((1, 6)))
    f = g.library.aggregators[0]
    assert f(z[0]) == 1 and fbs.sensitivity(f, z[0]).value == 3
    seen = view(g, standing(g, LIE, 1, one, zero, np.zeros((1, 1), int), assignment=z))
    lies = alice.probabilities(seen)[0]
    marginals = lies @ g.library.bits
    assert marginals.max() == pytest.approx(1 / 3)
    assert all(f(z[0] ^ g.library.bits[code]) == 0 for code in np.flatnonzero(lies))


def test_random_alice_is_uniform_where_nothing_is_tabulated() -> None:
    """A wide symmetric and a wide threshold aggregator: 40,000 assignments, each sub-claim's share within 5 standard
    errors of the exact one, by counting completions with `tally`; the outputs always right."""
    g = game(["at_least 5 12", "threshold 3,1,1,1,1,1,1,1,1,1,1 >= 6"], rho=12.0)
    alice, n = RandomAlice(), 40_000
    for a, f in enumerate(g.library.aggregators):
        claimed = np.arange(n).astype(np.int8) % 2
        state = standing(g, ASSIGN, 1, claimed, claimed, np.full((n, 1), a))
        z = alice.act(view(g, state), np.random.default_rng(2).random((n, 1 + g.width)))[:, : f.width]
        assert (f(z) == claimed).all()
        for bit in (0, 1):
            for i in range(f.width):
                one = np.full(f.width, 0.5)
                half = f.tally(1 - one, one)[bit]
                one[i] = 1
                exact = f.tally(1 - one, one)[bit] / half / 2
                error = z[claimed == bit, i].mean() - exact
                assert abs(error) < 5 * (exact * (1 - exact) / (n / 2)) ** 0.5


@pytest.mark.parametrize(
    "g",
    [
        game(FEW, 2, rho=2.0, noise=0.1),
        game(FEW, 2, rho=2.0, oracle="random", bob_sees="truth"),
        game(["majority 11", "at_least 3 12"], 2, rho=6.0, root_claim="free"),
        three_by_three("110111000"),
        Game(EnvConfig(root_claim="free", tremble=0.0), ProblemConfig(family="threshold", size=5, width=4)),
    ],
    ids=["menus", "truths", "wide", "tree", "family"],
)
def test_nobody_breaks_the_rules(g: Game) -> None:
    """Every pair that can play ends every debate by the rules; only honest Alice may be left without a defence."""
    for name in ("honest", "worst_case", "random", "best_response"):
        for other in players.BOBS:
            try:
                bob = players.bob(other, g)
            except PlayerError:
                continue
            try:
                alice = players.alice(name, g, bob)
            except ValueError:
                assert name == "best_response" and bob.needs_state
                continue
            state = debate(g, alice, bob, 200, draws(3))
            assert not (state.ending == ILLEGAL).any(), (name, other)
            lost = state.ending == INCONSISTENT
            assert not lost.any() or name == "honest", (name, other, ENDINGS[INCONSISTENT])
            assert (state.root_claimed != state.root_truth)[lost].all()
