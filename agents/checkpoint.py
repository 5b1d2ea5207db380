"""A checkpoint's file: read as plain data and tensors only, and checked before anything is made of it.

format           the number of this layout
config           what was trained, as plain data
problem_digest   SHA-256 of the problem's file, or None
learner          the learner's `state_dict`: nested dicts and lists of tensors and plain data
iteration        rounds done
seconds          wall clock so far
best             score and iteration of the best evaluation so far
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMAT = 1


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message names the file, what is wrong with it and what to do."""


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint's contents, and under `path` where they come from.

    Raises:
        CheckpointError: the file is torn, is no checkpoint of this program, or holds numbers that are not finite.
    """
    import torch

    try:
        path.open("rb").close()  # torch raises an `OSError` over torn files too
    except OSError as error:
        raise CheckpointError(f"the checkpoint {path} cannot be read: {error.strerror}") from None
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        wrong = _wrong(checkpoint)
    except Exception as error:  # torch raises whatever the damaged bytes lead to
        wrong = _reason(error)
    if wrong:
        raise unusable(path, wrong)
    return {**checkpoint, "path": str(path)}


def restore(learner: Any, checkpoint: dict[str, Any]) -> None:
    """Put a fresh learner into the state that a checkpoint of its own run holds.

    Args:
        learner: As `agents.learning.LEARNERS` makes them.
        checkpoint: What `load_checkpoint` returned.

    Raises:
        CheckpointError: the state is another learner's, or of other sizes.
    """
    saved = checkpoint["learner"]
    try:
        if not (wrong := _misfit(saved, learner.state_dict(), "learner") or _optimizer_misfit(saved, learner)):
            learner.load_state_dict(saved)
    except Exception as error:  # torch raises whatever it stumbles over
        wrong = _reason(error)
    if wrong:
        raise unusable(Path(checkpoint["path"]), wrong)


def unusable(path: Path, reason: str) -> CheckpointError:
    """The error that says why a checkpoint is of no use, and what remains."""
    best, last = path.with_name("best.pt"), path.with_name("last.pt")
    if path == last and best.exists():
        remedy = f"{best} remains: to go on from there type: cp {shlex.quote(str(best))} {shlex.quote(str(path))}"
    elif path == best and last.exists():
        remedy = f"{last} remains: leave out --checkpoint best"
    else:
        remedy = "begin again with another --run_dir"
    return CheckpointError(f"the checkpoint {path} is damaged or not this program's ({reason}); {remedy}")


def not_finite(state: Any, name: str = "learner") -> str | None:
    """The name of the first tensor in nested dicts and lists that has a number that is not finite."""
    import torch

    if isinstance(state, torch.Tensor):
        return None if not state.is_floating_point() or bool(torch.isfinite(state).all()) else name
    items: Any = ()
    if isinstance(state, dict):
        items = state.items()
    elif isinstance(state, list | tuple):
        items = enumerate(state)
    return next((found for key, value in items if (found := not_finite(value, f"{name}.{key}"))), None)


def _wrong(checkpoint: Any) -> str | None:
    """What is wrong with a checkpoint, whatever it was trained on."""
    if not isinstance(checkpoint, dict):
        return f"it holds a {type(checkpoint).__name__}"
    for key, (holds, expected) in CONTENT.items():
        if key not in checkpoint:
            return f"{key} is missing"
        if not holds(checkpoint[key]):
            return f"{key} is {_short(checkpoint[key])}; expected {expected}"
    if checkpoint["learner"].get("iteration") != checkpoint["iteration"]:
        return f"learner.iteration is not {checkpoint['iteration']}"
    if name := not_finite(checkpoint["learner"]):
        return f"{name} has a number that is not finite"
    return None


def _is_count(value: Any, low: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(inner) for key, inner in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def _is_best(value: Any) -> bool:
    return isinstance(value, dict) and _is_number(value.get("score")) and _is_count(value.get("iteration"))


CONTENT: dict[str, tuple[Callable[[Any], bool], str]] = {
    "format": (lambda value: _is_count(value) and value == FORMAT, f"{FORMAT}, the one that this version reads"),
    "config": (lambda value: isinstance(value, dict) and _is_plain(value), "settings, as in config.yaml"),
    "problem_digest": (lambda value: value is None or isinstance(value, str), "a digest or None"),
    "learner": (lambda value: isinstance(value, dict), "a learner's state"),
    "iteration": (_is_count, "a whole number of at least 0"),
    "seconds": (lambda value: _is_number(value) and value >= 0, "a number of at least 0"),
    "best": (_is_best, "a score and an iteration"),
}


def _misfit(saved: Any, fresh: Any, name: str) -> str | None:
    """Where the state `saved` is not built like `fresh`, an optimizer's apart."""
    import torch

    if isinstance(fresh, torch.Tensor):
        if not isinstance(saved, torch.Tensor):
            return f"{name} is {_short(saved)}; expected a tensor"
        if (saved.shape, saved.dtype) != (fresh.shape, fresh.dtype):
            return f"{name} has {_form(saved)}; expected {_form(fresh)}"
        return None
    if not isinstance(fresh, dict):
        return None if type(saved) is type(fresh) else f"{name} is {_short(saved)}; expected {_short(fresh)}"
    if not isinstance(saved, dict):
        return f"{name} is {_short(saved)}; expected more of its own"
    for key in (*fresh, *saved):
        if not (key in fresh and key in saved):
            return f"{name}.{key} is {'missing' if key in fresh else 'unknown'}"
    if fresh.keys() == {"state", "param_groups"}:
        return None  # an optimizer's: `_optimizer_misfit` looks at it
    return next((found for key in fresh if (found := _misfit(saved[key], fresh[key], f"{name}.{key}"))), None)


def _optimizer_misfit(saved: dict[str, Any], learner: Any) -> str | None:
    """Where the state of an optimizer of the learner, saved under its name, is not built like what it makes itself.

    Optimizers load whatever they are given, and stumble over it in the next step.
    """
    import torch

    for name, optimizer in vars(learner).items():
        if not isinstance(optimizer, torch.optim.Optimizer):
            continue
        own, groups, entries = optimizer.state_dict()["param_groups"], saved[name]["param_groups"], saved[name]["state"]
        if len(groups) != len(own):
            return f"learner.{name}.param_groups are {len(groups)}, not {len(own)}"
        for fresh, group in zip(own, groups, strict=True):
            for key, value in fresh.items():
                if not _is_setting(group.get(key), key, value):
                    return f"learner.{name}.{key} is {_short(group.get(key))}; expected {_short(value)}"
        parameters = [weight for group in optimizer.param_groups for weight in group["params"]]
        slots = _slots(type(optimizer))
        for number, entry in entries.items():
            shapes = {key: parameters[number].shape if each else torch.Size() for key, each in slots.items()}
            if {key: slot.shape for key, slot in entry.items()} != shapes:
                return f"learner.{name} keeps of parameter {number} something else than it should"
    return None


def _is_setting(saved: Any, key: str, fresh: Any) -> bool:
    """Whether an optimizer's setting is this program's. The step size changes, and versions of torch add flags."""
    if key == "lr":
        return _is_number(saved)
    return (saved is None and isinstance(fresh, bool | None)) or (type(saved) is type(fresh) and saved == fresh)


def _slots(kind: type) -> dict[str, bool]:
    """What an optimizer keeps of a parameter after a step: the names, and whether it is a number for each weight."""
    import torch

    weight = torch.nn.Parameter(torch.zeros(1))
    weight.grad = torch.zeros(1)
    optimizer = kind([weight])
    optimizer.step()
    return {key: slot.dim() > 0 for key, slot in optimizer.state[weight].items()}


def _form(tensor: Any) -> str:
    return f"the shape {tuple(tensor.shape)} of {str(tensor.dtype).removeprefix('torch.')}"


def _short(value: Any) -> str:
    if isinstance(value, dict | list | tuple) or hasattr(value, "shape"):
        return f"a {type(value).__name__.lower()}"
    return repr(value)[:60]


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
