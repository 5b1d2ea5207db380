"""Where the time goes: every few milliseconds of processor time a signal asks what the program is doing.

Unlike a tracing profiler this costs next to nothing, and it charges the time inside NumPy and torch to whoever called.
"""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
INTERVAL = 0.005  # seconds
LIBRARY = {"optim": "optimizer", "autograd": "backward pass"}  # parts of torch that are no part of what called them
PARTS = {
    "fbs": "mathematics (fbs/)",
    "envs": "environment (envs/)",
    "agents/networks.py": "networks forward",
    "agents/policy.py": "networks forward",
    "agents/lies.py": "networks forward",
    "agents/conditional_flips.py": "networks forward",
    "agents/mirror_descent.py": "look-ahead and targets",
    "agents/lookahead.py": "look-ahead and targets",
    "agents/training.py": "checkpoints and curves",
    "agents/run_folder.py": "checkpoints and curves",
    "agents/report.py": "checkpoints and curves",
    "agents": "evaluation",
}  # the first that fits counts


class Sampler:
    """Counts what the main thread is doing, while it is entered.

    Attributes:
        counts: Looks by part of the program.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    @property
    def shares(self) -> dict[str, float]:
        """Percent of the time by part, the largest first."""
        total = max(self.counts.total(), 1)
        return {part: 100 * count / total for part, count in self.counts.most_common()}

    def __enter__(self) -> Sampler:
        self._before = signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
        return self

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)

    def _look(self, number: int, frame: FrameType | None) -> None:
        self.counts[part_of(frame)] += 1


def part_of(frame: FrameType | None) -> str:
    """The part of the program that the innermost frame of ours stands in, or of torch where that is told apart."""
    while frame is not None:
        file = frame.f_code.co_filename
        if "/torch/" in file:
            library = LIBRARY.get(file.split("/torch/", 1)[1].split("/", 1)[0])
            if library:
                return library
        elif file.startswith(f"{ROOT}/") and (part := part_of_file(file[len(f"{ROOT}/") :])):
            return part
        frame = frame.f_back
    return "other"


def part_of_file(name: str) -> str | None:
    """The part that a file of the repository belongs to; None for what belongs to none, such as the benchmarks."""
    return next((part for prefix, part in PARTS.items() if name == prefix or name.startswith(f"{prefix}/")), None)
