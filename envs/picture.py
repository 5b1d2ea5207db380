"""A debate as a picture: the path that Bob takes down the tree, and what Alice answers on the way.

One row a claim. Its sub-claims are discs in the colour of Alice's answer, the sampled one carries the next row. What
Bob does not see is drawn only at the end: a red ring around each lie.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from envs.game import Game
from envs.render import outcome_text, place_text, response_text, sensitivity_text
from envs.rules import ASSIGN, RUNNING, SAMPLE, State
from envs.story import Round, Story, story
from fbs.visible import visible

ROWS = 6  # claims drawn; of a longer debate the last ones
DISCS = 9  # sub-claims drawn; of a wider claim the first ones and the sampled one
WIDTH, ROW, HEAD, FOOT, DPI = 10.0, 1.65, 1.1, 0.1, 100  # inches, and dots per inch
LEFT, RIGHT, TEXT = 0.55, 5.55, 6.2  # where the discs may stand, and where the words start
INK, FAINT, LIE = "#22313f", "#b8c0c8", "#d62839"
ANSWER = {1: "#2a9d8f", 0: "#f2a541", None: "#dfe4e8"}
WINNER = {True: "#2a6f97", False: "#8f2d56"}


def picture(game: Game, states: Sequence[State], pending: Sequence[int] = (), row: int = 0) -> np.ndarray:
    """The debate in a row of `states` (see `envs.story`) as uint8 (height, width, 3), the same size all along.

    Args:
        game: The rules.
        states: Every state so far, from `rules.deal` on.
        pending: Bits of the assignment that Alice is giving now.
        row: Which debate of the batch.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    told = story(game, states, row)
    if pending and states[-1].phase == ASSIGN:
        told.rounds[-1].assignment = tuple(pending)
    height = HEAD + ROW * (min(game.depth, ROWS) + 1) + FOOT
    figure = Figure((WIDTH, height), dpi=DPI, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(-height, 0))
    axes.set_axis_off()
    _head(axes, game)
    x, shown = (LEFT + RIGHT) / 2, told.rounds[-ROWS - 1 :]
    for number, here in enumerate(shown):
        x = _row(axes, game, told, here, x, -HEAD - ROW * number)
    if told.ending != RUNNING:
        drawn = len(shown) - (shown[-1].level == 0)  # rows with sub-claims below
        _foot(axes, told, -HEAD - ROW * drawn - (1.35 if told.oracle is not None else 0.8))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _head(axes: Any, game: Game) -> None:
    title = f"A debate of depth {game.depth} at rho {game.env.rho:g}"
    axes.text(LEFT - 0.2, -0.4, title, size=15, weight="bold", color=INK, va="center")
    x = TEXT
    for answer, meaning in ((1, "Alice says true"), (0, "she says false")):
        axes.scatter([x], [-0.4], s=70, color=ANSWER[answer], zorder=3)
        axes.text(x + 0.14, -0.4, meaning, size=9, color=INK, va="center")
        x += 1.5
    axes.scatter([x], [-0.4], s=90, facecolor="none", edgecolor=LIE, linewidth=2, zorder=3)
    axes.text(x + 0.16, -0.4, "a lie", size=9, color=INK, va="center")


def _row(axes: Any, game: Game, told: Story, here: Round, x: float, y: float) -> float:
    """Draw one claim with its top at y, hanging from x. Returns where the next one hangs."""
    _words(axes, game, told, here, y)
    over = told.ending != RUNNING
    if not here.path:
        _disc(axes, x, y, here.claimed, over and here.claimed != here.truth, "root")
    if here.level == 0:
        if told.oracle is not None:
            _oracle(axes, told, x, y)
        return x
    if here.aggregator is None:
        return x
    sampled = -1 if here.response is None else here.response - SAMPLE
    shown, lies = _shown(here.aggregator.width, sampled), here.lies if over else ()
    gap = min(1.0, (RIGHT - LEFT) / max(len(shown) - 1, 1))
    half = gap * (len(shown) - 1) / 2
    start = min(max(x, LEFT + half), RIGHT - half) - half
    below = y - ROW
    for number, i in enumerate(shown):
        at = start + gap * number
        if i is None:
            more = f"+{here.aggregator.width - len(shown) + 1}"
            axes.text(at, below, more, size=10, color=INK, ha="center", va="center")
            continue
        bold = i == sampled
        line = {"color": INK, "linewidth": 3.5} if bold else {"color": FAINT, "linewidth": 1.2}
        axes.plot([x, at], [y, below], zorder=1, **line)
        answer = here.assignment[i] if i < len(here.assignment) else None
        _disc(axes, at, below, answer, i in lies, str(i), faint=sampled >= 0 and not bold)
    return start + gap * shown.index(sampled) if sampled >= 0 else x


def _shown(width: int, sampled: int) -> list[int | None]:
    """The sub-claims that are drawn; None stands for those that are not."""
    if width <= DISCS:
        return list(range(width))
    if sampled < DISCS - 1:
        return [*range(DISCS - 1), None]
    return [*range(DISCS - 2), None, sampled]


def _disc(axes: Any, x: float, y: float, answer: int | None, lie: bool, name: str, faint: bool = False) -> None:
    alpha = 0.45 if faint else 1.0
    axes.scatter([x], [y], s=980, facecolor="white", edgecolor=LIE if lie else "white", linewidth=2.5, zorder=2)
    axes.scatter([x], [y], s=560, color=ANSWER[answer], edgecolor="white", linewidth=1.5, zorder=3, alpha=alpha)
    if answer is not None:
        axes.text(x, y - 0.01, str(answer), size=13, weight="bold", color="white", ha="center", va="center", zorder=4)
    plain = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    axes.text(x - 0.27, y + 0.2, name, size=8, color=INK, ha="right", va="center", zorder=4, alpha=alpha, bbox=plain)


def _oracle(axes: Any, told: Story, x: float, y: float) -> None:
    arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (x, y - 0.62), (x, y - 0.27), arrowprops=arrow)
    box = {"boxstyle": "round,pad=0.45", "facecolor": ANSWER[told.oracle], "edgecolor": INK, "linewidth": 1.5}
    axes.text(x, y - 0.8, str(told.oracle), size=13, weight="bold", color="white", ha="center", va="center", bbox=box)
    axes.text(x + 0.28, y - 0.8, "the oracle", size=9, color=INK, va="center")


def _words(axes: Any, game: Game, told: Story, here: Round, y: float) -> None:
    name = place_text(here.path)
    lines = [(name[0].upper() + name[1:], {"weight": "bold", "size": 11})]
    if here.text:
        lines += [
            (line, {"size": 10})
            for line in textwrap.wrap(visible(here.text.strip()), 44, max_lines=2, placeholder=" ...")
        ]
    if here.aggregator is not None and here.level > 0:
        written = textwrap.shorten(here.aggregator.written, 40, placeholder=" ...")
        lines.append((f"decided by: {written}", {"size": 10, "style": "italic"}))
    if here.finished:
        lines.append((sensitivity_text(game, here), {"size": 10}))
    if here.response is not None:
        lines.append((f"Bob {response_text(here.response)}", {"size": 10, "weight": "bold", "color": WINNER[False]}))
    if here.level == 0 and told.oracle is not None:
        lines.append((f"the oracle answers {told.oracle}", {"size": 10, "weight": "bold"}))
    top = y + 0.2
    for text, style in lines:
        axes.text(TEXT, top, text, va="center", parse_math=False, **{"color": INK, **style})  # $5 is a price
        top -= 0.25


def _foot(axes: Any, told: Story, y: float) -> None:
    truth = "true" if told.rounds[0].truth else "false"
    text = f"{outcome_text(told)[:-1]}. The root claim was {truth}."
    box = {"boxstyle": "round,pad=0.5", "facecolor": WINNER[told.reward > 0], "edgecolor": "none"}
    axes.text(WIDTH / 2, y, text, size=12, weight="bold", color="white", ha="center", va="center", bbox=box)
