"""The same debates, thrice: one bit a step in the PettingZoo environment, and by the batch on NumPy and on torch.

A thousand random debates of each configuration are played in the environment from given draws, some with an illegal
action. Their whole moves are written down and played again in the batched rules from the same draws; every state on the
way must be the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from configurations import CONFIGURATIONS, arguments

from envs import rules
from envs.engine import query_book, step
from envs.fbs_debate import ALICE, raw_env
from envs.game import Game
from envs.rules import ASSIGN, LIE, OVER, State

DEBATES = 1000
ILLEGAL = 0.01  # share of actions that are illegal
OUTCOME = ("over", "ending", "reward")  # compared of debates that are over; of the others all is
EVERYTHING = tuple(field for field in State._fields if field not in ("phase", "path"))


class Played(NamedTuple):
    """A debate of the environment: its states, the whole move made in each but the last, and how it ended."""

    states: list[State]
    moves: list[Any]
    queries: list
    reward: float


def play(raw: raw_env, draws: np.ndarray, rng: np.random.Generator) -> Played:
    """A debate of random actions; draws (moves, game.draws)."""
    raw._draw = lambda: draws[None, len(raw._history)]
    raw.reset()
    moves: list[Any] = []
    while not raw.terminations[raw.agent_selection]:
        before, bits, u = raw._state, raw._bits, rng.random(2)
        choices = raw._mask.nonzero()[0]
        action = None if u[0] < ILLEGAL else int(choices[int(u[1] * len(choices))])
        raw.step(action)
        if action is None:
            moves.append(illegal_move(raw.game, before))
        elif raw._state is not before:
            moves.append(np.array(bits + [0] * (raw.game.width - len(bits)), np.int8) if bits else action)
    return Played(raw._history, moves, raw.infos[ALICE]["query_book"], raw.rewards[ALICE])


def illegal_move(game: Game, state: State) -> Any:
    """A whole move that the rules refuse in the first debate of `state`."""
    if state.phase == ASSIGN:
        return np.full(game.width, 2, np.int8)
    if state.phase != LIE:
        return -1
    f = game.library.aggregators[rules.aggregator(game, state)[0]]
    rng, truths = np.random.default_rng(0), np.zeros(f.width, np.int8)
    while f(truths) == state.truth[0]:
        truths = rng.integers(0, 2, f.width, np.int8)
    lies = np.zeros(game.width, np.int8)
    lies[: f.width] = truths ^ state.assignment[0, : f.width]
    return lies


def compare(played: list[Played], t: int, state: State) -> None:
    """The states after t moves against the batch's."""
    rows = np.array([row for row, debate in enumerate(played) if len(debate.states) > t])
    ours = [played[row].states[t] for row in rows]
    running = np.array([not one.over[0] for one in ours])
    for field in EVERYTHING:
        batch = np.asarray(getattr(state, field))[rows]
        single = np.concatenate([getattr(one, field) for one in ours])
        assert batch.dtype == single.dtype, field
        where = slice(None) if field in OUTCOME else running
        assert np.array_equal(batch[where], single[where]), (t, field)
    if running.any():
        assert {one.phase for one, runs in zip(ours, running, strict=True) if runs} == {state.phase}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_environment_and_batch_play_the_same_debates(name: str, tmp_path: Path) -> None:
    raw, rng = raw_env(**arguments(name, tmp_path)), np.random.default_rng(0)
    game = raw.game
    most = 2 + 4 * game.depth
    draws = rng.random((DEBATES, most, game.draws))
    played = [play(raw, draws[row], rng) for row in range(DEBATES)]
    assert {int(debate.states[-1].ending[0]) for debate in played} >= {rules.ORACLE, rules.CONCEDED, rules.ILLEGAL}
    for xp in (np, torch):
        batched = game.on(xp)
        state, t = rules.deal(batched, xp.asarray(draws[:, 0])), 0
        compare(played, 0, state)
        while state.phase != OVER:
            some = next(debate.moves[t] for debate in played if len(debate.moves) > t)
            moves = [debate.moves[t] if len(debate.moves) > t else some for debate in played]
            state = step(batched, state, xp.asarray(np.stack(moves)), xp.asarray(draws[:, t + 1]))
            t += 1
            compare(played, t, state)
        assert np.asarray(state.over).all()
        assert np.asarray(state.reward).tolist() == [debate.reward for debate in played]
        assert query_book(state) == [query for debate in played for query in debate.queries]
