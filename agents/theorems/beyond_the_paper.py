"""Beyond the paper: an oracle that errs, a rho that is wrong, and the average case beside the worst."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agents import players
from agents.alices import HonestAlice
from agents.exact import game_value
from agents.exact_trees import best_response_on_tree, honest_unstable
from agents.match import play
from agents.theorems import figures
from agents.theorems.crowds import EXAMPLES
from agents.theorems.lab import THRESHOLD, Lab, Topic, procedural
from agents.theorems.pairs import TRUE, bob_share, guarantee
from agents.theorems.rows import Row, exact, sampled
from envs.claim_tree import ClaimTree
from envs.config import ConfigError, EnvConfig
from envs.engine import debate, draws
from envs.game import Game
from envs.problem import load_problem

STREAM = 8
NOISES = (0.02, 0.05, 0.1, 0.2)
ANSWERS = (1, 3, 9)  # people asked at the leaf
V = 1 / 9  # the value of the default game
AVERAGE = ("lp", "uniform", "learned", "random")

STATEMENT = (
    "Noise. If the oracle errs with probability ε, a false claim is caught with probability ε + (1 - 2ε)V and a true "
    "one is lost with probability ε. Rejecting a claim that loses any of many debates then rejects true claims as "
    "well. Asking r people at the leaf and believing the majority brings ε down to that of r coin flips, and with r "
    "large enough both errors are small again.",
    "ρ. Too small, and true claims cannot be argued; larger than any sensitivity, and it protects nobody any more, "
    "though the bound ρ^-d goes on falling. In between it trades how often lies are caught against who can be honest.",
    "Average case. If the truths below a claim are drawn at random and not by an adversary, Alice can no longer hide "
    "the lie where Bob rarely looks. The paper's guarantee is about the worst case; here is how much better the "
    "average is.",
)
SOURCE = "not in the paper"
CAPTION = (
    "Left: how often a false claim and a true one (thin, green) lose to LP Bob on the default game as the oracle "
    "errs, with one, three or nine people asked at the leaf. Middle: the footbridge, by ρ. Right: each Bob against "
    "best-response Alice with truths drawn at random (hatched) and in the worst case, default game."
)


def majority_noise(noise: float, people: int) -> float:
    """How often the majority of an odd number of people, each wrong with probability `noise`, is wrong."""
    from scipy.stats import binom

    return float(binom.sf(people // 2, people, noise))


def study(lab: Lab) -> Topic:
    """The experiment."""
    bridge = load_problem(EXAMPLES / "footbridge.yaml")
    averages = average_case(lab)
    rows: list[Row] = []
    for noise in lab.bar(NOISES, "beyond the paper"):
        rows += _noise(noise, lab)
    rows += _repair(lab) + _rho(bridge) + _average(averages)
    people = _people_needed(0.1, 100)
    findings = (
        f"With an oracle that errs in one answer of ten, 42 debates would reject a true claim with probability "
        f"{1 - 0.9**42:.2f}. Asking {people} people at the leaf instead of one brings both errors to 1% or less, for "
        f"{42 * people} answers in all.",
        f"With truths drawn at random LP Bob catches {averages['lp'][0]:.3f} against best-response Alice, in the "
        f"worst case {averages['lp'][1]:.3f}; uniform Bob {averages['uniform'][0]:.3f} and "
        f"{averages['uniform'][1]:.3f}. The average case is kinder to Bob, and does not spare him the program.",
    )
    return Topic("Beyond the paper", SOURCE, STATEMENT, tuple(rows), findings, _figure(bridge, averages), CAPTION)


def _noise(noise: float, lab: Lab) -> list[Row]:
    game, setting = procedural(THRESHOLD, noise=noise), f"threshold, d = 2, ρ = 3, ε = {noise:g}"
    lp, alice = players.bob("lp", game), players.alice("worst_case", game)
    lost = float(bob_share(game, HonestAlice(game), lp)[:, TRUE].mean())
    expected = noise + (1 - 2 * noise) * V
    rows = [
        exact("LP Bob's guarantee with a noisy oracle is ε + (1 - 2ε)V", setting, guarantee(game, lp), "=", expected),
        exact("Honest Alice loses with probability ε", setting, lost, "=", noise),
    ]
    counts = play(game, alice, lp, lab.debates, [lab.seed, STREAM, int(1000 * noise)])
    rows.append(sampled("Played: a false claim is caught with a probability of at least ε + (1 - 2ε)V",
                        f"{setting}, {lab.debates:,} debates", counts.caught, counts.false, ">=", expected,
                        lab.debates * expected))  # fmt: skip
    for people in ANSWERS[1:]:
        caught, expected = _played_with(people, noise, lab)
        rows.append(sampled(f"Played: with {people} people at the leaf a false claim is caught as if ε were that of "
                            "their majority", f"{setting}, {lab.debates:,} debates; their majority errs with "
                            f"{majority_noise(noise, people):.3g}",
                            caught, lab.debates, ">=", expected, lab.debates * expected))  # fmt: skip
    return rows


def _played_with(people: int, noise: float, lab: Lab) -> tuple[int, float]:
    """Catches of worst-case Alice where several people answer at the leaf, and the probability they should have."""
    game = procedural(THRESHOLD)
    uniform = draws([lab.seed, STREAM, people, int(1000 * noise)])
    state = debate(game, players.alice("worst_case", game), players.bob("lp", game), lab.debates, uniform)
    wrong = (uniform(lab.debates, people) < noise).sum(-1) > people // 2
    error = majority_noise(noise, people)
    return int(((state.answer ^ wrong) != state.claimed).sum()), error + (1 - 2 * error) * V


def _people_needed(noise: float, n: int) -> int:
    """The fewest people at a leaf for which m = ⌈9 ln n⌉ debates reject a true claim with probability at most 1/n."""
    m = math.ceil(9 * math.log(n))
    return next(r for r in range(1, 1000, 2) if 1 - (1 - majority_noise(noise, r)) ** m <= 1 / n)


def _repair(lab: Lab) -> list[Row]:
    """Amplification with a noisy oracle: broken, and mended by asking several people."""
    n, noise = 100, 0.1
    m, people = math.ceil(9 * math.log(n)), _people_needed(noise, n)
    error, setting = majority_noise(noise, people), f"threshold, d = 2, ρ = 3, ε = {noise}, n = {n}, m = {m} debates"
    missed = (1 - guarantee(procedural(THRESHOLD, noise=error), players.bob("lp", procedural(THRESHOLD)))) ** m
    return [
        exact("Rejecting a claim that loses any debate rejects true claims too: with more than 1/n", setting,
              1 - (1 - noise) ** m, ">", 1 / n),
        exact("With enough people at the leaf true claims are rejected with at most 1/n", f"{setting}, {people} people",
              1 - (1 - error) ** m, "<=", 1 / n),
        exact("With enough people at the leaf false claims are accepted with at most 1/n",
              f"{setting}, {people} people",
              missed, "<=", 1 / n),
    ]  # fmt: skip


def _rho(bridge: ClaimTree) -> list[Row]:
    """A rho that is too small or too large."""
    values = {rho: game_value(procedural(THRESHOLD, rho=rho)) for rho in (2.0, 3.0, 6.0)}
    refused = 0
    try:
        procedural(THRESHOLD, rho=1.5)
    except ConfigError:
        refused = 1
    strict, safe = (window(bridge, rho) for rho in (3.0, 5.0))
    return [
        exact("A ρ below the least sensitivity leaves Alice nothing to argue with: the game is refused (1)",
              f"{THRESHOLD}, whose least sensitivity is 9/5, ρ = 1.5", refused, "=", 1),
        exact("A smaller ρ raises the game value",
              f"{THRESHOLD}, d = 2: ρ = 2 against ρ = 3", values[2.0], ">", values[3.0]),
        exact("A ρ beyond every sensitivity changes nothing",
              f"{THRESHOLD}, d = 2: ρ = 6 against ρ = 3", values[6.0], "=",
              values[3.0]),
        exact("A small ρ loses true claims: honest Alice wins less than always",
              "footbridge.yaml, ρ = 3, LP Bob", strict[0],
              "<", 1),
        exact("A ρ at which she is safe catches fewer lies",
              "footbridge.yaml: ρ = 5 against ρ = 3, LP Bob", safe[1], "<",
              strict[1]),
    ]  # fmt: skip


def window(tree: ClaimTree, rho: float) -> tuple[float, float]:
    """At one rho: how often honest Alice wins against LP Bob, and how often he catches the best lie about the root."""
    game = Game(EnvConfig(rho=rho, tremble=0.0), tree)
    lp = players.bob("lp", game)
    return 1 - honest_unstable(game, lp), float(best_response_on_tree(game, lp).catch[0, 1 - tree.answer[0]])


def average_case(lab: Lab) -> dict[str, tuple[float, float]]:
    """Each Bob's catch by best-response Alice with truths drawn at random, and with the adversarial oracle."""
    found = {}
    random, adversarial = procedural(THRESHOLD, oracle="random"), procedural(THRESHOLD)
    for name in AVERAGE:
        found[name] = guarantee(random, lab.bob(name, random)), guarantee(adversarial, lab.bob(name, adversarial))
    return found


def _average(averages: dict[str, tuple[float, float]]) -> list[Row]:
    setting = "threshold, d = 2, ρ = 3, best-response Alice"
    return [
        exact(f"Truths drawn at random favour {figures.name(name)}: he catches at least as much as in the worst case",
              setting, mean, ">=", worst)
        for name, (mean, worst) in averages.items()
    ]  # fmt: skip


def _figure(bridge: ClaimTree, averages: dict[str, tuple[float, float]]) -> Any:
    figure, (left, middle, right) = figures.canvas(3, height=3.7)
    noises = np.linspace(0, 0.4, 81)
    for people, line in zip(ANSWERS, ("-", (0, (5, 2)), (0, (1, 1))), strict=True):
        error = np.array([majority_noise(noise, people) for noise in noises])
        text = f"{people} asked: false claim" if people > 1 else "1 person asked: false claim"
        left.plot(noises, error + (1 - 2 * error) * V, **figures.style("lp", marker="", linestyle=line, label=text))
        left.plot(
            noises,
            error,
            **figures.style("honest_alice", marker="", linestyle=line, linewidth=0.9, label="the same: true claim"),
        )
    left.axhline(V, **{**figures.BOUND, "linewidth": 0.8}, label="V, without noise")
    figures.label(left, "oracle error ε", "Alice loses, probability", "noise")
    figures.legend_under(left)
    rhos = np.linspace(1, 10, 37)
    honest, caught = np.array([window(bridge, float(rho)) for rho in rhos]).T
    middle.plot(rhos, honest, **figures.style("honest_alice", marker="", label="honest Alice wins"))
    middle.plot(rhos, caught, **figures.style("lp", marker="", label="LP Bob catches a lie"))
    middle.plot(rhos, rhos**-3.0, label=r"bound $\rho^{-d}$", **figures.BOUND)
    figures.label(middle, "ρ", "probability", "footbridge.yaml, d = 3")
    figures.legend_under(middle)
    place = np.arange(len(averages))
    for offset, which, hatch in ((-0.21, 0, "///"), (0.21, 1, "")):
        heights = [pair[which] for pair in averages.values()]
        bars = right.bar(place + offset, heights, 0.4, hatch=hatch, edgecolor="white", linewidth=0,
                         color=[figures.colour(name) for name in averages])  # fmt: skip
        right.bar_label(bars, fmt=lambda height: f"{height:.2f}"[1:], fontsize=7)
    right.axhline(V, **{**figures.BOUND, "linewidth": 0.8}, label="V, the worst case at best")
    right.set_xticks(place, [figures.name(name).partition(" ")[0] for name in averages], fontsize=7.5)
    figures.label(right, "Bob", "catch probability", "average (hatched), worst")
    figures.legend_under(right)
    return figure
