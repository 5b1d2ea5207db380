"""What the experiments have at hand: how much to sample, the seed, the learned pair, a crowd."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from tqdm import tqdm

from agents import players
from agents.theorems.crowds import Crowd
from agents.theorems.learned import LearnedPair
from agents.theorems.rows import Row
from envs.config import EnvConfig, ProblemConfig
from envs.engine import Player
from envs.game import Game

THRESHOLD = "threshold 3,2,2,1,1 >= 5"  # sensitivities 9/5, 2 and 3
UNEVEN = "table 11110110"  # the value of a claim depends on the claimed bit

Item = TypeVar("Item")


@dataclass(frozen=True)
class Lab:
    """What the experiments share.

    Attributes:
        quick: Sample a tenth.
        seed: Of everything that is drawn.
        learned: The pair that has learned to debate.
        crowd: People's answers about tasks.
        progress: Show bars on a terminal.
    """

    quick: bool
    seed: int
    learned: LearnedPair
    crowd: Crowd
    progress: bool = False

    @property
    def debates(self) -> int:
        """Debates behind a sampled rate."""
        return 20_000 if self.quick else 200_000

    @property
    def trees(self) -> int:
        """Random claim trees."""
        return 60 if self.quick else 600

    def bob(self, name: str, game: Game) -> Player:
        """The scripted Bob of that name, or the learned one."""
        return self.learned.bob(game) if name == "learned" else players.bob(name, game)

    def bar(self, items: Iterable[Item], task: str, total: int | None = None) -> Iterator[Item]:
        """The items, with a progress bar."""
        return iter(tqdm(items, task, total, leave=False, disable=None if self.progress else True, dynamic_ncols=True))


@dataclass(frozen=True)
class Topic:
    """What one topic of the report says.

    Attributes:
        name: Short, as in a table of contents. source: Where the paper says it.
        statement: The claim in plain words, paragraphs.
        rows: The numbers. findings: What they show, sentences.
        figure: A matplotlib figure. caption: What it shows.
    """

    name: str
    source: str
    statement: tuple[str, ...]
    rows: tuple[Row, ...]
    findings: tuple[str, ...]
    figure: Any
    caption: str


def procedural(*aggregators: str, menu: int = 1, **env: Any) -> Game:
    """A game on the aggregators named, without trembles and with every root claim false; `env` changes its rules."""
    config = EnvConfig(**{"tremble": 0.0, "p_false": 1.0, **env})
    return Game(config, ProblemConfig(aggregators=list(aggregators), menu=menu))
