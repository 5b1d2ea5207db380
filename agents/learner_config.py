"""What a learner is configured by."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from envs.config import ConfigError, plain_numbers

Name = Literal["mmd", "tabular", "distilled", "ppo", "nfsp"]
Opponent = Literal["learned", "lp", "game_optimal", "uniform", "random"]

# Beyond these a machine's memory, or a person's patience, would be the first to know.
MOST = {
    "iterations": 10_000_000,
    "batch": 1_000_000,
    "hidden": 8192,
    "epochs": 10_000,
    "positions": 1_000_000,
    "minibatch": 1_000_000,
}


@dataclass(frozen=True)
class LearnerConfig:
    """How Alice and Bob learn.

    Args:
        name: `mmd`, magnetic mirror descent on exact one-step look-ahead; `tabular`, the same in tables instead of
            networks; `distilled`, networks fitted to such tables, for libraries of many aggregators; `ppo`, proximal
            policy optimisation on sampled returns, or `nfsp`, neural fictitious self-play (the controls).
        bob: `learned`, or the name of a scripted Bob, such as `lp`, whom Alice learns against; `mmd` only.
        iterations: Rounds of self-play and update.
        batch: Debates a round.
        hidden: Width of the networks' layers.
        learning_rate: Adam's step size at the start; it falls to 0 linearly.
        epochs: Gradient steps a round.
        step_size: Mirror descent's step (eta) at the start, which falls to 0 linearly: how far one round moves a policy
            along its action values; not `ppo`, not `nfsp`.
        magnet: Pull towards the magnet, a slowly moving copy of the policy (alpha); not `ppo`, not `nfsp`.
        magnet_rate: How much of the policy the magnet takes over in a round; not `ppo`, not `nfsp`.
        average_rate: How much of the policy the averaged copy, the one reported, takes over in a round.
        value_rate: How much of a round's estimate the after-state values take over, those of sub-claims from a tenth of
            the rounds on; `mmd` only.
        positions: At most so many positions are looked ahead from in a round; `mmd` only.
        minibatch: At most so many of them are fitted in one gradient step; `mmd` and `distilled` only.
        entropy: Entropy bonus; `ppo` only.
        clip: Clipping of the probability ratio; `ppo` only.
        anticipatory: In how many of the debates each plays its best response and not its average; `nfsp` only.
    """

    name: Name = "mmd"
    bob: Opponent = "learned"
    iterations: int = 300
    batch: int = 2048
    hidden: int = 64
    learning_rate: float = 6e-3
    epochs: int = 24
    step_size: float = 4.0
    magnet: float = 0.2
    magnet_rate: float = 0.1
    average_rate: float = 0.05
    value_rate: float = 0.2
    positions: int = 4096
    minibatch: int = 1024
    entropy: float = 0.01
    clip: float = 0.2
    anticipatory: float = 0.1

    def __post_init__(self) -> None:
        plain_numbers(self)
        for item in fields(self):
            if item.type == "float":
                self._check(item.name, isinstance(getattr(self, item.name), float), "a number")
        for key, names in (("name", get_args(Name)), ("bob", get_args(Opponent))):
            self._check(key, getattr(self, key) in names, f"one of {', '.join(names)}")
        if self.bob != "learned" and self.name != "mmd":
            raise ConfigError(f"learner.bob is {self.bob!r}, which takes learner.name mmd, not {self.name}")
        for key in ("iterations", "batch", "hidden", "epochs", "positions", "minibatch"):
            self._check(key, isinstance(getattr(self, key), int) and 1 <= getattr(self, key) <= MOST[key],
                        f"a whole number from 1 to {MOST[key]}")  # fmt: skip
        for key in ("learning_rate", "step_size"):
            self._check(key, 0 < getattr(self, key) <= 1000, "a number above 0, at most 1000")
        for key in ("magnet", "entropy"):
            self._check(key, 0 <= getattr(self, key) <= 1000, "a number from 0 to 1000")
        for key in ("magnet_rate", "average_rate", "value_rate", "clip", "anticipatory"):
            self._check(key, 0 < getattr(self, key) <= 1, "a number above 0, at most 1")

    def _check(self, key: str, holds: bool, expected: str) -> None:
        value = getattr(self, key)
        if isinstance(value, bool) or not holds:
            raise ConfigError(f"learner.{key} is {value!r}; expected {expected}")
