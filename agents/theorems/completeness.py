"""Completeness (section 4 of the paper): what honest Alice wins, and what it costs her where a true claim is sensitive.

Against a Bob of any kind, her risk is exact: in narrow procedural games the share of a Bob who best responds to her; in
trees, and where aggregators are wide, he can win if and only if he can reach a true claim that is unstable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import fbs
from agents import players
from agents.alices import HonestAlice
from agents.exact_bob import best_response_bob
from agents.exact_trees import honest_unstable, true_positions
from agents.match import play
from agents.positions import alone, policy, standing
from agents.theorems import figures
from agents.theorems.crowds import EXAMPLES
from agents.theorems.lab import THRESHOLD, Lab, Topic, procedural
from agents.theorems.pairs import TRUE, alice_tables, shares
from agents.theorems.random_bobs import RandomBobs
from agents.theorems.rows import Row, exact, sampled
from envs.claim_tree import ClaimTree
from envs.config import EnvConfig, ProblemConfig
from envs.engine import debate, draws
from envs.game import Game
from envs.problem import load_problem
from envs.rules import ASSIGN
from envs.view import view

STREAM = 1
RANDOM_BOBS = 1000
TOLD = ("symmetric", "threshold")  # kinds that networks read from weights, as the learned pair does
MIXED = (THRESHOLD, "majority 3", "at_least 2 5", "table 0110", "majority(and 2, or 2, parity 1)")

STATEMENT = (
    "If every true claim of Alice's tree can be decomposed so that its fractional block sensitivity is at most ρ, then "
    "an Alice who claims the truth, decomposes as the tree says and answers every sub-claim truthfully wins every "
    "debate, whatever Bob does: no check can fail her, and at the leaf the oracle agrees.",
    "Where a true claim is more sensitive than ρ, she loses to whoever challenges it. That is the price of the "
    "stability rule, and it is computed, not hidden.",
)
SOURCE = "section 4, theorem on completeness"
CAPTION = (
    "The probability that honest Alice wins against LP Bob, exact, on three arguments with fixed answers. From the "
    "sensitivity of the most sensitive true claim on (dotted) it is 1."
)


@dataclass(frozen=True)
class Kind:
    """A kind of problem, in words, and the game."""

    name: str
    game: Game


def kinds(lab: Lab) -> list[Kind]:
    """One game of every problem kind, rho such that all that honest Alice needs is stable."""
    tables = ProblemConfig(family="table", size=5, width=4, seed=lab.seed, menu=2)
    bridge = load_problem(EXAMPLES / "footbridge.yaml")
    return [
        Kind("one weighted threshold, adversarial oracle, depth 2, ρ = 3", procedural(THRESHOLD, p_false=0.0)),
        Kind(
            "menus of 3 from a mixed library, adversarial oracle, depth 3, ρ = 2",
            procedural(*MIXED, menu=3, depth=3, rho=2.0, p_false=0.0),
        ),
        Kind(
            "menus of 2 from a mixed library, random oracle, depth 2, ρ = 2",
            procedural(*MIXED, menu=2, rho=2.0, oracle="random", p_false=0.0),
        ),
        Kind("Alice chooses the root claim, random oracle", procedural(THRESHOLD, root_claim="free", oracle="random")),
        Kind(
            "menus of 2 random truth tables of width 4, random oracle, ρ = 3",
            Game(EnvConfig(tremble=0.0, oracle="random", p_false=0.0), tables),
        ),
        Kind("majorities of 101, adversarial oracle, ρ = 3", procedural("majority 101", p_false=0.0)),
        _tree_kind("claim tree examples/footbridge.yaml", bridge),
        _tree_kind(f"crowd labels: {lab.crowd.about}", lab.crowd.tree),
    ]


def _tree_kind(name: str, tree: ClaimTree) -> Kind:
    rho = needed_rho(tree)
    return Kind(f"{name}, ρ = {rho:.4g}, the least that will do", Game(EnvConfig(rho=rho, tremble=0.0), tree))


def needed_rho(tree: ClaimTree) -> float:
    """The sensitivity of the most sensitive claim at the true answers: the least rho at which honesty is safe."""
    inner = np.flatnonzero(tree.width)
    values = [fbs.sensitivity(tree.aggregators[tree.aggregator[u]], tree.answer[tree.children(u)]).value for u in inner]
    return float(max(1, *values))


def any_bob_wins(game: Game) -> float:
    """The most that any Bob, knowing her, can win with against honest Alice: his share of the prize, exact."""
    if game.tree is not None:
        return _reachable_unstable(game)
    if game.library.tabulated:
        return float(best_response_bob(game, HonestAlice(game)).sum())
    numbers = np.arange(len(game.library.aggregators)).repeat(2)
    bits = np.tile(np.array([0, 1], np.int8), len(game.library.aggregators))
    state = standing(game, ASSIGN, game.depth, bits, bits, alone(game, numbers, -1))
    answers = HonestAlice(game).act(view(game, state), None)
    return float(not np.all(game.library.stable(numbers, answers)))


def _reachable_unstable(game: Game) -> float:
    """1 if a claim tree has an unstable claim at its true answers (any Bob can walk to any claim), else 0."""
    _, stable = true_positions(game)
    return float(not stable.all())


def least_win_rate(game: Game, lab: Lab) -> float:
    """Honest Alice's win rate against the worst for her of all our Bobs and of a thousand random ones.

    Exact in narrow procedural games; elsewhere counted over debates, 20 for each random Bob.
    """
    bobs = named_bobs(game, lab)
    crowd = RandomBobs(game, RANDOM_BOBS, [lab.seed, STREAM])
    alice = HonestAlice(game)
    if game.tree is None and game.library.tabulated:
        tables = alice_tables(game, alice)
        everybody = [*bobs.values(), *(crowd.one(number) for number in range(len(crowd)))]
        return 1 - max(float(shares(game, tables, policy(game, bob))[:, TRUE].max()) for bob in everybody)
    rates = []
    for number, bob in enumerate(bobs.values()):
        rates.append(play(game, alice, bob, 2000, [lab.seed, STREAM, number]).alice_wins / 2000)
    field = game.evaluation(p_false=0.0)
    state = debate(field, alice, crowd, 20 * len(crowd), draws([lab.seed, STREAM, len(bobs)]))
    return min(*rates, float((state.reward > 0).mean()))


def named_bobs(game: Game, lab: Lab) -> dict[str, Any]:
    """Every scripted Bob that can play the game, and the learned one where his network can read it."""
    bobs = {name: bob for name in players.BOBS if (bob := _bob(name, game)) is not None}
    library = game.library
    if game.tree is None and library.tabulated and all(f.kind in TOLD for f in library.aggregators):
        bobs["learned"] = lab.learned.bob(game)
    return bobs


def _bob(name: str, game: Game) -> Any:
    try:
        return players.bob(name, game)
    except ValueError:  # he needs a claim tree, or a game value
        return None


def study(lab: Lab) -> Topic:
    """The experiment."""
    rows: list[Row] = []
    for kind in lab.bar(kinds(lab), "completeness"):
        bobs = f"{len(named_bobs(kind.game, lab))} named Bobs and {RANDOM_BOBS:,} random ones"
        rows.append(exact("Honest Alice wins always, even against the Bob who best responds to her", kind.name,
                          1 - any_bob_wins(kind.game), "=", 1))  # fmt: skip
        rows.append(exact("Honest Alice wins always, against all our Bobs and random ones", f"{kind.name}; {bobs}",
                          least_win_rate(kind.game, lab), "=", 1))  # fmt: skip
    trees = sweep_trees(lab)
    for name, tree in trees.items():
        rows += _unstable_rows(name, tree, lab)
    needs = "; ".join(f"{name} needs ρ = {needed_rho(tree):.4g}" for name, tree in trees.items())
    least = min(row.value for row in rows if not row.fails and row.p_value is None)
    findings = (
        f"Where the stability condition is met, the least win rate of honest Alice is {least:.4g}, over all problem "
        f"kinds and Bobs. {needs}.",
    )
    return Topic("Completeness", SOURCE, STATEMENT, tuple(rows), findings, _figure(trees), CAPTION)


def sweep_trees(lab: Lab) -> dict[str, ClaimTree]:
    """Arguments whose true claims are not all stable at small rho."""
    return {
        "footbridge.yaml": load_problem(EXAMPLES / "footbridge.yaml"),
        "published_papers.json": load_problem(EXAMPLES / "published_papers.json"),
        lab.crowd.about.partition(" (")[0]: lab.crowd.tree,
    }


def _unstable_rows(name: str, tree: ClaimTree, lab: Lab) -> list[Row]:
    """At rho a tenth below what is needed, honest Alice is caught out by a true claim."""
    rho = max(1.0, 0.9 * needed_rho(tree))
    game = Game(EnvConfig(rho=rho, tremble=0.0), tree)
    lp = players.bob("lp", game)
    risk = honest_unstable(game, lp)
    setting = f"{name}, ρ = {rho:.4g}, against LP Bob"
    rows = [exact("Honest Alice wins always, though a true claim is unstable", setting, 1 - risk, "=", 1, fails=True)]
    if risk == 1:
        return rows
    counts = play(game, HonestAlice(game), lp, lab.debates, [lab.seed, STREAM, 100])
    rows.append(sampled("Played: honest Alice wins at least as often as the recursion says",
                        f"{setting}, {lab.debates:,} debates",
                        counts.alice_wins, counts.debates, ">=", 1 - risk))  # fmt: skip
    return rows


def _figure(trees: dict[str, ClaimTree]) -> Any:
    figure, axis = figures.canvas(1, height=2.9)
    rhos = np.geomspace(1, 60, 240)
    for (name, tree), line in zip(trees.items(), ("-", (0, (5, 2)), (0, (1, 1))), strict=True):
        wins = []
        for rho in rhos:
            game = Game(EnvConfig(rho=float(rho), tremble=0.0), tree)
            wins.append(1 - honest_unstable(game, players.bob("lp", game)))
        axis.step(rhos, wins, where="post", **figures.style("honest_alice", label=name, marker="", linestyle=line))
        axis.axvline(needed_rho(tree), color="#999999", linewidth=0.8, linestyle=":")
    figures.label(axis, "ρ, the sensitivity that a claim may have", "honest Alice wins against LP Bob")
    axis.set_xscale("log")
    axis.set_xticks([1, 2, 3, 5, 10, 20, 50], ["1", "2", "3", "5", "10", "20", "50"])
    axis.minorticks_off()
    axis.set_ylim(-0.03, 1.05)
    figures.legend(axis, loc="center", bbox_to_anchor=(0.72, 0.5))
    return figure
