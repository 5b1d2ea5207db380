"""Where the time goes: a second thread looks at what the first one is doing, every few milliseconds.

Unlike a tracing profiler this costs next to nothing, and it charges the time inside NumPy and torch to whoever called.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
INTERVAL = 0.002  # seconds
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
    """Counts what the thread that made it is doing, while it is entered.

    Attributes:
        counts: Looks by part of the program.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._watched = threading.get_ident()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def shares(self) -> dict[str, float]:
        """Percent of the time by part, the largest first."""
        total = max(self.counts.total(), 1)
        return {part: 100 * count / total for part, count in self.counts.most_common()}

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(INTERVAL):
            frame = sys._current_frames().get(self._watched)
            if frame is not None:
                self.counts[part_of(frame)] += 1
            time.sleep(0)


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
