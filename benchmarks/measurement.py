"""What a benchmark says: numbers with their spread, lines about what was left out, and growth curves."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

Clock = Callable[[], float]


@dataclass(frozen=True)
class Budget:
    """How much to measure.

    Attributes:
        repeats: Measurements behind a median.
        seconds: How long one measurement of a rate lasts.
        quick: Smaller problems, and no whole training run.
    """

    repeats: int = 5
    seconds: float = 1.0
    quick: bool = False


@dataclass(frozen=True)
class Target:
    """What a median should be: `at_least` or `at_most` a number."""

    at_least: float | None = None
    at_most: float | None = None

    def met(self, value: float) -> bool:
        low, high = self.at_least, self.at_most
        return (low is None or value >= low) and (high is None or value <= high)

    def text(self, unit: str) -> str:
        """Such as `>= 10M`."""
        return f"<= {number(self.at_most, unit)}" if self.at_least is None else f">= {number(self.at_least, unit)}"


@dataclass(frozen=True)
class Row:
    """One number of the table.

    Attributes:
        name: What was measured.
        values: The repeats.
        unit: Such as `moves/s`; `x` for a ratio of two measurements of one run.
        target: What the median should be, if anything was asked.
        note: More, in a few words.
    """

    name: str
    values: tuple[float, ...]
    unit: str
    target: Target | None = None
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None without one."""
        return None if self.target is None else self.target.met(self.median)

    def to_json(self) -> dict[str, Any]:
        """As it is written to a file: the median, its spread, and every repeat."""
        spread = {"median": self.median, "low": min(self.values), "high": max(self.values)}
        target = None if self.target is None else {k: v for k, v in asdict(self.target).items() if v is not None}
        about = {"name": self.name, "unit": self.unit, "note": self.note, "repeats": list(self.values)}
        return {**about, **spread, "target": target, "holds": self.holds}

    def __str__(self) -> str:
        low, middle, high = (number(x, self.unit) for x in (min(self.values), self.median, max(self.values)))
        spread = f"[{low}, {high}]" if len(self.values) > 1 else "one run"
        verdict = {True: "ok", False: "MISSED", None: ""}[self.holds]
        target = f"{self.target.text(self.unit)} {verdict}" if self.target else ""
        unit = "" if self.unit == "s" else self.unit
        line = f"{self.name:<72} {middle:>7} {unit:<9} {spread:<18} {target:<13}"
        return f"{line.rstrip()}{'  ' if self.note else ''}{self.note}"


@dataclass(frozen=True)
class Skipped:
    """Something that was not measured, and why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: left out, {self.why}"


@dataclass(frozen=True)
class Curve:
    """How a cost grows: one panel, lines by their label.

    Attributes:
        lines: For each label the points (x, y).
        logarithmic: Which axes: `xy`, `x` or none of them; the others start at 0.
    """

    title: str
    x: str
    y: str
    lines: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    logarithmic: str = "xy"


Result = Row | Skipped | Curve


def number(value: float, unit: str = "") -> str:
    """Three significant digits: seconds as s, ms or us, others with k, M or G for thousands and more."""
    prefixes = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)) if unit == "s" else (("G", 1e9), ("M", 1e6), ("k", 1e3))
    for prefix, size in prefixes:
        if abs(value) >= 0.9995 * size:
            return f"{value / size:.3g}{prefix}"
    return f"{value:.3g}"


def seconds_of(work: Callable[[], Any], clock: Clock = time.process_time) -> float:
    """How long one call takes; by the processor's clock, which others on the machine disturb least."""
    start = clock()
    work()
    return clock() - start


def rate_of(work: Callable[[], int], seconds: float, clock: Clock = time.process_time) -> float:
    """What `work` counts, a second: it is called until the time is over."""
    total, start = 0, clock()
    while True:
        total += work()
        if (spent := clock() - start) >= seconds:
            return total / spent


def interleaved(measures: dict[str, Callable[[], float]], repeats: int) -> dict[str, tuple[float, ...]]:
    """Each measure `repeats` times, in turns, so that a disturbance of the machine meets them all."""
    rounds = [{name: measure() for name, measure in measures.items()} for _ in range(repeats)]
    return {name: tuple(one[name] for one in rounds) for name in measures}


def ratios(numerators: Iterable[float], denominators: Iterable[float]) -> tuple[float, ...]:
    """Of measurements taken side by side."""
    return tuple(a / b for a, b in zip(numerators, denominators, strict=True))
