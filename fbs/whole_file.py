"""Files that appear complete or not at all.

A file is written under a temporary name beside its place, flushed to disk and renamed. So a kill, a full disk or a
reader who comes in between meets the old file or the new one, never a part, and a write that fails leaves nothing.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

TEMPORARY = ".tmp"
OPEN_FILE = re.compile(r"(?:/dev/fd|/proc/self/fd)/(\d{1,9})|/dev/std(out|err)")


class WriteError(ValueError):
    """A file that cannot be written; the message names it and says why."""


def write(path: str | Path, fill: Callable[[BinaryIO], Any]) -> None:
    """Let `fill` write the file at `path`, whose folder exists. To a pipe, a device or an open file it is added.

    Raises:
        WriteError: it cannot be written; what was at `path` before is still there.
    """
    with refusals_named(path):
        if _is_stream(path):
            number = _open_number(path)
            with open(path, "ab") if number is None else os.fdopen(os.dup(number), "ab") as file:
                fill(file)
        else:
            _replace(Path(os.path.realpath(path)), fill)  # a link goes on pointing where it did


def write_json(value: Any, path: str | Path, indent: int | None = 2) -> None:
    """Write `value` as JSON to `path`, whose folders are made. NaN is refused: a missing number is null.

    Raises:
        WriteError: it cannot be written; what was at `path` before is still there.
    """
    content = (json.dumps(value, indent=indent, allow_nan=False) + "\n").encode()
    with refusals_named(path):
        if not _is_stream(path):
            _make_parents(Path(os.path.realpath(path)))
    write(path, lambda file: file.write(content))


def check_place(path: str | Path) -> None:
    """Find out by trying, before any work, whether `write_json` can write to `path`. Nothing is left there.

    Raises:
        WriteError: it cannot.
    """
    with refusals_named(path):
        place = Path(os.path.realpath(path))
        if place.is_dir():
            raise _refusal(errno.EISDIR)
        if os.path.exists(path) and not os.access(path, os.W_OK):
            raise _refusal(errno.EACCES)
        if _is_stream(path):
            os.stat(path)
        else:
            _try_beside(place)


@contextmanager
def refusals_named(path: str | Path) -> Iterator[None]:
    """What the operating system refuses inside becomes a `WriteError` about `path`."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"cannot write {str(path) or repr('')}: {error.strerror or error}") from None


def _is_stream(path: str | Path) -> bool:
    """Whether this is a pipe, a device, or a file that is open already under a number."""
    path = Path(path)
    return _open_number(path) is not None or (path.exists() and not path.is_file() and not path.is_dir())


def _open_number(path: str | Path) -> int | None:
    """The number that a name such as /dev/stderr stands for: to open it anew would forget where the file has got to."""
    found = OPEN_FILE.fullmatch(os.path.abspath(path))
    return None if found is None else int(found[1] or {"out": 1, "err": 2}[found[2]])


def _replace(place: Path, fill: Callable[[BinaryIO], Any]) -> None:
    temporary = _temporary(place)
    try:
        with temporary.open("wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, place)
    finally:
        with suppress(OSError):  # it is gone if all went well
            temporary.unlink()
    with suppress(OSError):  # the file is there; not every file system has more to promise
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name is on disk only once its folder is
        finally:
            os.close(folder)


def _try_beside(place: Path) -> None:
    missing = [folder for folder in place.parents if not folder.exists()]
    temporary = _temporary(place)
    try:
        _make_parents(place)
        temporary.touch()
    finally:
        with suppress(OSError):
            temporary.unlink()
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()


def _make_parents(place: Path) -> None:
    if not next((folder for folder in place.parents if folder.exists()), place).is_dir():
        raise _refusal(errno.ENOTDIR)
    place.parent.mkdir(parents=True, exist_ok=True)


def _temporary(place: Path) -> Path:
    return place.with_name(f"{place.name}.{os.getpid()}{TEMPORARY}")  # two programs may write to one place at once


def _refusal(number: int) -> OSError:
    return OSError(number, os.strerror(number))
