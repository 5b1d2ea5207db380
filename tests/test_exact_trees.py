"""Exact play of claim trees, against a plain recursion and between its two ways to search."""

from __future__ import annotations

import numpy as np
import pytest
from table_players import UNEVEN, TableBob, bits, code, is_stable

import agents.exact_trees
import fbs
from agents import players
from agents.exact_trees import best_response_on_tree, honest_unstable
from agents.match import match
from agents.positions import ExactError
from envs.claim_tree import ClaimTree
from envs.config import EnvConfig
from envs.game import Game


def claim_tree(written: list[str], aggregator: list[int], answer: list[int]) -> ClaimTree:
    aggregators = [fbs.parse(text) for text in written]
    text = [f"claim {i}" for i in range(len(answer))]
    return ClaimTree.from_breadth_first(
        "test", aggregators, aggregator, answer, [-1] * len(answer), text,
        [written[a] if a >= 0 else "" for a in aggregator],
    )  # fmt: skip


def ragged() -> ClaimTree:
    """majority 3 of (a leaf, and 2 of leaves, UNEVEN of (leaf, or 2 of leaves, a constant of a leaf))."""
    return claim_tree(
        ["majority 3", "and 2", UNEVEN, "or 2", "at_least 0 1"],
        [0, -1, 1, 2, -1, -1, -1, 3, 4, -1, -1, -1],
        [0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1],
    )


class NodeBob(TableBob):
    """Any responses at all, drawn once for each node and assignment."""

    needs_state = True

    def __init__(self, g: Game, seed: int) -> None:
        nodes = len(g.source.width)
        self.g, self.table = g, np.random.default_rng(seed).dirichlet(np.full(2 + g.width, 0.5), (nodes, 1 << g.width))

    def probabilities(self, seen) -> np.ndarray:
        return self.table[seen.state.node, self.g.library.code(seen.assignment)]


def least_share_on_tree(g: Game, row, node: int, c: int) -> float:
    tree = g.source
    if tree.width[node] == 0:
        return 1 - g.noise if tree.answer[node] != c else g.noise
    a = tree.aggregator[node]
    f = g.library.aggregators[a]
    options = [1.0]
    for z in (z for z in bits(f.width) if f(z) == c):
        p = row(node, a, z)
        below = sum(p[2 + i] * least_share_on_tree(g, row, tree.first_child[node] + i, z[i]) for i in range(f.width))
        options.append(p[1] * (not is_stable(g, a, z)) + below)
    return min(options)


@pytest.mark.parametrize("kind", [TableBob, NodeBob])
def test_best_response_on_a_ragged_tree_against_a_plain_recursion(kind: type) -> None:
    g = Game(EnvConfig(rho=2.0, noise=0.1), ragged())
    bob = kind(g, 6)
    response = best_response_on_tree(g, bob)

    def row(node: int, a: int, z: tuple[int, ...]) -> np.ndarray:
        return bob.table[node, code(g, z)] if kind is NodeBob else bob.table[g.source.level[node], a, code(g, z), 0]

    for c in (0, 1):
        assert response.catch[0, c] == pytest.approx(least_share_on_tree(g, row, 0, c), abs=1e-12)
    result = match(g.evaluation(p_false=1.0), response, bob, 20_000, 7)  # within 4 standard errors
    share = response.catch[0, 1 - g.source.answer[0]]
    assert abs(result["catch_rate"]["mean"] - share) < 4 * (share * (1 - share) / 20_000) ** 0.5


def three_levels(answers: list[int]) -> ClaimTree:
    """majority 5 of five `at_least 2 4` of leaves."""
    return claim_tree(["majority 5", "at_least 2 4"], [0] + [1] * 5 + [-1] * 20, [0] * 6 + answers)


@pytest.mark.parametrize("seed", range(3))
def test_many_children_are_searched_by_number_of_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tree by listing assignments and by counting ones, for Bobs who treat sub-claims alike."""
    g = Game(EnvConfig(rho=2.5), three_levels(np.random.default_rng(seed).integers(0, 2, 20).tolist()))
    for name in ("lp", "uniform", "random"):
        bob = players.bob(name, g)
        monkeypatch.setattr(agents.exact_trees, "NARROW", 10)
        listed = best_response_on_tree(g, bob).catch
        monkeypatch.setattr(agents.exact_trees, "NARROW", 2)
        assert best_response_on_tree(g, bob).catch == pytest.approx(listed, abs=1e-12)


def test_a_wide_claim_that_cannot_be_solved_is_named() -> None:
    weights = ",".join(["1"] * 10 + ["2"])
    tree = claim_tree(["and 2", f"threshold {weights} >= 6"], [0, 1, -1] + [-1] * 11, [0, 0, 1] + [1] * 11)
    g = Game(EnvConfig(), tree)
    with pytest.raises(ExactError, match="'0'.*not symmetric"):
        players.alice("worst_case", g)
    wide = Game(EnvConfig(), claim_tree(["majority 11"], [0] + [-1] * 11, [0] + [1] * 11))
    with pytest.raises(ExactError, match="'root'.*more than what is claimed"):
        best_response_on_tree(wide, players.bob("tree_optimal", wide))


def test_honest_alice_meets_unstable_claims() -> None:
    """majority 3 of (and 3: 111, at_least 1 3: 100, a true leaf), all true; rho 2.

    111 of majority has sensitivity 3/2, stable: LP Bob samples each child with 1/3. `and` at 111 is 3, unstable.
    at_least 1 at 100 is 1: the one true answer decides, stable. So he meets an unstable claim with probability 1/3.
    """
    tree = claim_tree(["majority 3", "and 3", "at_least 1 3"], [0, 1, 2] + [-1] * 7, [0, 0, 0, 1, 1, 1, 1, 1, 0, 0])
    g = Game(EnvConfig(rho=2.0), tree)
    assert honest_unstable(g, players.bob("lp", g)) == pytest.approx(1 / 3, abs=1e-9)
    assert honest_unstable(g, players.bob("random", g)) == pytest.approx(1 / 5)  # of 5 responses
    assert honest_unstable(Game(EnvConfig(rho=3.0), tree), players.bob("lp", g)) == 0
