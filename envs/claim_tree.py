"""An argument that somebody wrote down: a tree of claims with true answers, from a JSON or YAML file.

A claim is one of two mappings; `claimed`, what Alice says of it, may be left out and is then what the answers give:

    claim: The bridge can carry buses           claim: Cable 3 shows no corrosion
    aggregator: at_least 2                      answer: 1
    children: [...]                             claimed: 1

For example, in YAML and as the arrays of a `ClaimTree` (nodes in breadth-first order):

    claim: It rained                            node        0   1   2   3   4
    aggregator: or                              aggregator  0  -1   1  -1  -1
    children:                                   first_child 1   0   3   0   0
      - {claim: The street is wet, answer: 0}   width       2   0   2   0   0
      - claim: Two of us saw it                 parent     -1   0   0   2   2
        aggregator: and                         level       2   0   1   0   0
        children:                               answer      1   0   1   1   1
          - {claim: Ann saw it, answer: 1}
          - {claim: Ben saw it, answer: 1}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from envs.document import MAX_CLAIMS, MAX_DEPTH, TOO_DEEP, TOO_MANY, ProblemError, parse_json, parse_yaml, read_text
from fbs.aggregator import MAX_WIDTH, Aggregator
from fbs.notation import parse

__all__ = ["ClaimTree", "ProblemError", "load_claim_tree"]


@dataclass(frozen=True, eq=False)
class ClaimTree:
    """A decomposition tree with true answers and claimed bits.

    Nodes are numbered breadth first, the root 0, so the children of a node are contiguous and come after it. Ragged
    widths and depths are fine. N is the number of nodes.

    Attributes:
        source: The file it came from.
        aggregators: The distinct aggregators.
        aggregator: int64 (N,), index into `aggregators`; -1 at a leaf.
        first_child: int64 (N,), 0 at a leaf.
        width: int64 (N,), the number of children; 0 at a leaf.
        parent: int64 (N,), -1 at the root.
        level: int64 (N,), the longest path below; 0 at a leaf.
        answer: int8 (N,), the truth: given at the leaves, above them what the aggregators make of it.
        claimed: int8 (N,), what Alice claims.
        text: The claims, N of them.
        written: The aggregators as the user wrote them, N of them; "" at a leaf.
    """

    source: str
    aggregators: tuple[Aggregator, ...]
    aggregator: np.ndarray
    first_child: np.ndarray
    width: np.ndarray
    parent: np.ndarray
    level: np.ndarray
    answer: np.ndarray
    claimed: np.ndarray
    text: tuple[str, ...]
    written: tuple[str, ...]

    @classmethod
    def from_breadth_first(
        cls,
        source: str,
        aggregators: Sequence[Aggregator],
        aggregator: Sequence[int],
        answer: Sequence[int],
        claimed: Sequence[int],
        text: Sequence[str],
        written: Sequence[str],
    ) -> ClaimTree:
        """A tree from its nodes in breadth-first order.

        Args:
            source: The file, for messages.
            aggregators: The distinct aggregators; the width of a node is that of its aggregator.
            aggregator: (N,), index into `aggregators`; -1 at a leaf.
            answer: (N,), the truth at the leaves; not looked at elsewhere.
            claimed: (N,), 0 or 1, and -1 where what the answers give is claimed.
            text, written: N texts each.
        """
        numbers = np.asarray(aggregator, np.int64)
        widths = np.array([f.width for f in aggregators] + [0], np.int64)  # the last is picked by -1, a leaf
        width = widths[numbers]
        first_child = np.where(width > 0, 1 + np.cumsum(width) - width, 0)
        parent = np.concatenate([[-1], np.repeat(np.arange(len(width)), width)])
        level = np.zeros(len(width), np.int64)
        truth = np.where(width > 0, 0, np.asarray(answer)).astype(np.int8)
        for low, high in reversed(_layers(width)):
            for number, nodes in _grouped(numbers, low, high):
                children = first_child[nodes, None] + np.arange(aggregators[number].width)
                level[nodes] = level[children].max(-1) + 1
                truth[nodes] = aggregators[number](truth[children])
        given = np.asarray(claimed, np.int8)
        return cls(
            source,
            tuple(aggregators),
            aggregator=numbers,
            first_child=first_child,
            width=width,
            parent=parent,
            level=level,
            answer=truth,
            claimed=np.where(given < 0, truth, given),
            text=tuple(text),
            written=tuple(written),
        )

    @property
    def depth(self) -> int:
        """The longest path from the root to a leaf."""
        return int(self.level[0])

    @cached_property
    def leaves(self) -> int:
        """How many claims are answered by a person."""
        return int((self.width == 0).sum())

    def path(self, node: int) -> str:
        """Where a node stands: the child numbers from the root joined by "/", such as "2/0/1"; "" for the root."""
        return "/".join(map(str, _steps(int(node), self.parent, self.first_child)))

    def place(self, node: int) -> str:
        """Where a node stands in the file, for messages: such as "root/children[2]"."""
        return _place(int(node), self.parent, self.first_child)

    def children(self, node: int) -> slice:
        """The children of a node, as a slice of the node arrays."""
        return slice(int(self.first_child[node]), int(self.first_child[node] + self.width[node]))

    def preorder(self) -> np.ndarray:
        """int64 (N,): the nodes, each before its children and these in their order."""
        first_child, width = self.first_child.tolist(), self.width.tolist()
        order, waiting = [], [0]
        while waiting:
            node = waiting.pop()
            order.append(node)
            waiting.extend(range(first_child[node] + width[node] - 1, first_child[node] - 1, -1))
        return np.array(order, np.int64)


def _layers(width: np.ndarray) -> list[tuple[int, int]]:
    """Node ranges of equal distance from the root, the root first."""
    layers = [(0, 1)]
    while layers[-1][1] < len(width):
        low, high = layers[-1]
        layers.append((high, high + int(width[low:high].sum())))
    return layers


def _grouped(numbers: np.ndarray, low: int, high: int) -> list[tuple[int, np.ndarray]]:
    """The inner nodes from low to high by the number of their aggregator."""
    inner = low + np.flatnonzero(numbers[low:high] >= 0)
    inner = inner[np.argsort(numbers[inner], kind="stable")]
    starts = np.flatnonzero(np.diff(numbers[inner], prepend=-1))
    return [(int(numbers[nodes[0]]), nodes) for nodes in np.split(inner, starts[1:]) if len(nodes)]


def _steps(node: int, parent: Sequence[int], first_child: Sequence[int]) -> list[int]:
    steps = []
    while parent[node] >= 0:
        steps.append(int(node - first_child[parent[node]]))
        node = parent[node]
    return steps[::-1]


def _place(node: int, parent: Sequence[int], first_child: Sequence[int]) -> str:
    return "root" + "".join(f"/children[{step}]" for step in _steps(node, parent, first_child))


def load_claim_tree(path: str | Path) -> ClaimTree:
    """Read a claim tree from a `.json`, `.yaml` or `.yml` file.

    Raises:
        ProblemError: the file cannot be read, or is no claim tree; the message names the file, the place such as
            `root/children[2]`, and what was expected there.
    """
    source = str(path)
    text = read_text(path)
    if not text.strip():
        raise ProblemError(source, "the file is empty; expected a claim")
    if Path(path).suffix.lower() == ".json":
        return _build(parse_json(text, source), source)
    return _build(parse_yaml(text, source), source)


class _MalformedClaim(ValueError):
    """What is wrong with one claim; the place is known to the caller."""


@dataclass(frozen=True)
class _Claim:
    """One checked mapping of the file; -1 where there is no aggregator, answer or claimed bit."""

    text: str
    written: str
    aggregator: int
    children: list
    answer: int
    claimed: int


def _build(document: Any, source: str) -> ClaimTree:
    """Check the claims level by level, which numbers them breadth first and needs no recursion."""
    if isinstance(document, dict) and "answer" in document and "children" not in document:
        raise ProblemError(source, "is a leaf, and a debate needs something to decompose; give it `children`", "root")
    library = _AggregatorNumbers()
    claims: list[_Claim] = []
    parent, first_child, unread = [-1], [0], [document]
    for _depth in range(MAX_DEPTH + 1):
        layer, unread = unread, []
        for value in layer:
            node = len(claims)
            try:
                claim = _read_claim(value, library)
                if len(parent) + len(claim.children) > MAX_CLAIMS:
                    raise _MalformedClaim(TOO_MANY)
            except _MalformedClaim as error:
                raise ProblemError(source, str(error), _place(node, parent, first_child)) from None
            claims.append(claim)
            first_child[node] = len(parent)
            parent.extend([node] * len(claim.children))
            first_child.extend([0] * len(claim.children))
            unread.extend(claim.children)
        if not unread:
            break
    else:
        place = _place(len(claims), parent, first_child)
        raise ProblemError(source, TOO_DEEP, place if len(place) < 200 else f"{place[:100]}/...")
    return ClaimTree.from_breadth_first(
        source,
        library.aggregators,
        [claim.aggregator for claim in claims],
        [claim.answer for claim in claims],
        [claim.claimed for claim in claims],
        [claim.text for claim in claims],
        [claim.written for claim in claims],
    )


def _read_claim(value: Any, library: _AggregatorNumbers) -> _Claim:
    """Check one mapping of the file, all but what its children contain."""
    if not isinstance(value, dict):
        raise _MalformedClaim(f"expected a claim, a mapping with `claim` and more, but found {_kind(value)}")
    for key in value:
        if key not in ("claim", "aggregator", "children", "answer", "claimed"):
            raise _MalformedClaim(f"unknown key {key!r}; a claim has claim, aggregator, children, answer, claimed")
    text = _read_text(value)
    claimed = _read_bit(value, "claimed") if "claimed" in value else -1
    if "answer" in value:
        for key in ("children", "aggregator"):
            if key in value:
                raise _MalformedClaim(f"has both `answer` and `{key}`; only a leaf has an answer, and no children")
        return _Claim(text, "", -1, [], _read_bit(value, "answer"), claimed)
    if "children" not in value and "aggregator" not in value:
        raise _MalformedClaim("has neither `answer: 0` or `answer: 1` (a leaf) nor `aggregator` and `children`")
    for key, meaning in {"children": "a list of claims", "aggregator": "how they decide it, like `majority`"}.items():
        if key not in value:
            raise _MalformedClaim(f"has no `{key}`: {meaning}")
    children = value["children"]
    if not isinstance(children, list):
        raise _MalformedClaim(f"`children` must be a list of claims, but is {_kind(children)}")
    if not children:
        raise _MalformedClaim("`children` is empty; a claim without any is a leaf, with `answer: 0` or `answer: 1`")
    written = value["aggregator"]
    if not isinstance(written, str):
        raise _MalformedClaim(f"`aggregator` must be text such as `majority`, but is {_kind(written)}")
    return _Claim(text, written.strip(), library.number(written.strip(), len(children)), children, 0, claimed)


def _read_text(value: dict) -> str:
    text = value.get("claim")
    if not isinstance(text, str):
        found = "is missing" if "claim" not in value else f"is {_kind(text)}; put quotes around it"
        raise _MalformedClaim(f"`claim`, the text of the claim, {found}")
    if not text.strip():
        raise _MalformedClaim("`claim` is empty; say what is claimed")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise _MalformedClaim("`claim` contains half a character (a lone surrogate), which cannot be printed")
    return text


def _read_bit(value: dict, key: str) -> int:
    bit = value[key]
    if type(bit) is not int or bit not in (0, 1):
        raise _MalformedClaim(f"`{key}` must be 0 or 1, but is {_kind(bit)}")
    return bit


def _kind(value: Any) -> str:
    """A value of the file in words."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int):
        return f"the number {value}" if abs(value) < 10**20 else "a huge number"
    return f"the number {value}" if isinstance(value, float) else f"the text {value[:60]!r}"


class _AggregatorNumbers:
    """Numbers the distinct aggregators in order of appearance; a written form is parsed once per width."""

    def __init__(self) -> None:
        self.aggregators: list[Aggregator] = []
        self._by_text: dict[tuple[str, int], int] = {}
        self._by_value: dict[Aggregator, int] = {}

    def number(self, written: str, width: int) -> int:
        key = (written, width)
        if key not in self._by_text:
            aggregator = _parse_aggregator(written, width)
            if aggregator not in self._by_value:
                self._by_value[aggregator] = len(self.aggregators)
                self.aggregators.append(aggregator)
            self._by_text[key] = self._by_value[aggregator]
        return self._by_text[key]


def _parse_aggregator(written: str, width: int) -> Aggregator:
    if width > MAX_WIDTH:
        raise _MalformedClaim(f"has {width} children, at most {MAX_WIDTH:,} are possible; group them into sub-claims")
    try:
        aggregator = parse(written, width)
    except ValueError as error:
        raise _MalformedClaim(f"`aggregator` of a claim with {width} children: {error}") from None
    if aggregator.width != width:
        raise _MalformedClaim(f"`{written}` takes {aggregator.width} sub-claims, but there are {width} children")
    return aggregator
