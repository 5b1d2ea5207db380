"""How long commands take to say something, and that nothing heavy is imported before it is needed."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measurement import Budget, Result, Row, Target, number, seconds_of

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {
    "python train.py --help": (["train.py", "--help"], Target(at_most=1.5)),
    "python -m fbs 'threshold 3,2,2,1,1 >= 5' 11100": (
        ["-m", "fbs", "threshold 3,2,2,1,1 >= 5", "11100"], Target(at_most=0.7),
    ),
    "python eval.py match --help": (["eval.py", "match", "--help"], None),
}  # fmt: skip
HEAVY = ("torch", "cvxpy", "scipy.optimize", "matplotlib", "highspy")


def measure(budget: Budget) -> Iterator[Result]:
    """Wall clock, as a user feels it, and the processor's time, which a busy machine does not change."""
    for name, (arguments, target) in COMMANDS.items():
        run(arguments)  # the files are in memory and compiled from here on
        wall = tuple(seconds_of(partial(run, arguments), time.perf_counter) for _ in range(budget.repeats))
        processor = [run(arguments) for _ in range(budget.repeats)]
        yield Row(name, wall, "s", target, f"{number(min(processor), 's')} of processor time")
    loaded = [name for name in HEAVY if name in imported()]
    yield Row("heavy modules that fbs and envs import", (len(loaded),), "", Target(at_most=0), f"of {', '.join(HEAVY)}")


def run(arguments: list[str]) -> float:
    """Run a Python command; returns its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imported() -> set[str]:
    """The modules in memory after the environment has been imported."""
    code = "import sys, fbs, envs.fbs_debate_v0; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    return set(done.stdout.split())
