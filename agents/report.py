"""What a run shows: the progress line, the curves and pictures for TensorBoard, the table at the end."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np

from agents.positions import responses
from envs.engine import Player
from envs.game import Game
from envs.rules import SAMPLE
from fbs.aggregator import Aggregator
from fbs.whole_file import WriteError, refusals_named

PANELS = 12  # assignments in one picture

LAYOUT = {
    "Bob beside the linear program": {
        "worst-case catch": [
            "Multiline",
            ["eval/bob/worst_case_catch", "eval/bob/worst_case_catch_last", "eval/bob/game_value", "eval/bob/bound"],
        ],
        "catch rate against the learned Alice": [
            "Multiline",
            ["eval/bob/catch_rate", "eval/bob/game_value", "eval/bob/bound"],
        ],
        "catch ratio": [
            "Multiline",
            ["eval/bob/catch_ratio_mean", "eval/bob/catch_ratio_mean_last", "eval/bob/catch_ratio_min"],
        ],
    },
    "Both": {
        "exploitability": ["Multiline", ["eval/exploitability", "eval/exploitability/alice", "eval/exploitability/bob"]]
    },
}

# key in the measures, name, what it is at best, what it says
ROWS = (
    ("worst_case_catch", "worst-case catch", "game_value", "a false root claim is caught, Alice at her worst for Bob"),
    ("catch_ratio.mean", "catch ratio, mean", 1.0, "Bob's sampling beside the LP's, over the assignments"),
    ("catch_ratio.min", "catch ratio, lowest", 1.0, "the same at the assignment he handles worst"),
    ("optimal_face_tv", "distance to optimum", 0.0, "sampling probability to move to reach an LP optimum"),
    ("challenge_errors.stable", "wrong challenges", 0.0, "Bob challenges an assignment that is stable"),
    ("challenge_errors.unstable", "missed challenges", 0.0, "Bob does not challenge one that is not stable"),
    ("exploitability.bob", "Bob's exploitability", 0.0, "reward Alice's best response gains over the game value"),
    ("exploitability.alice", "Alice's exploitability", 0.0, "reward Bob's best response gains over the game value"),
    ("honesty_rate", "honesty rate", 1.0, "Alice claims the truth where she may choose"),
)


def pick(measured: dict[str, Any], key: str) -> float | None:
    """The number at a dotted key, or None if it is absent or null."""
    value: Any = measured
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def score(measured: dict[str, Any]) -> float:
    """What `best.pt` is chosen by, lower is better: NashConv; where that is not known, worst-case catch, else the mean
    catch ratio, both negated; 0 where nothing is known, which keeps the first."""
    for key, sign in (("nash_conv", 1), ("worst_case_catch", -1), ("catch_ratio.mean", -1)):
        value = pick(measured, key)
        if value is not None:
            return sign * value
    return 0.0


def progress_line(measured: dict[str, Any]) -> str:
    """`worst-case catch 0.101 of 0.111 | ratio 0.93`."""
    catch, value = pick(measured, "worst_case_catch"), pick(measured, "game_value")
    ratio = pick(measured, "catch_ratio.mean")
    parts = []
    if catch is not None:
        parts.append(f"worst-case catch {catch:.3f}" + (f" of {value:.3f}" if value is not None else ""))
    if ratio is not None:
        parts.append(f"ratio {ratio:.2f}")
    return " | ".join(parts) or "evaluated"


class Curves:
    """The run's TensorBoard events. Events past `iteration`, of a session that was killed, are purged.

    Every method raises `WriteError` when they cannot be written.

    Args:
        folder: Where `events.*` go.
        iteration: The iteration that the run continues from.
    """

    def __init__(self, folder: Path, iteration: int) -> None:
        self._folder, self._iteration = folder, iteration

    def __enter__(self) -> Curves:
        from torch.utils.tensorboard import SummaryWriter

        # Events are written by a thread. What it fails by is raised by the next call here; it need not be printed too.
        self._hook, threading.excepthook = threading.excepthook, self._thread_failed
        try:
            with self._refusals():
                # The evaluation before the first iteration is at step 0, and is made again when a run begins again.
                purged = self._iteration + 1 if self._iteration else 0
                self._writer = SummaryWriter(str(self._folder), purge_step=purged)
                self._writer.add_custom_scalars(LAYOUT)
        except BaseException:
            threading.excepthook = self._hook
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            with self._refusals():
                if error is None:
                    self._writer.flush()  # closing alone would not say that the thread has failed
                self._writer.close()
        except WriteError:
            if error is None:
                raise
        finally:
            threading.excepthook = self._hook

    def _refusals(self) -> Any:
        return refusals_named(self._folder / "events.*")

    def _thread_failed(self, failure: threading.ExceptHookArgs) -> None:
        if not isinstance(failure.exc_value, OSError):
            self._hook(failure)

    def scalars(self, iteration: int, values: dict[str, float | None]) -> None:
        """One point of each curve; None is left out."""
        with self._refusals():
            for tag, value in values.items():
                if value is not None:
                    self._writer.add_scalar(tag, value, iteration)

    def picture(self, iteration: int, tag: str, figure: Any) -> None:
        """A matplotlib figure as an image."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[..., :3]
        with self._refusals():
            self._writer.add_image(tag, pixels, iteration, dataformats="HWC")

    def flush(self) -> None:
        """Make what was written so far visible to a TensorBoard that is watching."""
        with self._refusals():
            self._writer.flush()


def evaluation_scalars(measured: dict[str, Any], last: dict[str, Any]) -> dict[str, float | None]:
    """The curves of one evaluation: of the averaged pair, and where the last iterate's Bob stands."""
    tags = {
        "eval/bob/worst_case_catch": "worst_case_catch",
        "eval/bob/catch_rate": "catch_rate.mean",
        "eval/bob/game_value": "game_value",
        "eval/bob/bound": "bound",
        "eval/bob/catch_ratio_mean": "catch_ratio.mean",
        "eval/bob/catch_ratio_min": "catch_ratio.min",
        "eval/bob/optimal_face_tv": "optimal_face_tv",
        "eval/bob/challenges_of_stable": "challenge_errors.stable",
        "eval/bob/misses_of_unstable": "challenge_errors.unstable",
        "eval/exploitability": "nash_conv",
        "eval/exploitability/alice": "exploitability.alice",
        "eval/exploitability/bob": "exploitability.bob",
        "eval/alice/honesty_rate": "honesty_rate",
        "eval/alice/true_sub_claims": "true_sub_claims",
    }
    values = {tag: pick(measured, key) for tag, key in tags.items()}
    return values | {
        "eval/bob/worst_case_catch_last": pick(last, "worst_case_catch"),
        "eval/bob/catch_ratio_mean_last": pick(last, "catch_ratio.mean"),
    }


def can_picture(game: Game) -> bool:
    """Whether `sampling_figure` has something to show: narrow aggregators, and a Bob who sees no truths."""
    return game.library.tabulated and not game.sees_truth and bool(_assignments(game))


def sampling_figure(game: Game, bob: Player, level: int) -> Any:
    """Bob's sampling beside the LP's, a panel an assignment, at one level; a matplotlib figure.

    The LP's bars are the maximum-entropy optimum of the cover program. Bob's need not sum to 1: accepting and
    challenging take the rest. At most `PANELS` stable assignments are shown, evenly spaced over all.

    Args:
        game: The game, on NumPy, of a tabulated library.
        bob: Whose sampling.
        level: The claims' level.
    """
    from matplotlib.figure import Figure

    shown = _assignments(game)
    lp = [game.library.sensitivity_tables[a].max_entropy(codes=[code])[0] for a, code in shown]
    learned = _sampling(game, bob, level, shown)
    columns = min(4, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(3.2 * columns + 0.4, 2 * rows + 1), dpi=90)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for panel, (a, code), p, q in zip(panels, shown, learned, lp, strict=False):
        _panel(panel, game.library.aggregators[a], code, p, q)
    panels[0].set_ylim(0, 1.05 * max(float(np.max(learned)), *(float(np.max(p)) for p in lp)))
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    height = figure.get_figheight()
    figure.subplots_adjust(left=0.8 / figure.get_figwidth(), right=0.99, hspace=0.55, wspace=0.06)
    figure.subplots_adjust(bottom=0.8 / height, top=1 - 0.6 / height)
    figure.supylabel("probability of sampling the sub-claim", fontsize=9)
    figure.supxlabel("sub-claims: claimed answer, and w its weight", fontsize=9)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="upper center", ncols=2, fontsize=9)
    return figure


def _panel(panel: Any, f: Aggregator, code: int, learned: np.ndarray, lp: np.ndarray) -> None:
    """The bars of one assignment, `learned` (at least width,) beside `lp` (width,)."""
    z = f"{code:0{f.width}b}"
    places = np.arange(f.width)
    panel.bar(places - 0.2, learned[: f.width], 0.4, label="learned Bob", color="#d95f02")
    panel.bar(places + 0.2, lp, 0.4, label="linear program (maximum entropy)", color="#1b7a9c")
    panel.set_xticks(places, [f"{bit}\nw {weight}" for bit, weight in zip(z, f.weights, strict=True)])
    name = str(f) if len(str(f)) <= 32 else f"{str(f)[:29]}..."
    panel.set_title(f"{name} at {z}", fontsize=8)
    panel.tick_params(labelsize=8)


def _assignments(game: Game) -> list[tuple[int, int]]:
    """Up to `PANELS` pairs (aggregator, code within its width), stable, evenly spaced over all of those."""
    library, found = game.library, []
    for a, f in enumerate(library.aggregators):
        stable = np.asarray(library.stabilities[a])[:: 1 << (library.width - f.width)]
        found += [(a, int(code)) for code in np.flatnonzero(stable & (library.sensitivity_tables[a].value > 0))]
    chosen = np.unique(np.linspace(0, len(found) - 1, min(PANELS, len(found))).round().astype(int))
    return [found[i] for i in chosen]


def _sampling(game: Game, bob: Player, level: int, shown: list[tuple[int, int]]) -> np.ndarray:
    """float64 (n, Q): Bob's probability of sampling each sub-claim at these assignments."""
    library = game.library
    aggregator = np.array([a for a, _ in shown])
    widths = np.asarray(library.widths)[aggregator]
    assignment = np.asarray(library.bits)[np.array([code for _, code in shown]) << (library.width - widths)]
    claimed = library.output(aggregator, assignment)
    return responses(game, bob, aggregator, assignment, np.full(len(shown), level), claimed)[:, SAMPLE:]


def table(summary: dict[str, Any]) -> str:
    """The measures of a trained pair, and all players against all, as a person reads them."""
    lines = [
        "How good is the learned pair? `averaged` copies are the result, `last` is where training stood at the end.",
        "",
        f"{'measure':<22} {'averaged':>9} {'last':>7} {'best':>7}   what it says",
    ]
    for key, name, best, words in ROWS:
        ideal = pick(summary, best) if isinstance(best, str) else best
        values = pick(summary, key), pick(summary["last"], key)
        if values != (None, None):
            lines.append(f"{name:<22} {_number(values[0]):>9} {_number(values[1]):>7} {_number(ideal):>7}   {words}")
    value, bound = pick(summary, "game_value"), pick(summary, "bound")
    if value is not None:
        lines += ["", f"`best` of the worst-case catch is the game value, solved by linear programs: {value:.4f}."]
        lines += [f"The paper guarantees rho^-d = {bound:.4f}."]
    lines += ["", "How often Alice (rows) wins against Bob (columns); half the width of a 95% interval is at most "
              f"{_half_width(summary['cross_play']):.3f}:", "", *_crossed(summary["cross_play"])]  # fmt: skip
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _crossed(crossed: dict[str, dict[str, Any]]) -> list[str]:
    bobs = list(next(iter(crossed.values())))
    width = max(map(len, crossed))
    rows = [" ".join([" " * width, *(f"{bob:>{max(7, len(bob))}}" for bob in bobs)])]
    for alice, row in crossed.items():
        cells = (f"{_number(row[bob] and row[bob]['mean']):>{max(7, len(bob))}}" for bob in bobs)
        rows.append(" ".join([f"{alice:<{width}}", *cells]))
    return rows


def _half_width(crossed: dict[str, dict[str, Any]]) -> float:
    rates = [rate for row in crossed.values() for rate in row.values() if rate]
    return max(((rate["high"] - rate["low"]) / 2 for rate in rates), default=0.0)
