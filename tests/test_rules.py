"""The rules: NumPy against torch, menus against enumeration, and each rule against what the design says."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from configurations import CONFIGURATIONS, configs
from scipy.stats import chisquare

import envs.library
import fbs
from envs import rules
from envs.claim_tree import ClaimTree
from envs.config import ConfigError, EnvConfig, ProblemConfig
from envs.engine import Query, query_book, step
from envs.game import Game
from envs.rules import ASSIGN, CLAIM, DECOMPOSE, LIE, OVER, RESPOND, SAMPLE, State
from envs.view import legal_moves, view

THRESHOLD = "threshold 3,2,2,1,1 >= 5"


def game_of(aggregators: list[str] = (THRESHOLD,), menu: int = 1, **env: Any) -> Game:
    return Game(EnvConfig(**{"tremble": 0.0, **env}), ProblemConfig(aggregators=list(aggregators), menu=menu))


def dealt(game: Game, n: int = 1, claimed: int = 1, false: bool = False, rest: float = 0.5) -> State:
    """n debates whose root claim is dealt as asked for (procedural problems, p_false strictly between 0 and 1)."""
    u = np.full((n, game.draws), rest)
    u[:, 0], u[:, 1] = (0.0 if claimed else 0.99), (0.0 if false else 0.999)
    return rules.deal(game, u)


def rows(*values: int) -> np.ndarray:
    return np.array(values)


def bits(text: str, n: int = 1) -> np.ndarray:
    return np.array([[int(c) for c in text]] * n, np.int8)


def half(game: Game, n: int = 1) -> np.ndarray:
    return np.full((n, game.draws), 0.5)


def random_move(game: Game, state: State, rng: np.random.Generator) -> np.ndarray:
    """Whole moves for a batch, most of them legal, some no move at all."""
    n = len(state.level)
    if state.phase == CLAIM:
        return rng.integers(-1, 3, n)
    if state.phase == DECOMPOSE:
        return rng.integers(-1, game.menu + 1, n)
    if state.phase == RESPOND:
        return rng.integers(-1, 3 + game.width, n)
    z = rng.integers(0, 2, (n, game.width)).astype(np.int8)
    a, wanted = rules.aggregator(game, state), state.claimed if state.phase == ASSIGN else state.truth
    for _ in range(5):  # mostly of the output wanted, and within the width
        z[game.beyond[a]] = 0
        wrong = (game.library.output(a, z) != wanted) & (rng.random(n) < 0.9)
        z[wrong] = rng.integers(0, 2, (wrong.sum(), game.width))
    z[rng.random(n) < 0.02, -1] = 1
    return (z if state.phase == ASSIGN else z ^ state.assignment) + (rng.random((n, 1)) < 0.02).astype(np.int8)


class TestNumPyAndTorch:
    @pytest.mark.parametrize("name", CONFIGURATIONS)
    def test_make_the_same_states_of_the_same_draws_and_moves(self, name: str, tmp_path: Path) -> None:
        game = Game(*configs(name, tmp_path))
        twin, rng, n = game.on(torch), np.random.default_rng(0), 600
        u = rng.random((n, game.draws))
        state, other = rules.deal(game, u), rules.deal(twin, torch.from_numpy(u))
        endings: set[int] = set()
        while True:
            for field in State._fields:
                mine, its = getattr(state, field), getattr(other, field)
                pairs = zip(mine, its, strict=True) if field == "path" else [(mine, its)]
                for a, b in pairs:
                    assert np.array_equal(np.asarray(a), np.asarray(b)), field
                    assert np.asarray(a).dtype == np.asarray(b).dtype, field
            endings |= set(state.ending.tolist())
            if state.phase == OVER:
                break
            if game.library.tabulated:
                masks = [np.asarray(legal_moves(view(g, s))) for g, s in ((game, state), (twin, other))]
                assert np.array_equal(*masks)
            move, u = random_move(game, state, rng), rng.random((n, game.draws))
            state = step(game, state, move, u)
            other = step(twin, other, torch.from_numpy(move), torch.from_numpy(u))
        assert endings >= {rules.ORACLE, rules.INCONSISTENT, rules.CONCEDED, rules.ILLEGAL}

    @pytest.mark.parametrize("name", CONFIGURATIONS)
    def test_look_at_no_more_draws_than_they_say(self, name: str, tmp_path: Path) -> None:
        """The same states, whatever the draws past the number that `rules.draws` names."""
        game, rng, n = Game(*configs(name, tmp_path)), np.random.default_rng(1), 100
        state = rules.deal(game, rng.random((n, game.draws)))
        while state.phase != OVER:
            move, u = random_move(game, state, rng), rng.random((n, game.draws))
            count = rules.draws(game, state.phase)
            after, other = step(game, state, move, u), step(game, state, move, u[:, :count])
            for field in State._fields:
                assert np.array_equal(getattr(after, field), getattr(other, field)), field
            state = after


class TestMasks:
    @pytest.mark.parametrize("kept", [0, envs.library.MAX_LIES_TABULATED])
    def test_lies_are_legal_where_the_rules_take_them(self, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every set of lies of every aggregator in play is tried, with the table of legal lies kept and without."""
        monkeypatch.setattr(envs.library, "MAX_LIES_TABULATED", kept)
        game, n = game_of([THRESHOLD, "majority 3", "parity 2"], depth=1), 300
        state = rules.deal(game, np.random.default_rng(0).random((n, game.draws)))
        a = rules.aggregator(game, state)
        z = game.library.bits[game.library.draw(a, state.claimed, np.random.default_rng(1).random(n))]
        state = rules.assign(game, state, z, half(game, n))
        legal = legal_moves(view(game, state))
        assert legal.shape == (n, 32)
        for code in range(32):
            lies = np.repeat(game.library.bits[code][None], n, axis=0)
            assert np.array_equal(legal[:, code], ~rules.lie(game, state, lies).over)


class TestDeal:
    def test_bit_and_truth_of_the_root(self) -> None:
        """Claimed 1 below one half, false below p_false: four corners of the two draws."""
        game = game_of(p_false=0.3)
        u = np.array([[a, b, 0.5, 0.5] for a in (0.49, 0.5) for b in (0.29, 0.3)])
        state = rules.deal(game, u)
        assert state.claimed.tolist() == [1, 1, 0, 0]
        assert (state.claimed != state.truth).tolist() == [True, False, True, False]
        assert state.phase == ASSIGN
        assert state.level.tolist() == [2] * 4

    def test_a_free_root_has_no_claim_yet(self) -> None:
        game = game_of(root_claim="free")
        state = rules.deal(game, np.random.default_rng(0).random((1000, game.draws)))
        assert state.phase == CLAIM
        assert not state.claimed.any()
        assert 400 < state.truth.sum() < 600  # 6 standard deviations
        after = rules.claim(game, state, np.arange(1000) % 3, half(game, 1000))
        assert after.over.tolist() == [i % 3 == 2 for i in range(1000)]  # a bit of 2 is illegal
        assert (after.claimed == after.root_claimed).all()


class TestMenus:
    def test_redrawn_menus_have_the_exact_distribution(self) -> None:
        """Three of four aggregators, two of them stable at rho 2: of the 4^3 menus 7/8 have a stable candidate, and by
        enumeration each of these is as likely as any other. What is drawn is constant on equal pieces, seven for the
        place of the first stable candidate and four for a candidate, so the middles of the pieces are exact."""
        library = ["and 2", "or 2", "parity 3", "parity 5"]
        game = game_of(library, menu=3, rho=2)
        stable = [True, True, False, False]  # parity of width q has sensitivity q everywhere, AND and OR of 2 at most 2
        allowed = [menu for menu in product(range(4), repeat=3) if any(stable[a] for a in menu)]
        assert len(allowed) == 56
        points = [*product((np.arange(7) + 0.5) / 7, *[(np.arange(4) + 0.5) / 4] * 3)]
        for bit in (0, 1):
            menus, _ = game.deal_menu(np.full(len(points), bit), np.array(points))
            found = Counter(map(tuple, menus.tolist()))
            assert {menu: Fraction(count, len(points)) for menu, count in found.items()} == {
                menu: Fraction(1, 56) for menu in allowed
            }

    def test_answers_come_with_the_menu_of_the_random_oracle(self) -> None:
        """Against rejection: draw aggregators and answers until a candidate is stable at its answers (chi-square)."""
        library = [fbs.parse(text) for text in ("and 3", "or 3", "majority 3")]
        game = game_of([str(f) for f in library], menu=2, rho=2, oracle="random")
        rng, n = np.random.default_rng(1), 60_000
        tables = [fbs.SensitivityTable(f) for f in library]
        for bit in (0, 1):
            cards = [(a, c) for a, f in enumerate(library) for c in np.flatnonzero(f.table() == bit)]
            chance = [1 / 3 / (library[a].table() == bit).sum() for a, _ in cards]
            stable = [tables[a].value[c] <= 2 + 1e-9 for a, c in cards]
            assert 0 < sum(stable) < len(cards)
            menus, answers = game.deal_menu(np.full(n, bit), rng.random((n, 3)))
            codes = (answers * np.array([4, 2, 1])).sum(-1)
            found = Counter(zip(map(tuple, menus.tolist()), map(tuple, codes.tolist()), strict=True))
            pairs = [(i, j) for i, j in product(range(len(cards)), repeat=2) if stable[i] or stable[j]]
            expected = np.array([chance[i] * chance[j] for i, j in pairs])
            counts = [found[(cards[i][0], cards[j][0]), (cards[i][1], cards[j][1])] for i, j in pairs]
            assert sum(counts) == n  # no other menu
            assert chisquare(counts, n * expected / expected.sum()).pvalue > 1e-3

    def test_the_truth_below_is_what_the_aggregator_needs(self) -> None:
        game = game_of([THRESHOLD, "parity 2"], menu=2, oracle="random", depth=1)
        state = rules.deal(game, np.random.default_rng(2).random((500, game.draws)))
        for k in range(2):
            assert (game.library.output(state.menu[:, k], state.answers[:, k]) == state.truth).all()
        game = game_of([THRESHOLD, "parity 2"], menu=2, depth=1)
        state = rules.deal(game, np.random.default_rng(2).random((500, game.draws)))
        assert not state.answers.any()

    def test_a_bit_without_a_stable_candidate_is_refused(self) -> None:
        """The least sensitivities are 9/5 (known value), 3 (parity) and 13/7 (13 ones over 7 flips, closed form)."""
        for aggregator, env in ((THRESHOLD, {}), ("parity 3", {"oracle": "random"}), ("majority 13", {})):
            least = {THRESHOLD: 9 / 5, "parity 3": 3.0, "majority 13": 13 / 7}[aggregator]
            with pytest.raises(ConfigError, match=r"^env.rho: no stable candidate"):
                game_of([aggregator], rho=least - 0.01, **env)
            game_of([aggregator], rho=least, **env)  # a tie is stable


class TestAssign:
    def test_an_inconsistent_or_malformed_assignment_loses(self) -> None:
        game = game_of([THRESHOLD, "and 2"])
        state = dealt(game, 6)._replace(menu=rows(0, 0, 0, 0, 1, 1)[:, None])
        z = np.concatenate([bits(text) for text in ("11000", "10000", "11002", "11000", "11000", "11001")])
        z[3, 0] = -1
        after = rules.assign(game, state, z, half(game, 6))
        lost = [rules.RUNNING, rules.INCONSISTENT, rules.ILLEGAL, rules.ILLEGAL, rules.RUNNING, rules.ILLEGAL]
        assert after.ending.tolist() == lost  # the last one answers a sub-claim that an AND of 2 does not have
        assert after.reward.tolist() == [0 if ending == rules.RUNNING else -1 for ending in lost]
        assert after.phase == LIE

    def test_trembles_are_uniform_over_the_assignments_of_that_output(self) -> None:
        """Chi-square against the list of assignments; those who tremble are exactly the draws below `tremble`."""
        game, n = game_of(tremble=0.4), 40_000
        f = game.library.aggregators[0]
        for bit, z in ((1, "11000"), (0, "00000")):
            u = np.random.default_rng(bit).random((n, game.draws))
            after = rules.assign(game, dealt(game, n, claimed=bit), bits(z, n), u)
            calm = u[:, 0] >= 0.4
            assert (after.assignment[calm] == bits(z)).all()
            counts = Counter(map(tuple, after.assignment[~calm].tolist()))
            every = [code for code in product((0, 1), repeat=5) if f(np.array(code)) == bit]
            assert set(counts) == set(every)
            assert chisquare([counts[code] for code in every]).pvalue > 1e-3
            assert not after.over.any()

    def test_who_loses_by_the_assignment_does_not_tremble(self) -> None:
        game = game_of(tremble=1.0)
        after = rules.assign(game, dealt(game), bits("00000"), np.zeros((1, game.draws)))
        assert after.ending[0] == rules.INCONSISTENT

    def test_wide_aggregators_do_not_tremble(self) -> None:
        assert game_of(["majority 11"], rho=6, tremble=0.5).tremble == 0
        assert game_of(["majority 9"], rho=6, tremble=0.5).tremble == 0.5


class TestLie:
    def test_the_truths_must_give_the_real_truth(self) -> None:
        game = game_of()
        state = rules.assign(game, dealt(game, 3, claimed=1, false=True), bits("11000", 3), half(game, 3))
        lies = np.concatenate([bits("10000"), bits("00000"), bits("00100")])
        after = rules.lie(game, state, lies)  # only without the first sub-claim is the threshold missed
        assert after.ending.tolist() == [rules.RUNNING, rules.ILLEGAL, rules.ILLEGAL]
        assert after.truths[0].tolist() == [0, 1, 0, 0, 0]

    def test_lies_beyond_the_width_lose(self) -> None:
        game = game_of([THRESHOLD, "and 2"])
        state = dealt(game)._replace(menu=rows(1)[:, None])
        state = rules.assign(game, state, bits("11000"), half(game))
        assert rules.lie(game, state, bits("00000")).ending[0] == rules.RUNNING
        assert rules.lie(game, state, bits("00001")).ending[0] == rules.ILLEGAL

    def test_the_random_oracle_settles_the_lies(self) -> None:
        game = game_of(oracle="random")
        state = dealt(game, claimed=1, false=True)
        after = rules.assign(game, state, bits("11111"), half(game))
        assert after.phase == RESPOND
        assert after.truths.tolist() == state.answers[:, 0].tolist()


class TestRespond:
    def before(self, game: Game, z: str, lies: str, n: int, false: bool = True) -> State:
        state = rules.assign(game, dealt(game, n, claimed=1, false=false), bits(z, n), half(game, n))
        return rules.lie(game, state, bits(lies, n))

    def test_each_response_ends_or_goes_on_as_the_design_says(self) -> None:
        """rho 2: 11100 is stable at 2, 01110 is not at 3 (known values)."""
        game = game_of(rho=2.0)
        for z, lies, verdict, reward in (
            ("11100", "11000", rules.WRONG_CHALLENGE, 1), ("01110", "01000", rules.RIGHT_CHALLENGE, -1),
        ):  # fmt: skip
            state = self.before(game, z, lies, 5)
            after = rules.respond(game, state, rows(0, 1, 2 + 1, 7, -1), half(game, 5))
            assert after.ending.tolist() == [rules.CONCEDED, verdict, rules.RUNNING, rules.ILLEGAL, rules.ILLEGAL]
            assert after.reward.tolist() == [1, reward, 0, 1, 1]
            assert after.path[0].tolist() == [-1, -1, 1, -1, -1]
            assert (after.level[2], after.claimed[2], after.truth[2]) == (1, 1, 0)
            assert after.phase == ASSIGN

    def test_finished_debates_stay_as_they_are(self) -> None:
        game = game_of()
        state = self.before(game, "11100", "11000", 2)
        state = rules.respond(game, state, rows(0, 2), half(game, 2))
        again = rules.assign(game, state, bits("00000", 2), half(game, 2))
        again = rules.lie(game, again, bits("00000", 2))
        again = rules.respond(game, again, rows(1, 2), half(game, 2))
        for field in ("ending", "reward", "level", "claimed", "truth", "answer"):
            assert getattr(again, field)[0] == getattr(state, field)[0]

    def test_the_oracle_is_noisy_and_costs(self) -> None:
        """Depth 1: wrong if the draw is below `noise`, so Alice's lie is believed; c goes to her each time."""
        game = game_of(depth=1, noise=0.3, query_cost=0.125)
        state = self.before(game, "11100", "11000", 4)
        u = np.full((4, game.draws), 0.9)
        u[:2, 0] = 0.29
        after = rules.respond(game, state, SAMPLE + rows(0, 2, 0, 2), u)
        assert after.phase == OVER
        assert after.answer.tolist() == [1, 0, 0, 1]  # truths 0 and 1, the first two answered wrongly
        assert after.reward.tolist() == [1.125, -0.875, -0.875, 1.125]
        assert query_book(after) == [Query("0", 1), Query("2", 0), Query("0", 0), Query("2", 1)]

    def test_only_challenged_assignments_are_solved(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Wide thresholds are solved when met: that must not happen for a Bob who samples."""
        game = game_of(["threshold 3,2,2,1,1,1,1,1,1,1,1 >= 8"], rho=9)
        state = self.before(game, "11111111111", "11111111111", 4)
        solved = []
        solve = envs.library._solve
        monkeypatch.setattr(envs.library, "_solve", lambda f, z: solved.append(z) or solve(f, z))
        rules.respond(game, state, rows(0, 2, 3, 4), half(game, 4))
        assert solved == []
        after = rules.respond(game, state, rows(1, 2, 3, 4), half(game, 4))
        assert len(solved) == 1
        assert after.ending[0] == rules.WRONG_CHALLENGE

    def test_forfeits_lose_for_whoever_is_to_move(self) -> None:
        game = game_of()
        assert rules.forfeit(game, dealt(game, 2)).reward.tolist() == [-1, -1]
        after = rules.forfeit(game, self.before(game, "11100", "11000", 2))
        assert after.reward.tolist() == [1, 1]
        assert after.ending.tolist() == [rules.ILLEGAL] * 2
        assert after.phase == OVER


class TestClaimTrees:
    """A ragged tree: the root is the OR of a leaf (false) and of an AND of a constant claim and a leaf (true).

    Nodes breadth first: 0 root, 1 leaf, 2 AND, 3 constant, 4 leaf, 5 and 6 the leaves below the constant.
    """

    tree = ClaimTree.from_breadth_first(
        "a test", [fbs.parse("or 2"), fbs.parse("and 2"), fbs.parse("at_least 0 2")],
        [0, -1, 1, 2, -1, -1, -1], [0, 0, 0, 0, 1, 0, 1], [-1] * 7, ["?"] * 7, [""] * 7,
    )  # fmt: skip

    def game(self, **env: Any) -> Game:
        return Game(EnvConfig(**{"p_false": 0.5, **env}), self.tree)

    def at_root(self, game: Game, n: int, false: bool) -> State:
        u = half(game, n)
        u[:, 1] = 0.0 if false else 0.9
        return rules.deal(game, u)

    def test_the_truths_are_those_of_the_tree(self) -> None:
        game = self.game(oracle="adversarial")  # which a tree overrules
        state = self.at_root(game, 1, false=False)
        assert (state.truth[0], state.claimed[0], state.level[0], game.depth) == (1, 1, 3, 3)
        assert state.answers[0, 0].tolist() == [0, 1]
        after = rules.assign(game, state, bits("10"), np.ones((1, game.draws)))
        assert after.phase == RESPOND
        assert after.truths[0].tolist() == [0, 1]

    def test_leaves_are_reached_at_their_own_depth(self) -> None:
        game = self.game(tremble=0)
        state = rules.assign(game, self.at_root(game, 2, false=False), bits("01", 2), half(game, 2))
        state = rules.respond(game, state, rows(2, 3), half(game, 2))
        assert state.over.tolist() == [True, False]  # the first is at a leaf, one step down
        assert (state.reward[0], state.answer[0]) == (1, 0)  # Alice said it was false, and it is
        assert (state.node[1], state.level[1], state.menu[1, 0]) == (2, 2, 1)
        assert state.phase == ASSIGN
        state = rules.assign(game, state, bits("11", 2), half(game, 2))
        state = rules.respond(game, state, rows(2, 2), half(game, 2))
        assert (state.node[1], state.level[1]) == (3, 1)
        state = rules.assign(game, state, bits("01", 2), half(game, 2))
        state = rules.respond(game, state, rows(2, 2 + 1), half(game, 2))
        assert state.phase == OVER
        assert query_book(state) == [Query("0", 0), Query("1/0/1", 1)]
        assert state.reward.tolist() == [1, 1]

    def test_a_bit_that_the_aggregator_cannot_give_loses_on_arrival(self) -> None:
        game = self.game(tremble=0)
        state = rules.assign(game, self.at_root(game, 1, false=True), bits("00"), half(game))
        state = rules.respond(game, state, rows(3), half(game))
        state = rules.assign(game, state, bits("01"), half(game))  # says that the constant claim is false
        state = rules.respond(game, state, rows(2), half(game))
        assert state.ending.tolist() == [rules.IMPOSSIBLE]
        assert state.reward.tolist() == [-1]
        assert query_book(state) == []

    def test_an_impossible_root_claim_loses_when_it_is_made(self) -> None:
        constant = ClaimTree.from_breadth_first(
            "a test", [fbs.parse("at_least 0 2")], [0, -1, -1], [0, 0, 0], [-1] * 3, ["?"] * 3, [""] * 3
        )
        game = Game(EnvConfig(root_claim="free"), constant)
        state = rules.claim(game, rules.deal(game, half(game, 2)), rows(0, 1), half(game, 2))
        assert state.ending.tolist() == [rules.IMPOSSIBLE, rules.RUNNING]
        assert state.reward.tolist() == [-1, 0]
