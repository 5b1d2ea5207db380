"""Measure: a trained run, a match between two players, an argument of one's own, or the paper's claims.

    python eval.py run runs/NAME
    python eval.py match --config configs/NAME.yaml --alice worst_case --bob lp --debates 100000
    python eval.py audit FILE --rho 4
    python eval.py theorems --out reports/paper

Each takes --help, and --json PATH (`-`: standard output, and nothing else there). Exit status: 0 done, 1 a row of
`theorems` does not hold, 2 a mistake in the arguments or files, 130 interrupted, 141 nobody reads the output any more
(`| head`).
"""

from __future__ import annotations

import os
import signal
import sys

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # while we import there is nothing to save or to explain

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agents.configuration import DEFAULT, MOST, TrainConfig, build, differing, load_file, new_parser, parse, refuse
from agents.run_folder import RunFolder
from envs.config import ConfigError, EnvConfig, ProblemConfig
from fbs.command import INTERRUPTED, check_json, give, run_program

MOST_IN_A_MATCH = 1_000_000_000  # debates: some twenty minutes of the quickest


@dataclass(frozen=True)
class RunOptions:
    """Measure the pair that a run has trained.

    Args:
        run: The run's folder, such as runs/default-seed0.
        checkpoint: `last`, the state that summary.json is about, or `best`, the one with the best score.
        debates: Debates for each pair of players in the comparison. Default: as many as in training.
        seed: Seed of the debates. Default: the run's own; with the same number of debates summary.json is repeated.
        json: Write the result there as JSON; its folder is made if need be. `-` is standard output, then nothing else
            is printed there.
    """

    run: str
    checkpoint: Literal["last", "best"] = "last"
    debates: int | None = None
    seed: int | None = None
    json: str | None = None


@dataclass(frozen=True)
class MatchOptions:
    """Let two players debate, trembles left out, and count.

    Args:
        env: The rules of the debate (env.*)
        problem: What is debated (problem.*)
        alice: Who defends the claims: a scripted player's name or a run's folder.
        bob: Who judges them: a scripted player's name or a run's folder.
        debates: How many debates.
        seed: Seed of the debates.
        json: Write the result there as JSON; its folder is made if need be. `-` is standard output, then nothing else
            is printed there.
    """

    env: EnvConfig = field(default_factory=EnvConfig)
    problem: ProblemConfig = field(default_factory=ProblemConfig)
    alice: str = "worst_case"
    bob: str = "lp"
    debates: int = 100_000
    seed: int = 0
    json: str | None = None


@dataclass(frozen=True)
class AuditOptions:
    """Find where an argument is fragile, and how few answers would check it.

    Args:
        file: A claim tree (.json, .yaml) or crowd labels (.csv).
        rho: The sensitivity that a claim may have.
        confidence: With which probability a false root claim is to be caught.
        json: Write the result there as JSON; its folder is made if need be. `-` is standard output, then nothing else
            is printed there.
    """

    file: str
    rho: float = 4.0
    confidence: float = 0.95
    json: str | None = None


@dataclass(frozen=True)
class TheoremOptions:
    """Measure every claim of the paper, and write report.html and report.json.

    Args:
        out: The folder they are written to.
        quick: Sample a tenth and train a little: at most a minute, in place of at most ten.
        seed: Seed of everything that is drawn.
        learned: A run's folder: take its pair as the learned players. Default: a small one is trained.
        crowd: Crowd labels (.csv) for the rows on real judgements. Default: a synthetic crowd.
        crowd_truth: What is true of the crowd's tasks: a CSV with the columns task,label.
        json: Write the result there too; its folder is made if need be. `-` is standard output, then nothing else is
            printed there.
    """

    out: str = "reports/paper"
    quick: bool = False
    seed: int = 0
    learned: str | None = None
    crowd: str | None = None
    crowd_truth: str | None = None
    json: str | None = None


def run(arguments: Sequence[str]) -> int:
    """`eval.py run`."""
    parser = new_parser("eval.py run", "Example: python eval.py run runs/default-seed0 --json -")
    parser.add_class_arguments(RunOptions, as_positional=True)
    options = build(RunOptions, parse(parser, arguments))
    _check_counts(options.debates, options.seed)
    check_json(options.json)
    folder = RunFolder(options.run)
    config = folder.load_config()
    checkpoint = folder.load(config, options.checkpoint)
    from agents.report import table
    from agents.training import arena, conclude, learned_players

    seed = config.seed if options.seed is None else options.seed
    game = arena(config)
    players = learned_players(config, checkpoint, game)
    measured = conclude(game, players, options.debates or config.debates, seed)
    about = {"run": str(folder), "checkpoint": options.checkpoint, "iteration": checkpoint["iteration"], "seed": seed}
    result = {**about, "seconds": round(checkpoint["seconds"], 1), **measured}
    give(result, table(result), options.json)
    return 0


def match(arguments: Sequence[str]) -> int:
    """`eval.py match`."""
    first = parse(_match_parser(), arguments)
    base = _base(first.config, [name for name in (first.alice, first.bob) if _is_folder(name)])
    parser = _match_parser()
    parser.set_defaults({f"{section}.{key}": value for section in ("env", "problem")
                         for key, value in base.recorded[section].items()})  # fmt: skip
    options = build(MatchOptions, parse(parser, arguments))
    _check_counts(options.debates, options.seed, MOST_IN_A_MATCH)
    check_json(options.json, options.problem.path)
    from agents.match import format_match
    from agents.match import match as play
    from envs.game import Game

    game = Game(options.env, options.problem).evaluation()
    bob = _player("bob", options.bob, game)
    alice = _player("alice", options.alice, game, bob)
    result = play(game, alice, bob, options.debates, options.seed, progress=True)
    result = {"alice": options.alice, "bob": options.bob, **result}
    give(result, format_match(result), options.json)
    return 0


def _match_parser() -> Any:
    parser = new_parser(
        "eval.py match",
        "Examples: python eval.py match --env.rho 2 --alice worst_case --bob uniform\n"
        "          python eval.py match --alice worst_case --bob runs/default-seed0\n"
        "          python eval.py match --problem.path examples/footbridge.yaml --bob tree_optimal",
    )
    parser.add_argument("--config", type=str, help="A YAML file that train.py takes; flags go over it. Default: the "
                        "run of a learned player, else configs/default.yaml.")  # fmt: skip
    parser.add_class_arguments(MatchOptions)
    return parser


def _base(config: str | None, runs: list[str]) -> TrainConfig:
    """The configuration that a match's flags go over: as asked for, the learned players' own, or the default."""
    if config or not runs:
        return load_file(config or DEFAULT)
    configs = [RunFolder(run).load_config() for run in runs]
    lines = [differing(configs[0].recorded[key], other.recorded[key], f"{key}.")
             for other in configs[1:] for key in ("env", "problem")]  # fmt: skip
    if any(lines):
        raise ConfigError(
            f"{' and '.join(runs)} were trained on different games ({'; '.join(sum(lines, []))}); "
            "say with --config FILE which one to play"
        )
    return configs[0]


def _is_folder(name: str) -> bool:
    return Path(name).exists() or "/" in name


def _player(side: str, name: str, game: Any, *opponent: Any) -> Any:
    """A player by its scripted name or its run's folder."""
    if not _is_folder(name):
        from agents import players

        return getattr(players, side)(name, game, *opponent)
    from agents.training import learned_players

    folder = RunFolder(name)
    config = folder.load_config()
    return learned_players(config, folder.load(config), game)[side]


def audit(arguments: Sequence[str]) -> int:
    """`eval.py audit`."""
    parser = new_parser("eval.py audit", "Example: python eval.py audit examples/published_papers.json --rho 4")
    parser.add_class_arguments(AuditOptions, as_positional=True)
    options = build(AuditOptions, parse(parser, arguments))
    check_json(options.json, options.file)
    from agents.audit import audit as examine
    from agents.audit import format_audit
    from envs.problem import load_problem

    result = examine(load_problem(options.file), options.rho, options.confidence, progress=sys.stderr.isatty())
    give(result, format_audit(result), options.json)
    return 0


def theorems(arguments: Sequence[str]) -> int:
    """`eval.py theorems`: 1 if a row does not hold."""
    parser = new_parser("eval.py theorems", "Example: python eval.py theorems --quick --learned runs/default-seed0")
    parser.add_argument("--quick", action="store_true", help="Sample a tenth and train a little: at most a minute.")
    parser.add_class_arguments(TheoremOptions, skip={"quick"})
    options = build(TheoremOptions, parse(parser, arguments))
    _check_counts(None, options.seed)
    check_json(options.json, options.crowd, options.crowd_truth)
    from agents.theorems.report import ReportError, format_report, report

    chosen = {key: value for key, value in vars(options).items() if key != "json"}
    try:
        result = report(**chosen, progress=True)
    except ReportError as error:
        if error.result is not None:  # minutes of work, not to be lost with the file
            give(error.result, format_report(error.result), options.json)
        raise
    give(result, format_report(result), options.json)
    return 0 if result["hold"] == result["total"] else 1


def _check_counts(debates: int | None, seed: int | None, most: int = MOST["debates"]) -> None:
    for key, value, low, high in (("debates", debates, 1, most), ("seed", seed, 0, math.inf)):
        if value is not None and not low <= value <= high:
            expected = f"of at least {low}" if high == math.inf else f"from {low} to {high}"
            raise ConfigError(f"{key} is {value}; expected a whole number {expected}")


COMMANDS = {
    "run": (run, RunOptions),
    "match": (match, MatchOptions),
    "audit": (audit, AuditOptions),
    "theorems": (theorems, TheoremOptions),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure as the arguments say; returns the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        summaries = [f"  {name:8} {kind.__doc__.splitlines()[0]}" for name, (_, kind) in COMMANDS.items()]
        print("\n".join([__doc__, *summaries]))
        return 0 if arguments else 2
    command = arguments[0]
    try:
        if command not in COMMANDS:
            raise ConfigError(f"unknown command '{command}'; expected one of {', '.join(COMMANDS)}")
        return COMMANDS[command][0](arguments[1:])
    except ValueError as error:
        return refuse(f"eval.py {command}" if command in COMMANDS else "eval.py", error)
    except KeyboardInterrupt:
        print("eval.py: interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    run_program("eval.py", main)
