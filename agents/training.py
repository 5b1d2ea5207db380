"""The training loop: steps of a learner, evaluations, checkpoints, curves, and a clean stop at any moment.

What a run becomes depends on its configuration alone: evaluation draws from streams of its own, checkpoints hold every
random state, and so a run that was killed and resumed ends with the weights of one that was not, to the last bit.
"""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from agents import players as scripted
from agents import report
from agents.checkpoint import FORMAT, not_finite, restore
from agents.configuration import TrainConfig
from agents.learning import LEARNERS
from agents.match import play
from agents.measures import bob_measures, cross_play, evaluate
from agents.positions import ExactError
from agents.run_folder import RunFolder, problem_digest
from agents.scripted import PlayerError
from envs.config import ConfigError
from envs.engine import Player
from envs.game import Game
from fbs.whole_file import WriteError, write_json

EVALUATION_STREAM = 1  # tells the draws of evaluations from every other use of the seed
FINAL = 2**32  # numbers the evaluation at the end, past every iteration
PICTURE_EVERY = 4  # evaluations from one picture of Bob's sampling to the next; they cost more than the measures
CURVE_DEBATES = 1000  # debates behind one point of a win rate's curve


class Diverged(RuntimeError):
    """A loss or a weight is no longer a finite number."""


class Interrupted(BaseException):
    """A signal asked the run to stop; its state is saved."""


def new_learner(config: TrainConfig, game: Game) -> Any:
    """The learner that `config` names, at its start, for a game on torch.

    Raises:
        ConfigError: this learner cannot play this game.
    """
    torch.set_num_threads(config.threads)
    # Else sums over repeated indices add up in whatever order the threads come, and no two runs are the same.
    torch.use_deterministic_algorithms(config.device == "cpu")
    torch.set_default_device(None if config.device == "cpu" else config.device)
    torch.manual_seed(config.seed)
    return LEARNERS[config.learner.name](game, config.learner, config.seed)


def training_game(config: TrainConfig) -> Game:
    """The game that is learned, on torch.

    Raises:
        ConfigError: it cannot be played, or torch has no such device. ProblemError: its file is malformed.
    """
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device is 'cuda', and torch finds no CUDA device; install a CUDA torch, or use --device cpu")
    return Game(config.env, config.problem, torch, config.device)


def arena(config: TrainConfig) -> Game:
    """The game that the pair is measured on: on NumPy, without trembles."""
    return Game(config.env, config.problem).evaluation()


def learned_players(config: TrainConfig, checkpoint: dict[str, Any], game: Game) -> dict[str, Player]:
    """The players of a checkpoint, to play `game`, which may be another than the one they learned.

    Returns:
        `alice` and `bob`, averaged and reported, `alice_last` and `bob_last`.

    Raises:
        ConfigError: their networks cannot read this game's claims.
        CheckpointError: the checkpoint does not even fit the game that it was trained on.
    """
    config = replace(config, device="cpu")  # whatever it was trained on
    learner = new_learner(config, game.on(torch))
    try:
        learner.load_state_dict(checkpoint["learner"])
    except Exception:  # torch raises whatever it stumbles over, as over weights that have no place
        if "path" in checkpoint:
            restore(new_learner(config, training_game(config)), checkpoint)
        raise ConfigError(
            "problem: these networks know aggregators otherwise than this game needs: few by name, many by weights "
            "or by truth tables; let them play the game they learned"
        ) from None
    return learner.players()


def evaluation_seed(seed: int, use: int) -> int:
    """The seed of an evaluation's draws, apart from those of training; `use` numbers the evaluations."""
    return int(np.random.SeedSequence([seed, EVALUATION_STREAM, use]).generate_state(1, np.uint64)[0])


class Run:
    """A run in progress.

    Args:
        config: What to train.
        folder: Where, opened.
        checkpoint: The state to continue from, or None to begin.
        started: `time.monotonic()` of the program's start.

    Attributes:
        learner: The pair that learns.
        game: What it is measured on.
        best: Score and iteration of the best evaluation so far; a lower score is better (`report.score`).
    """

    def __init__(
        self, config: TrainConfig, folder: RunFolder, checkpoint: dict[str, Any] | None, started: float
    ) -> None:
        self.config, self.folder = config, folder
        self.learner, self.game = new_learner(config, training_game(config)), arena(config)
        self.scripted = scripted_players(self.game)
        self.started, self.best = started, {"score": math.inf, "iteration": -1}
        self.digest = problem_digest(config)
        if checkpoint is not None:
            restore(self.learner, checkpoint)
            self.started -= checkpoint["seconds"]
            self.best = dict(checkpoint["best"])

    @property
    def seconds(self) -> float:
        """Wall clock of the whole run, earlier sessions of it included."""
        return time.monotonic() - self.started

    def step(self) -> dict[str, float]:
        """One iteration.

        Raises:
            Diverged: one of its metrics is not finite.
        """
        metrics = self.learner.step()
        wrong = [tag for tag, value in metrics.items() if not math.isfinite(value)]
        if wrong:
            raise Diverged(self._diverged(", ".join(wrong)))
        return metrics

    def check_weights(self) -> None:
        """Before they are measured or saved.

        Raises:
            Diverged: a weight is not finite.
        """
        if wrong := not_finite(self.learner.state_dict()):
            raise Diverged(self._diverged(wrong))

    def save(self, best: bool = False) -> None:
        """Write a checkpoint, as best.pt too if it is the best."""
        self.folder.save(
            {
                "format": FORMAT, "config": self.config.recorded, "problem_digest": self.digest,
                "learner": self.learner.state_dict(), "iteration": self.learner.iteration, "seconds": self.seconds,
                "best": self.best,
            },
            best,
        )  # fmt: skip

    def _diverged(self, what: str) -> str:
        saved = self.folder.last.exists()
        kept = f"the last good checkpoint is {self.folder.last}" if saved else "nothing is saved yet"
        return (
            f"at iteration {self.learner.iteration} these are no longer finite numbers: {what}; {kept}. "
            "Try a smaller --learner.learning_rate or --learner.step_size, with another --run_dir"
        )

    def evaluate(self) -> tuple[dict[str, Any], bool]:
        """The measures of the reported pair, and whether they are the best so far."""
        players = self.learner.players()
        seed = evaluation_seed(self.config.seed, self.learner.iteration)
        measured = evaluate(self.game, players["alice"], players["bob"], CURVE_DEBATES, seed)
        score = report.score(measured)
        better = score < self.best["score"] or self.best["iteration"] < 0
        if better:
            self.best = {"score": score, "iteration": self.learner.iteration}
        return measured, better

    def win_rates(self, players: dict[str, Player]) -> dict[str, float]:
        """Alice's win rates in a few debates, as curves: the learned pair, and each of them with scripted players."""
        alices, bobs = self.scripted
        alices, bobs = {"learned": players["alice"], **alices}, {"learned": players["bob"], **bobs}
        seed = evaluation_seed(self.config.seed, self.learner.iteration)
        crossed = [(alice, bob) for alice in alices for bob in bobs if "learned" in (alice, bob)]
        counts = {
            (alice, bob): play(self.game, alices[alice], bobs[bob], CURVE_DEBATES, [seed, number])
            for number, (alice, bob) in enumerate(crossed)
        }
        return {f"eval/win_rate/{a}_vs_{b}": n.alice_wins / n.debates for (a, b), n in counts.items()}


def train(
    config: TrainConfig, folder: RunFolder, checkpoint: dict[str, Any] | None, started: float
) -> tuple[dict[str, Any], str]:
    """Train to the end, and measure.

    Returns:
        The summary, which is written to `summary.json`, and the table that shows it.

    Raises:
        Interrupted: SIGINT or SIGTERM arrived; the state is saved.
        Diverged: training became numerically meaningless.
        ConfigError, ProblemError: the game cannot be played. RunError: a file of the run cannot be written.
    """
    run = Run(config, folder, checkpoint, started)
    folder.begin(config)
    try:
        with _signals() as received, report.Curves(folder.path, run.learner.iteration) as curves:
            _learn(run, curves, received)
            received.at_once = True  # everything is saved
            result = conclude(run.game, run.learner.players(), config.debates, config.seed)
            summary = {"seed": config.seed, "seconds": round(run.seconds, 1), **result}
            summary |= {"iterations": run.learner.iteration, "best": run.best, "config": config.recorded}
            write_json(summary, folder.summary)
    except WriteError as error:
        raise folder.stopped(error) from None
    return summary, report.table(summary)


def _learn(run: Run, curves: report.Curves, received: Received) -> None:
    """Iterate to the end, evaluating and saving on the way."""
    total = run.config.learner.iterations
    every = math.ceil(total / run.config.evaluations)
    with tqdm(total=total, initial=run.learner.iteration, unit="it", disable=None, dynamic_ncols=True) as bar:
        if run.learner.iteration == 0:
            run.save(best=_evaluate(run, curves, bar, picture=True))
        while run.learner.iteration < total:
            begun = time.monotonic()
            metrics = run.step()
            iteration = run.learner.iteration
            curves.scalars(iteration, {**metrics, "charts/iterations_per_second": 1 / (time.monotonic() - begun)})
            bar.update()
            due = iteration % every == 0 or iteration == total
            if due or received.signal or iteration % run.config.checkpoint_every == 0:
                run.check_weights()
                picture = iteration % (PICTURE_EVERY * every) == 0 or iteration == total
                run.save(best=due and _evaluate(run, curves, bar, picture))
            if received.signal:
                raise Interrupted


def _evaluate(run: Run, curves: report.Curves, bar: tqdm, picture: bool) -> bool:
    """Evaluate, show it, and say whether it was the best so far."""
    measured, better = run.evaluate()
    iteration, players = run.learner.iteration, run.learner.players()
    rates = run.win_rates(players)
    last = bob_measures(run.game, players["bob_last"])
    curves.scalars(iteration, report.evaluation_scalars(measured, last) | rates | {"charts/seconds": run.seconds})
    for level in sorted({1, run.game.depth}) if picture and report.can_picture(run.game) else ():
        figure = report.sampling_figure(run.game, players["bob"], level)
        curves.picture(iteration, f"eval/bob/sampling_level_{level}", figure)
    curves.flush()
    line = report.progress_line(measured)
    bar.set_description_str(line)
    if bar.disable:  # no terminal, where a bar would be unreadable
        print(f"iteration {iteration} of {run.config.learner.iterations}: {line}", file=sys.stderr, flush=True)
    return better


def scripted_players(game: Game, opponent: Player | None = None) -> tuple[dict[str, Player], dict[str, Player]]:
    """The scripted Alices and Bobs, by name, that can play this game; `best_response` if an opponent is given."""
    alices: dict[str, Player] = {}
    bobs: dict[str, Player] = {}
    for name in scripted.ALICES:
        with suppress(PlayerError, ExactError):
            alices[name] = scripted.alice(name, game, opponent)
    for name in scripted.BOBS:
        with suppress(PlayerError, ExactError):
            bobs[name] = scripted.bob(name, game)
    return alices, bobs


def conclude(game: Game, players: dict[str, Player], debates: int, seed: int) -> dict[str, Any]:
    """Everything that is measured of a trained pair: the averaged copies, the last iterates, and all against all."""
    seed = evaluation_seed(seed, FINAL)
    measured = evaluate(game, players["alice"], players["bob"], debates, seed)
    last = evaluate(game, players["alice_last"], players["bob_last"], debates, seed)
    alices, bobs = scripted_players(game, players["bob"])
    alices = {"learned": players["alice"], "learned_last": players["alice_last"], **alices}
    bobs = {"learned": players["bob"], "learned_last": players["bob_last"], **bobs}
    return {**measured, "last": last, "cross_play": cross_play(game, alices, bobs, debates, seed)}


class Received:
    """What signals arrived: `signal` is the first, or 0. With `at_once`, one stops the run where it is."""

    def __init__(self) -> None:
        self.signal, self.at_once = 0, False

    def __call__(self, number: int, frame: Any) -> None:
        if self.at_once or self.signal:
            raise Interrupted
        self.signal = number


@contextmanager
def _signals() -> Iterator[Received]:
    """SIGINT and SIGTERM are noted, so that the iteration ends and is saved; a second one stops at once."""
    received = Received()
    before = {number: signal.signal(number, received) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
