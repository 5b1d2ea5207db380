"""What a learner is configured by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from envs.config import ConfigError


@dataclass(frozen=True)
class LearnerConfig:
    """How Alice and Bob learn.

    Args:
        name: `mmd`, magnetic mirror descent on exact one-step look-ahead, or `ppo`, proximal policy optimisation on
            sampled returns (the control).
        iterations: Rounds of self-play and update.
        batch: Debates a round.
        hidden: Width of the networks' layers.
        learning_rate: Adam's step size at the start; it falls to 0 linearly.
        epochs: Gradient steps a round.
        step_size: Mirror descent's step (eta): how far one round moves a policy along its action values.
        magnet: Pull towards the magnet, a slowly moving copy of the policy (alpha); `mmd` only.
        magnet_rate: How much of the policy the magnet takes over in a round; `mmd` only.
        average_rate: How much of the policy the averaged copy, the one reported, takes over in a round.
        value_rate: How much of a round's estimate the after-state values take over; `mmd` only.
        positions: At most so many positions are looked ahead from in a round; `mmd` only.
        entropy: Entropy bonus; `ppo` only.
        clip: Clipping of the probability ratio; `ppo` only.
    """

    name: Literal["mmd", "ppo"] = "mmd"
    iterations: int = 400
    batch: int = 2048
    hidden: int = 64
    learning_rate: float = 3e-3
    epochs: int = 12
    step_size: float = 1.0
    magnet: float = 0.2
    magnet_rate: float = 0.05
    average_rate: float = 0.05
    value_rate: float = 0.2
    positions: int = 4096
    entropy: float = 0.01
    clip: float = 0.2

    def __post_init__(self) -> None:
        if self.name not in ("mmd", "ppo"):
            raise ConfigError(f"learner.name is {self.name!r}; expected 'mmd' or 'ppo'")
        for key in ("iterations", "batch", "hidden", "epochs", "positions"):
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"learner.{key} is {value!r}; expected a whole number of at least 1")
        for key in ("learning_rate", "step_size"):
            if not getattr(self, key) > 0:
                raise ConfigError(f"learner.{key} is {getattr(self, key)!r}; expected a number above 0")
        for key in ("magnet", "entropy"):
            if not getattr(self, key) >= 0:
                raise ConfigError(f"learner.{key} is {getattr(self, key)!r}; expected a number of at least 0")
        for key in ("magnet_rate", "average_rate", "value_rate", "clip"):
            if not 0 < getattr(self, key) <= 1:
                raise ConfigError(f"learner.{key} is {getattr(self, key)!r}; expected a number above 0, at most 1")
