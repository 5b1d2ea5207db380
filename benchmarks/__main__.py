"""How fast everything is, beside its peers.

    python -m benchmarks                        all topics: some ten minutes on two cores
    python -m benchmarks --quick                smaller problems and no whole training run: about two
    python -m benchmarks --only engine --json engine.json

Each number is the median of at least five repeats (one run, where it says so) with the least and the greatest in
brackets; ratios are of measurements taken in turns. Times are the processor's, where nothing else is said: a busy
machine changes them least. Peers are measured in the same run (extra `bench`), and left out with a line where not
installed.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core, whatever the libraries would like; before they are loaded

import argparse
import json
import platform
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.curves import draw
from benchmarks.measurement import Budget, Curve, Result, Row, Skipped

TOPICS = ("environment", "engine", "mathematics", "trees", "startup", "training")
QUICK = Budget(repeats=5, seconds=0.2, quick=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure as the arguments say; exit status 0 even where a target is missed, as that depends on the machine."""
    options = parser().parse_args(arguments)
    budget = QUICK if options.quick else Budget()
    report: dict[str, Any] = {"machine": machine(), "quick": options.quick, "topics": {}}
    out = sys.stderr if options.json == "-" else sys.stdout
    print(", ".join(f"{key} {value}" for key, value in report["machine"].items()), file=out)
    for topic in options.only or TOPICS:
        print(f"\n{topic}", file=out)
        results: list[Result] = []
        for result in measured(topic, budget):
            results.append(result)
            if not isinstance(result, Curve):
                print(f"  {result}", file=out, flush=True)
        report["topics"][topic] = summary(results)
        if curves := [result for result in results if isinstance(result, Curve)]:
            print(f"  curves: {draw(topic, curves, options.plots)}", file=out)
    if options.json == "-":
        print(json.dumps(report, indent=1))
    elif options.json:
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser("python -m benchmarks", description=__doc__, formatter_class=_Formatter)
    found.add_argument("--only", nargs="+", choices=TOPICS, metavar="TOPIC", help=f"some of {', '.join(TOPICS)}")
    found.add_argument("--quick", action="store_true", help="smaller problems, shorter measurements, no whole run")
    found.add_argument("--json", metavar="PATH", help="write all numbers there too; `-`: to standard output, alone")
    found.add_argument("--plots", type=Path, default=Path("reports/benchmarks"), help="folder of the growth curves")
    return found


class _Formatter(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """The text as it is written, and each default."""


def measured(topic: str, budget: Budget) -> Iterator[Result]:
    """The results of a topic, as they come."""
    return import_module(f"benchmarks.{topic}").measure(budget)


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """A topic's results as plain data."""
    return {
        "rows": [result.to_json() for result in results if isinstance(result, Row)],
        "left_out": [str(result) for result in results if isinstance(result, Skipped)],
        "curves": [vars(result) for result in results if isinstance(result, Curve)],
    }


def machine() -> dict[str, Any]:
    """Where this was measured."""
    import numpy
    import torch

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cores": os.cpu_count(), "load": load, "system": platform.system(), "architecture": platform.machine(),
        "python": platform.python_version(), "numpy": numpy.__version__, "torch": torch.__version__,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
