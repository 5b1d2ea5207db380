"""The default training run: how long, at which score, and where the time goes.

The whole run is made once, as `python train.py` makes it, with the clock of the wall; its iterations are measured
again one by one, on one thread of torch and on two.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Iterator
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
        yield Row("the default run, as `python train.py`", (summary["seconds"],), "s", Target(at_most=180), "wall clock")
        score = summary["catch_ratio"]["mean"]
        yield Row("its mean catch ratio", (score,), "", Target(at_least=0.9), f"seed {config.seed}")
    shares = sampler.shares
    ours = sum(shares.get(part, 0.0) for part in OURS)
    yield Row("of its time: environment and mathematics", (ours,), "%", Target(at_most=20))
    for part, share in shares.items():
        yield Row(f"of its time: {part}", (share,), "%")


def iterations(budget: Budget) -> Iterator[Result]:
    """Seconds an iteration, by torch's number of threads."""
    import torch

    from agents.configuration import load_train_config
    from agents.training import new_learner, training_game

    config, _ = load_train_config(())
    learner = new_learner(config, training_game(config))

    def block(threads: int) -> float:
        torch.set_num_threads(threads)
        return seconds_of(lambda: [learner.step() for _ in range(BLOCK)], time.perf_counter) / BLOCK

    block(1)
    cores = len(os.sched_getaffinity(0))
    measures: dict[str, Any] = {str(n): lambda n=n: block(n) for n in range(1, min(cores, 2) + 1)}
    seconds = interleaved(measures, budget.repeats)
    torch.set_num_threads(1)
    yield Row("one iteration, one thread", seconds["1"], "s", note="wall clock")
    samples = tuple(config.learner.batch / second for second in seconds["1"])
    yield Row("samples: self-play debates learned from", samples, "debates/s")
    if "2" in seconds:
        yield Row("one thread / two threads", ratios(seconds["1"], seconds["2"]), "x", note="what a second core brings")
    else:
        yield Skipped("a second thread", "there is one core")
