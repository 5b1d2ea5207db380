"""Cost: how many answers of the oracle make a judge 99% sure, by protocol, width and depth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from agents import players
from agents.audit import answers_needed
from agents.exact import best_response_alice
from agents.theorems import figures
from agents.theorems.lab import THRESHOLD, UNEVEN, Lab, Topic, procedural
from agents.theorems.pairs import guarantee
from agents.theorems.rows import Row, exact, sampled
from envs.engine import debate, draws, query_book
from envs.game import Game

STREAM = 7
CONFIDENCE = 0.99
DEPTHS = (1, 2, 3, 4, 5, 6)
WIDTHS = (3, 5, 9, 15, 25, 45, 99, 199)
BOOKS = (
    (THRESHOLD, 1, "lp"), (THRESHOLD, 2, "lp"), (THRESHOLD, 3, "lp"), ("majority 9",
                                                                       2, "lp"), (THRESHOLD, 2, "uniform"),
    (THRESHOLD, 2, "informed"),
)  # fmt: skip
IDEAL = "and 4"  # three sub-claims, and the statement that they imply the claim

STATEMENT = (
    "A debate asks the oracle one question. To catch a false claim with 99% confidence it is repeated until the "
    "chance of missing every time is 1%: ln(0.01) / ln(1 - C) debates where Bob's guarantee is C. Asking every leaf, "
    "as in humans consulting HCH, takes q^d questions. What a debate costs does not depend on the width q, only on ρ "
    "and d.",
    "A Bob who knows what is false needs one question: this is debate as Irving et al. drew it, and Ideal Debate, "
    "where a claim rests on the AND of sub-claims and of the statement that they imply it, and ρ is unbounded. For a "
    "Bob who knows no truth such an AND is the worst case: its sensitivity is q.",
)
SOURCE = "sections 1.2 and 6; Irving et al. 2018"
CAPTION = (
    "Questions to the oracle for 99% confidence. Left: threshold 3,2,2,1,1 >= 5 at ρ = 3, by depth. Middle: the same "
    "on table 11110110, where game-optimal Bob is better than LP Bob. Right: majorities at ρ = 4 and depth 2, by "
    "width."
)


@dataclass(frozen=True)
class Bill:
    """What one way of judging costs.

    Attributes:
        catch: Its guarantee in one debate. questions: To be 99% sure.
    """

    catch: float
    questions: float


def bill(game: Game, bob: str) -> Bill:
    """Questions for 99% confidence of a Bob against the Alice who best responds to him; one a debate."""
    caught = min(1.0, guarantee(game, players.bob(bob, game)))
    return Bill(caught, answers_needed(1 / caught, CONFIDENCE))


def by_depth(aggregator: str, bobs: tuple[str, ...], rho: float) -> dict[str, list[float]]:
    """Questions by depth, on one aggregator; `every_leaf` is q^d."""
    found: dict[str, list[float]] = {bob: [] for bob in (*bobs, "every_leaf")}
    for depth in DEPTHS:
        game = procedural(aggregator, rho=rho, depth=depth)
        for bob in bobs:
            found[bob].append(bill(game, bob).questions)
        found["every_leaf"].append(game.width**depth)
    return found


def by_width(depth: int, rho: float) -> dict[str, list[float]]:
    """Questions by width, on majorities, where informed Bob is known to need one."""
    found: dict[str, list[float]] = {bob: [] for bob in ("lp", "uniform", "every_leaf")}
    for width in WIDTHS:
        game = procedural(f"majority {width}", rho=rho, depth=depth)
        for bob in ("lp", "uniform"):
            found[bob].append(bill(game, bob).questions)
        found["every_leaf"].append(width**depth)
    return found


def study(lab: Lab) -> Topic:
    """The experiment."""
    depths = by_depth(THRESHOLD, ("lp", "game_optimal", "uniform", "informed"), 3.0)
    uneven = by_depth(UNEVEN, ("lp", "game_optimal", "uniform", "informed"), 3.0)
    widths = by_width(2, 4.0)
    rows: list[Row] = []
    for case in lab.bar(BOOKS, "cost"):
        rows += _book(*case, lab)
    rows += _compared(depths, uneven, widths) + _ideal()
    first = next(d for d, lp, leaves in zip(DEPTHS, depths["lp"], depths["every_leaf"], strict=True) if lp < leaves)
    findings = (
        f"On five sub-claims at ρ = 3 a debate is cheaper than asking every leaf from depth {first} on; below that "
        "sampling saves nothing, since 99% confidence wants about 4.6 ρ^d questions. At width 99 and depth 2 it is "
        f"{widths['lp'][WIDTHS.index(99)]:,} questions against {99**2:,}.",
        f"Sampling uniformly costs {depths['uniform'][2]:,} questions at depth 3, where asking everybody costs "
        f"{depths['every_leaf'][2]:,}: a Bob who does not read the claim's structure loses at every level.",
    )
    return Topic("Cost", SOURCE, STATEMENT, tuple(rows), findings, _figure(depths, uneven, widths), CAPTION)


def _book(aggregator: str, depth: int, name: str, lab: Lab) -> list[Row]:
    """What the query book says: one question a debate, and as many as were planned suffice."""
    game = procedural(aggregator, depth=depth)
    bob = players.bob(name, game)
    planned, trials = bill(game, name), 200 if lab.quick else 2000
    m = int(planned.questions)
    uniform = draws([lab.seed, STREAM, depth, len(aggregator), players.BOBS.index(name)])
    state = debate(game, players.alice("best_response", game, bob), bob, trials * m, uniform)
    caught = (state.reward.reshape(trials, m) < 0).any(1)
    setting = f"{figures.name(name)}, {aggregator}, d = {depth}, ρ = 3: {m} question{'s' * (m > 1)}"
    return [
        exact("A debate with best-response Alice asks the oracle once (questions in the query book over debates)",
              f"{setting}, {trials * m:,} debates", len(query_book(state)) / (trials * m), "=", 1),
        sampled("Played: the questions planned catch a false claim in at least 99% of the trials",
                f"{setting}, {trials:,} trials",
                int(caught.sum()), trials, ">=", CONFIDENCE, trials * m * planned.catch),
    ]  # fmt: skip


def _compared(depths: dict, uneven: dict, widths: dict) -> list[Row]:
    at = DEPTHS.index
    rows = [
        exact("FBS debate asks fewer questions than there are leaves once the tree is deep enough",
              f"{THRESHOLD}, ρ = 3, d = {d}: LP Bob against every leaf", depths["lp"][at(d)], "<",
              depths["every_leaf"][at(d)]) for d in (3, 6)
    ]  # fmt: skip
    rows.append(exact("On a small tree it asks more than there are leaves: sampling saves nothing",
                      f"{THRESHOLD}, ρ = 3, d = 1",
                      depths["lp"][0], ">", depths["every_leaf"][0]))  # fmt: skip
    rows += [
        exact("FBS debate asks fewer questions than there are leaves on wide claims",
              f"majority of {q}, ρ = 4, d = 2: LP Bob against every leaf", widths["lp"][WIDTHS.index(q)], "<", q * q)
        for q in (15, 99, 199)
    ]  # fmt: skip
    limit = 4**2 * math.log(100) + 1
    rows.append(exact("The cost does not grow with the width: at most ρ^d ln 100 + 1 questions",
                      "majorities of 3 to 199, "
                      "ρ = 4, d = 2; the most", max(widths["lp"]), "<=", limit))  # fmt: skip
    rows.append(exact("Uniform sampling asks more than every leaf",
                      f"{THRESHOLD}, ρ = 3, d = 3", depths["uniform"][2], ">",
                      depths["every_leaf"][2]))  # fmt: skip
    rows.append(exact("Game-optimal Bob asks no more than LP Bob", f"{UNEVEN}, ρ = 3, d = 6", uneven["game_optimal"][5],
                      "<=", uneven["lp"][5]))  # fmt: skip
    rows.append(exact("Informed Bob asks once (Irving et al.)", f"{THRESHOLD}, d = 6", depths["informed"][5], "=", 1))
    return rows


def _ideal() -> list[Row]:
    """Ideal Debate: Bob sees truths, AND with an implication statement, rho unbounded."""
    ideal = procedural(IDEAL, rho=1000.0, oracle="random", bob_sees="truth")
    blind = procedural(IDEAL, rho=1000.0)
    setting = f"{IDEAL} (three sub-claims and the implication), d = 2, ρ = 1000"
    caught = best_response_alice(ideal, players.bob("informed", ideal)).catch[-1]
    all_hold = best_response_alice(blind, players.bob("lp", blind)).catch[-1][1, 0]
    return [
        exact("Ideal Debate: a Bob who sees truths catches every false claim with one question", f"{setting}, Bob sees "
              "truths", caught[[0, 1], [1, 0]].mean(), "=", 1),
        exact("Ideal Debate: that Bob catches no true claim", f"{setting}, Bob sees truths",
              caught[[0, 1], [0, 1]].max(), "=", 0),
        exact("A Bob who sees no truth catches a claim of AND with probability q^-d only, ρ being unbounded",
              f"{setting}, LP Bob, the claim that all hold", all_hold, "=", 4.0**-2),
    ]  # fmt: skip


def _figure(depths: dict, uneven: dict, widths: dict) -> Any:
    figure, axes = figures.canvas(3, height=3.4, sharey=True)
    panels = (
        (DEPTHS, depths, f"{THRESHOLD}, ρ = 3"),
        (DEPTHS, uneven, f"{UNEVEN}, ρ = 3"),
        (WIDTHS, widths, "majorities, ρ = 4, d = 2"),
    )
    for axis, (places, found, title) in zip(axes, panels, strict=True):
        for player, questions in found.items():
            axis.plot(places, questions, **figures.style(player))
        axis.set_yscale("log")
        figures.label(axis, "depth d", "questions for 99% confidence" if axis is axes[0] else "", title)
    for axis in axes[:2]:
        axis.set_xticks(DEPTHS)
    axes[2].set_xscale("log")
    axes[2].set_xlabel("width q", fontsize=8.5)
    axes[2].set_xticks(WIDTHS[::2], [str(q) for q in WIDTHS[::2]], minor=False)
    axes[2].minorticks_off()
    figures.legend_below(figure, 3)
    return figure
