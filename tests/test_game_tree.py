"""The game tree that solvers walk: chance listed, rewards by the rules, perfect recall."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from table_players import FEW
from table_players import game as debate_game
from table_players import menus as listed_menus

import fbs
from envs import rules
from envs.chances import MOST_MENUS, after, deals
from envs.config import ConfigError, EnvConfig, ProblemConfig
from envs.game import Game
from envs.game_tree import ALICE, BOB, Node, Tree
from envs.rules import ASSIGN, LIE, SAMPLE

DEFAULT = ["threshold 3,2,2,1,1 >= 5"]


def walk(node: Node) -> list[Node]:
    """A node and all below it."""
    numbers = range(len(node.chances)) if node.chances else node.legal
    return [node, *itertools.chain.from_iterable(walk(node.tree.child(node, number)) for number in numbers)]


class TestChances:
    SETTINGS = [
        {"rho": 2.0},
        {"rho": 2.0, "p_false": 0.3, "noise": 0.1, "menu": 2},
        {"rho": 2.0, "p_false": 1.0, "oracle": "random", "menu": 2},
        {"rho": 2.0, "p_false": 0.0},
    ]

    @pytest.mark.parametrize("settings", SETTINGS, ids=str)
    def test_deals_are_those_of_the_design(self, settings: dict[str, Any]) -> None:
        """Second route: the bit is uniform, false with p_false, and menus are listed one by one and redrawn whole."""
        game = debate_game(FEW, **settings)
        found: dict[Any, float] = defaultdict(float)
        for probability, u in deals(game):
            state = rules.deal(game, u)
            answers = [None if game.adversarial else tuple(row) for row in state.answers[0].tolist()]
            menu = tuple(zip(state.menu[0].tolist(), answers, strict=True))
            found[int(state.truth[0]), int(state.claimed[0]), menu] += probability
        expected: dict[Any, float] = defaultdict(float)
        for claimed, false in itertools.product((0, 1), (0, 1)):
            share = (game.p_false if false else 1 - game.p_false) / 2
            for probability, menu in listed_menus(game, claimed if game.adversarial else claimed ^ false):
                padded = tuple((a, y and tuple(np.pad(y, (0, game.width - len(y))).tolist())) for a, y in menu)
                if share:
                    expected[claimed ^ false, claimed, padded] += share * probability
        assert found == pytest.approx(expected)

    def test_a_tremble_and_noise(self) -> None:
        """Her own assignment or any of the same output, an oracle that is wrong with probability eps."""
        game = debate_game(DEFAULT, depth=1, tremble=0.2, noise=0.1, p_false=1.0)
        state = rules.deal(game, deals(game)[0].u)
        move = game.library.bits[game.library.preimage[[0], state.claimed, 3]]
        chances, after_assigning = after(game, state, move), defaultdict(float)
        for probability, u in chances:
            after_assigning[rules.assign(game, state, move, u).assignment.tobytes()] += probability
        count = int(game.library.preimage_size[0, state.claimed[0]])
        assert sorted(after_assigning.values()) == pytest.approx([0.2 / count] * (count - 1) + [0.8 + 0.2 / count])
        state = rules.assign(game, state, move, chances[0].u)
        state = rules.lie(game, state, state.assignment ^ game.library.bits[game.library.preimage[[0], state.truth, 0]])
        said = {
            int(rules.respond(game, state, np.array([2]), u).answer[0]): p for p, u in after(game, state, np.array([2]))
        }
        truth = int(state.truths[0, 0])
        assert said == pytest.approx({truth: 0.9, 1 - truth: 0.1})

    @pytest.mark.parametrize(
        ("env", "problem", "message"),
        [
            ({"rho": 9.0}, {"aggregators": ["majority 13"]}, "13 wide"),
            ({}, {"family": "threshold", "size": 200, "menu": 3}, rf"200\^3 menus, more than the {MOST_MENUS}"),
            ({"root_claim": "free"}, {"family": "threshold", "size": 200, "menu": 3}, "menus"),
        ],
    )
    def test_what_cannot_be_listed_is_refused(self, env: dict, problem: dict, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            Tree(Game(EnvConfig(**env), ProblemConfig(**problem)))


def plain_reward(game: Game, moves: list[tuple[int, int]], claimed: int, truth: int) -> float:
    """Alice's reward by the rules as the design words them: adversarial oracle, one aggregator, no noise."""
    (f,) = game.library.aggregators
    bits = np.asarray(game.library.bits)
    for phase, number in moves:
        if phase == ASSIGN:
            z = bits[number]
            assert f(z) == claimed
        elif phase == LIE:
            y = z ^ bits[number]
            assert f(y) == truth
        elif number == 0:
            return 1.0
        elif number == 1:
            return -1.0 if float(fbs.sensitivity(f, z).value) > game.env.rho + 1e-9 else 1.0
        else:
            claimed, truth = int(z[number - SAMPLE]), int(y[number - SAMPLE])
    return 1.0 if claimed == truth else -1.0


class TestTree:
    @pytest.mark.parametrize(("aggregator", "depth", "rho"), [("majority 3", 1, 1.5), ("and 2", 2, 2.0)])
    def test_every_debate_ends_as_the_rules_say(self, aggregator: str, depth: int, rho: float) -> None:
        """All debates; second route: the rules in plain words."""
        tree, rewards = Tree(debate_game([aggregator], depth=depth, rho=rho)), []

        def follow(node: Node, moves: list[tuple[int, int]], claimed: int, truth: int) -> None:
            if node.over:
                assert node.reward == plain_reward(tree.game, moves, claimed, truth)
                rewards.append(node.reward)
            for number in node.legal:
                follow(tree.child(node, number), [*moves, (node.state.phase, number)], claimed, truth)

        for deal in range(len(tree.root.chances)):
            node = tree.child(tree.root, deal)
            follow(node, [], int(node.state.claimed[0]), int(node.state.truth[0]))
        assert {-1.0, 1.0} == set(rewards)

    @pytest.mark.parametrize(
        "settings",
        [
            {"aggregators": ["and 2"], "depth": 2, "rho": 2.0},
            {"aggregators": ["and 2", "or 2"], "menu": 2, "rho": 2.0, "noise": 0.1, "root_claim": "free"},
            {"aggregators": ["and 2"], "oracle": "random", "rho": 2.0, "bob_sees": "truth"},
            {"aggregators": ["parity 2"], "rho": 2.0, "tremble": 0.2},
        ],
        ids=str,
    )
    def test_players_recall_everything_and_bob_sees_no_truth(self, settings: dict[str, Any]) -> None:
        tree = Tree(debate_game(**{"depth": 1, **settings}))
        histories, tensors, legal = {}, {}, {}

        def follow(node: Node, pasts: tuple[tuple, tuple]) -> None:
            player = node.player
            if player is not None:
                known = node.known(player)
                key = (player, *(moment.text for moment in known))
                rows = tuple(moment.features.tobytes() for moment in known)
                assert histories.setdefault(key, pasts[player]) == pasts[player]  # OpenSpiel's perfect recall
                assert tensors.setdefault(key, rows) == rows
                assert legal.setdefault(key, list(node.legal)) == list(node.legal)
                assert len(known) <= tree.moments
                if player == BOB and not tree.game.sees_truth:
                    assert not any("truth" in moment.text or "answers" in moment.text for moment in known)
            for number in range(len(node.chances)) if node.chances else node.legal:
                past = list(pasts)
                if player is not None:
                    past[player] = (*pasts[player], (key, number))
                follow(tree.child(node, number), tuple(past))

        follow(tree.root, ((), ()))
        assert len(set(tensors.values())) == len(tensors)  # what is told apart in words is told apart in numbers
        assert {key[0] for key in histories} == {ALICE, BOB}

    def test_chance_is_complete(self) -> None:
        tree = Tree(debate_game(["and 2", "or 2"], depth=2, menu=2, rho=2.0, noise=0.25, oracle="random"))
        chances = [node.chances for node in walk(tree.child(tree.root, 0))[:5000] if node.chances]
        assert len(chances) > 100
        for outcomes in (tree.root.chances, *chances):
            assert sum(chance.probability for chance in outcomes) == pytest.approx(1, abs=1e-12)
            assert len(outcomes) <= tree.most_outcomes

    def test_a_node_is_the_same_when_reached_again(self) -> None:
        tree = Tree(debate_game(["and 2"], depth=1, rho=2.0))
        first, again = (walk(tree.child(tree.root, 0)) for _ in range(2))
        assert all(a is b for a, b in zip(first, again, strict=True))
