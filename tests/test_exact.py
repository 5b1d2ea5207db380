"""Values and Alice's best responses, against plain recursions that list everything and against linear programs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import lil_matrix
from table_players import CONFIGURATIONS, FEW, UNEVEN, TableBob, bits, candidates, code, game, is_stable, menus

from agents import players
from agents.exact import best_response_alice, game_values, sums_over_truths
from agents.match import match
from agents.positions import policy, positions
from envs.game import Game


@pytest.mark.parametrize(("rho", "expected"), [(3.0, 1 / 9), (2.0, 1 / 4)])
def test_values_of_the_default_game(rho: float, expected: float) -> None:
    """DESIGN section 2: every assignment stable, V_2 = 1/9; at rho 2 only those of sensitivity at most 2, V_2 = 1/4."""
    values = game_values(game(rho=rho))
    assert values[2] == pytest.approx([expected] * 2, abs=1e-12)
    assert values[1] == pytest.approx([expected**0.5] * 2, abs=1e-12)
    assert values[0].tolist() == [1, 1]


def worst_position(g: Game, a: int, z: tuple[int, ...], below: np.ndarray) -> float:
    """max over p of the least catch over sensitive blocks, as a program over p itself (not over covers)."""
    f = g.library.aggregators[a]
    wrong = [y for y in bits(f.width) if f(y) != f(z)]
    gain = np.array([[-below[b] * (b != t) for b, t in zip(z, y, strict=True)] + [1] for y in wrong])
    result = linprog([0] * f.width + [-1], gain, np.zeros(len(wrong)), [[1] * f.width + [0]], [1], bounds=(0, 1))
    return -result.fun


@pytest.mark.parametrize(
    ("menu", "rho", "aggregators"), [(1, 3.0, FEW), (2, 2.0, FEW), (3, 3.0, ["parity 3", "and 3", UNEVEN])]
)
def test_values_by_listing_menus(menu: int, rho: float, aggregators: list[str]) -> None:
    """Second route: every menu listed, every position a linear program over Bob's probabilities."""
    g = game(aggregators, menu, rho=rho)
    values = [np.ones(2)]
    for _ in range(g.depth):
        candidate = {}
        for a, c in np.ndindex(len(aggregators), 2):
            f = g.library.aggregators[a]
            stable = [z for z in bits(f.width) if f(z) == c and is_stable(g, a, z)]
            candidate[a, c] = min((worst_position(g, a, z, values[-1]) for z in stable), default=1.0)
        values.append(np.array([sum(p * min(candidate[a, c] for a, _ in m) for p, m in menus(g, c)) for c in (0, 1)]))
    assert game_values(g) == pytest.approx(np.array(values), abs=1e-9)


def test_value_of_depth_two_by_one_linear_program() -> None:
    """The whole game of depth 2 in sequence form, Bob with perfect recall: his memory and our recursion change nothing.

    x[z, i] and x[z, i, z', i'] are the probabilities of his sampling in turn. For each root bit maximise v subject to
    v <= sum_{i in B} w[z, i] and w[z, i] <= sum_{i' in B'} x[z, i, z', i'], over all of Alice's z, B, z', B'.
    """
    g = game([UNEVEN], rho=3.0)
    f, stable = g.library.aggregators[0], {z: is_stable(g, 0, z) for z in bits(3)}
    blocks = {z: [[i for i in range(3) if y[i] != z[i]] for y in bits(3) if f(y) != f(z)] for z in bits(3)}
    for root in (0, 1):
        columns: dict[tuple, int] = {("v",): 0}
        upper, equal = [], []  # rows of (column, coefficient), the latter with a right-hand side

        def column(*key, columns=columns) -> int:
            return columns.setdefault(key, len(columns))

        for z in (z for z in bits(3) if f(z) == root and stable[z]):
            equal.append(([(column("x", z, i), 1) for i in range(3)], 1))
            upper += [[(0, 1)] + [(column("w", z, i), -1) for i in block] for block in blocks[z]]
            for i in range(3):
                for y in (y for y in bits(3) if f(y) == z[i] and stable[y]):
                    inner = [(column("x", z, i, y, j), 1) for j in range(3)]
                    equal.append(([*inner, (column("x", z, i), -1)], 0))
                    upper += [
                        [(column("w", z, i), 1)] + [(column("x", z, i, y, j), -1) for j in block] for block in blocks[y]
                    ]
        a_ub, a_eq = lil_matrix((len(upper), len(columns))), lil_matrix((len(equal), len(columns)))
        for row, entries in enumerate(upper):
            for c, value in entries:
                a_ub[row, c] = value
        for row, (entries, _) in enumerate(equal):
            for c, value in entries:
                a_eq[row, c] = value
        cost = np.zeros(len(columns))
        cost[0] = -1
        result = linprog(cost, a_ub.tocsr(), np.zeros(len(upper)), a_eq.tocsr(), [right for _, right in equal])
        assert game_values(g)[2, root] == pytest.approx(-result.fun, abs=1e-9)
    assert game_values(g)[2] == pytest.approx([1 / 8, 1 / 5])  # and what that program gives, as fractions


def test_game_values_are_not_claimed_where_unknown() -> None:
    assert game_values(game(oracle="random")) is None
    assert game_values(game(["threshold 1,1,1,1,1,1,1,1,1,1,2 >= 6"], rho=6.0)) is None
    assert game_values(game(bob_sees="truth"))[-1].tolist() == [1, 1]  # he follows the lie to its leaf


def test_wide_symmetric_values_are_those_of_the_narrow_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same aggregators once listed by assignment and once by number of ones."""
    make = lambda: game(["majority 7", "at_least 2 6", "parity 3"], 2, rho=4.0)  # noqa: E731
    narrow = make()
    monkeypatch.setattr("envs.library.NARROW", 2)
    wide = make()
    assert not positions(wide).narrow
    assert game_values(wide) == pytest.approx(game_values(narrow), abs=1e-12)
    for name in ("lp", "uniform", "game_optimal", "random"):
        caught = [best_response_alice(g, players.bob(name, g)).catch for g in (narrow, wide)]
        assert caught[1] == pytest.approx(caught[0], abs=1e-9)


# ------------------------------------------------------------------ Alice's best response


def least_share(g: Game, bob: TableBob, level: int, c: int, t: int) -> float:
    """Bob's share against best-response Alice, every menu, assignment and truths listed."""
    if level == 0:
        return (g.noise if c == t else 1 - g.noise) - g.query_cost / 2
    below = {(b, s): least_share(g, bob, level - 1, b, s) for b in (0, 1) for s in (0, 1)}
    value = {}
    for _, (a, answers), _ in candidates(g, c if g.adversarial else t):
        f = g.library.aggregators[a]
        options = []
        for z in (z for z in bits(f.width) if f(z) == c):
            for y in [y for y in bits(f.width) if f(y) == t] if answers is None else [answers]:
                p = bob.table[level, a, code(g, z), code(g, y) if g.sees_truth else 0]
                pairs = enumerate(zip(z, y, strict=True))
                options.append(p[1] * (not is_stable(g, a, z)) + sum(p[2 + i] * below[pair] for i, pair in pairs))
        value[a, answers] = min(options)
    return sum(p * min(value[candidate] for candidate in menu) for p, menu in menus(g, c if g.adversarial else t))


@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=str)
def test_best_response_alice_against_a_plain_recursion(changes: dict) -> None:
    g = game(FEW[:2] if changes["menu"] > 1 and "oracle" in changes else FEW, **changes)
    bob = TableBob(g, 1)
    response = best_response_alice(g, bob)
    for c, t in np.ndindex(2, 2):
        assert response.catch[2, c, t] == pytest.approx(least_share(g, bob, 2, c, t), abs=1e-12)


@pytest.mark.parametrize("changes", [{"menu": 2}, {"oracle": "random", "menu": 2}, {"root_claim": "free"}], ids=str)
def test_best_response_alice_plays_what_she_promises(changes: dict) -> None:
    """20,000 debates of a fixed seed: the rate lies within 4 standard errors (a correct one fails with 1 in 16,000)."""
    g = game(FEW, **{"rho": 2.0, "noise": 0.1, **changes})
    bob = TableBob(g, 2)
    response = best_response_alice(g, bob)
    root = response.catch[2]
    share = np.mean([root[:, t].min() for t in (0, 1)]) if g.free_root else (root[0, 1] + root[1, 0]) / 2
    result = match(g if g.free_root else g.evaluation(p_false=1.0), response, bob, 20_000, 3)
    lost = 1 - result["alice_win_rate"]["mean"]
    assert abs(lost - share) < 4 * (share * (1 - share) / 20_000) ** 0.5


def test_sums_over_truths() -> None:
    """terms[i, b] = 10^(2-i) (b + 1): the code abc reads off as the number (a+1)(b+1)(c+1)."""
    terms = 10.0 ** np.arange(2, -1, -1)[:, None] * [1, 2]
    assert sums_over_truths(terms).tolist() == [111, 112, 121, 122, 211, 212, 221, 222]


def test_bob_is_asked_about_every_position_once() -> None:
    """Responses beyond the width of an aggregator count for nothing, whatever a player says."""
    g = game(["and 2", "majority 3"])
    table = policy(g, TableBob(g, 8))
    rows = positions(g)
    assert table.shape == (2, 4 + 8, 5)
    assert (table[:, rows.aggregator == 0, 4] == 0).all() and (table[:, rows.aggregator == 1, 4] > 0).all()
    assert rows.row(rows.aggregator, rows.assignment).tolist() == list(range(12))
