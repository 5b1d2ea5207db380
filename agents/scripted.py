"""Turning a policy into moves and moves into a policy, for players that are not learned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from envs.rules import ASSIGN, CLAIM, DECOMPOSE, LIE
from envs.view import View


class PlayerError(ValueError):
    """A player that is not known, or that cannot play this game; the message says what would do."""


def sample(probabilities: np.ndarray, u: np.ndarray) -> np.ndarray:
    """int64 (N,): an index from each row of probabilities (N, M), by uniform draws u (N,); never an impossible one."""
    cumulative = probabilities.cumsum(-1)
    chosen = (cumulative <= (u * cumulative[:, -1])[:, None]).sum(-1)
    last = probabilities.shape[-1] - 1 - (probabilities[:, ::-1] > 0).argmax(-1)
    return np.minimum(chosen, last)


class Certain(ABC):
    """A player whose move is a function of the view."""

    needs_state = False

    @abstractmethod
    def act(self, seen: View, u: Any) -> np.ndarray: ...

    def probabilities(self, seen: View) -> np.ndarray:
        """float64 (N, M): 1 at the move, in the order of `envs.view.legal_moves`."""
        move = self.act(seen, None)
        game = seen.game
        if seen.phase in (ASSIGN, LIE):
            move = game.library.code(move)
        choices = {CLAIM: 2, DECOMPOSE: game.menu, ASSIGN: 1 << game.width, LIE: 1 << game.width}
        policy = np.zeros((len(move), choices.get(seen.phase, 2 + game.width)))
        policy[np.arange(len(move)), move] = 1
        return policy


def groups(labels: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each distinct label of int64 (N,), with the indices where it stands."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        if len(rows):
            yield int(labels[rows[0]]), rows
