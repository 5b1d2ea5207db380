"""What an agent observes, as one flat vector of numbers.

The rule of who sees what is written in `envs.view`; here is only where each part of a `View` stands in the vector. The
layout is the same for both agents: what an agent does not see is zero. Bits are signed, +1 for 1 (true) and -1 for 0
(false), so that 0 can mean hidden, not yet said, or beyond the aggregator's width.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from envs import rules
from envs.game import Game
from envs.rules import ASSIGN, CLAIM, DECOMPOSE, LIE, OVER, PHASES, RESPOND, State
from envs.view import View

Array = Any  # numpy.ndarray or torch.Tensor

MAX_TRUTH_TABLE = 6  # widest aggregator whose truth table is observed
SIGN = (-1, 1)
KINDS = ("symmetric", "threshold", "table", "composition")


class Field(NamedTuple):
    """A stretch of the observation.

    Attributes:
        name: What it is called in the documentation.
        start, stop: Its indices, `stop` not included.
        low: The least value; the greatest is always 1.
        meaning: One sentence for the documentation.
    """

    name: str
    start: int
    stop: int
    low: int
    meaning: str


STATE_ENTRIES = ("root claimed", "root truth", "over", "reward of Alice")


class Layout:
    """Where everything stands in the observation of a game.

    Attributes:
        fields: The stretches in order.
        size: Length of an observation.
        position, assignment, lies: Where these fields start; no `lies` (None) with the random oracle.
        state_size: Length of `state`, which has four numbers more.
        low: float32 (size,), the least value of each entry; the greatest is 1.
        state_low: float32 (state_size,), the same for `state`; the greatest is its negative.
    """

    def __init__(self, game: Game) -> None:
        self._game = game
        narrow = [f.width for f in game.library.aggregators if f.width <= MAX_TRUTH_TABLE]
        self._table_size = 1 << max(narrow) if narrow else 0
        self._described: dict[int, np.ndarray] = {}
        self._rows: dict[int, Array] = {}
        self.fields = tuple(self._lay_out())
        self.size = self.fields[-1].stop
        self.state_size = self.size + len(STATE_ENTRIES)
        self.low = np.concatenate([np.full(f.stop - f.start, f.low, np.float32) for f in self.fields])
        self.state_low = np.append(self.low * 0 - 1, (-1, -1, -1, -2)).astype(np.float32)
        place = {f.name: slice(f.start, f.stop) for f in self.fields}
        self.position, self.assignment = place["position"].start, place["assignment"].start
        self.lies = place["lies"].start if game.adversarial else None
        self._assignment, self._truths, self._lies = place["assignment"], place["truths"], place.get("lies")
        self._menu = place["candidate 0: weights"].start if game.menu > 1 else None
        self._aggregator = slice(place["weights"].start, place["weights"].start + self._description_size)

        self._present = slice(game.width, 2 * game.width)  # within a description
        self._blank = np.zeros(self.size, np.float32)
        self._blank[OVER + 3] = 1 / game.env.rho

    def _lay_out(self) -> list[Field]:
        game, q = self._game, self._game.width
        fields: list[Field] = []

        def add(name: str, size: int, low: int, meaning: str) -> None:
            start = fields[-1].stop if fields else 0
            if size:
                fields.append(Field(name, start, start + size, low, meaning))

        add("phase", OVER, 0, f"one-hot: {', '.join(PHASES[:OVER])}")
        add("level", 1, 0, "level of the present claim, divided by the depth")
        add("claimed", 1, -1, "the bit claimed for it; 0 before Alice has claimed one")
        add("truth", 1, -1, "its real truth; Alice, and Bob with `bob_sees` truth")
        add("rho", 1, 0, "1 / rho")
        add("position", q, 0, "one-hot: the sub-claim that Alice is answering, or whose lie bit she is choosing")
        add("assignment", q, -1, "Alice's answers so far; Bob sees them when they are finished")
        lies = q if game.adversarial else 0
        add("lies", lies, -1, "+1 where Alice says that her answer is a lie, -1 where it is none; Alice only")
        add("truths", q, -1, "the chosen sub-claims' true answers, where settled; Alice, and Bob with `bob_sees` truth")
        self._add_aggregator(add, "", "the chosen aggregator's")
        self._description_size = fields[-1].stop - next(f.start for f in fields if f.name == "weights")
        for k in range(game.menu if game.menu > 1 else 0):
            self._add_aggregator(add, f"candidate {k}: ", "that candidate's")
            size = 0 if game.adversarial else q
            add(f"candidate {k}: answers", size, -1, "true answers to its sub-claims; Alice only")
        return fields

    def _add_aggregator(self, add: Any, prefix: str, whose: str) -> None:
        q, seen = self._game.width, "; Alice only" if prefix else ""
        add(prefix + "weights", q, -1, f"{whose} weights, divided by the sum of their sizes{seen}")
        add(prefix + "present", q, 0, f"1 for each of {whose} sub-claims, 0 past its width{seen}")
        add(prefix + "threshold", 1, -1, f"{whose} threshold, divided like the weights; 0 if it has none{seen}")
        add(prefix + "kind", len(KINDS), 0, f"one-hot: {', '.join(KINDS)}{seen}")
        table = f"{whose} truth table (up to width {MAX_TRUTH_TABLE}), first sub-claim the most significant bit{seen}"
        add(prefix + "table", self._table_size, -1, table)

    def description(self, a: int) -> np.ndarray:
        """float32: what is observed of aggregator a: weights, present flags, threshold, kind, truth table."""
        if a not in self._described:
            f, q = self._game.library.aggregators[a], self._game.width
            scale = max(sum(abs(w) for w in f.weights), abs(f.threshold or 0), 1)
            row = np.zeros(self._description_size, np.float32)
            row[: f.width] = [w / scale for w in f.weights]
            row[q : q + f.width] = 1
            row[2 * q] = (f.threshold or 0) / scale
            row[2 * q + 1 + KINDS.index(f.kind)] = 1
            if f.width <= MAX_TRUTH_TABLE:
                start = 2 * q + 1 + len(KINDS)
                row[start : start + (1 << f.width)] = 2.0 * f.table() - 1
            self._described[a] = row
        return self._described[a]

    def write(self, out: np.ndarray, seen: View) -> None:
        """Fill `out`, float32 (size,), with what is seen of a batch of one debate."""
        out[:] = self._blank
        if seen.phase < OVER:
            out[seen.phase] = 1
        out[OVER] = seen.level.item() / self._game.depth
        if seen.phase != CLAIM:
            out[OVER + 1] = SIGN[seen.claimed.item()]
        if seen.truth is not None:
            out[OVER + 2] = SIGN[seen.truth.item()]
        if seen.aggregator is not None:
            row = self.description(seen.aggregator.item())
            out[self._aggregator] = row
            for where, bits in ((self._assignment, seen.assignment), (self._truths, seen.truths)):
                if bits is not None:
                    out[where] = 2 * bits[0] - row[self._present]  # -1 or 1; past the width 0
        if seen.menu is not None and self._menu is not None:
            self._write_menu(out, seen)

    def _write_menu(self, out: np.ndarray, seen: View) -> None:
        q, start = self._game.width, self._menu
        for k, a in enumerate(seen.menu[0].tolist()):
            row = self.description(a)
            out[start : start + len(row)] = row
            start += len(row)
            if not self._game.adversarial:
                if seen.answers is not None:
                    out[start : start + q] = 2 * seen.answers[0, k] - row[self._present]
                start += q

    def batch(self, seen: View) -> Array:
        """float32 (N, size), on the game's array library: what each of N debates shows before the first bit is said.

        Row by row what `write` gives; where a debate is over, what its last claim showed.
        """
        library = self._game.library
        known = seen.aggregator is not None
        rows = self._row_table(seen.phase)
        out = library.pick(rows, seen.aggregator if known else seen.level * 0 + len(rows) - 1)
        out[:, OVER] = seen.level / self._game.depth
        if seen.phase != CLAIM:
            out[:, OVER + 1] = 2 * seen.claimed - 1
        if seen.truth is not None:
            out[:, OVER + 2] = 2 * seen.truth - 1
        if known:
            present = ~library.spread(self._game.beyond, seen.aggregator)
            for where, bits in ((self._assignment, seen.assignment), (self._truths, seen.truths)):
                if bits is not None:
                    out[:, where] = (2 * bits - 1) * present
        if seen.menu is not None and self._menu is not None:
            self._batch_menu(out, seen)
        return out

    def _row_table(self, phase: int) -> Array:
        """float32 (A + 1, size): an observation in that phase with each aggregator chosen, last with none."""
        if phase not in self._rows:
            count = len(self._game.library.aggregators)
            rows = np.tile(self._blank, (count + 1, 1))
            rows[:, phase] = 1
            rows[:count, self._aggregator] = self._descriptions
            self._rows[phase] = self._game.library.array(rows, "float32")
        return self._rows[phase]

    @cached_property
    def _descriptions(self) -> np.ndarray:
        """float32 (A, size of a description)."""
        return np.stack([self.description(a) for a in range(len(self._game.library.aggregators))])

    def _batch_menu(self, out: Array, seen: View) -> None:
        library, q, start = self._game.library, self._game.width, self._menu
        descriptions = library.array(self._descriptions, "float32")
        for k in range(self._game.menu):
            a = seen.menu[:, k]
            out[:, start : start + self._description_size] = library.pick(descriptions, a)
            start += self._description_size
            if not self._game.adversarial:
                if seen.answers is not None:
                    out[:, start : start + q] = (2 * seen.answers[:, k] - 1) * ~library.spread(self._game.beyond, a)
                start += q

    def state(self, out: np.ndarray, state: State) -> None:
        """Fill `out`, float32 (state_size,), with all there is to know of a batch of one debate."""
        seen = everything(self._game, state)
        self.write(out[: self.size], seen)
        if self._lies is not None and seen.truths is not None:
            present = self.description(seen.aggregator.item())[self._present]
            out[self._lies] = 2 * (state.assignment[0] ^ state.truths[0]) - present
        claimed = 0 if state.phase == CLAIM else SIGN[state.root_claimed[0]]
        out[self.size :] = (claimed, SIGN[state.root_truth[0]], state.over[0], state.reward[0])

    def __str__(self) -> str:
        """The layout as a Markdown table."""
        rows = [("index", "field", "values", "meaning"), ("---", "---", "---", "---")]
        for f in self.fields:
            index = str(f.start) if f.stop == f.start + 1 else f"{f.start}-{f.stop - 1}"
            rows.append((index, f.name, f"{f.low} to 1", f.meaning))
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def everything(game: Game, state: State) -> View:
    """The view of somebody from whom nothing is hidden; after the end, of the last claim alone."""
    phase = OVER if state.over[0] else state.phase
    settled = phase in (LIE, RESPOND)
    truths = state.truths if phase == RESPOND else None
    chosen = rules.aggregator(game, state) if settled or phase == ASSIGN else None
    if not game.adversarial and chosen is not None:
        truths = state.answers[game.rows(chosen), state.choice]
    on_offer = phase == DECOMPOSE or chosen is not None
    return View(
        game=game, phase=phase, active=~state.over, level=state.level, claimed=state.claimed, truth=state.truth,
        menu=state.menu if on_offer else None, answers=None if game.adversarial or not on_offer else state.answers,
        aggregator=chosen, assignment=state.assignment if settled else None, truths=truths, state=state,
    )  # fmt: skip
