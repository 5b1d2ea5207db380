"""How fast the environment and the batched rules are, on one core.

    python benchmarks/environment.py

Prints (1) actions a second of `fbs_debate_v0.env()` beside PettingZoo's tictactoe_v3 (extra `bench`), played the same
way in turns: `agent_iter`, `last`, a random legal action from the mask, `None` when it is over; and (2) moves a second
of the batched rules, a move being one decompose, assign, lie or respond of one debate that is still running.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import random
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from envs import fbs_debate_v0, rules
from envs.config import EnvConfig, ProblemConfig
from envs.engine import step
from envs.game import Game
from envs.rules import ASSIGN, LIE, OVER, State

Array = Any  # numpy.ndarray or torch.Tensor
ROUNDS, SECONDS, DEBATES = 5, 1.0, 8192


def actions_per_second(env: Any) -> float:
    """Whole episodes of random legal actions for a while; the steps of finished agents count as well."""
    steps, start = 0, time.process_time()
    while time.process_time() - start < SECONDS:
        env.reset()
        for _agent in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            choices = np.flatnonzero(observation["action_mask"]).tolist()
            env.step(None if terminated or truncated else random.choice(choices))
            steps += 1
    return steps / (time.process_time() - start)


def random_move(game: Game, state: State, u: Array) -> Array:
    """Whole legal moves, uniform, drawn from the library's tables with u (N,)."""
    library = game.library
    if state.phase not in (ASSIGN, LIE):
        return library.array(u * (game.menu if state.phase == rules.DECOMPOSE else 2 + game.width), "int64")
    a = rules.aggregator(game, state)
    output = library.array(state.claimed if state.phase == ASSIGN else state.truth, "int64")
    rank = library.array(u * library.preimage_size[a, output], "int64")
    z = library.bits[library.preimage[a, output, rank]]
    return z if state.phase == ASSIGN else z ^ state.assignment


def moves_per_second(game: Game, uniform: Any) -> float:
    """Batches of debates from beginning to end for a while."""
    moves, start = 0, time.process_time()
    while time.process_time() - start < SECONDS:
        state = rules.deal(game, uniform(DEBATES, game.draws))
        while state.phase != OVER:
            moves += DEBATES - int(state.over.sum())
            state = step(game, state, random_move(game, state, uniform(DEBATES, 1)[:, 0]), uniform(DEBATES, game.draws))
    return moves / (time.process_time() - start)


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the registry's own deprecation warnings
        from pettingzoo.classic import tictactoe_v3

    pairs = []
    for _ in range(ROUNDS):
        other, ours = tictactoe_v3.env(), fbs_debate_v0.env()
        pairs.append((actions_per_second(other), actions_per_second(ours)))
    print(f"tictactoe_v3 env()    {statistics.median(p[0] for p in pairs):12,.0f} actions a second")
    print(f"fbs_debate_v0 env()   {statistics.median(p[1] for p in pairs):12,.0f} actions a second")
    print(f"ratio                 {statistics.median(ours / other for other, ours in pairs):12.2f}")

    import torch

    torch.set_num_threads(1)
    rng, game = np.random.default_rng(0), Game(EnvConfig(depth=3), ProblemConfig())
    sources = {
        "NumPy": (game, lambda n, k: rng.random((n, k))),
        "torch": (game.on(torch), lambda n, k: torch.rand(n, k, dtype=torch.float64)),
    }
    for name, (on, uniform) in sources.items():
        rate = statistics.median(moves_per_second(on, uniform) for _ in range(ROUNDS))
        print(f"batched rules, {name}  {rate:12,.0f} moves a second (depth 3, width 5, {DEBATES} debates at a time)")


if __name__ == "__main__":
    main()
