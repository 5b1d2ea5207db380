"""How the report's figures look: the same colour for the same player everywhere.

Every player has a marker and a line style of its own as well, so that a figure survives a printer without colours.
"""

from __future__ import annotations

import io
import re
from typing import Any

WIDTH = 7.4  # inches; the width of the report's text

# player: (name in a legend, colour, marker, line style)
PLAYERS: dict[str, tuple[str, str, str, Any]] = {
    "lp": ("LP Bob", "#1b7a9c", "o", "-"),
    "game_optimal": ("game-optimal Bob", "#0b2f5c", "D", (0, (6, 2))),
    "tree_optimal": ("tree-optimal Bob", "#1a9850", "^", (0, (6, 2))),
    "learned": ("learned Bob", "#d95f02", "s", (0, (4, 1.5))),
    "uniform": ("uniform Bob", "#7f7f7f", "v", (0, (1, 1))),
    "informed": ("informed Bob", "#7b3294", "P", (0, (3, 1, 1, 1))),
    "random": ("random Bob", "#b8a000", "x", (0, (1, 2))),
    "tuned": ("Bob tuned to one Alice", "#9e9ac8", "p", (0, (3, 1))),
    "re_solving": ("re-solving checker", "#e7298a", "P", "-"),
    "covering": ("covering checker", "#8c510a", "X", (0, (2, 1))),
    "every_leaf": ("every leaf asked (HCH)", "#000000", "", (0, (5, 3))),
    "honest_alice": ("honest Alice", "#30632e", "^", "-"),
    "worst_case_alice": ("worst-case Alice", "#b2182b", "o", "-"),
    "best_response_alice": ("best-response Alice", "#000000", "x", "-"),
    "learned_alice": ("learned Alice", "#d95f02", "s", "-"),
    "random_alice": ("random Alice", "#b8a000", "v", "-"),
}
BOUND = {"color": "black", "linestyle": (0, (5, 2)), "linewidth": 1.1, "marker": ""}
VALUE = {"color": "#888888", "linestyle": "-", "linewidth": 3.2, "alpha": 0.6, "marker": ""}


def style(player: str, **changes: Any) -> dict[str, Any]:
    """The arguments of matplotlib's `plot` for a player."""
    name, colour, marker, line = PLAYERS[player]
    look = {"label": name, "color": colour, "marker": marker, "linestyle": line, "linewidth": 1.4, "markersize": 4.5}
    return {**look, **changes}


def colour(player: str) -> str:
    """The colour of a player."""
    return PLAYERS[player][1]


def name(player: str) -> str:
    """What a player is called."""
    return PLAYERS[player][0]


def canvas(columns: int, rows: int = 1, height: float = 2.9, **shared: Any) -> tuple[Any, Any]:
    """A figure of the report's width, and its axes (rows, columns) as an array without the sides of length 1."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, **shared)
    for axis in figure.axes:
        axis.tick_params(labelsize=8)
        axis.grid(color="#e4e4e4", linewidth=0.6)
        axis.set_axisbelow(True)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    return figure, axes


def label(axis: Any, across: str, up: str, title: str = "") -> None:
    """Name the axes, and say above what is seen."""
    axis.set_xlabel(across, fontsize=8.5)
    axis.set_ylabel(up, fontsize=8.5)
    axis.set_title(title, fontsize=9, loc="left")


def legend(axis: Any, **where: Any) -> None:
    """A legend inside the axes, each name once."""
    handles, names = axis.get_legend_handles_labels()
    once = dict(zip(names, handles, strict=True))
    axis.legend(once.values(), once.keys(), fontsize=7.5, framealpha=0.95, edgecolor="#cccccc", **where)


def legend_under(axis: Any, columns: int = 1) -> None:
    """A legend below the axes, where it hides nothing."""
    legend(axis, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=columns)


def whole_numbers(axis: Any) -> None:
    """Whole numbers on the horizontal axis."""
    from matplotlib.ticker import MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))


def legend_below(figure: Any, columns: int) -> None:
    """One legend for all axes, below them, each name once."""
    once: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, text in zip(*axis.get_legend_handles_labels(), strict=True):
            once.setdefault(text, handle)
    figure.legend(once.values(), once.keys(), fontsize=8, frameon=False, loc="outside lower center", ncols=columns)


def svg(figure: Any, salt: str) -> str:
    """The figure as an <svg> element, the same for the same numbers; `salt` keeps its ids apart from other figures'."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "path"}), io.StringIO() as file:
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        text = file.getvalue()
    return re.sub(r"\s*<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
