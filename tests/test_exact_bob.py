"""Bob's exact best responses, against a recursion over all histories and against the value of the game."""

from __future__ import annotations

import numpy as np
import pytest
from table_players import CONFIGURATIONS, FEW, UNEVEN, TableAlice, bits, code, game, is_stable, menus

from agents import players
from agents.exact import best_response_alice, game_values, leaf_share
from agents.exact_bob import best_response_bob, upper_right_chain
from agents.positions import ExactError
from envs.config import EnvConfig, ProblemConfig
from envs.game import Game


def chosen(g: Game, alice: TableAlice, level: int, c: int, t: int) -> dict[tuple, float]:
    """How likely each candidate is drawn and chosen."""
    found: dict[tuple, float] = {}
    for p, menu in menus(g, c if g.adversarial else t):
        liking = [alice.liking[level, c, t, a, code(g, y or ())] for a, y in menu]
        for candidate, like in zip(menu, liking, strict=True):
            found[candidate] = found.get(candidate, 0) + p * like / sum(liking)
    return found


def best_share(g: Game, alice: TableAlice, level: int, c: int, weight: tuple[float, float]) -> float:
    """Bob's best share from here on, weight[t] being the probability of his history together with truth t.

    Every history is followed on its own; with `bob_sees: truth` the truths seen are part of it.
    """
    if level == 0:
        return sum(weight[t] * leaf_share(g)[c, t] for t in (0, 1))
    lost, seen = 0.0, {}  # seen[what Bob sees][truth, truths] = weight
    for t in (0, 1):
        for (a, answers), p in chosen(g, alice, level, c, t).items():
            f = g.library.aggregators[a]
            legal = [{code(g, z): z for z in bits(f.width) if f(z) == b} for b in (0, 1)]
            for number, likely in enumerate(alice.assignments[level, c, t, a, code(g, answers or ())]):
                if number not in legal[c]:
                    lost += weight[t] * p * likely
                    continue
                lies = alice.lies[level, c, t, a, number] if answers is None else [1.0]
                for flips, mass in enumerate(lies):
                    y = answers or legal[t].get(number ^ flips)
                    if y is None:
                        lost += weight[t] * p * likely * mass
                        continue
                    place = seen.setdefault((a, legal[c][number], (t, y) if g.sees_truth else None), {})
                    place[t, y] = place.get((t, y), 0) + weight[t] * p * likely * mass
    total = lost
    for (a, z, _), masses in seen.items():
        options = [0.0, sum(masses.values()) * (not is_stable(g, a, z))]
        for i, bit in enumerate(z):
            onward = [0.0, 0.0]
            for (_, y), mass in masses.items():
                onward[y[i]] += mass
            options.append(best_share(g, alice, level - 1, bit, tuple(onward)))
        total += max(options)
    return total


@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=str)
def test_best_response_bob_against_a_plain_recursion(changes: dict) -> None:
    if changes["menu"] > 1:  # at rho 1.5 neither is always stable, so that some menus are redrawn
        changes = {**changes, "aggregators": ["and 2", "or 2"], "rho": 1.5}
    g = game(**{"aggregators": ["and 2", "majority 3"], **changes, "p_false": 0.3})
    alice = TableAlice(g, 4)
    found = best_response_bob(g, alice)
    for c in (0, 1):
        weight = (0.5 * 0.3, 0.5 * 0.7)
        weight = weight if c else weight[::-1]
        assert found[c] == pytest.approx(best_share(g, alice, 2, c, weight), abs=1e-12)


def test_best_response_bob_at_a_free_root_and_depth_three() -> None:
    g = game(["and 2", "or 2"], root_claim="free", depth=3)
    alice = TableAlice(g, 5, concentration=2.0)
    found = best_response_bob(g, alice)
    for c in (0, 1):
        weight = tuple(alice.claims[t, c] / 2 for t in (0, 1))
        assert found[c] == pytest.approx(best_share(g, alice, 3, c, weight), abs=1e-12)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rho": 2.0},
        {"aggregators": FEW, "menu": 2},
        {"aggregators": [UNEVEN], "depth": 4},
        {"aggregators": ["and 2", "or 2"], "menu": 2, "rho": 1.5},  # some candidates have no stable assignment
    ],
    ids=str,
)
def test_minimax_alice_gives_no_bob_more_than_the_value(changes: dict) -> None:
    """Strong duality, through both recursions: her packing is worth exactly V_d(c), and her true claims nothing."""
    g = game(**changes)
    assert best_response_bob(g, players.alice("worst_case", g)) == pytest.approx(game_values(g)[-1] / 4, abs=1e-12)


@pytest.mark.parametrize("aggregators", [[UNEVEN], FEW, ["table 1010101110111011"]])
def test_game_optimal_bob_attains_the_value(aggregators: list[str]) -> None:
    """And LP Bob does not where the value depends on the bit."""
    g = game(aggregators)
    root = best_response_alice(g, players.bob("game_optimal", g)).catch[2]
    assert [root[0, 1], root[1, 0]] == pytest.approx(game_values(g)[2], abs=1e-8)
    assert root[0, 0] == root[1, 1] == 0
    plain = best_response_alice(g, players.bob("lp", g)).catch[2]
    assert plain[0, 1] + plain[1, 0] < root[0, 1] + root[1, 0] - 1e-3


def test_upper_right_chain() -> None:
    """By eye: (2, 0) (1.8, 1) (1, 2) (0, 2.5) turn left all the way; the rest lies inside or below."""
    chain = [(2, 0), (1.8, 1), (1, 2), (0, 2.5)]
    inside = [(0, 0), (1, 1), (1.8, 0), (1.4, 1.5), (-1, 2.5), (0.5, 2.25)]
    assert upper_right_chain(np.array(chain + inside, float)[::-1]).tolist() == [list(map(float, p)) for p in chain]


def test_too_much_is_refused() -> None:
    g = game(["threshold 1,1,1,1,1,1,1,1,1,1,2 >= 6"], rho=6.0)
    with pytest.raises(ExactError, match="too wide"):
        best_response_alice(g, players.bob("lp", g))
    wide = game(["majority 11"], rho=6.0)
    with pytest.raises(ExactError, match="narrow"):
        best_response_alice(wide, players.bob("informed", wide))
    with pytest.raises(ExactError, match="narrow"):
        best_response_bob(wide, players.alice("honest", wide))
    crowded = Game(EnvConfig(), ProblemConfig(family="threshold", size=64, width=3, menu=3))
    with pytest.raises(ExactError, match="menus"):
        best_response_bob(crowded, players.alice("honest", crowded))
