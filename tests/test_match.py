"""Matches: rates against exact values, honest Alice against everybody, and what is counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from table_players import FEW, game

from agents import players
from agents.exact import best_response_alice
from agents.match import format_match, interval, match
from envs.config import EnvConfig, ProblemConfig
from envs.game import Game

BLUEBIRDS = Path(__file__).parents[1].parent / "shared" / "data" / "bluebirds.csv"


def play(g: Game, alice: str, bob: str, debates: int = 4000, seed: int = 0) -> dict:
    opponent = players.bob(bob, g)
    return match(g, players.alice(alice, g, opponent), opponent, debates, seed)


def within(rate: dict, exact: float, trials: float, errors: float = 4.0) -> bool:
    """Whether a rate lies within so many standard errors of what it should be; a right one does with 0.99994 for 4."""
    return abs(rate["mean"] - exact) < errors * (exact * (1 - exact) / trials) ** 0.5


def test_worst_case_against_lp_is_the_game_value() -> None:
    """200,000 debates on the defaults, about half of them false: V_2 = 1/9 (DESIGN section 2)."""
    result = play(game(), "worst_case", "lp", 200_000)
    assert result["game_value"] == pytest.approx(1 / 9)
    assert result["bound"] == pytest.approx(1 / 9)
    assert within(result["catch_rate"], 1 / 9, 100_000)
    assert within(result["alice_win_rate"], 1 - 1 / 18, 200_000)
    assert result["queries"] == {"per_debate": 1.0}  # nobody challenges or accepts


@pytest.mark.parametrize(
    "changes",
    [{"rho": 2.0}, {"noise": 0.2}, {"aggregators": FEW, "menu": 2, "query_cost": 0.5}, {"depth": 4, "p_false": 0.9}],
    ids=str,
)
def test_equilibrium_players_meet_at_the_game_value(changes: dict) -> None:
    """40,000 debates; noise e turns V into e + (1 - 2 e) V, and a query cost changes no winner."""
    g = game(**changes)
    result = play(g, "worst_case", "game_optimal", 40_000)
    assert within(result["catch_rate"], result["game_value"], 40_000 * g.p_false)
    lost = g.p_false * result["game_value"] + (1 - g.p_false) * g.noise
    assert within(result["alice_win_rate"], 1 - lost, 40_000)


@pytest.mark.parametrize("bob", players.BOBS)
def test_honest_alice_never_loses(bob: str) -> None:
    """On the defaults, and with menus at rho 2, where some assignments are unstable: exactly 1, whatever p_false is."""
    if bob == "tree_optimal":
        pytest.skip("for claim trees")
    for g in (game(), game(FEW, 3, rho=2.0, p_false=1.0), game(FEW, rho=2.0, oracle="random"), game(root_claim="free")):
        result = play(g, "honest", bob)
        assert result["alice_win_rate"]["mean"] == 1.0
        assert result["catch_rate"] is None


def test_random_oracle_best_response() -> None:
    """Worst-case Alice is the best response to LP Bob there; the rate is that of the recursion."""
    g = game(rho=2.0, oracle="random")
    root = best_response_alice(g, players.bob("lp", g)).catch[2]
    result = play(g, "worst_case", "lp", 40_000)
    assert within(result["catch_rate"], (root[0, 1] + root[1, 0]) / 2, 20_000)
    assert result["game_value"] is None


def test_trembles_are_left_out() -> None:
    """With tremble 1 Alice's assignments would be uniform and LP Bob would catch more."""
    still, trembling = game(), Game(EnvConfig(tremble=1.0), ProblemConfig())
    assert play(still, "worst_case", "lp") == play(trembling, "worst_case", "lp")


def test_queries_are_counted() -> None:
    """Random Bob samples in 5 of 7 responses, at both levels: (5/7)^2 queries a debate."""
    result = play(game(), "honest", "random", 20_000)
    assert within({"mean": result["queries"]["per_debate"]}, (5 / 7) ** 2, 20_000)


def test_batches_and_seeds() -> None:
    """One seed, one result; whatever the batch, as many debates as were asked for."""
    g = game()
    alice, bob = players.alice("worst_case", g), players.bob("uniform", g)
    assert match(g, alice, bob, 3000, 1, batch=1000) == match(g, alice, bob, 3000, 1, batch=1000)
    assert match(g, alice, bob, 3000, 1) != match(g, alice, bob, 3000, 2)
    assert match(g, alice, bob, 2999, 1, batch=1000)["debates"] == 2999


def test_interval() -> None:
    """Wilson's for 8 of 10 at 95%: centre (8 + z²/2) / (10 + z²), half-width z/(10 + z²) sqrt(1.6 + z²/4)."""
    z = 1.959963984540054
    centre, half = (8 + z * z / 2) / (10 + z * z), z / (10 + z * z) * np.sqrt(1.6 + z * z / 4)
    rate = interval(8, 10)
    assert [rate["mean"], rate["low"], rate["high"]] == pytest.approx([0.8, centre - half, centre + half], abs=1e-12)
    assert interval(0, 0) is None
    assert interval(10, 10)["high"] == 1.0 and interval(0, 10)["low"] == 0.0


def test_report() -> None:
    result = {"alice": "worst_case", "bob": "lp", **play(game(), "worst_case", "lp")}
    assert list(result)[:2] == ["alice", "bob"]
    assert {"debates", "alice_win_rate", "catch_rate", "game_value", "bound", "queries"} <= set(result)
    assert set(result["catch_rate"]) == {"mean", "low", "high"}
    assert json.loads(json.dumps(result)) == result  # plain Python numbers
    text = format_match(result)
    assert "worst_case (Alice) against lp (Bob), 4,000 debates" in text and "game value 0.1111" in text
    assert "none were made" in format_match(play(game(), "honest", "lp"))


@pytest.mark.skipif(not BLUEBIRDS.exists(), reason="bluebirds.csv is not there")
def test_a_crowd() -> None:
    """108 tasks of 39 workers at rho 4: honest Alice loses exactly where she meets an unstable claim, as LP Bob
    challenges it; the rate is within 4 standard errors of the exact probability."""
    g = Game(EnvConfig(rho=4.0), ProblemConfig(path=str(BLUEBIRDS)))
    result = play(g, "honest", "lp", 20_000)
    assert result["claims"] == 109
    assert 0 < result["unstable_claims"] < 109
    assert within(result["alice_win_rate"], 1 - result["honest_unstable"], 20_000)
    assert result["game_value"] is None
    worst = play(g, "worst_case", "lp", 20_000)
    assert worst["catch_rate"]["mean"] >= worst["bound"]
    assert "unstable claims" in format_match(worst)
