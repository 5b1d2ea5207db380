"""Who sees what (DESIGN section 2): the part of a state that a player may use, for whole moves."""

from __future__ import annotations

from typing import Any, NamedTuple

from envs import rules
from envs.game import Game
from envs.rules import ASSIGN, CLAIM, DECOMPOSE, LIE, RESPOND, State

Array = Any  # numpy.ndarray or torch.Tensor


class View(NamedTuple):
    """What the player to move sees of N debates. Q: the widest aggregator, K: candidates on a menu.

    Attributes:
        game: The rules and the library that aggregators are numbers of.
        phase: Which move is asked for, one of `envs.rules.PHASES`.
        active: bool (N,), False where the debate is over and the move counts for nothing.
        level: int64 (N,). claimed: int8 (N,); at the claim phase still 0.
        truth: int8 (N,), or None if hidden.
        menu: int64 (N, K), or None for Bob.
        answers: int8 (N, K, Q), the true answers on the menu; None for Bob and with the adversarial oracle.
        aggregator: int64 (N,), the chosen one; None before it is chosen.
        assignment: int8 (N, Q), Alice's answers; None before they are finished.
        truths: int8 (N, Q), the true answers to the chosen sub-claims; None if hidden or not settled.
        state: The whole state, for players that declare `needs_state`; None for the others.
    """

    game: Game
    phase: int
    active: Array
    level: Array
    claimed: Array
    truth: Array | None
    menu: Array | None
    answers: Array | None
    aggregator: Array | None
    assignment: Array | None
    truths: Array | None
    state: State | None


def view(game: Game, state: State, needs_state: bool = False) -> View:
    """What the player to move in `state` sees."""
    bob = state.phase == RESPOND
    chosen = None if state.phase in (CLAIM, DECOMPOSE) else rules.aggregator(game, state)
    sees_truth = game.sees_truth if bob else True
    if bob:
        truths = state.truths if game.sees_truth else None
    elif game.adversarial or chosen is None:
        truths = None
    else:
        truths = state.answers[game.rows(chosen), state.choice]
    return View(
        game=game,
        phase=state.phase,
        active=~state.over,
        level=state.level,
        claimed=state.claimed,
        truth=state.truth if sees_truth else None,
        menu=None if bob or state.phase == CLAIM else state.menu,
        answers=None if bob or game.adversarial or state.phase == CLAIM else state.answers,
        aggregator=chosen,
        assignment=state.assignment if state.phase in (LIE, RESPOND) else None,
        truths=truths,
        state=state if needs_state else None,
    )


def legal_moves(seen: View) -> Array:
    """bool (N, M): the legal moves of the phase, for a tabulated library.

    M is 2 for a claim, K for a decomposition, 2^Q padded codes for an assignment or a set of lies, 2 + Q for a
    response. A debate that is over keeps the mask of its last claim. Where Alice has no legal move the row is empty.
    """
    game, library = seen.game, seen.game.library
    xp = game.xp
    if seen.phase == CLAIM:
        return xp.ones_like(seen.level[:, None] + library.zeros((2,), "int64")) > 0
    if seen.phase == DECOMPOSE:
        return seen.menu >= 0
    if seen.phase == ASSIGN:
        return library.legal_assignments(seen.aggregator, seen.claimed)
    if seen.phase == LIE:
        return library.legal_lies(seen.aggregator, seen.truth, seen.assignment)
    return library.pick(game.responses, seen.aggregator)
