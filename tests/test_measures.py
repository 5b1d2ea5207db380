"""The measures, against closed forms, blocks listed one by one, and players whose measures are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from table_players import FEW, UNEVEN, TableAlice, TableBob, bits, game, is_stable

import fbs
from agents import measures, players
from agents.exact import adversarial_twin, game_values, solve
from agents.exact_bob import best_response_bob
from agents.measures import (
    bob_measures,
    catch_ratios,
    challenge_errors,
    cross_play,
    evaluate,
    exploitability,
    optimal_face_tv,
)
from agents.positions import policy, positions
from envs.claim_tree import ClaimTree
from envs.config import EnvConfig, ProblemConfig
from envs.game import Game
from envs.rules import SAMPLE
from fbs.optimal_face import optimal_face_distance
from fbs.table import SensitivityTable


class AcceptingBob:
    needs_state = False

    def act(self, seen, u) -> np.ndarray:
        return np.zeros(len(u), int)

    def probabilities(self, seen) -> np.ndarray:
        return np.eye(2 + seen.game.width)[self.act(seen, seen.level)]


def of(g: Game, alice: str, bob: str, **arguments) -> dict:
    return evaluate(g, players.alice(alice, g), players.bob(bob, g), **arguments)


def test_equilibrium_has_nothing_to_gain() -> None:
    """Both regrets 0, the catch ratio 1, the optimal face reached: at rho 2 and where the value depends on the bit."""
    for g in (game(rho=2.0), game([UNEVEN]), game(FEW, 2, noise=0.05), game(root_claim="free")):
        found = of(g, "worst_case", "game_optimal")
        assert found["exploitability"] == pytest.approx({"alice": 0, "bob": 0}, abs=1e-8)
        assert found["nash_conv"] == pytest.approx(0, abs=1e-8)
        assert found["catch_ratio"] == pytest.approx({"mean": 1, "min": 1}, abs=1e-8)
        assert found["optimal_face_tv"] == pytest.approx(0, abs=1e-7)
        assert found["worst_case_catch"] == pytest.approx(found["game_value"], abs=1e-8)
        assert found["challenge_errors"]["stable"] == 0
        assert found["challenge_errors"]["unstable"] in (0, None)
        assert found["completeness"]["mean"] == 1 or g.noise > 0


def test_uniform_bob_on_the_defaults() -> None:
    """Best-response Alice lies about the heaviest sub-claim alone where she can: caught with 1/5 a level, 1/25 of 1/9.

    Her reward rises by 2 * p_false * (1/9 - 1/25). At each assignment the ratio is fbs * |smallest block| / 5.
    """
    g = game()
    found = of(g, "worst_case", "uniform")
    assert found["worst_case_catch"] == pytest.approx(1 / 25)
    assert found["exploitability"]["bob"] == pytest.approx(1 / 9 - 1 / 25)
    assert found["exploitability"]["alice"] == 0
    table = SensitivityTable(g.library.aggregators[0])
    smallest = np.array([table.blocks(code).sum(-1).min() for code in range(32)])
    ratios = table.value * smallest / 5
    assert found["catch_ratio"]["mean"] == pytest.approx(ratios.mean())
    assert found["catch_ratio"]["min"] == pytest.approx(ratios.min())


@pytest.mark.parametrize(
    "changes", [{}, {"rho": 3.0, "aggregators": [UNEVEN], "depth": 3}, {"aggregators": FEW, "menu": 2}], ids=str
)
def test_measures_of_an_arbitrary_bob(changes: dict) -> None:
    """Second route: every sensitive block listed, the best sampling from the certificate with capacities 1 / V."""
    g = game(**{"rho": 2.0, **changes})
    bob, values, rows = TableBob(g, 1), game_values(g), positions(g)
    table = policy(g, bob)
    ratios, distances, wrong, missed = [], [], [], []
    for level in range(1, g.depth + 1):
        for row, a in enumerate(rows.aggregator):
            f = g.library.aggregators[a]
            z = tuple(rows.assignment[row, : f.width])
            p = table[level - 1, row]
            if not is_stable(g, a, z):
                missed.append(1 - p[1])
                continue
            wrong.append(p[1])
            below = values[level - 1][list(z)]
            wrong_truths = np.array([y for y in bits(f.width) if f(y) != f(z)])
            caught = (wrong_truths != z) @ (p[SAMPLE : SAMPLE + f.width] * below)
            ratios.append(min(caught) * float(fbs.sensitivity(f, z, 1 / below).value))
            distances.append(optimal_face_distance(f, z, p[SAMPLE : SAMPLE + f.width], 1 / below))
    found = bob_measures(g, bob)
    assert catch_ratios(g, table).ravel() == pytest.approx(ratios, abs=1e-9)
    assert found["catch_ratio"] == pytest.approx({"mean": np.mean(ratios), "min": min(ratios)})
    assert found["optimal_face_tv"] == pytest.approx(np.mean(distances))
    assert found["challenge_errors"]["stable"] == pytest.approx(np.mean(wrong))
    assert found["challenge_errors"]["unstable"] == (pytest.approx(np.mean(missed)) if missed else None)


def test_a_bob_who_never_samples() -> None:
    """DESIGN section 6: mass elsewhere catches nothing, and without any the distance is 1. Nothing is caught."""
    g = game(rho=2.0)
    table = np.zeros((2, 32, 7))
    table[:, :, 1] = 1
    assert optimal_face_tv(g, table) == 1
    assert (catch_ratios(g, table) == 0).all()
    table[:, :, :] = [0.5, 0, 0.1, 0.1, 0.1, 0.1, 0.1]  # uniform over sub-claims, half of the time
    half = catch_ratios(g, table)
    table[:, :, :] = [0, 0, 0.2, 0.2, 0.2, 0.2, 0.2]
    assert half == pytest.approx(catch_ratios(g, table) / 2)


def test_large_games_take_a_sample_of_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    g = game()
    table = policy(g, players.bob("uniform", g))
    every = optimal_face_tv(g, table)
    monkeypatch.setattr(measures, "FACE_POSITIONS", 40)
    assert optimal_face_tv(g, table) == pytest.approx(every, abs=0.1)


def test_exploitability_is_the_best_response_in_debates() -> None:
    """`exploitability.bob` + the game's reward is what best-response Alice earns: 40,000 debates, 4 standard errors."""
    g = game(FEW, rho=2.0, p_false=0.7, noise=0.1)
    bob = TableBob(g, 3)
    found = evaluate(g, players.alice("best_response", g, bob), bob, debates=40_000)
    perfect = 1 - 2 * (0.7 * found["game_value"] + 0.3 * 0.1)
    won = (perfect + found["exploitability"]["bob"] + 1) / 2
    assert abs(found["alice_win_rate"]["mean"] - won) < 4 * (won * (1 - won) / 40_000) ** 0.5


def test_nash_conv_is_never_negative() -> None:
    """For arbitrary pairs, also where no value is known: the random oracle, a query cost."""
    for changes in ({}, {"oracle": "random"}, {"query_cost": 0.4}, {"bob_sees": "truth"}, {"root_claim": "free"}):
        g = game(["and 2", "majority 3"], rho=2.0, **changes)
        for seed in range(3):
            found = exploitability(g, TableAlice(g, seed), players.bob("random", g))
            assert found["nash_conv"] >= 0
            gains = found["exploitability"].values()
            if None not in gains:
                assert min(gains) >= 0 and sum(gains) == pytest.approx(found["nash_conv"])
            else:
                assert g.query_cost or not g.adversarial


def test_alice_who_lets_bob_learn_the_truth() -> None:
    """Random Alice of depth 1: the truths are uniform given the claim's truth, whatever she answers.

    Every sub-claim is then a lie with probability 1/2 over both truths, so best-response Bob wins half of the debates:
    2 * (1/2 - p_false / 3) at V_1 = 1/3.
    """
    found = of(game(depth=1), "random", "lp")
    assert found["exploitability"]["alice"] == pytest.approx(2 * (1 / 2 - 1 / 6))


def test_honesty() -> None:
    free = game(FEW, root_claim="free")
    assert of(free, "honest", "lp")["honesty_rate"] == 1
    assert of(free, "honest", "lp")["true_sub_claims"] == 1
    assert of(free, "random", "lp")["honesty_rate"] == 0.5
    assert of(game(), "random", "lp")["honesty_rate"] is None
    alice = TableAlice(free, 1)
    expected = (alice.claims[0, 0] + alice.claims[1, 1]) / 2
    assert measures.honesty_rate(free, alice) == pytest.approx(expected)


def test_share_of_true_sub_claims() -> None:
    """Worst-case Alice at depth 1 on false claims: the share of lies is the packing's mean |B| / 5."""
    g = game(depth=1, p_false=1.0)
    alice = players.alice("worst_case", g)
    found = evaluate(g, alice, players.bob("lp", g), debates=20_000)
    lies = []
    for bit in (0, 1):
        row = solve(g).positions[0]
        choices = positions(g).least(np.where(positions(g).stable, row, np.inf))[0, bit]
        f, z = g.library.aggregators[0], positions(g).assignment[choices]
        packing = fbs.sensitivity(f, z).packing
        total = float(sum(weight for _, weight in packing))
        lies.append(sum(len(block) * float(weight) / total for block, weight in packing) / 5)
    assert found["true_sub_claims"] == pytest.approx(1 - np.mean(lies), abs=0.01)
    deeper = game(p_false=1.0)  # of a debate that is over nothing more counts, and V_1 is the same for both bits
    found = evaluate(deeper, players.alice("worst_case", deeper), AcceptingBob(), debates=20_000)
    assert found["true_sub_claims"] == pytest.approx(1 - np.mean(lies), abs=0.01)


def test_random_oracle_is_measured_on_its_adversarial_twin() -> None:
    g = game(rho=2.0, oracle="random")
    found, twin = of(g, "worst_case", "uniform"), of(adversarial_twin(g), "worst_case", "uniform")
    for key in ("worst_case_catch", "catch_ratio", "optimal_face_tv", "challenge_errors"):
        assert found[key] == twin[key]
    assert found["game_value"] is None and found["exploitability"] == {"alice": None, "bob": None}
    assert found["nash_conv"] > 0


def test_query_cost_does_not_blur_the_catch() -> None:
    """worst_case_catch is a probability, without the price of asking."""
    assert of(game(query_cost=0.5), "worst_case", "uniform")["worst_case_catch"] == pytest.approx(1 / 25)


def test_privileged_bobs_are_not_compared_with_the_value() -> None:
    found = of(game(), "worst_case", "informed")
    assert found["worst_case_catch"] == pytest.approx(1)
    assert found["exploitability"] == {"alice": 0, "bob": None}
    assert found["catch_ratio"] == {"mean": None, "min": None} and found["nash_conv"] is None
    seeing = of(game(bob_sees="truth"), "worst_case", "informed")
    assert seeing["game_value"] == 1 and seeing["exploitability"] == {"alice": 0, "bob": 0}


def test_what_is_too_large_is_none() -> None:
    g = game(["threshold 1,1,1,1,1,1,1,1,1,1,2 >= 6"], rho=6.0)
    found = of(g, "honest", "lp", debates=64)
    assert found["game_value"] is found["worst_case_catch"] is found["nash_conv"] is None
    assert found["catch_ratio"] == {"mean": None, "min": None}
    assert found["challenge_errors"] == {"stable": None, "unstable": None}
    assert found["completeness"]["mean"] == 1
    wide = of(game(["majority 11"], rho=6.0), "worst_case", "lp", debates=64)
    assert wide["catch_ratio"]["mean"] == pytest.approx(1) and wide["exploitability"] == {"alice": None, "bob": 0}


def test_a_claim_tree() -> None:
    """majority 3 of leaves 1, 1, 0 at rho 2: true 110 has sensitivity 2. LP Bob samples a claimed one of two.

    A false root claims 0: at least two zeros, of which one is a lie. Best is 000, with 1/3 for each and two lies (2/3),
    or 001, 010, 100: two zeros with 1/2 each; of 010 only one is a lie, caught with 1/2.
    """
    tree = ClaimTree.from_breadth_first(
        "test", [fbs.parse("majority 3")], [0, -1, -1, -1], [0, 1, 1, 0], [-1] * 4, [""] * 4, ["majority", "", "", ""]
    )
    g = Game(EnvConfig(rho=2.0), tree)
    found = of(g, "worst_case", "lp")
    assert found["worst_case_catch"] == pytest.approx(1 / 2)
    assert found["game_value"] is None and found["catch_ratio"]["mean"] is None and found["nash_conv"] is None
    assert found["challenge_errors"] == {"stable": 0.0, "unstable": None}
    assert found["honest_unstable"] == 0 and found["completeness"]["mean"] == 1
    assert found["bound"] == 1 / 2


def test_challenge_errors() -> None:
    p = np.array([0.1, 0.3, 0.6, 0.9])
    assert challenge_errors(p, np.array([1, 1, 0, 0], bool)) == pytest.approx({"stable": 0.2, "unstable": 0.25})
    assert challenge_errors(p, np.ones(4, bool))["unstable"] is None


def test_challenges_count_where_a_debate_can_get() -> None:
    """At rho 2 `and 3` has no stable assignment of output 1 (its sensitivity is 3): a menu of one never offers it for
    that claim, so there is nothing unstable to challenge; a menu of two may."""
    for menu, missed in ((1, None), (2, 1.0)):
        g = Game(EnvConfig(rho=2.0), ProblemConfig(aggregators=["and 3", "parity 2"], menu=menu))
        assert bob_measures(g.evaluation(), AcceptingBob())["challenge_errors"] == {"stable": 0.0, "unstable": missed}


def test_cross_play() -> None:
    """Exact rates: LP Bob against worst-case Alice 1 - 1/18, uniform Bob 1 - 1/50 (see above); honest Alice 1."""
    g = game()
    alices = {name: players.alice(name, g) for name in ("honest", "worst_case")}
    bobs = {name: players.bob(name, g) for name in ("lp", "uniform")}
    table = cross_play(g, alices, bobs, 20_000, seed=1)
    assert [list(table), list(table["honest"])] == [["honest", "worst_case"], ["lp", "uniform"]]
    assert table["honest"]["lp"]["mean"] == table["honest"]["uniform"]["mean"] == 1
    assert abs(table["worst_case"]["lp"]["mean"] - (1 - 1 / 18)) < 4 * (1 / 18 / 20_000) ** 0.5
    assert table == cross_play(g, alices, bobs, 20_000, seed=1)


def test_evaluation_is_plain_and_repeatable() -> None:
    g = Game(EnvConfig(rho=2.0), ProblemConfig())  # trembles on: left out
    found = of(g, "random", "random", seed=5)
    assert json.loads(json.dumps(found)) == found
    assert found == of(g, "random", "random", seed=5)
    keys = """game_value game_value_by_bit worst_case_catch bound catch_ratio optimal_face_tv challenge_errors
        exploitability nash_conv honesty_rate true_sub_claims completeness"""
    assert set(keys.split()) <= set(found)
    assert best_response_bob(g, players.alice("random", g)).sum() == pytest.approx(
        best_response_bob(g.evaluation(), players.alice("random", g)).sum()
    )
