"""What a training run is configured by, and how it is read from files and the command line."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from agents.learner_config import LearnerConfig
from envs.config import ConfigError, EnvConfig, ProblemConfig, plain_numbers
from fbs.visible import visible

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
DEFAULT = CONFIGS / "default.yaml"
RUN_CONFIG = "config.yaml"  # its name in a run folder
PACKAGES = ("fbs", "envs", "agents")
USER_ERROR = 2  # exit status of a mistake in the arguments or in a file
SECTIONS = {"env": EnvConfig, "problem": ProblemConfig, "learner": LearnerConfig}
PROCESS = ("run_dir", "resume", "json")  # about one call of the program, not about what is trained
MOST = {"threads": 1024, "debates": 1_000_000}  # a comparison is played at once, in memory
FREE_ON_RESUME = ("evaluations", "checkpoint_every", "debates")  # these change no weight


@dataclass(frozen=True)
class TrainConfig:
    """The run

    Args:
        env: The rules of the debate (env.*)
        problem: What is debated (problem.*)
        learner: How Alice and Bob learn (learner.*)
        seed: Seed of everything: first weights, debates, evaluation.
        threads: CPU threads of torch. Part of the run, since sums are the same to the last bit only for the same
            number of threads. More than 1 gain little on networks this small, and lose where cores are shared.
        device: `cpu`, or `cuda` for torch's first GPU. Part of the run: a GPU's sums differ in the last bits, and from
            one time to the next, so only runs on the CPU repeat to the bit.
        evaluations: How often the pair is measured during training. Changes no weight.
        checkpoint_every: Iterations from one checkpoint to the next; each evaluation saves one as well.
        debates: Debates for each pair of players in the comparison at the end.
        run_dir: The run's folder. Default: runs/NAME-seedSEED, NAME being the configuration file's.
        resume: `never` refuses a run folder that exists. `always`, or --resume alone: continue the run there. `auto`:
            continue it if it was begun, else begin it. Without --config the run's own configuration is taken.
        json: Write the summary there too; its folder is made if need be. `-` is standard output, then nothing else is
            printed there.
    """

    env: EnvConfig = field(default_factory=EnvConfig)
    problem: ProblemConfig = field(default_factory=ProblemConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    seed: int = 0
    threads: int = 1
    device: Literal["cpu", "cuda"] = "cpu"
    evaluations: int = 16
    checkpoint_every: int = 25
    debates: int = 4000
    run_dir: str | None = None
    resume: Literal["never", "auto", "always"] = "never"
    json: str | None = None

    def __post_init__(self) -> None:
        plain_numbers(self)
        for key, low in (("seed", 0), ("threads", 1), ("evaluations", 1), ("checkpoint_every", 1), ("debates", 1)):
            value = getattr(self, key)
            high = MOST.get(key, 2**63 - 1)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                most = f"from {low} to {high}" if key in MOST else f"of at least {low}"
                raise ConfigError(f"{key} is {value!r}; expected a whole number {most}")
        if self.device not in ("cpu", "cuda"):
            raise ConfigError(f"device is {self.device!r}; expected 'cpu' or 'cuda'")

    @property
    def recorded(self) -> dict[str, Any]:
        """The configuration as plain data, without what concerns one call of the program only."""
        return {key: value for key, value in asdict(self).items() if key not in PROCESS}


def train_parser() -> Any:
    """The command line of `train.py`: a flag for each field of `TrainConfig`, and --config FILE."""
    parser = new_parser(
        "train.py",
        "Train a debater pair on the FBS debate and compare the learned judge with the linear program.\n"
        "Without arguments configs/default.yaml is trained; configs/ holds other experiments.",
    )
    parser.add_argument("--config", action="config", help="A YAML file of the settings below; flags go over it.")
    parser.add_class_arguments(TrainConfig, skip={"resume"})
    parser.add_argument(
        "--resume", nargs="?", const="always", default="never", type=Literal["never", "auto", "always"],
        help=_field_help("resume"),
    )  # fmt: skip
    return parser


def new_parser(name: str, description: str) -> Any:
    """A jsonargparse parser that raises instead of printing a usage text."""
    import jsonargparse

    return jsonargparse.ArgumentParser(
        prog=name,
        description=description,
        exit_on_error=False,
        allow_abbrev=False,
        formatter_class=_formatter(jsonargparse.DefaultHelpFormatter),
    )


def _formatter(base: type) -> type:
    class Formatter(base, argparse.RawDescriptionHelpFormatter):
        """jsonargparse's help, the description's lines left as they are."""

    return Formatter


def parse(parser: Any, arguments: Sequence[str]) -> Any:
    """The arguments as jsonargparse's namespace.

    Raises:
        ConfigError: an unknown key, a wrong type, a configuration file that cannot be read; one line.
    """
    import yaml

    for flag, value in zip(arguments, [*list(arguments)[1:], ""], strict=False):
        file = value if flag == "--config" else flag.removeprefix("--config=") if flag.startswith("--config=") else ""
        if file and Path(file).is_file():
            _check_references(file)
    try:
        return parser.parse_args(list(arguments))
    except (argparse.ArgumentError, yaml.YAMLError, ValueError, OSError, RecursionError) as error:
        raise ConfigError(_explain(error, parser, arguments)) from None


def _check_references(file: str) -> None:
    """Refuse what a YAML loader takes in silence: an alias inside its own anchor, a key given twice.

    Raises:
        ConfigError: the file has one. Whatever else is wrong with it the parser says itself.
    """
    from envs.document import ProblemError, parse_yaml, read_text

    try:
        parse_yaml(read_text(file), file)
    except ProblemError as error:
        if re.search("itself|twice", str(error)):
            raise ConfigError(str(error)) from None


def _explain(error: BaseException, parser: Any, arguments: Sequence[str]) -> str:
    """jsonargparse's message as one line that a user understands."""
    message = " ".join(str(error).split()) or type(error).__name__
    message = re.sub(r"<class '(\w+)'>|typing\.", r"\1", message)
    message = re.sub(r'Parser key "([\w.]+)":', r"\1:", message)
    message = re.sub(r"Expected an? (.*)\. Got value: (.*)", r"expected \1, got '\2'", message)
    message = re.sub(
        r"Does not validate against any of the Union subtypes Subtypes: \[(.*?), NoneType\] .*Given value: (.*)",
        r"expected \1 or null, got '\2'", message,
    )  # fmt: skip
    message = re.sub(r"Group '([\w.]+)' does not accept option '(\w+)'", r"unknown key \1.\2", message)
    message = re.sub(r"Option '([\w.]+)' is not accepted", r"unknown key \1", message)
    message = message.replace('in "<unicode string>", ', "at ")
    if re.match("Problems parsing config|Unexpected config|'utf-8'|maximum recursion|Exceeds the limit", message):
        files = [after for flag, after in zip(arguments, arguments[1:], strict=False) if flag == "--config"]
        return f"{', '.join(files) or 'a configuration file'}: not a YAML file of settings: {message}"
    unknown = re.search(r"(?:unknown key |[Uu]nrecognized arguments: (?:--)?)([\w.]+)", message)
    if unknown:
        known = [action.dest for action in parser._actions if action.dest]
        close = difflib.get_close_matches(unknown.group(1), known, 1)
        message += f"; did you mean {close[0]}?" if close else "; --help lists the keys"
    return message


def load_train_config(arguments: Sequence[str]) -> tuple[TrainConfig, str]:
    """The configuration that `train.py`'s arguments ask for, and the name of its experiment.

    Without --config it is that of the run being resumed, else `configs/default.yaml`.

    Raises:
        ConfigError: see `parse` and the configurations' own checks.
    """
    parser = train_parser()
    given = parse(parser, arguments)
    if given.config:
        name = Path(str(given.config[-1])).stem
        return build(TrainConfig, given), name
    base, name = DEFAULT, DEFAULT.stem
    if given.resume != "never" and given.run_dir and (Path(given.run_dir) / RUN_CONFIG).is_file():
        from agents.run_folder import RunFolder  # which imports this module

        RunFolder(given.run_dir).load_config()  # says what is wrong with the file, where flags would only be refused
        base, name = Path(given.run_dir) / RUN_CONFIG, Path(given.run_dir).name
    return build(TrainConfig, parse(parser, ["--config", str(base), *arguments])), name


def load_file(path: str | Path) -> TrainConfig:
    """The configuration in a file.

    Raises:
        ConfigError: see `parse` and the configurations' own checks.
    """
    return build(TrainConfig, parse(train_parser(), ["--config", str(path)]))


def build(kind: type, namespace: Any) -> Any:
    """A configuration dataclass of `kind` from a parsed namespace, its sections included."""
    values = namespace.as_dict()
    return from_dict(kind, {key: value for key, value in values.items() if key in _names(kind)})


def from_dict(kind: type, values: dict[str, Any]) -> Any:
    """A configuration dataclass of `kind` from plain data. A problem's path is made absolute."""
    values = dict(values)
    for key in _names(kind) & SECTIONS.keys() & values.keys():
        section = values[key]
        if not isinstance(section, dict):
            raise ConfigError(f"{key} is {section!r}; expected settings of its own, such as {key}.{_example(key)}")
        if key == "problem" and section.get("path"):
            section = {**section, "path": str(Path(section["path"]).expanduser().resolve())}
        values[key] = SECTIONS[key](**section)
    return kind(**values)


def _example(section: str) -> str:
    return fields(SECTIONS[section])[0].name


def _names(kind: type) -> set[str]:
    return {item.name for item in fields(kind)}


def differing(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    """The keys in which two recorded configurations differ, as lines `key: OLD, now NEW`."""
    lines = []
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            lines += differing(before, after, f"{prefix}{key}.")
        elif before != after and key not in FREE_ON_RESUME:
            lines.append(f"{prefix}{key}: {before!r}, now {after!r}")
    return lines


def _field_help(name: str) -> str:
    text = TrainConfig.__doc__ or ""
    entry = re.search(rf"\n +{name}: (.*?)(?=\n +\w+: |\s*\Z)", text, re.S)
    return " ".join(entry.group(1).split()) if entry else ""


def refuse(program: str, error: ValueError) -> int:
    """Print a user's mistake as one line on standard error; the exit status. A bug is raised on.

    A mistake is a `ValueError` of a class that this package defines; a plain one comes from code that is wrong.
    """
    if type(error).__module__.partition(".")[0] not in PACKAGES:
        raise error
    print(f"{program}: error: {visible(' '.join(str(error).split()))}", file=sys.stderr)
    return USER_ERROR
