"""Learners trained for the benchmarks: without a run folder, on one thread, with a look at them on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student
from tqdm import tqdm

from agents.learner_config import LearnerConfig
from envs.config import EnvConfig, ProblemConfig


class Trained(NamedTuple):
    """A pair at the end of its training.

    Attributes:
        players: As the learners' `players()`. game: What they are measured on, on NumPy and without trembles.
        curve: What the look at them gave, after each round it was asked for: (round, CPU seconds so far, look).
        cpu_seconds: Of the training alone.
    """

    players: dict[str, Any]
    game: Any
    curve: list[tuple[int, float, Any]]
    cpu_seconds: float


def train(
    env: EnvConfig,
    problem: ProblemConfig,
    learner: LearnerConfig,
    seed: int,
    every: int | None = None,
    look: Callable[[Any, dict[str, Any]], Any] | None = None,
) -> Trained:
    """Train a pair; every so many rounds and at the end, keep what `look(game, players)` returns."""
    import torch

    from agents.learning import LEARNERS
    from envs.game import Game

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    game = Game(env, problem, torch)
    arena = game.on(np).evaluation()
    pair = LEARNERS[learner.name](game, learner, seed)
    curve, seconds = [], 0.0
    for done in range(1, learner.iterations + 1):
        started = time.process_time()
        pair.step()
        seconds += time.process_time() - started
        if look and (done == learner.iterations or (every and done % every == 0)):
            curve.append((done, seconds, look(arena, pair.players())))
    return Trained(pair.players(), arena, curve, seconds)


def in_parallel(work: Callable[..., Any], tasks: list[tuple], jobs: int) -> list[Any]:
    """`work(*task)` for each task, `jobs` at a time, with a progress bar."""
    with ProcessPoolExecutor(jobs) as pool:
        return list(tqdm(pool.map(work, *zip(*tasks, strict=True)), total=len(tasks), unit="run"))


def interval(values: np.ndarray) -> tuple[float, float]:
    """Student's 95% interval of the mean of independent seeds; NaN for one alone."""
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
    return values.mean() - half, values.mean() + half


def shown(values: Any, digits: int = 3) -> str:
    """Mean and 95% interval of the seeds, as a table has them; the value alone of one seed."""
    values = np.asarray(values, float)
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    low, high = interval(values)
    return f"{values.mean():.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
