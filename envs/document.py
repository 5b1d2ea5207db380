"""A file as plain objects: text, JSON and YAML, read so that a hostile or careless file is refused, never a crash.

JSON and YAML both become nested dicts, lists, texts, numbers, booleans and None. YAML is put together here from the
parser's events and not by its loader, since a loader follows aliases first and asks questions later: an alias inside
its own anchor would be a claim that contains itself, and a few nested aliases can stand for more claims than any memory
holds. Here both are seen while they are read, before anything is copied.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MAX_DEPTH = 200  # levels of claims below the root
MAX_CLAIMS = 2_000_000  # claims of one problem, aliases counted as the copies they are
MAX_NESTING = 2 * MAX_DEPTH + 2  # each level is a mapping inside a list

TOO_DEEP = f"claims are nested more than {MAX_DEPTH} levels deep; no debate goes on that long, so flatten the argument"
TOO_MANY = f"the file stands for more than {MAX_CLAIMS:,} claims, aliases counted as copies; leave some out"


class ProblemError(ValueError):
    """A file that is no debate problem.

    Args:
        source: The file.
        message: What is wrong and what was expected.
        place: Where in the file, such as `root/children[2]` or `line 7`; empty if the file as a whole is meant.
    """

    def __init__(self, source: str, message: str, place: str = "") -> None:
        super().__init__(source, message, place)
        self.source, self.message, self.place = source, message, place

    def __str__(self) -> str:
        return f"{self.source}{', ' if self.place else ''}{self.place}: {self.message}"


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file, without its byte order mark; line ends stay as they are.

    Raises:
        ProblemError: there is no such file, or it cannot be read as UTF-8 text.
    """
    path = Path(path)
    if path.is_dir():
        raise ProblemError(str(path), "is a folder; a problem is one file (.json, .yaml or .csv)")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ProblemError(str(path), "no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise ProblemError(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{content[error.start]:02x} is not UTF-8 text; save the file as UTF-8"
        raise ProblemError(str(path), found, f"line {line}") from None


def parse_json(text: str, source: str) -> Any:
    """The objects of a JSON text.

    Raises:
        ProblemError: malformed JSON, a key given twice in one object, or nesting beyond what the parser can follow.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ProblemError(source, f"the key '{twice}' is given twice in the claim {found.get('claim')!r}")
        return found

    try:
        return json.loads(text, object_pairs_hook=unique)
    except RecursionError:
        raise ProblemError(source, TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise ProblemError(source, f"not JSON: {error.msg}", f"line {error.lineno}, column {error.colno}") from None
    except ProblemError:
        raise
    except ValueError as error:  # a whole number of thousands of digits
        raise ProblemError(source, f"not JSON that can be read: {error}") from None


def parse_yaml(text: str, source: str) -> Any:
    """The objects of a YAML text; what an alias stands for is the same object in each place.

    Raises:
        ProblemError: malformed YAML, several documents, a key given twice, a tag beyond plain data, an alias that is
            unknown or stands inside its own anchor, nesting over `MAX_NESTING`, or over `MAX_CLAIMS` mappings.
    """
    import yaml

    composer = _Composer(source)
    try:
        composer.read(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ProblemError(source, f"not YAML: {error.problem or error.context}", place) from None
    except yaml.YAMLError as error:  # a character that YAML forbids
        raise ProblemError(source, f"not YAML: {' '.join(str(error).split())}") from None
    return composer.document


_NO_KEY = object()


class _Container:
    """A list or mapping being read: its value, the key that waits for a value, and the claims it stands for."""

    __slots__ = ("claims", "closed", "key", "line", "value")

    def __init__(self, value: list | dict | str, line: int, closed: bool = False) -> None:
        self.value: Any = value
        self.key: Any = _NO_KEY
        self.claims = int(isinstance(value, dict))
        self.line = line
        self.closed = closed


class _Composer:
    """Puts YAML events together, with a stack of its own in place of recursion."""

    def __init__(self, source: str) -> None:
        from yaml.constructor import SafeConstructor
        from yaml.resolver import Resolver

        self.source = source
        self.document: Any = None
        self.documents = 0
        self.open: list[_Container] = []
        self.anchors: dict[str, _Container] = {}
        self.resolver = Resolver()
        self.constructor = SafeConstructor()

    def read(self, events: Iterable[Any]) -> None:
        import yaml

        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, yaml.ScalarEvent):
                scalar = self.scalar(event, line)
                if event.anchor is not None:
                    self.anchors[event.anchor] = _Container(scalar, line, closed=True)
                self.add(scalar, 0, line)
            elif isinstance(event, yaml.CollectionStartEvent):
                self.start({} if isinstance(event, yaml.MappingStartEvent) else [], event, line)
            elif isinstance(event, yaml.CollectionEndEvent):
                closed = self.open.pop()
                closed.closed = True
                self.add(closed.value, closed.claims, closed.line)
            elif isinstance(event, yaml.AliasEvent):
                self.alias(event.anchor, line)
            elif isinstance(event, yaml.DocumentStartEvent):
                self.documents += 1
                if self.documents > 1:
                    self.fail("a second document begins; a file holds one argument", line)

    def fail(self, message: str, line: int) -> None:
        raise ProblemError(self.source, message, f"line {line}")

    def start(self, value: list | dict, event: Any, line: int) -> None:
        if len(self.open) >= MAX_NESTING:
            self.fail(TOO_DEEP, line)
        if event.tag not in (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            self.fail(f"the tag {event.tag} is not allowed: a claim is plain data", line)
        self.open.append(_Container(value, line))
        if event.anchor is not None:
            self.anchors[event.anchor] = self.open[-1]

    def alias(self, name: str, line: int) -> None:
        target = self.anchors.get(name)
        if target is None:
            self.fail(f"the alias *{name} has no anchor &{name} before it", line)
        elif not target.closed:
            self.fail(f"the claim contains itself: *{name} stands inside &{name} of line {target.line}", line)
        else:
            self.add(target.value, target.claims, line)

    def add(self, value: Any, claims: int, line: int) -> None:
        """Give a finished value to the container it stands in."""
        if not self.open:
            self.document = value
            return
        parent = self.open[-1]
        parent.claims += claims
        if parent.claims > MAX_CLAIMS:
            self.fail(TOO_MANY, line)
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.key is _NO_KEY:
            if isinstance(value, dict | list):
                self.fail("a key must be a word, not a list or a mapping", line)
            if value in parent.value:
                self.fail(f"the key '{value}' is given twice", line)
            parent.key = value
        else:
            parent.value[parent.key] = value
            parent.key = _NO_KEY

    def scalar(self, event: Any, line: int) -> Any:
        """A text, number, boolean or None; dates and the like stay the texts they are written as."""
        from yaml import ScalarNode

        tag = event.tag
        if tag in (None, "!"):
            tag = self.resolver.resolve(ScalarNode, event.value, event.implicit)
        kind = tag.removeprefix("tag:yaml.org,2002:")
        if kind in ("int", "float", "bool", "null"):
            construct = self.constructor.yaml_constructors[tag]
            try:
                return construct(self.constructor, ScalarNode(tag, event.value))
            except (ValueError, KeyError):
                self.fail(f"'{event.value[:40]}' is not a value of the kind {kind}", line)
        if event.tag not in (None, "!") and kind != "str":
            self.fail(f"the tag {event.tag} is not allowed: a claim is plain data", line)
        return event.value
