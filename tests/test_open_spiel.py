"""The debate as a game of OpenSpiel (extra `interop`), and OpenSpiel's second opinion on our exact numbers.

Every number of ours is held against one that OpenSpiel works out from the exported game tree alone: it knows nothing of
sensitivities, of positions or of recursions over levels.
"""

# ruff: noqa: E402  (without OpenSpiel nothing below can be imported)

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from table_players import FEW, UNEVEN, TableAlice, TableBob

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed (extra `interop`)")

from open_spiel.python.algorithms.expected_game_score import policy_value
from open_spiel.python.algorithms.exploitability import exploitability as half_of_nash_conv

from agents import players
from agents.exact import game_value
from agents.measures import catch_ratios, evaluate, exploitability
from agents.open_spiel import PairPolicy
from agents.positions import policy as table_of
from agents.scripted import PlayerError
from benchmarks import neural_peers, second_opinion
from envs.config import ConfigError, EnvConfig, ProblemConfig
from envs.engine import debate, draws
from envs.game import Game
from envs.open_spiel_game import NAME, DebateGame, export
from envs.rules import DECOMPOSE, LIE, RESPOND
from envs.view import legal_moves


def exported(*aggregators: str, menu: int = 1, tremble: float = 0.0, **env: Any) -> DebateGame:
    settings = EnvConfig(**{"depth": 1, "rho": 2.0, **env})
    return export(settings, ProblemConfig(aggregators=list(aggregators), menu=menu), tremble)


class Legal:
    """A player by table who makes legal moves only."""

    needs_state = False

    def __init__(self, player: Any) -> None:
        self.player = player

    def probabilities(self, seen: Any) -> np.ndarray:
        chances = self.player.probabilities(seen) * legal_moves(seen)
        return chances / chances.sum(-1, keepdims=True)

    def act(self, seen: Any, u: np.ndarray) -> np.ndarray:
        move = (self.probabilities(seen).cumsum(-1) < u[:, :1]).sum(-1)
        return move if seen.phase in (DECOMPOSE, RESPOND) else seen.game.library.bits[move]


GAMES = {
    "width 3": {"aggregators": ("majority 3",), "rho": 1.5},  # two ones are unstable
    "width 4": {"aggregators": ("threshold 3,2,1,1 >= 4",), "rho": 2.5, "p_false": 0.3},
    "width 5": {"aggregators": ("threshold 3,2,2,1,1 >= 5",)},  # some are unstable
    "depth 2": {"aggregators": (UNEVEN,), "rho": 3.0, "depth": 2},
    "menus, noise": {"aggregators": ("and 2", "or 2", "parity 2"), "menu": 2, "noise": 0.1},
}


@cache
def of(name: str) -> DebateGame:
    settings = dict(GAMES[name])
    return exported(*settings.pop("aggregators"), **settings)


class TestExport:
    SETTINGS = [
        {"aggregators": ("threshold 3,2,2,1,1 >= 5",), "depth": 3},
        {"aggregators": FEW, "menu": 2, "depth": 2, "oracle": "random", "noise": 0.2, "query_cost": 0.1},
        {"aggregators": FEW, "depth": 2, "root_claim": "free", "bob_sees": "truth"},
        {"aggregators": ("parity 2",), "depth": 2, "tremble": 0.3},
    ]

    @pytest.mark.parametrize("settings", SETTINGS, ids=str)
    def test_stands_openspiels_own_test(self, settings: dict[str, Any]) -> None:
        """Random debates with cloning, chance probabilities, returns in range, histories, tensors."""
        settings = dict(settings)
        game = exported(*settings.pop("aggregators"), **settings)
        pyspiel.random_sim_test(game, num_sims=5, serialize=False, verbose=False)

    def test_a_debate(self) -> None:
        """By hand: the root claim 0 is false (outcome by outcome), 000 with all three lies, Bob samples the last."""
        state = exported("majority 3").new_initial_state()
        state.apply_action(next(a for a, _ in state.chance_outcomes() if "claimed 0, truth 1" in after(state, a)))
        assert state.current_player() == 0
        assert state.legal_actions() == [0b000, 0b001, 0b010, 0b100]
        state.apply_action(0b000)
        assert state.legal_actions() == [0b011, 0b101, 0b110, 0b111]
        state.apply_action(0b111)
        assert state.current_player() == 1
        assert [state.action_to_string(a) for a in state.legal_actions()] == [
            "accepts", "challenges", "samples 0", "samples 1", "samples 2",
        ]  # fmt: skip
        seen = state.information_state_string()
        assert seen == "Bob | respond: level 1, claimed 0, aggregator 0, assignment 000"
        assert state.observation_string() == seen
        state.apply_action(4)
        assert state.is_terminal()
        assert state.returns() == [-1, 1]
        assert state.information_state_string(1) == f"{seen}; samples 2"

    def test_by_name(self) -> None:
        by_name = pyspiel.load_game(NAME, {"aggregators": "majority 3;and 2", "rho": 2.0, "depth": 1})
        assert str(by_name) == str(exported("majority 3", "and 2"))
        assert str(pyspiel.load_game(str(by_name))) == str(by_name)
        assert by_name.num_distinct_actions() == 8
        assert by_name.max_game_length() == 3

    def test_mistakes_are_named(self) -> None:
        with pytest.raises(ConfigError, match="rho"):
            pyspiel.load_game(NAME, {"rho": 0.5})
        with pytest.raises(ConfigError, match="13 wide"):
            exported("majority 13", rho=9.0)

    def test_trembles_are_left_out_unless_asked_for(self) -> None:
        game = export(EnvConfig(depth=1, tremble=0.5), ProblemConfig())
        assert game.tree.game.tremble == 0
        assert export(EnvConfig(depth=1), ProblemConfig(), tremble=0.5).tree.game.tremble == 0.5


def after(state: Any, action: int) -> str:
    return state.child(action).information_state_string()


PAIRS = {
    "uniform": lambda game: (players.alice("random", game), players.bob("random", game)),
    "scripted": lambda game: (players.alice("worst_case", game), players.bob("uniform", game)),
    "any": lambda game: (Legal(TableAlice(game, 0)), Legal(TableBob(game, 1))),
}


class TestSecondOpinion:
    @pytest.mark.parametrize("name", GAMES)
    def test_value(self, name: str) -> None:
        """Theirs: a linear program over the whole tree, and what best responses leave of its two strategies."""
        game = of(name)
        found = second_opinion.solve(game)
        p, noise = game.tree.game.p_false, game.tree.game.noise
        ours = 1 - 2 * (p * game_value(game.tree.game) + (1 - p) * noise)
        assert found.value == pytest.approx(ours, abs=1e-9)
        assert found.low == pytest.approx(ours, abs=1e-9)
        assert found.high == pytest.approx(ours, abs=1e-9)

    @pytest.mark.parametrize("name", GAMES)
    @pytest.mark.parametrize("pair", PAIRS)
    def test_nash_conv(self, name: str, pair: str) -> None:
        game = of(name)
        both = PAIRS[pair](game.tree.game)
        ours = exploitability(game.tree.game, *both)["nash_conv"]
        assert ours > 0.04  # so that the agreement means something
        assert ours == pytest.approx(sum(second_opinion.best_responses(game, PairPolicy(game, *both))), abs=1e-9)

    @pytest.mark.parametrize("pair", PAIRS)
    def test_exploitability(self, pair: str) -> None:
        """Each side's, over the value; OpenSpiel's function of that name gives half of NashConv."""
        game = of("width 3")
        both = PAIRS[pair](game.tree.game)
        ours, policy = exploitability(game.tree.game, *both), PairPolicy(game, *both)
        alice, bob = second_opinion.best_responses(game, policy)
        value = 1 / 3  # 1 - 2 * 1/2 * 1/3: two ones and one one are unstable, three ones and none have fbs 3/2
        assert ours["exploitability"] == pytest.approx({"alice": bob + value, "bob": alice - value}, abs=1e-9)
        assert ours["nash_conv"] == pytest.approx(2 * half_of_nash_conv(game, policy), abs=1e-9)

    @pytest.mark.parametrize(
        "settings",
        [
            {"aggregators": ("and 2", "majority 3"), "menu": 2, "oracle": "random", "query_cost": 0.2},
            {"aggregators": ("and 2",), "depth": 2, "oracle": "random", "noise": 0.1},
            {"aggregators": ("and 2", "parity 2"), "root_claim": "free", "depth": 2},
            {"aggregators": ("majority 3",), "bob_sees": "truth"},
        ],
        ids=str,
    )
    def test_exploitability_of_other_games(self, settings: dict[str, Any]) -> None:
        settings = dict(settings)
        game = exported(*settings.pop("aggregators"), **settings)
        pair = Legal(TableAlice(game.tree.game, 2)), Legal(TableBob(game.tree.game, 3))
        theirs = 2 * half_of_nash_conv(game, PairPolicy(game, *pair))
        assert exploitability(game.tree.game, *pair)["nash_conv"] == pytest.approx(theirs, abs=1e-9)

    def test_debates_with_trembles_and_noise(self) -> None:
        """Exact in OpenSpiel's tree, counted over debates by the batch in ours."""
        game = exported("threshold 2,1,1 >= 2", tremble=0.4, noise=0.1, p_false=0.8)
        inside = game.tree.game
        pair = Legal(TableAlice(inside, 4)), Legal(TableBob(inside, 5))
        policy = PairPolicy(game, *pair)
        exact = policy_value(game.new_initial_state(), [policy, policy])
        count = 50_000
        rewards = debate(inside, *pair, count, draws(6)).reward
        assert abs(rewards.mean() - exact[0]) < 4 * rewards.std() / count**0.5
        assert exact[0] == -exact[1]


class TestPairPolicy:
    def test_refuses_players_that_look_at_the_state(self) -> None:
        game = exported("majority 3")
        with pytest.raises(PlayerError, match="this Bob .InformedBob. looks at the whole state"):
            PairPolicy(game, players.alice("random", game.tree.game), players.bob("informed", game.tree.game))

    def test_refuses_illegal_moves(self) -> None:
        game = exported("majority 3")
        policy = PairPolicy(game, TableAlice(game.tree.game, 0), players.bob("lp", game.tree.game))
        with pytest.raises(PlayerError, match="TableAlice makes illegal moves with probability 0"):
            policy.to_tabular()


class TestBenchmarks:
    def test_a_comparison(self) -> None:
        found = second_opinion.compare("and of 3", iterations=2)
        assert found["size"] == {"nodes": 405, "alice": 20, "bob": 8}  # 1 + 4 + 16 + 64 + 320; 4 + 16; 8
        assert found["difference"] < 1e-6
        assert found["pairs"]["uniform"]["difference"] < 1e-9
        assert found["pairs"]["learned"]["difference"] < 1e-3
        assert found["pairs"]["learned"]["nash_conv"] > 0.1
        text = second_opinion.printed([found], 2)
        assert "| and of 3 | 3 | 1 | 405 | 20, 8 | 0.333333333 | 0.333333333 |" in text

    def test_what_a_peers_bob_is_asked(self) -> None:
        """Second route: every state of Bob's turn in OpenSpiel's own walk, and the catch ratio of a uniform Bob."""
        peer = neural_peers.Peer(seed=0)
        met = set()

        def follow(state: Any) -> None:
            """All assignments, and of the lies the first."""
            if state.current_player() == 1:
                code = int(state.node.tree.game.library.code(state.node.seen.assignment)[0])
                asked = peer.asked[code].observations
                assert np.array_equal(asked["info_state"][1], state.information_state_tensor(1))
                assert asked["legal_actions"][1] == state.legal_actions()
                met.add(code)
                return
            lies = not state.is_chance_node() and state.node.state.phase == LIE
            for action in state.legal_actions()[: 1 if lies else None]:
                follow(state.child(action))

        follow(export(neural_peers.ENV, neural_peers.PROBLEM).new_initial_state())
        assert met == set(range(32))
        peer.chances = lambda asked: np.append(np.full(7, 1 / 7), np.zeros(25))
        game = Game(neural_peers.ENV, neural_peers.PROBLEM).evaluation()
        expected = table_of(game, players.bob("random", game))
        assert peer.bob() == pytest.approx(expected)
        ratios = evaluate(game, players.alice("random", game), players.bob("random", game), 8)["catch_ratio"]
        assert catch_ratios(game, peer.bob()).mean() == pytest.approx(ratios["mean"])

    @pytest.mark.parametrize("name", neural_peers.LEARNERS_MEASURED)
    def test_a_race(self, name: str) -> None:
        if name == "OpenSpiel NFSP":
            pytest.importorskip("tree", reason="OpenSpiel's NFSP needs dm-tree (extra `bench`)")
        run = neural_peers.race(name, seconds=0.05, seed=0)
        assert 0 < run["best"]["mean"] < neural_peers.RATIO
        assert not run["reached"]
        assert run["curve"][-1]["debates"] > 0
        assert "not reached within" in neural_peers.printed([run])
