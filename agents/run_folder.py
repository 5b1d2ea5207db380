"""The folder of one training run: its configuration, checkpoints and summary.

    config.yaml             what was trained; `--config` reads it
    events.*                curves for TensorBoard
    checkpoints/last.pt     the newest state, complete: training goes on from it as if it had never stopped
    checkpoints/best.pt     the same at the evaluation with the best score so far
    summary.json            the final measures; the run is finished once it exists

Every file is written whole (`fbs.whole_file`): a kill or a full disk leaves the old one or the new one, never a part.
"""

from __future__ import annotations

import hashlib
import io
import json
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from agents.configuration import RUN_CONFIG, TrainConfig, differing, from_dict
from fbs.whole_file import TEMPORARY, WriteError, write

FORMAT = 1


class RunError(ValueError):
    """A run folder or checkpoint that cannot be used; the message says what to type instead."""


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

    def __str__(self) -> str:
        return str(self.path)

    @property
    def occupied(self) -> bool:
        """Whether anything but remains of an interrupted write is in the folder."""
        return self.path.is_dir() and any(entry.suffix != TEMPORARY for entry in self.path.iterdir())

    @property
    def begun(self) -> bool:
        """Whether a run was begun here."""
        return self.config.is_file()

    @property
    def finished(self) -> bool:
        """Whether the run here went to its end."""
        return self.begun and self.summary.is_file()

    def open(self, config: TrainConfig) -> dict[str, Any] | None:
        """The checkpoint that `config` is to continue from here, or None to begin. Writes nothing.

        Raises:
            RunError: the folder is taken, or missing when it is to be continued, or holds another configuration.
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
        checkpoint = self.load(config) if self.last.exists() else None
        if checkpoint is None and config.resume == "always" and not self.finished:
            raise RunError(
                f"{self} has no checkpoint yet, so there is nothing to resume; begin it again with --resume auto"
            )
        return checkpoint

    def begin(self, config: TrainConfig) -> None:
        """Make the folder and write its configuration.

        Raises:
            RunError: the folder cannot be written to.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._sweep()
            written = yaml.safe_dump(config.recorded, sort_keys=False).encode()
            write(self.config, lambda file: file.write(written))  # first of all: it makes this a run's folder
            self.last.parent.mkdir(exist_ok=True)
        except (OSError, WriteError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise RunError(f"cannot write to the run folder {self}: {reason}; give another --run_dir") from None

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
        return RunError(f"{error}; {kept}. Make room and continue with: {self.resume_command}")

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
            return from_dict(TrainConfig, recorded)
        except (yaml.YAMLError, UnicodeDecodeError, TypeError, AttributeError) as error:
            raise RunError(f"{self.config} cannot be read: {' '.join(str(error).split())}") from None

    def load(self, config: TrainConfig, which: str = "last") -> dict[str, Any]:
        """The checkpoint `last` or `best`, which must have been trained under `config`.

        Raises:
            RunError: there is none, it is damaged, or another configuration's.
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
        return checkpoint


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint's contents, read as plain data and tensors only.

    Raises:
        RunError: the file is torn or is no checkpoint of this program.
    """
    import torch

    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        if checkpoint["format"] != FORMAT:
            raise RunError(f"{path} has checkpoint format {checkpoint['format']!r}; this version reads {FORMAT}")
        if missing := {"config", "problem_digest", "learner", "iteration", "seconds", "best"} - checkpoint.keys():
            raise KeyError(*sorted(missing))
    except RunError:
        raise
    except Exception as error:  # torch raises whatever the damaged bytes lead to
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        best = path.with_name("best.pt")
        remains = f"{best} remains: to go on from there type: cp {quoted(best)} {quoted(path)}"
        remedy = remains if path.name == "last.pt" and best.exists() else "begin again with another --run_dir"
        raise RunError(f"the checkpoint {path} is damaged and cannot be read ({reason}); {remedy}") from None
    return checkpoint


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
