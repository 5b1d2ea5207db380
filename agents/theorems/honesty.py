"""Honesty (section 4 of the paper): what truth costs Alice, what following the program guarantees Bob, and what he must
know for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agents import players
from agents.alices import HonestAlice, MinimaxAlice
from agents.exact import best_response_alice, bound, game_value
from agents.exact_bob import best_response_bob
from agents.exact_trees import best_response_on_tree, honest_unstable
from agents.positions import policy, positions, responses
from agents.scripted import Certain
from agents.theorems import figures
from agents.theorems.crowds import EXAMPLES
from agents.theorems.lab import THRESHOLD, UNEVEN, Lab, Topic, procedural
from agents.theorems.pairs import FALSE, TRUE, alice_tables, bob_share, catch, guarantee, shares
from agents.theorems.random_bobs import RandomBobs
from agents.theorems.rows import Row, exact
from envs.config import EnvConfig
from envs.engine import Player
from envs.game import Game
from envs.problem import load_problem
from envs.rules import LIE, SAMPLE
from envs.view import View

STREAM = 4
GRID = 200  # random Bobs

STATEMENT = (
    "For Alice the truth is weakly dominant: on a true claim nothing she could do wins more than answering everything "
    "truthfully, whichever Bob she faces, as long as her true claims are stable.",
    "For Bob the program is a guarantee: whoever Alice is, he catches a false claim with probability ρ^-d or more. "
    "Where the value of a claim does not depend on the bit claimed, no Bob can guarantee more. Elsewhere a Bob who "
    "also weighs sub-claims by how hard they are to check, game-optimal Bob, guarantees a little more. Neither is "
    "best against an Alice who is known: a Bob who knows where she lies finds the lie more often, but that Bob "
    "guarantees nothing once she changes her mind. That is the difference from prover-estimator debate, whose Bob "
    "must answer Alice's strategy.",
    "What a Bob must know: LP Bob reads the aggregator and Alice's answers, and not a single truth. The Bob of Irving "
    "et al. catches every false claim, but must know which sub-claims are false.",
)
CAPTION = (
    "Left: what each Bob guarantees against every Alice on the default game, and what he must know for it; dashed: the "
    "game value, here equal to ρ^-d. Right: LP Bob beside game-optimal Bob where values depend on the bit (table "
    "11110110, ρ = 3)."
)
SOURCE = "section 4, dominant strategies; section 6, what Bob must know"

KNOWS = {
    "random": "nothing",
    "uniform": "how many sub-claims there are",
    "learned": "what is claimed, and has played",
    "lp": "what is claimed",
    "game_optimal": "what is claimed, and the values below",
    "tuned": "how one particular Alice lies",
    "informed": "which sub-claims are false",
}


class OneLiar(Certain):
    """Worst-case Alice, always with the same lie where worst-case Alice draws one: an Alice one can know."""

    def __init__(self, game: Game) -> None:
        self._worst_case = MinimaxAlice(game)

    def act(self, seen: View, u: Any) -> np.ndarray:
        chances = self._worst_case.probabilities(seen).argmax(-1)
        if seen.phase == LIE:
            return seen.game.library.bits[chances]
        return self._worst_case.act(seen, np.zeros((len(seen.active), 1)))


class TunedBob:
    """Samples the sub-claim in which a known Alice most likely lies, where her claim is false.

    Attributes:
        favourite: int64 (d, R), that sub-claim at every position.
    """

    needs_state = False

    def __init__(self, game: Game, alice: Player) -> None:
        self.favourite = np.stack([table.lies[FALSE].argmax(-1) for table in alice_tables(game, alice)])

    def act(self, seen: View, u: Any) -> np.ndarray:
        row = positions(seen.game).row(seen.aggregator, seen.assignment)
        return SAMPLE + self.favourite[np.maximum(seen.level, 1) - 1, row]

    def probabilities(self, seen: View) -> np.ndarray:
        """float64 (N, 2 + Q)."""
        return (self.act(seen, None)[:, None] == np.arange(SAMPLE + seen.game.width)).astype(np.float64)


def study(lab: Lab) -> Topic:
    """The experiment."""
    default = procedural(THRESHOLD)
    grid = {
        "threshold, adversarial oracle, d = 2, ρ = 3": default,
        "majority of 5, adversarial oracle, d = 3, ρ = 3": procedural("majority 5", depth=3),
        "threshold, random oracle, d = 2, ρ = 3": procedural(THRESHOLD, oracle="random"),
        f"{UNEVEN}, adversarial oracle, d = 2, ρ = 3": procedural(UNEVEN),
    }
    dominance = [_dominance(name, game, lab) for name, game in lab.bar(grid.items(), "honesty", len(grid))]
    uneven = {depth: _uneven(depth) for depth in range(1, 7)}
    tuned = TunedBob(default, OneLiar(default))
    guarantees = {name: guarantee(default, tuned if name == "tuned" else lab.bob(name, default)) for name in KNOWS}
    rows = [
        *dominance, *_where_honesty_loses(default), *_guarantees(default, uneven), *_known_alices(default, tuned, lab),
        *_needs_to_know(default, guarantees),
    ]  # fmt: skip
    lp, optimal = uneven[6]
    findings = (
        "The most that a deviation from honesty wins on a true claim, over these games and all Bobs of the grid, is "
        f"{max(row.value for row in dominance):.2g}. The stability condition is needed: on the footbridge at ρ = 4 an "
        "Alice asked about a true claim does better by misreporting some sub-claims, so that the rest looks stable.",
        f"Where values depend on the bit, LP Bob leaves something on the table: at depth 6 he guarantees {lp:.2e}, "
        f"game-optimal Bob {optimal:.2e}, {optimal / lp:.2f} times as much; the bound is {3.0**-6:.2e}.",
        f"The Bob tuned to one known Alice guarantees {guarantees['tuned']:.2g} against the others.",
    )
    return Topic("Honesty", SOURCE, STATEMENT, tuple(rows), findings, _figure(guarantees, uneven), CAPTION)


def bobs_of(game: Game, lab: Lab) -> list[Player]:
    """The grid: every scripted Bob, the learned one where he can play, and random ones."""
    bobs = [players.bob(name, game) for name in players.BOBS if name != "tree_optimal"]
    if all(f.kind in ("symmetric", "threshold") for f in game.library.aggregators):
        bobs.append(lab.learned.bob(game))
    crowd = RandomBobs(game, GRID // 4 if lab.quick else GRID, [lab.seed, STREAM])
    return bobs + [crowd.one(number) for number in range(len(crowd))]


def gain_of_lying(game: Game, bobs: list[Player]) -> float:
    """The most that Alice's best response wins on a true claim beyond honesty, over the Bobs, in probability."""
    tables, gains = alice_tables(game, HonestAlice(game)), []
    for bob in bobs:
        best = np.diag(best_response_alice(game, bob).catch[-1])
        gains.append(float((shares(game, tables, policy(game, bob))[:, TRUE] - best).max()))
    return max(gains)


def _dominance(name: str, game: Game, lab: Lab) -> Row:
    bobs = bobs_of(game, lab)
    return exact("On a true claim no deviation wins more than honesty does (gain of Alice's best response)",
                 f"{name}; the most over {len(bobs)} Bobs", gain_of_lying(game, bobs), "=", 0)  # fmt: skip


def _where_honesty_loses(game: Game) -> list[Row]:
    """Carelessness costs, and without the stability condition honesty does too."""
    lp = players.bob("lp", game)
    careless = float(bob_share(game, players.alice("random", game), lp)[:, TRUE].mean())
    rows = [exact("On a true claim an Alice who answers at random loses to LP Bob at times (probability of losing)",
                  "threshold, d = 2, ρ = 3", careless, ">", 0)]  # fmt: skip
    chosen = best_response_alice(game.evaluation(root_claim="free"), lp).catch[-1]
    lying = min(chosen[1, 0] - chosen[0, 0], chosen[0, 1] - chosen[1, 1])
    rows.append(exact("Free to choose the root claim, an Alice who lies there loses more often to LP Bob, by ρ^-d or "
                      "more",
                      "threshold, d = 2, ρ = 3; best-response Alice below the root",
                      lying, ">=", bound(game)))  # fmt: skip
    tree = load_problem(EXAMPLES / "footbridge.yaml")
    bridge = Game(EnvConfig(rho=4.0, tremble=0.0), tree)
    lp = players.bob("lp", bridge)
    best = float(best_response_on_tree(bridge, lp).catch[0, tree.answer[0]])
    gain = honest_unstable(bridge, lp) - best
    rows.append(exact("On a true claim no deviation wins more than honesty does, though true claims are unstable",
                      f"footbridge.yaml, ρ = 4, LP Bob; the best deviation loses {best:.4g}",
                      gain, "=", 0, fails=True))  # fmt: skip
    return rows


def _uneven(depth: int) -> tuple[float, float]:
    """What LP Bob and game-optimal Bob guarantee where values depend on the bit."""
    game = procedural(UNEVEN, depth=depth)
    return guarantee(game, players.bob("lp", game)), guarantee(game, players.bob("game_optimal", game))


def _guarantees(default: Game, uneven: dict[int, tuple[float, float]]) -> list[Row]:
    lp = players.bob("lp", default)
    setting = "threshold, d = 2, ρ = 3"
    claim = "LP Bob guarantees the game value where values do not depend on the bit"
    rows = [exact(claim, setting, guarantee(default, lp), "=", game_value(default))]
    majority = procedural("majority 5", depth=3)
    rows.append(exact(claim, "majority of 5, d = 3, ρ = 3", guarantee(majority, players.bob("lp", majority)), "=",
                      game_value(majority)))  # fmt: skip
    for depth in (2, 6):
        (caught, optimal), game = uneven[depth], procedural(UNEVEN, depth=depth)
        where = f"{UNEVEN}, d = {depth}, ρ = 3"
        rows.append(exact("LP Bob guarantees at least ρ^-d where values depend on the bit", where, caught, ">=",
                          bound(game)))  # fmt: skip
        rows.append(exact("Game-optimal Bob guarantees the game value", where, optimal, "=", game_value(game)))
        rows.append(exact("Game-optimal Bob guarantees more than LP Bob (gap in probability)", where, optimal - caught,
                          ">", 0))  # fmt: skip
    return rows


def _known_alices(game: Game, tuned: TunedBob, lab: Lab) -> list[Row]:
    """Bob's best response to an Alice he knows, beside LP Bob against the same Alice."""
    lp, rows, setting = players.bob("lp", game), [], "threshold, d = 2, ρ = 3"
    known = {
        "who always tells the same lie": OneLiar(game),
        "who plays at random": players.alice("random", game),
        "who has learned": lab.learned.alice(game),  # once she has learned enough, he gains nothing
    }
    for who, alice in known.items():
        more, relation = ("at least as much as", ">=") if "learned" in who else ("more than", ">")
        rows.append(exact(f"Against a known Alice {who}, best-response Bob catches {more} LP Bob", setting,
                          float(best_response_bob(game, alice).sum()), relation, catch(game, alice, lp)))  # fmt: skip
    worst = players.alice("worst_case", game)
    rows.append(exact("Against worst-case Alice no Bob catches more than the game value",
                      f"{setting}; best-response Bob",
                      float(best_response_bob(game, worst).sum()), "=", game_value(game)))  # fmt: skip
    rows.append(exact("A Bob tuned to the Alice who always tells the same lie catches her always", setting,
                      catch(game, OneLiar(game), tuned), "=", 1))  # fmt: skip
    rows.append(exact("The Bob tuned to one Alice guarantees less than LP Bob against all",
                      f"{setting}, best-response Alice",
                      guarantee(game, tuned), "<", guarantee(game, lp)))  # fmt: skip
    return rows


def change_with_truths(game: Game, bob: Player) -> float:
    """The most that Bob's response changes, in total variation, when truths change and what is claimed does not."""
    rows = positions(game)
    z = np.repeat(np.arange(len(rows.claimed)), len(rows.claimed))
    y = np.tile(np.arange(len(rows.claimed)), len(rows.claimed))
    levels = np.full(len(z), game.depth)
    asked = rows.aggregator[z], rows.assignment[z], levels, rows.claimed[z]
    table = responses(game, bob, *asked, truths=rows.assignment[y]).reshape(len(rows.claimed), len(rows.claimed), -1)
    return float(np.abs(table - table[:, :1]).sum(-1).max() / 2)


def _needs_to_know(game: Game, guarantees: dict[str, float]) -> list[Row]:
    setting = "threshold, d = 2, ρ = 3, all assignments and truths"
    lp, informed = players.bob("lp", game), players.bob("informed", game)
    return [
        exact("LP Bob's responses do not depend on any truth (largest change, total variation)", setting,
              change_with_truths(game, lp), "=", 0),
        exact("Informed Bob's responses do depend on truths (the contrast with Irving et al.)",
              setting, change_with_truths(game, informed), ">", 0),
        exact("Informed Bob catches every false claim", "threshold, d = 2, ρ = 3", guarantees["informed"], "=", 1),
        exact("Uniform Bob, who does not read the claim's structure, guarantees less than LP Bob",
              "threshold, d = 2, ρ = 3", guarantees["uniform"], "<", guarantees["lp"]),
    ]  # fmt: skip


def _figure(guarantees: dict[str, float], uneven: dict[int, tuple[float, float]]) -> Any:
    figure, (left, right) = figures.canvas(2, height=3.5, width_ratios=(1.25, 1))
    places = np.arange(len(guarantees))[::-1]
    for place, (name, caught) in zip(places, guarantees.items(), strict=True):
        left.barh(place, caught, color=figures.colour(name), height=0.62, edgecolor="black", linewidth=0.4)
        left.text(max(caught, guarantees["game_optimal"]) + 0.02, place, f"{caught:.3g}", va="center", fontsize=8)
    left.axvline(guarantees["game_optimal"], label="game value", **figures.BOUND)
    figures.legend(left, loc="center right")
    left.grid(axis="y", visible=False)
    left.set_yticks(places, [f"{figures.name(name)}\nknows {KNOWS[name]}" for name in guarantees])
    left.set_xlim(0, 1.1)
    figures.label(left, "guaranteed catch probability", "")
    depths = list(uneven)
    right.plot(depths, [3.0**-d for d in depths], label=r"bound $\rho^{-d}$", **figures.BOUND)
    for place, name in enumerate(("lp", "game_optimal")):
        right.plot(depths, [pair[place] for pair in uneven.values()], **figures.style(name))
    right.set_yscale("log")
    right.set_xticks(depths)
    right.set_ylim(4e-4, 0.6)
    figures.label(right, "depth d", "guaranteed catch probability")
    figures.legend(right, loc="lower left")
    return figure
