"""A lock that one process at a time holds on a folder, and that its death gives back."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

LOCK = ".lock"  # the file's name; it stays, since removing it would let two processes lock two files of that name


class TakenError(ValueError):
    """Another process holds the lock.

    Attributes:
        process: Its number as it is known, "" if it is not.
    """

    def __init__(self, process: str) -> None:
        super().__init__(f"the lock is held by process {process}")
        self.process = process


def hold(folder: Path) -> BinaryIO:
    """Lock the folder until the file that is returned is closed.

    Where the system or the file system knows no locks, nothing is locked.

    Raises:
        TakenError: another process holds the lock. OSError: the folder cannot be written to.
    """
    file = (folder / LOCK).open("a+b", buffering=0)
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with file:
            file.seek(0)
            raise TakenError(file.read(20).decode("ascii", "replace").strip()) from None
    except (ImportError, OSError):
        return file
    with suppress(OSError):  # a full disk: only the number is lost
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode())
    return file
