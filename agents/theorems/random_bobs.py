"""Bobs that nobody designed: response scores drawn at random, anything from blunt to decided."""

from __future__ import annotations

import numpy as np

from agents.scripted import sample
from envs.game import Game
from envs.view import View


class RandomBobs:
    """Many Bobs in one player: row n of a batch is judged by Bob n modulo their number.

    Each has a score for accepting and challenging at every level, and for every sub-claim by its place, its claimed
    answer and the level, from a normal distribution of its own scale; he responds by their softmax.

    Args:
        game: What they are to play. count: How many. seed: Of the scores.
    """

    needs_state = False

    def __init__(self, game: Game, count: int, seed: int | list[int]) -> None:
        rng = np.random.default_rng(seed)
        scale = rng.uniform(0.2, 6, (count, 1, 1, 1))
        self._scores = scale * rng.standard_normal((count, game.depth + 1, 2 + game.width, 2))

    def __len__(self) -> int:
        return len(self._scores)

    def one(self, number: int) -> RandomBobs:
        """That Bob alone."""
        alone = object.__new__(RandomBobs)
        alone._scores = self._scores[number : number + 1]
        return alone

    def probabilities(self, seen: View) -> np.ndarray:
        """float64 (N, 2 + Q)."""
        n, width = len(seen.active), seen.game.width
        bit = np.zeros((n, 2 + width), np.int64)
        bit[:, :2] = np.asarray(seen.claimed)[:, None]
        bit[:, 2:] = seen.assignment
        bobs = np.arange(n)[:, None] % len(self)
        scores = self._scores[bobs, np.asarray(seen.level)[:, None], np.arange(2 + width), bit]
        scores[:, 2:][seen.game.beyond[seen.aggregator]] = -np.inf
        chances = np.exp(scores - scores.max(-1, keepdims=True))
        return chances / chances.sum(-1, keepdims=True)

    def act(self, seen: View, u: np.ndarray) -> np.ndarray:
        return sample(self.probabilities(seen), u[:, 0])
