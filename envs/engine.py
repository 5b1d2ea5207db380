"""Debates by the batch: players on both sides, whole moves, one seeded stream of draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from envs import rules
from envs.game import Game
from envs.rules import ASSIGN, CLAIM, DECOMPOSE, LIE, OVER, RESPOND, State
from envs.view import View, view

Array = Any  # numpy.ndarray or torch.Tensor
Draws = Callable[[int, int], Array]


class Player(Protocol):
    """Anything that answers a view with whole moves.

    Attributes:
        needs_state: True for a privileged player, whose view carries the whole state.
    """

    needs_state: bool

    def act(self, seen: View, u: Array) -> Array:
        """Moves for the phase of `seen` from draws u (N, 1 + Q) uniform in [0, 1): a bit, a candidate or a response
        (N,), or an assignment or set of lies (N, Q)."""

    def probabilities(self, seen: View) -> Array:
        """float64 (N, M): the chance of each move, in the order of `envs.view.legal_moves`."""


class Decision(NamedTuple):
    """One move of a rollout: the state before it, and the move made."""

    state: State
    move: Array


def draws(seed: int | np.random.Generator) -> Draws:
    """Uniform float64 (n, k) blocks from a seed, for a NumPy game."""
    rng = np.random.default_rng(seed)
    return lambda n, k: rng.random((n, k))


def step(game: Game, state: State, move: Array, u: Array) -> State:
    """The state after the move that the phase asks for; u as in `envs.rules`."""
    if state.phase == CLAIM:
        return rules.claim(game, state, move, u)
    if state.phase == DECOMPOSE:
        return rules.decompose(game, state, move)
    if state.phase == ASSIGN:
        return rules.assign(game, state, move, u)
    if state.phase == LIE:
        return rules.lie(game, state, move)
    return rules.respond(game, state, move, u)


def debate(
    game: Game, alice: Player, bob: Player, n: int, uniform: Draws, record: list[Decision] | None = None
) -> State:
    """Play n debates to their end.

    Args:
        game: The rules.
        alice, bob: The players.
        n: How many debates.
        uniform: Called with (n, k), gives uniform draws of that shape.
        record: If given, each decision is appended to it.
    """
    state = rules.deal(game, uniform(n, game.draws))
    while state.phase != OVER:
        player = bob if state.phase == RESPOND else alice
        move = player.act(view(game, state, player.needs_state), uniform(n, 1 + game.width))
        if record is not None:
            record.append(Decision(state, move))
        state = step(game, state, move, uniform(n, rules.draws(game, state.phase)))
    return state


class Query(NamedTuple):
    """One question put to the oracle: the leaf's place below the root, and the answer."""

    leaf: str
    answer: int


def query_book(state: State) -> list[Query]:
    """The oracle queries of finished debates, at most one each, in the order of the batch."""
    answers = np.asarray(state.answer).tolist()
    paths = zip(*(np.asarray(step).tolist() for step in state.path), strict=True) if state.path else [()] * len(answers)
    return [
        Query("/".join(str(i) for i in path if i >= 0), answer)
        for path, answer in zip(paths, answers, strict=True)
        if answer >= 0
    ]
