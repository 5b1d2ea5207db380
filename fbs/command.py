"""What every command of this project does alike: how it gives its result, begins and ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TextIO

from fbs.whole_file import WriteError, check_place, write_json


def check_json(path: str | None, *read: str | None) -> None:
    """Refuse `--json PATH` before the work whose result would be lost: it cannot be written, or would replace `read`.

    Raises:
        WriteError: as above.
    """
    if path in (None, "-"):
        return
    try:
        check_place(path)
        for file in filter(None, read):
            if Path(file).is_file() and Path(path).exists() and Path(path).samefile(file):
                raise WriteError(f"{path} is what is read; name another file")
    except WriteError as error:
        raise WriteError(f"--json: {error}") from None


def give(result: Any, text: str, path: str | None, out: TextIO | None = None, indent: int | None = 2) -> None:
    """Print `text` to `out`, by default standard output, and write `result` as JSON to `path` if there is one.

    With `-` the JSON is all that standard output gets. Where the file cannot be written the text is printed all the
    same. NaN is refused: a missing number is null.

    Raises:
        WriteError: the file cannot be written.
    """
    try:
        if path == "-":
            print(json.dumps(result, indent=indent, allow_nan=False))
        elif path is not None:
            write_json(result, path, indent)
    except WriteError as error:
        raise WriteError(f"--json: {error}") from None
    finally:
        if out is not None or path != "-":
            print(text, file=out)
