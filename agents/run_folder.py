"""The folder of one training run: its configuration, checkpoints and summary.

    config.yaml             what was trained; `--config` reads it
    events.*                curves for TensorBoard
    checkpoints/last.pt     the newest state, complete: training goes on from it as if it had never stopped
    checkpoints/best.pt     the same at the evaluation with the best score so far
    summary.json            the final measures; the run is finished once it exists
    .lock                   held by the process that trains here

Every file is written whole (`fbs.whole_file`): a kill or a full disk leaves the old one or the new one, never a part.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from agents.checkpoint import load_checkpoint, unusable
from agents.configuration import FREE_ON_RESUME, RUN_CONFIG, TrainConfig, differing, from_dict
from agents.lock import LOCK, TakenError, hold
from envs.config import ConfigError
from fbs.whole_file import TEMPORARY, WriteError, write


class RunError(ValueError):
    """A run folder that cannot be used; the message says what to type instead."""


class RunFolder:
    """One run's files.

    Args:
        path: The folder; it need not exist yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / RUN_CONFIG
        self.last = self.path / "checkpoints" / "last.pt"
        self.best = self.path / "checkpoints" / "best.pt"
        self.summary = self.path / "summary.json"
        self._lock: BinaryIO | None = None

    def __str__(self) -> str:
        return str(self.path)

    @property
    def occupied(self) -> bool:
        """Whether anything but remains of an interrupted write is in the folder."""
        return self.path.is_dir() and any(
            entry.suffix != TEMPORARY and entry.name != LOCK for entry in self.path.iterdir()
        )

    @property
    def begun(self) -> bool:
        """Whether a run was begun here."""
        return self.config.is_file()

    @property
    def finished(self) -> bool:
        """Whether the run here went to its end."""
        return self.begun and self.summary.is_file()

    def open(self, config: TrainConfig) -> dict[str, Any] | None:
        """The checkpoint that `config` is to continue from here, or None to begin.

        A run that is to be continued is locked until `release`; else nothing is written.

        Raises:
            RunError: the folder is taken, or missing when it is to be continued, or holds another configuration.
            CheckpointError: the checkpoint cannot be used.
        """
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"{self} is a file; give another folder with --run_dir")
        if self.occupied and not self.begun:
            raise RunError(f"{self} exists and is not a run folder (it has no {RUN_CONFIG}); give another --run_dir")
        if config.resume == "never" and self.occupied:
            shown = f"It is finished; to see its results type: python eval.py run {quoted(self.path)}"
            going_on = f"To continue that run type: {self.resume_command}"
            raise RunError(
                f"the run folder {self} already exists. {shown if self.finished else going_on}. "
                f"To begin another one add a folder that does not exist, such as: --run_dir {self._free_name()}"
            )
        if config.resume == "always" and not self.begun:
            raise RunError(f"there is no run to resume in {self}; leave out --resume to begin one")
        if self.begun and not self.finished:
            self._hold()
        checkpoint = self.load(config) if self.last.exists() else None
        if checkpoint is None and config.resume == "always" and not self.finished:
            raise RunError(
                f"{self} has no checkpoint yet, so there is nothing to resume; begin it again with --resume auto"
            )
        return checkpoint

    def begin(self, config: TrainConfig) -> None:
        """Make the folder and write its configuration. It is locked until `release`.

        Raises:
            RunError: the folder cannot be written to, or another process has begun a run there.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if self._lock is None:
                self._hold()
                if self.begun:
                    raise RunError(f"meanwhile another train.py has begun a run in {self}; give another --run_dir")
            self._sweep()
            written = yaml.safe_dump(config.recorded, sort_keys=False).encode()
            write(self.config, lambda file: file.write(written))  # first of all: it makes this a run's folder
            self.last.parent.mkdir(exist_ok=True)
        except (OSError, WriteError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise RunError(f"cannot write to the run folder {self}: {reason}; give another --run_dir") from None

    def _hold(self) -> None:
        try:
            self._lock = hold(self.path)
        except TakenError as error:
            process = f" (process {error.process})" if error.process else ""
            raise RunError(
                f"another train.py{process} is at work in {self}; wait for it or stop it, or give another --run_dir"
            ) from None
        except OSError as error:
            raise RunError(f"cannot write to the run folder {self}: {error.strerror}") from None

    def release(self) -> None:
        """Let others train here; the end of the process does the same."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _sweep(self) -> None:
        """Remove what a session that was killed was about to write."""
        for path in (self.config, self.last, self.best, self.summary):
            for remains in path.parent.glob(f"{path.name}.*{TEMPORARY}"):
                with suppress(OSError):
                    remains.unlink()

    @property
    def resume_command(self) -> str:
        """What to type to continue this run."""
        return f"python train.py --run_dir {quoted(self.path)} --resume auto"

    def _free_name(self) -> str:
        number = 2
        while (free := self.path.with_name(f"{self.path.name}-{number}")).exists():
            number += 1
        return quoted(free)

    def save(self, checkpoint: dict[str, Any], best: bool = False) -> None:
        """Write `checkpoint` as last.pt, and before that as best.pt if it is the best one.

        Raises:
            WriteError: it cannot be written; the checkpoint before it is still there.
        """
        import torch

        content = io.BytesIO()  # torch's own writer does not say why a file cannot be written
        torch.save(checkpoint, content)
        for path in (self.best, self.last) if best else (self.last,):
            write(path, lambda file: file.write(content.getbuffer()))

    def stopped(self, error: WriteError) -> RunError:
        """What to tell the user when a file of this run could not be written in the middle of it."""
        kept = f"the checkpoint {self.last} is whole" if self.last.exists() else "no checkpoint is saved yet"
        return RunError(f"{error}; {kept}. Once that is mended continue with: {self.resume_command}")

    def load_summary(self) -> dict[str, Any]:
        """The summary of a finished run.

        Raises:
            RunError: it cannot be read.
        """
        try:
            return json.loads(self.summary.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(f"{self.summary} cannot be read: {' '.join(str(error).split())}") from None

    def load_config(self) -> TrainConfig:
        """The run's configuration.

        Raises:
            RunError: this is no run folder, or its configuration cannot be read.
        """
        if not self.begun:
            what = f"it has no {RUN_CONFIG}" if self.path.is_dir() else "there is no such folder"
            raise RunError(f"{self} is not a run folder: {what}; train.py makes them, by default under runs/")
        try:
            recorded = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        except OSError as error:
            raise RunError(f"{self.config} cannot be read: {error.strerror}") from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: not UTF-8, thousands of digits
            reason = " ".join(str(error).split()).replace('in "<unicode string>", ', "at ")
            raise RunError(
                f"{self.config} cannot be read: {reason}; restore the file, or begin another run with --run_dir"
            ) from None
        for line in _unlike(recorded, TrainConfig().recorded):
            raise RunError(
                f"{self.config}: {line}. The file was edited or is another version's: restore it, use that version, or "
                "begin another run with --run_dir"
            )
        try:
            return from_dict(TrainConfig, recorded)
        except ConfigError as error:
            raise RunError(f"{self.config}: {error}") from None

    def load(self, config: TrainConfig, which: str = "last") -> dict[str, Any]:
        """The checkpoint `last` or `best`, which must have been trained under `config`.

        Raises:
            RunError: there is none, or it is another configuration's. CheckpointError: it is damaged.
        """
        path = self.last if which == "last" else self.best
        if not path.is_file():
            raise RunError(f"{self} has no checkpoint {path.name}; the run may have ended before its first one")
        checkpoint = load_checkpoint(path)
        lines = differing(checkpoint["config"], config.recorded)
        if not lines and checkpoint["problem_digest"] != problem_digest(config):
            lines = [f"problem.path: the contents of {config.problem.path} have changed"]
        if lines:
            raise RunError(
                f"{path} was trained under another configuration ({'; '.join(lines)}); "
                "use it under its own, or begin another run with --run_dir"
            )
        if checkpoint["iteration"] > config.learner.iterations:
            raise unusable(path, f"iteration is {checkpoint['iteration']} of {config.learner.iterations}")
        return checkpoint


def _unlike(recorded: Any, expected: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """What is not there, or there and unknown, in a recorded configuration. What changes no weight may be missing."""
    if not isinstance(recorded, dict):
        yield f"{prefix.rstrip('.') or 'it'} is {recorded!r}; expected settings"
        return
    for key in recorded:
        if key not in expected:
            close = difflib.get_close_matches(str(key), expected, 1)
            yield f"unknown key {prefix}{key}" + (f"; did you mean {prefix}{close[0]}?" if close else "")
    for key, value in expected.items():
        if key in recorded and isinstance(value, dict):
            yield from _unlike(recorded[key], value, f"{prefix}{key}.")
        elif key not in recorded and key not in FREE_ON_RESUME:
            yield f"the key {prefix}{key} is missing"


def problem_digest(config: TrainConfig) -> str | None:
    """The SHA-256 of the problem's file, or None for a procedural problem.

    Raises:
        RunError: the file cannot be read.
    """
    if config.problem.path is None:
        return None
    try:
        return hashlib.sha256(Path(config.problem.path).read_bytes()).hexdigest()
    except OSError as error:
        raise RunError(f"problem.path: cannot read {config.problem.path}: {error.strerror}") from None


def quoted(path: Path) -> str:
    """The path as a shell takes it."""
    return shlex.quote(str(path))
