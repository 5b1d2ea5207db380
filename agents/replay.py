"""What a learner remembers of its debates: moves, what was seen before them, and what came of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from envs.game import Game
from envs.view import View


class Moves(NamedTuple):
    """N moves of one phase.

    Attributes:
        seen: What the mover saw. move: int8 or int64, (N,) or (N, Q).
        result: float32 (N,), the mover's own reward at the end of the debate.
    """

    seen: View
    move: Tensor
    result: Tensor

    def take(self, index: Tensor) -> Moves:
        """The moves at `index`, numbers or a mask."""
        seen = self.seen._replace(**{name: column[index] for name, column in columns(self.seen).items()})
        return Moves(seen, self.move[index], self.result[index])


def columns(seen: View) -> dict[str, Tensor]:
    """The fields of a view that have a row for each debate."""
    return {name: column for name, column in seen._asdict().items() if isinstance(column, Tensor)}


class Memory:
    """The moves of one phase with the highest keys.

    Keys that count up keep the latest moves, keys drawn at random a uniform sample of all there ever were (a
    reservoir).

    Args:
        game: The game. phase: One of `envs.rules.PHASES`. capacity: How many moves it keeps.
    """

    def __init__(self, game: Game, phase: int, capacity: int) -> None:
        self.game, self.phase, self.capacity = game, phase, capacity
        self.moves: Moves | None = None
        self.keys = torch.zeros(0, dtype=torch.float64)

    def add(self, moves: Moves, keys: Tensor) -> None:
        """Take in moves with keys float64 (N,)."""
        if self.moves is not None:
            ours, theirs = columns(self.moves.seen), columns(moves.seen)
            seen = moves.seen._replace(**{name: torch.cat([ours[name], theirs[name]]) for name in ours})
            moves = Moves(seen, torch.cat([self.moves.move, moves.move]), torch.cat([self.moves.result, moves.result]))
        self.moves, self.keys = moves, torch.cat([self.keys, keys])
        if len(self.keys) > self.capacity:
            kept = self.keys.topk(self.capacity).indices
            self.moves, self.keys = self.moves.take(kept), self.keys[kept]

    def __len__(self) -> int:
        return len(self.keys)

    def draw(self, n: int, generator: torch.Generator) -> Moves:
        """n moves, uniform and with replacement."""
        return self.moves.take(torch.randint(len(self), (n,), generator=generator))

    def state_dict(self) -> dict[str, Any]:
        """A snapshot, empty if nothing was taken in."""
        if self.moves is None:
            return {}
        rest = {"move": self.moves.move, "result": self.moves.result, "keys": self.keys}
        return {"seen": columns(self.moves.seen), **rest}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self.moves, self.keys = None, torch.zeros(0, dtype=torch.float64)
        if saved:
            hidden = dict.fromkeys(View._fields)
            seen = View(**{**hidden, "game": self.game, "phase": self.phase, **saved["seen"]})
            self.moves, self.keys = Moves(seen, saved["move"], saved["result"]), saved["keys"]
