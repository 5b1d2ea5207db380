"""The PettingZoo environment beside PettingZoo's own games, one agent and one action at a time.

All are played the same way: `agent_iter`, `last`, a random legal action from the mask, `None` when it is over; every
step counts, those of finished agents as well.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.measurement import Budget, Result, Row, Skipped, Target, interleaved, rate_of, ratios
from envs import fbs_debate_v0

PEERS = ("tictactoe_v3", "connect_four_v3")
RATIO = Target(at_least=1.5)


def measure(budget: Budget) -> Iterator[Result]:
    """Steps a second of each, and ours as a multiple of theirs."""
    players = {"fbs_debate_v0": episodes(fbs_debate_v0.env(), budget)}
    for name in PEERS:
        try:
            players[name] = episodes(peer(name), budget)
        except ImportError as error:  # PettingZoo's own for a missing extra is one too
            yield Skipped(f"{name} env()", f"not installed ({error})")
    steps = interleaved(players, budget.repeats)
    for name, values in steps.items():
        yield Row(f"{name} env()", values, "steps/s")
    for name in players:
        if name in PEERS:
            yield Row(f"fbs_debate_v0 / {name}", ratios(steps["fbs_debate_v0"], steps[name]), "x", RATIO)


def peer(name: str) -> Any:
    """One of PettingZoo's classic environments; ImportError without the extra that it needs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the registry's own deprecation warnings
        return import_module(f"pettingzoo.classic.{name}").env()


def episodes(env: Any, budget: Budget) -> Callable[[], float]:
    """A measure of steps a second."""
    episode(env)  # what is made once is not counted
    return lambda: rate_of(lambda: episode(env), budget.seconds)


def episode(env: Any) -> int:
    """One game of random legal actions; returns its steps."""
    steps = 0
    env.reset()
    for _agent in env.agent_iter():
        observation, _, terminated, truncated, _ = env.last()
        choices = np.flatnonzero(observation["action_mask"]).tolist()
        env.step(None if terminated or truncated else random.choice(choices))
        steps += 1
    return steps
