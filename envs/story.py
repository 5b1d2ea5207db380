"""A debate told claim by claim, from the states that the rules went through: what the transcript and the picture show.

Any debate can be told, one of a batch as well: `story(game, [d.state for d in record] + [final], row=7)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from envs.game import Game
from envs.rules import (
    ACCEPT,
    ASSIGN,
    CHALLENGE,
    CLAIM,
    CONCEDED,
    DECOMPOSE,
    ILLEGAL,
    LIE,
    RESPOND,
    RIGHT_CHALLENGE,
    RUNNING,
    SAMPLE,
    WRONG_CHALLENGE,
    State,
)
from fbs.aggregator import Aggregator


@dataclass
class Round:
    """One claim and what was done about it.

    Attributes:
        path: The sub-claims sampled on the way here, () at the root.
        level: Its level, 0 at a leaf.
        claimed: The bit claimed for it, None before Alice has claimed one. truth: The real one.
        text: What it says, "" in a procedural problem. texts: The same of its sub-claims.
        menu: The aggregators on offer, () at a leaf.
        chosen: Which of them Alice chose, None before that.
        assignment: Her answers so far. finished: Whether these are all.
        truths: The real answers, () while they are not settled.
        response: Bob's, as the rules number it; None before that.
    """

    path: tuple[int, ...]
    level: int
    claimed: int | None
    truth: int
    text: str
    texts: tuple[str, ...]
    menu: tuple[Aggregator, ...]
    chosen: int | None = None
    assignment: tuple[int, ...] = ()
    finished: bool = False
    truths: tuple[int, ...] = ()
    response: int | None = None

    @property
    def aggregator(self) -> Aggregator | None:
        return None if self.chosen is None else self.menu[self.chosen]

    @property
    def lies(self) -> tuple[int, ...]:
        """The sub-claims that Alice answered wrongly, where the truths are settled."""
        return tuple(i for i, (z, truth) in enumerate(zip(self.assignment, self.truths, strict=False)) if z != truth)


@dataclass
class Story:
    """A debate so far.

    Attributes:
        rounds: The claims, from the root down; a leaf, if reached, is the last.
        ending: One of `envs.rules.ENDINGS`. reward: Alice's.
        oracle: What the oracle answered, None if it was not asked.
        last_phase: The phase in which the last move was made, None before the first.
    """

    rounds: list[Round] = field(default_factory=list)
    ending: int = RUNNING
    reward: float = 0.0
    oracle: int | None = None
    last_phase: int | None = None


def story(game: Game, states: Sequence[State], row: int = 0) -> Story:
    """Tell the debate in a row of `states`, which were reached one after the other from `rules.deal`."""
    told = Story([_arrival(game, states[0], row)])
    for before, after in zip(states, states[1:], strict=False):
        if before.over[row]:
            break
        told.last_phase = before.phase
        _tell(game, told, before.phase, after, row)
    last = states[-1]
    told.ending, told.reward = int(last.ending[row]), float(last.reward[row])
    told.oracle = int(last.answer[row]) if last.answer[row] >= 0 else None
    return told


def _tell(game: Game, told: Story, phase: int, after: State, row: int) -> None:
    """One move, made in `phase`; an illegal one leaves no trace but the ending."""
    here, ending = told.rounds[-1], after.ending[row]
    if ending == ILLEGAL:
        return
    if phase == CLAIM:
        told.rounds[-1] = _arrival(game, after, row)
    elif phase == DECOMPOSE:
        here.chosen = int(after.choice[row])
    elif phase == ASSIGN:
        here.assignment, here.finished = _bits(after.assignment[row], here), True
    if phase == LIE or (phase == ASSIGN and not game.adversarial):
        here.truths = _bits(after.truths[row], here)
    if phase == RESPOND:
        here.response = _response(after, row)
        if here.response >= SAMPLE:
            told.rounds.append(_arrival(game, after, row))


def _arrival(game: Game, state: State, row: int) -> Round:
    path = tuple(int(step[row]) for step in state.path)
    node, source = int(state.node[row]), game.source
    numbers = [int(a) for a in state.menu[row] if a >= 0] if state.level[row] > 0 else []
    return Round(
        path=path,
        level=int(state.level[row]),
        claimed=None if state.phase == CLAIM else int(state.claimed[row]),
        truth=int(state.truth[row]),
        text="" if source is None else source.text[node],
        texts=() if source is None else source.text[source.children(node)],
        menu=tuple(game.library.aggregators[a] for a in numbers),
        chosen=0 if len(numbers) == 1 else None,
    )


def _bits(bits: np.ndarray, here: Round) -> tuple[int, ...]:
    return tuple(int(bit) for bit in bits[: here.aggregator.width])


def _response(after: State, row: int) -> int:
    ending = after.ending[row]
    if ending == CONCEDED:
        return ACCEPT
    if ending in (RIGHT_CHALLENGE, WRONG_CHALLENGE):
        return CHALLENGE
    return SAMPLE + int(after.path[-1][row])
