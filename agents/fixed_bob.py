"""A scripted Bob in the place of the learned one, for an Alice who learns against him."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from agents import players
from agents.networks import NetworkInput
from agents.scripted import PlayerError
from envs.config import ConfigError
from envs.game import Game
from envs.rules import RESPOND
from envs.view import View

NEVER = -69.0  # score of a response he never gives: a chance of 1e-30


class FixedBob(nn.Module):
    """Scores of responses as `agents.policy.BobPolicy` gives them: a scripted Bob's log-probabilities.

    Args:
        name: One of `agents.players.BOBS`.
        game: The game that Alice learns, on torch.

    Raises:
        ConfigError: he cannot play this game, or needs to see more than a learner's positions hold.
    """

    def __init__(self, name: str, game: Game) -> None:
        super().__init__()
        self.game = game.on(np)
        try:
            self.player = players.bob(name, self.game)
        except PlayerError as error:
            raise ConfigError(f"learner.bob: {error}") from None
        if self.player.needs_state:
            raise ConfigError(f"learner.bob is {name!r}, who sees the whole state; play one who judges by the claims")

    def __deepcopy__(self, memo: dict) -> FixedBob:
        return self  # nothing about him changes

    def responses(self, seen: NetworkInput) -> Tensor:
        """Scores (N, 2 + Q)."""
        columns = [np.asarray(column.cpu()) for column in seen]
        level, claimed, _, aggregator, assignment, _ = columns
        shown = View(
            self.game, RESPOND, level > 0, level, claimed.astype(np.int8), None, None, None, aggregator,
            assignment.astype(np.int8), None, None,
        )  # fmt: skip
        chances = torch.as_tensor(self.player.probabilities(shown))
        return chances.log().clamp(min=NEVER).float().to(seen.level.device)
