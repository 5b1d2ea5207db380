"""The tree of a debate, laid out where it is walked: for game solvers, which ask for one state at a time.

Moves are whole: number m is the m-th move of `envs.view.legal_moves`, so an assignment or a set of lies is one move,
its code; illegal moves are left out. Every node is reached by `envs.rules`, and chance is listed by `envs.chances`. A
player knows all that he has been shown (`envs.view`) whenever he had to move, each time with the move he made: perfect
recall of what the rules let him see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from envs import rules
from envs.chances import Chance, after, deals, most_outcomes
from envs.config import ConfigError
from envs.engine import step
from envs.game import Game
from envs.observation import Layout
from envs.rules import ASSIGN, CLAIM, LIE, PHASES, RESPOND, SAMPLE, State
from envs.view import View, legal_moves, view

ALICE, BOB = 0, 1
NODES_KEPT = 1 << 15
SHOWN = ("level", "claimed", "truth", "menu", "answers", "aggregator", "assignment", "truths")  # fields of a `View`
UNUSED = ("rho", "position", "lies")  # parts of an observation: a constant, and what only moves bit by bit need


class Moment(NamedTuple):
    """Once that a player had to move.

    Attributes:
        text: What he saw, and then the move he made, in words.
        features: float32 (size,), the same as numbers; entries of the move last, none set where it is not made yet.
    """

    text: str
    features: np.ndarray


Memory = tuple[Moment, ...]


@dataclass(frozen=True, eq=False)
class Node:
    """A place in the tree. Copies are the node itself: it never changes.

    Attributes:
        tree: Which game tree.
        state: A batch of one, before what chance is about to do; None before the deal.
        move: The move that waits for chance; None where none does.
        chances: The outcomes where it is chance's turn, else empty.
        legal: The numbers of the legal moves, rising; empty at chance's turn and at the end.
        memories: What Alice and Bob have seen and done, the present excluded.
        present: What the player to move sees; None where nobody is to move.
        story: All that happened, in words.
    """

    tree: Tree
    state: State | None
    move: np.ndarray | None
    chances: Sequence[Chance]
    legal: Sequence[int]
    memories: tuple[Memory, Memory]
    present: Moment | None
    story: tuple[str, ...]

    def __deepcopy__(self, memo: Any) -> Node:
        return self

    @property
    def over(self) -> bool:
        return not self.chances and bool(self.state.over[0])

    @property
    def player(self) -> int | None:
        """Who is to move, `ALICE` or `BOB`; None at chance's turn and at the end."""
        if self.present is None:
            return None
        return BOB if self.state.phase == RESPOND else ALICE

    @property
    def reward(self) -> float:
        """Alice's; 0 until the end."""
        return float(self.state.reward[0]) if self.over else 0.0

    @property
    def seen(self) -> View:
        """What the player to move is shown, a batch of one."""
        return view(self.tree.game, self.state)

    def known(self, player: int) -> Memory:
        """All that a player knows: his information state."""
        return (*self.memories[player], self.present) if self.player == player else self.memories[player]


class Tree:
    """The tree of one game. The nodes met last are kept.

    Args:
        game: The rules, on NumPy.

    Attributes:
        root: Where every debate begins.
        actions: Moves are numbered below this.
        moments: At most so many times Alice has to move in a debate; she moves more often than Bob.
        length: At most so many moves a debate has, chance's not counted.
        most_outcomes: At most so many outcomes chance has at once.
        seen: Features of what is seen. size: Of a moment: those, and the move, one-hot.

    Raises:
        ConfigError: moves or chance are too many to list.
    """

    def __init__(self, game: Game) -> None:
        library = game.library
        if not library.tabulated:
            raise ConfigError(
                f"problem: a game tree lists every assignment of an aggregator, and here one is {game.width} wide or "
                "the library too large; use aggregators up to width 10 (problem.width) and fewer of them (problem.size)"
            )
        self.most_outcomes = most_outcomes(game)
        self.game, self._layout = game, Layout(game)
        self._varying = _varying(game, self._layout)
        self.seen = int(self._varying.sum())
        self.actions = max(2, game.menu, 1 << game.width, SAMPLE + game.width)
        self.size = self.seen + self.actions
        self.moments = int(game.free_root) + game.depth * (1 + (game.menu > 1) + game.adversarial)
        self.length = self.moments + game.depth
        self.child = lru_cache(maxsize=NODES_KEPT)(self._child)
        self.root = Node(self, None, None, deals(game), (), ((), ()), None, ())

    def _child(self, node: Node, number: int) -> Node:
        """The node after a legal move, or after an outcome of chance."""
        if node.chances:
            u, story = node.chances[number].u, (*node.story, f"chance {number}")
            state = rules.deal(self.game, u) if node.state is None else step(self.game, node.state, node.move, u)
            return self._arrive(state, node.memories, story)
        said = self.said(node.state.phase, number)
        memories = list(node.memories)
        memories[node.player] += (self._remembered(node.present, said, number),)
        move = self.game.library.bits[[number]] if node.state.phase in (ASSIGN, LIE) else np.array([number])
        chances = after(self.game, node.state, move)
        if len(chances) > 1:
            return Node(self, node.state, move, chances, (), tuple(memories), None, (*node.story, said))
        state = step(self.game, node.state, move, chances[0].u)
        return self._arrive(state, tuple(memories), (*node.story, said))

    def _arrive(self, state: State, memories: tuple[Memory, Memory], story: tuple[str, ...]) -> Node:
        if state.over[0]:
            return Node(self, state, None, (), (), memories, None, story)
        seen = view(self.game, state)
        legal = np.flatnonzero(legal_moves(seen)[0]).tolist()
        return Node(self, state, None, (), legal, memories, self._present(seen), story)

    def said(self, phase: int, number: int) -> str:
        """A move in words."""
        if phase in (ASSIGN, LIE):
            return ("answers " if phase == ASSIGN else "lies ") + _written(self.game.library.bits[number])
        if phase == RESPOND:
            return f"samples {number - SAMPLE}" if number >= SAMPLE else ("accepts", "challenges")[number]
        return f"claims {number}" if phase == CLAIM else f"takes candidate {number}"

    def _present(self, seen: View) -> Moment:
        shown = [(name, getattr(seen, name)) for name in SHOWN if name != "claimed" or seen.phase != CLAIM]
        text = ", ".join(f"{name} {_written(value)}" for name, value in shown if value is not None)
        observation, features = np.zeros(self._layout.size, np.float32), np.zeros(self.size, np.float32)
        self._layout.write(observation, seen)
        features[: self.seen] = observation[self._varying]
        return Moment(f"{PHASES[seen.phase]}: {text}", features)

    def _remembered(self, present: Moment, said: str, number: int) -> Moment:
        features = present.features.copy()
        features[self.seen + number] = 1
        return Moment(f"{present.text}; {said}", features)


def _written(value: np.ndarray) -> str:
    """Bits in a row, numbers with commas."""
    return ("" if value.dtype == np.int8 else ",").join(map(str, value.ravel().tolist()))


def _varying(game: Game, layout: Layout) -> np.ndarray:
    """bool (layout.size,): the entries of an observation that are not the same throughout this game."""
    varying = np.ones(layout.size, bool)
    descriptions = np.stack([layout.description(a) for a in range(len(game.library.aggregators))])
    for part in layout.fields:
        if part.name in UNUSED:
            varying[part.start : part.stop] = False
        if part.name.endswith("weights"):  # here the description of an aggregator begins
            varying[part.start : part.start + descriptions.shape[1]] = (descriptions != descriptions[0]).any(0)
    return varying
