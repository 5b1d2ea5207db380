"""Growth curves as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.measurement import Curve

MOST_TICKS = 6  # on the horizontal axis, one for each measurement; with more they are left to matplotlib


def draw(topic: str, curves: Sequence[Curve], folder: Path) -> Path:
    """A picture of a topic's curves, a panel for each title; lines of equal title share it."""
    from matplotlib.figure import Figure

    titles = list(dict.fromkeys(curve.title for curve in curves))
    figure = Figure(figsize=(5.2 * len(titles), 3.8), layout="constrained")
    for axes, title in zip(figure.subplots(1, len(titles), squeeze=False)[0], titles, strict=True):
        panel = [curve for curve in curves if curve.title == title]
        for curve in panel:
            for label, points in curve.lines.items():
                axes.plot(*zip(*points, strict=True), marker="o", label=label)
        axes.set(title=title, xlabel=panel[0].x, ylabel=panel[0].y)
        measured = sorted({x for curve in panel for points in curve.lines.values() for x, _ in points})
        axes.margins(y=0.2)  # room for the legend
        for axis in "xy":
            logarithmic = axis in panel[0].logarithmic
            axes.set(**({f"{axis}scale": "log"} if logarithmic else {f"{axis}lim": (0, None)}))
        if len(measured) <= MOST_TICKS:
            axes.set_xticks(measured, [f"{x:,}" for x in measured])
            axes.set_xticks([], minor=True)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{topic}.png"
    figure.savefig(path, dpi=110)
    return path
