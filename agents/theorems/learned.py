"""The learned pair of the report: trained on the spot, or taken from a run folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from agents.configuration import TrainConfig
from agents.learner_config import LearnerConfig
from agents.run_folder import RunFolder
from envs.engine import Player
from envs.game import Game

FULL, QUICK = 300, 40  # iterations


@dataclass(frozen=True)
class LearnedPair:
    """A pair that learned to debate, ready to play games that it did not learn.

    Attributes:
        config: What it was trained by.
        checkpoint: Its weights, as `agents.training.learned_players` takes them.
        about: Where it comes from, in words.
    """

    config: TrainConfig
    checkpoint: dict[str, Any]
    about: str

    def alice(self, game: Game) -> Player:
        """The averaged Alice, to play `game`."""
        return self._players(game)["alice"]

    def bob(self, game: Game) -> Player:
        """The averaged Bob, to play `game`."""
        return self._players(game)["bob"]

    def _players(self, game: Game) -> dict[str, Player]:
        from agents.training import learned_players

        return learned_players(self.config, self.checkpoint, game)


def train_pair(quick: bool, seed: int, progress: bool) -> LearnedPair:
    """Train the default learner on the default game, with a small budget.

    A report needs a learned judge, not the best one: what the paper says of every checker and every liar must hold for
    a half-trained pair too. A better pair comes from `train.py`, by `load_pair`.
    """
    from agents.training import new_learner, training_game

    iterations = QUICK if quick else FULL
    config = TrainConfig(learner=LearnerConfig(iterations=iterations, batch=512, positions=1024), seed=seed)
    learner = new_learner(config, training_game(config))
    hidden = None if progress else True  # None: shown on a terminal
    for _ in tqdm(range(iterations), "training a pair", leave=False, disable=hidden, dynamic_ncols=True):
        learner.step()
    about = f"trained for this report on the default game ({iterations} rounds of self-play, seed {seed})"
    return LearnedPair(config, {"learner": learner.state_dict()}, about)


def load_pair(folder: str) -> LearnedPair:
    """The pair of a run.

    Raises:
        RunError: this is no run folder, or it has no checkpoint.
    """
    run = RunFolder(folder)
    config = run.load_config()
    return LearnedPair(config, run.load(config), f"taken from {run}")
