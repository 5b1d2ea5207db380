"""What the experiments with learners share: training without a run folder, their command line and their tables."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student
from tqdm import tqdm

from agents.learner_config import LearnerConfig
from envs.config import EnvConfig, ProblemConfig
from fbs.command import check_json
from fbs.whole_file import WriteError


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


def options(description: str | None, seeds: bool = True) -> argparse.ArgumentParser:
    """A command line with --json, and for experiments that are run seed by seed --seeds and --jobs."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if seeds:
        parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="SEED")
        parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--json", metavar="PATH", help="write everything that was measured there too")
    return parser


def choice(parser: argparse.ArgumentParser, flag: str, names: Iterable[str]) -> None:
    """An option that takes some of the names, by default all of them."""
    names = list(names)
    parser.add_argument(flag, nargs="+", choices=names, default=names, metavar="NAME", help=f"of {', '.join(names)}")


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line; where --json cannot be written it ends here, before the work."""
    given = parser.parse_args()
    try:
        check_json(given.json)
    except WriteError as error:
        parser.error(str(error))
    return given


def markdown(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table."""
    head, *body = (f"| {' | '.join(map(str, cells))} |" for cells in (columns, *rows))
    return "\n".join([head, "|---" * len(columns) + "|", *body])


Panels = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]  # by title, row and kind: a value for each seed


def dots(panels: Panels, lines: Mapping[str, float], path: Path) -> None:
    """A figure with all runs in it: a dot for each seed's value, row by row, coloured by kind, panel beside panel.

    Args:
        panels: What is drawn; panels share their rows.
        lines: Of some panels, a value to compare with.
        path: Where the picture goes.
    """
    from matplotlib.figure import Figure

    rows = list(dict.fromkeys(row for panel in panels.values() for row in panel))
    kinds = list(dict.fromkeys(kind for panel in panels.values() for row in panel.values() for kind in row))
    size = (3.2 + 3.4 * len(panels), 0.36 * len(rows) + 1.2 + 0.2 * len(kinds))
    drawing = Figure(figsize=size, layout="constrained")
    for axes, (title, panel) in zip(drawing.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for row, values in panel.items():
            for kind, each in values.items():
                number = kinds.index(kind)
                place = rows.index(row) + 0.5 * ((number + 0.5) / len(kinds) - 0.5)
                axes.plot(each, [place] * len(each), "os^Dv"[number % 5], color=f"C{number}", alpha=0.7, markersize=5)
        if title in lines:
            axes.axvline(lines[title], color="#999999", linewidth=1, linestyle=":")
        axes.set(xlabel=title, yticks=range(len(rows)), ylim=(len(rows) - 0.5, -0.5))
        axes.set_yticklabels(rows if axes.get_subplotspec().is_first_col() else [])
        axes.grid(axis="y", color="#eeeeee")
        axes.set_axisbelow(True)
    for number, kind in enumerate(kinds):
        drawing.axes[0].plot([], [], "os^Dv"[number % 5], color=f"C{number}", label=kind)
    drawing.legend(loc="outside lower center", ncols=len(kinds), fontsize=8)
    drawing.savefig(path, dpi=150)


def best_catch(game: Any, bob: Any) -> float:
    """How often a false root claim is caught when Alice answers Bob best, by this game's own oracle."""
    from agents.exact import best_response_alice

    best = best_response_alice(game, bob).catch[-1]
    return float(best[1, 0] + best[0, 1]) / 2


def interval(values: np.ndarray) -> tuple[float, float]:
    """Student's 95% interval of the mean of independent seeds; NaN for one alone."""
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
    return values.mean() - half, values.mean() + half


def each_seed(values: Iterable[float], digits: int = 3) -> str:
    """The seeds' values one after the other, as a table has them."""
    return " ".join(f"{value:.{digits}f}" for value in values)


def shown(values: Any, digits: int = 3) -> str:
    """Mean and 95% interval of the seeds, as a table has them; the value alone of one seed."""
    values = np.asarray(values, float)
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    low, high = (round(end, digits) + 0.0 for end in interval(values))  # no -0.000
    return f"{values.mean():.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
