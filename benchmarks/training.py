"""The default training run: how long, at which score, and where the time goes.

The whole run is made once, as `python train.py` makes it, with the clock of the wall; its iterations are measured
again one by one, on one thread of torch and on two.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.measurement import Budget, Result, Row, Skipped, Target, interleaved, ratios, seconds_of
from benchmarks.sampler import Sampler

QUICK = ("--learner.iterations", "25", "--evaluations", "1")  # evaluations as dense as in the default run
OURS = ("environment (envs/)", "mathematics (fbs/)")
BLOCK = 5  # iterations in one measurement


def measure(budget: Budget) -> Iterator[Result]:
    """The run, its profile, samples a second, a second core."""
    yield from run(QUICK if budget.quick else (), budget)
    yield from iterations(budget)


def run(flags: tuple[str, ...], budget: Budget) -> Iterator[Result]:
    """A whole run, watched."""
    from agents.configuration import load_train_config
    from agents.run_folder import RunFolder
    from agents.training import train

    config, _ = load_train_config(flags)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()), Sampler() as sampler:
        summary, _ = train(config, RunFolder(Path(folder) / "run"), None, started)
    if budget.quick:
        yield Skipped("the default run's length and score", "a quick run trains for a few iterations only")
    else:
        seconds, score = summary["seconds"], summary["catch_ratio"]["mean"]
        yield Row("the default run, as `python train.py`", (seconds,), "s", Target(at_most=180), "wall clock")
        yield Row("its mean catch ratio", (score,), "", Target(at_least=0.9), f"seed {config.seed}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    yield Row(
        "most memory of the process so far", (peak,), "MB", Target(at_most=2000), "with --only training: the run's"
    )
    shares = sampler.shares
    ours = sum(shares.get(part, 0.0) for part in OURS)
    yield Row("of its time: environment and mathematics", (ours,), "%", Target(at_most=20))
    for part, share in shares.items():
        yield Row(f"of its time: {part}", (share,), "%")


def iterations(budget: Budget) -> Iterator[Result]:
    """Seconds an iteration, and what a second core brings: to one run as a second thread, or with a second run."""
    cores = len(os.sched_getaffinity(0))
    measures: dict[str, Any] = {"one": lambda: iterate(1)}
    if cores > 1:
        measures["two threads"] = lambda: iterate(2)
    seconds = interleaved(measures, budget.repeats)
    yield Row("one iteration, one thread", seconds["one"], "s", note="wall clock")
    samples = tuple(new_learner().config.batch / second for second in seconds["one"])
    yield Row("samples: self-play debates learned from", samples, "debates/s")
    if cores == 1:
        yield Skipped("a second core", "there is none")
        return
    yield Row("a second core: speed of one run on two threads", ratios(seconds["one"], seconds["two threads"]), "x")
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(iterate, [1, 1]))  # each has imported everything from here on
        rounds = interleaved(
            {"alone": lambda: pool.submit(iterate, 1).result(), "pair": lambda: max(pool.map(iterate, [1, 1]))},
            budget.repeats,
        )
    both = tuple(2 * one for one in ratios(rounds["alone"], rounds["pair"]))
    yield Row("a second core: speed of two runs at a time, together", both, "x")


@cache
def new_learner() -> Any:
    """The default learner at its start."""
    from agents.configuration import load_train_config
    from agents.training import new_learner, training_game

    config, _ = load_train_config(())
    return new_learner(config, training_game(config))


def iterate(threads: int) -> float:
    """Wall clock of one iteration, the mean of a few."""
    import torch

    learner = new_learner()
    torch.set_num_threads(threads)
    learner.step()
    return seconds_of(lambda: [learner.step() for _ in range(BLOCK)], time.perf_counter) / BLOCK
