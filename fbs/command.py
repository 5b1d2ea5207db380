"""What every command of this project does alike: how it gives its result, begins and ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO

from fbs.whole_file import WriteError, check_place, write_json

INTERRUPTED = 130  # exit statuses, as a shell counts them: 128 and the number of the signal SIGINT, SIGPIPE
READER_GONE = 141
REFUSED = 2  # by us or by the operating system


def run_program(name: str, main: Callable[[], int]) -> NoReturn:
    """Run `main` as the program `name` and exit with the status that it returns.

    What is no fault of the program's ends it without a traceback: an interrupt with status 130; a reader of its output
    who leaves, as `| head` does, in silence with 141; what the operating system refuses with one line and 2.
    """
    _open_streams()
    interrupt = _Interrupt()
    interrupt.listen()
    status, words = REFUSED, ""
    try:
        try:
            status = main()
        except SystemExit as stop:  # argparse's
            status = stop.code
        sys.stdout.flush()
    except BrokenPipeError:
        status = READER_GONE
    except OSError as error:
        words = f"error: {error.filename or 'standard output'}: {error.strerror or error}"
    except BaseException:
        if not interrupt.came:
            raise
        status, words = INTERRUPTED, "interrupted"
    interrupt.came = True  # the next one need not wait for the interpreter to clear up
    _close_streams(f"{name}: {words}" if words else "")
    sys.exit(status)


class _Interrupt:
    """Answers SIGINT: the first by `KeyboardInterrupt`, the next by leaving at once.

    Attributes:
        came: Whether there was one. An extension module that is interrupted while it is imported makes another
            exception of it, or prints it and goes on, so the exception does not tell.
    """

    def __init__(self) -> None:
        self.came = False
        self._unraisable = sys.unraisablehook

    def listen(self) -> None:
        """Programs leave at once while they import; from here on there may be something to clear up."""
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as nohup and `&` in scripts have it
            signal.signal(signal.SIGINT, self)
            sys.unraisablehook = lambda failure: None if self.came else self._unraisable(failure)

    def __call__(self, *_: object) -> NoReturn:
        if self.came:
            os._exit(INTERRUPTED)
        self.came = True
        raise KeyboardInterrupt


def _open_streams() -> None:
    """Closed streams lead nowhere, and all of them take any text, also what their encoding cannot say."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        getattr(sys, name).reconfigure(errors="backslashreplace")


def _close_streams(last_words: str) -> None:
    """Write what is still to be written, where anybody reads it, so that the interpreter does not try it once more."""
    if last_words:
        with suppress(OSError):
            print(last_words, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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
