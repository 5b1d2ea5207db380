"""Chance, listed: everything that can happen by chance, with its probability.

`envs.rules` takes randomness as uniform draws `u`. A game tree needs what they can lead to one by one. So each outcome
here is a probability together with draws that make the rules bring it about, taken from the middle of the stretch of
the unit interval that means it; what follows from them is left to the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from envs import rules
from envs.config import ConfigError
from envs.engine import step
from envs.game import Game
from envs.rules import ASSIGN, DECOMPOSE, LIE, ORACLE, State

MOST_MENUS = 10_000  # listed for one claim


class Chance(NamedTuple):
    """One outcome.

    Attributes:
        probability: Of this outcome, above 0.
        u: float64 (1, game.draws), what to hand to the rules for it to happen.
    """

    probability: float
    u: np.ndarray


def most_outcomes(game: Game) -> int:
    """At most so many outcomes there are at once.

    Raises:
        ConfigError: a claim has too many menus to list.
    """
    roots = 2 if game.source or game.free_root else 4
    trembles = 1 + int(np.max(game.library.preimage_size)) if game.tremble else 1
    entries = int(np.max(game.deck.last - game.deck.first)) + 1 if game.menus_vary else 1
    if entries**game.menu > MOST_MENUS:
        raise ConfigError(
            f"problem.menu: a claim has {entries}^{game.menu} menus, more than the {MOST_MENUS} that can be listed; "
            "take a shorter menu or fewer aggregators (problem.size)"
        )
    return max(roots * entries**game.menu, trembles)


def deals(game: Game) -> list[Chance]:
    """How a debate can begin: the root's truth, and where they are dealt its claim and its menu.

    Args:
        game: On NumPy. Wherever the draws below mean something, they are those of `envs.rules.deal`.
    """
    p = game.p_false
    merged: dict[tuple[int, int], Chance] = {}
    for even, (probability, false) in product((0.25, 0.75), ((p, p / 2), (1 - p, (1 + p) / 2))):
        if probability > 0:
            u = _draws(game, even, false)
            state = rules.deal(game, u)
            root = int(state.root_truth[0]), int(state.root_claimed[0])
            before = merged.get(root, Chance(0.0, u))
            merged[root] = Chance(before.probability + probability / 2, before.u)
    if game.free_root:
        return list(merged.values())
    return [
        Chance(root.probability * menu.probability, np.concatenate([root.u[:, :2], menu.u[:, 2:]], -1))
        for root in merged.values()
        for menu in _menus(game, rules.deal(game, root.u))
    ]


def after(game: Game, state: State, move: Any) -> list[Chance]:
    """What can follow a legal move in a running debate, a batch of one on NumPy: one certain outcome, or several."""
    if state.phase == ASSIGN:
        return list(_trembles(game, state))
    if state.phase in (DECOMPOSE, LIE) or not (game.menus_vary or game.noise > 0):
        return [_certain(game)]
    reached = step(game, state, move, _draws(game))
    if not reached.over[0]:
        return list(_menus(game, reached))
    if reached.ending[0] == ORACLE and game.noise > 0:
        noise = game.noise
        return [Chance(1 - noise, _draws(game, (1 + noise) / 2)), Chance(noise, _draws(game, noise / 2))]
    return [_certain(game)]


def _draws(game: Game, *first: float) -> np.ndarray:
    """float64 (1, game.draws): the given ones, then halves."""
    u = np.full((1, game.draws), 0.5)
    u[0, : len(first)] = first
    return u


def _certain(game: Game) -> Chance:
    return Chance(1.0, _draws(game))


def _trembles(game: Game, state: State) -> Iterator[Chance]:
    """Her assignment stands, or is replaced by any of the same output."""
    tremble = game.tremble
    if tremble < 1:
        yield Chance(1 - tremble, _draws(game, (1 + tremble) / 2))
    count = int(game.library.preimage_size[rules.aggregator(game, state)[0], state.claimed[0]]) if tremble else 0
    for rank in range(count):
        yield Chance(tremble / count, _draws(game, tremble / 2, (rank + 0.5) / count))


def _menus(game: Game, state: State) -> Iterator[Chance]:
    """The menus that a claim reached in `state` can have, in the last 1 + K draws; see `Game.deal_menu`."""
    if not game.menus_vary:
        yield _certain(game)
        return
    deck, bit = game.deck, int((state.claimed if game.adversarial else state.truth)[0])
    entries = np.arange(deck.first[bit], deck.last[bit] + 1)
    probability, mass = deck.probability[entries], deck.stable_mass[bit]
    stable = deck.stable[entries]
    middle = deck.cumulative[entries] - bit - probability / 2
    ends = np.concatenate([[0.0], deck.first_stable[bit]])  # of the stretches that say where the first stable one is
    total = 1 - (1 - mass) ** game.menu
    for menu in product(range(len(entries)), repeat=game.menu):
        first = next((k for k, entry in enumerate(menu) if stable[entry]), None)
        if first is not None:
            inside = middle[list(menu)]
            inside[:first] = (inside[:first] - mass) / (1 - mass)
            inside[first] /= mass
            u = _draws(game)
            u[0, 2:] = (ends[first] + ends[first + 1]) / 2, *inside
            yield Chance(float(prod(probability[list(menu)]) / total), u)
