"""A debate as text that a person can read.

What Bob does not see is told only at the end: what was true, and which of Alice's answers were lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from envs.game import Game
from envs.rules import ACCEPT, ASSIGN, CHALLENGE, ENDINGS, ILLEGAL, RESPOND, RUNNING, SAMPLE, State
from envs.story import Round, Story, story
from fbs.stability import stable
from fbs.visible import visible

LISTED = 12  # sub-claims listed one by one


def transcript(game: Game, states: Sequence[State], pending: Sequence[int] = (), row: int = 0) -> str:
    """The debate in a row of `states` (see `envs.story`), one event a line.

    Args:
        game: The rules.
        states: Every state so far, from `rules.deal` on.
        pending: Bits of the assignment that Alice is giving now.
        row: Which debate of the batch.
    """
    told = story(game, states, row)
    lines = [heading(game)]
    for here in told.rounds:
        lines += _claim_lines(here, told)
        if here.finished:
            lines += _answer_lines(game, here)
        if here.response is not None:
            lines.append(f"  Bob {response_text(here.response)}.")
    if pending and states[-1].phase == ASSIGN:
        lines.append(f"  Alice is answering: {' '.join(map(str, pending))} ...")
    if told.ending != RUNNING:
        lines += [outcome_text(told), *_revealed(told)]
    return "\n".join(lines) + "\n"


def heading(game: Game) -> str:
    """What is debated and under which rules, in one line."""
    about = "A debate" if game.source is None else f"A debate about {visible(game.source.source)}"
    truths = "Alice picks what is true" if game.adversarial else "what is true is given"
    return f"{about}: depth {game.depth}, rho {game.env.rho:g}; {truths}."


def place_text(path: Sequence[int]) -> str:
    """Where a claim stands, as in "the root claim" or "claim 2/0"."""
    return "claim " + "/".join(map(str, path)) if path else "the root claim"


def response_text(response: int) -> str:
    """What Bob did."""
    if response == ACCEPT:
        return "accepts"
    return "challenges: too sensitive" if response == CHALLENGE else f"samples sub-claim {response - SAMPLE}"


def outcome_text(told: Story) -> str:
    """Who won and why."""
    winner = "Alice" if told.reward > 0 else "Bob"
    why = ENDINGS[told.ending]
    if told.ending == ILLEGAL:
        why = f"{'Bob' if told.last_phase == RESPOND else 'Alice'} made an illegal move"
    elif told.oracle is not None:
        agrees = told.oracle == told.rounds[-1].claimed
        why = f"the oracle {'agreed with' if agrees else 'contradicted'} Alice"
    return f"{winner} wins: {why}."


def sensitivity_text(game: Game, here: Round) -> str:
    """The sensitivity of the finished assignment and whether it is stable; Bob could work it out."""
    value = game.library.sensitivity(here.aggregator, np.array([here.assignment], np.int8))[0]
    verdict = "stable" if stable(value, game.env.rho) else "too sensitive"
    return f"sensitivity {Fraction(value).limit_denominator(1000)}, {verdict}"


def _claim_lines(here: Round, told: Story) -> list[str]:
    name = place_text(here.path)
    lines = [f"{name[0].upper()}{name[1:]}, level {here.level}{': ' if here.text else ''}{visible(here.text.strip())}"]
    if here.claimed is not None:
        lines.append(f"  Alice claims that it is {'true' if here.claimed else 'false'} ({here.claimed}).")
    if here.level == 0 and told.oracle is not None:
        lines.append(f"  The oracle is asked and answers {told.oracle}.")
    if len(here.menu) > 1 and here.chosen is not None:
        lines.append(f"  She decomposes it by candidate {here.chosen} of {len(here.menu)}.")
    return lines


def _answer_lines(game: Game, here: Round) -> list[str]:
    f, z = here.aggregator, here.assignment
    written = f.written if len(f.written) <= 60 else f"a {f.kind}"
    answers = " ".join(map(str, z)) if f.width <= LISTED else f"{f.width} sub-claims, {sum(z)} of them by 1"
    lines = [f"  It is decided by '{written}'. She answers {answers} ({sensitivity_text(game, here)})."]
    sampled = -1 if here.response is None else here.response - SAMPLE
    listed = [i for i in range(len(here.texts)) if i < LISTED or i == sampled]
    lines += [f"    {i}  {visible(here.texts[i].strip())}: {z[i]}" for i in listed]
    if len(listed) < len(here.texts):
        lines.append(f"    and {len(here.texts) - len(listed)} more")
    return lines


def _revealed(told: Story) -> list[str]:
    root = told.rounds[0]
    lines = [f"In truth the root claim was {'true' if root.truth else 'false'}."]
    for here in told.rounds:
        if here.truths:
            lies = ", ".join(map(str, here.lies[:LISTED])) + (", ..." if len(here.lies) > LISTED else "")
            about = f"lied about {lies}" if here.lies else "told no lie"
            lines.append(f"  Below {place_text(here.path)} Alice {about}.")
    return lines
