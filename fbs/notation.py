"""Aggregators and assignments as people write them: `GRAMMAR` below says how.

`str(aggregator)` writes one so, for `parse` to read back.

    >>> str(parse("majority( and 2, or 3 ,PARITY 2 )"))
    'majority(and 2, or 3, parity 2)'
    >>> parse("at_least 2", width=3)(assignment("110")).item()
    1
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fbs.aggregator import (
    MAX_TABLE_WIDTH,
    MAX_WEIGHT,
    MAX_WIDTH,
    Aggregator,
    AggregatorError,
    Composition,
    Table,
    Threshold,
    at_least,
    conjunction,
    disjunction,
    majority,
    parity,
    symmetric,
)

GRAMMAR = """\
  majority                         more than half of the sub-claims
  and, or, parity                  all of them, any, an odd number
  at_least 3                       three or more
  symmetric 0010                   by how many are true: the values at 0, 1, 2, 3 (here: exactly two)
  threshold 3,2,2,1,1 >= 5         by the sum of whole-number weights, which may be negative
  table 0001                       the values at 00, 01, 10, 11; the first sub-claim is the most significant bit
  majority(and 2, or 3, parity 2)  any aggregator of any others, each with sub-claims of its own

A number after the name is the width, as in majority 7 or at_least 3 7. It may be left out where the surroundings give
it: the bits of an assignment, the children of a claim, the parts of a composition."""

MAX_NESTING = 50

SYMMETRIC = {"majority": majority, "and": conjunction, "or": disjunction, "parity": parity}
NAMES = "majority, and, or, parity, at_least, symmetric, threshold or table"

_TOKEN = re.compile(r"[A-Za-z_]+|-?[0-9]+|>=|[(),]")
_SHOWN = 60  # characters of a long text that a message shows


class NotationError(ValueError):
    """A text that is not an aggregator or an assignment.

    Attributes:
        text: what was read.
        position: the index in it where reading stopped.
        expected: what could have stood there.
    """

    def __init__(self, text: str, position: int, expected: str) -> None:
        self.text, self.position, self.expected = text, position, expected
        start = max(0, min(position - _SHOWN // 2, len(text) - _SHOWN))
        before = ("..." if start else "") + text[start:position]
        after = text[position : start + _SHOWN] + ("..." if start + _SHOWN < len(text) else "")
        shown = " ".join(f"{before}^{after}".split())  # on one line
        super().__init__(f"{expected}, at character {position + 1}: {shown}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.position, self.expected)


def parse(text: str, width: int | None = None) -> Aggregator:
    """The aggregator that a text describes.

    Args:
        text: see above; spaces and capitals do not matter.
        width: the number of sub-claims, where it is known from elsewhere.

    Raises:
        NotationError: the text is no aggregator, has another width, or none where one is needed.
    """
    if not isinstance(text, str):
        raise NotationError(repr(text), 0, "an aggregator is a text, like 'majority 3'")
    if width is not None and not 1 <= width <= MAX_WIDTH:
        raise NotationError(text, 0, f"the width must be 1 to {MAX_WIDTH}, not {width}")
    return _Parser(text).whole(width)


def assignment(bits: Any) -> np.ndarray:
    """The 0/1 array int8 (q,) of a text like "11100" ("111 00" is the same), or of a sequence or array of 0 and 1.

    Raises:
        NotationError: something other than 0 and 1, nothing at all, or more than MAX_WIDTH.
    """
    if isinstance(bits, str):
        wrong = next((i for i, character in enumerate(bits) if character not in "01 "), None)
        if wrong is not None:
            raise NotationError(bits, wrong, "an assignment has one 0 or 1 for each sub-claim")
        text, values = bits, np.array([int(bit) for bit in bits if bit != " "], dtype=np.int8)
    else:
        try:
            array = np.asarray(bits)
        except ValueError:  # rows of unequal length
            array = np.array(None)
        text = str(bits) if array.size < 20 else np.array2string(array, threshold=20)
        if array.ndim != 1 or array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
            raise NotationError(text, 0, "an assignment has one 0 or 1 for each sub-claim, in one row")
        values = array.astype(np.int8)
    if not 1 <= len(values) <= MAX_WIDTH:
        raise NotationError(text, 0, f"an assignment has 1 to {MAX_WIDTH} bits, not {len(values)}")
    return values


@dataclass(frozen=True)
class _Token:
    text: str
    position: int


@dataclass(frozen=True)
class _Named:
    """An aggregator read but not yet built: nothing is allocated until its width has been checked."""

    build: Callable[[int], Aggregator]
    width: int | None  # None where the surroundings must give it
    example: str
    position: int


class _Parser:
    """Recursive descent over

    aggregator := primary [ "(" aggregator { "," aggregator } ")" ]...
    primary    := NAME [WIDTH] | "at_least" COUNT [WIDTH] | "symmetric" BITS | "table" BITS
                | "threshold" NUMBER { "," NUMBER } ">=" NUMBER
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.next = 0  # index of the next token
        self.width = 0  # of all parts built so far, to refuse a large sum of them before building it
        self.tokens = list(self._split())

    def whole(self, width: int | None) -> Aggregator:
        aggregator, _ = self._aggregator(width, nesting=0)
        if self._peek():
            raise self._error("expected the end of the aggregator")
        return aggregator

    def _aggregator(self, width: int | None, nesting: int) -> tuple[Aggregator, int]:
        """The next aggregator, and how deeply its compositions are nested."""
        named = self._primary()
        if self._peek() != "(":
            return self._build(named, width), 0
        outer, depth = None, 0
        while self._peek() == "(":
            position = self._position()
            if nesting + depth >= MAX_NESTING:
                raise self._error(f"aggregators can be nested {MAX_NESTING} deep")
            self.width -= outer.width if outer else 0  # its sub-claims turn into values of parts
            parts, parts_depth = self._parts(nesting + 1)
            if outer is None:
                outer = self._build(named, len(parts), as_part=False)
            elif outer.width != len(parts):
                raise NotationError(self.text, position, f"expected {outer.width} parts, not {len(parts)}")
            outer = self._made(lambda outer=outer, parts=parts: Composition(outer, parts), named.position)
            depth = 1 + max(depth, parts_depth)
        if width is not None and outer.width != width:
            raise NotationError(self.text, named.position, f"it has {outer.width} sub-claims, where {width} are given")
        return outer, depth

    def _parts(self, nesting: int) -> tuple[tuple[Aggregator, ...], int]:
        self.next += 1
        parts, depths = [], []
        while True:
            part, depth = self._aggregator(None, nesting)
            parts.append(part)
            depths.append(depth)
            if self._peek() not in (",", ")"):
                raise self._error("expected , or )")
            self.next += 1
            if self.tokens[self.next - 1].text == ")":
                return tuple(parts), max(depths)

    def _primary(self) -> _Named:
        position = self._position()
        name = (self._peek() or "").lower()
        if name not in READERS and name not in SYMMETRIC:
            raise self._error(f"expected {NAMES}")
        self.next += 1
        build, width = READERS[name](self) if name in READERS else (SYMMETRIC[name], self._width())
        return _Named(build, width, f"{self.text[position : self._end()]} 3", position)

    def _at_least(self) -> tuple[Callable[[int], Aggregator], int | None]:
        count = self._number("how many must be true, as in 'at_least 3'", least=0)
        return lambda width: at_least(count, width), self._width()

    def _symmetric(self) -> tuple[Callable[[int], Aggregator], int]:
        bits = self._bits("the values at 0, 1, 2, ... ones, as in 'symmetric 0010'")
        if len(bits) < 2:
            self.next -= 1
            raise self._error("expected the values at 0, 1, 2, ... ones, two of them at least")
        return lambda width: symmetric(tuple(map(int, bits))), len(bits) - 1

    def _table(self) -> tuple[Callable[[int], Aggregator], int]:
        bits = self._bits("the values in the order of the codes, as in 'table 0001'")
        width = len(bits).bit_length() - 1
        if len(bits) != 2**width or not 1 <= width <= MAX_TABLE_WIDTH:
            self.next -= 1
            raise self._error(f"a table has 2, 4, 8, ... or 2**{MAX_TABLE_WIDTH} values, not {len(bits)}")
        return lambda width: Table(tuple(map(int, bits))), width

    def _threshold(self) -> tuple[Callable[[int], Aggregator], int]:
        expected = "a whole number, as in 'threshold 3,2,2,1,1 >= 5'"
        weights = [self._number(expected)]
        while self._peek() == ",":
            self.next += 1
            weights.append(self._number(expected))
        if self._peek() != ">=":
            raise self._error("expected , or >= as in 'threshold 3,2,2,1,1 >= 5'")
        self.next += 1
        threshold = self._number(expected)
        return lambda width: Threshold(tuple(weights), threshold), len(weights)

    def _width(self) -> int | None:
        """The number that may follow a name."""
        follows = self._peek()
        return self._number("a width", least=1, most=MAX_WIDTH) if follows and follows[-1].isdigit() else None

    def _number(self, expected: str, least: int = -MAX_WEIGHT, most: int = MAX_WEIGHT) -> int:
        word = self._peek() or ""
        if not word[-1:].isdigit():
            raise self._error(f"expected {expected}")
        # Python refuses to convert thousands of digits, so length comes first.
        if len(word) > len(str(MAX_WEIGHT)) + 1 or not least <= int(word) <= most:
            raise self._error(f"expected {expected}, between {least} and {most}")
        self.next += 1
        return int(word)

    def _bits(self, expected: str) -> str:
        word = self._peek() or ""
        if not word or set(word) - {"0", "1"}:
            raise self._error(f"expected {expected}")
        self.next += 1
        return word

    def _build(self, named: _Named, given: int | None, as_part: bool = True) -> Aggregator:
        """Check the width, then build. Sub-claims of a part count towards MAX_WIDTH, values of parts do not."""
        width = named.width or given
        if width is None:
            raise NotationError(self.text, named.position, f"expected a width too, as in '{named.example}'")
        if given not in (None, width):
            raise NotationError(self.text, named.position, f"it has {width} sub-claims, where {given} are given")
        self.width += width if as_part else 0
        if self.width > MAX_WIDTH:
            raise NotationError(self.text, named.position, f"an aggregator has at most {MAX_WIDTH} sub-claims in all")
        return self._made(lambda: named.build(width), named.position)

    def _made(self, build: Callable[[], Aggregator], position: int) -> Aggregator:
        try:
            return build()
        except AggregatorError as error:
            raise NotationError(self.text, position, str(error)) from None

    def _peek(self) -> str | None:
        return self.tokens[self.next].text if self.next < len(self.tokens) else None

    def _position(self) -> int:
        return self.tokens[self.next].position if self._peek() else len(self.text)

    def _end(self) -> int:
        """Where the last token read ends."""
        last = self.tokens[self.next - 1]
        return last.position + len(last.text)

    def _error(self, expected: str) -> NotationError:
        return NotationError(self.text, self._position(), expected)

    def _split(self) -> Iterator[_Token]:
        position = 0
        while position < len(self.text):
            if self.text[position].isspace():
                position += 1
                continue
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise NotationError(self.text, position, "expected a name, a whole number, a comma, a bracket or >=")
            yield _Token(match.group(), position)
            position = match.end()


READERS = {
    "at_least": _Parser._at_least,
    "symmetric": _Parser._symmetric,
    "table": _Parser._table,
    "threshold": _Parser._threshold,
}
