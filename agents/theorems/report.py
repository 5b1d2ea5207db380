"""The report: every topic run, judged and written, `report.html` to be read and `report.json` for scripts."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tqdm import tqdm

from agents.theorems import (
    amplification,
    beyond_the_paper,
    completeness,
    composition,
    cost,
    honesty,
    lower_bound,
    real_judgements,
    soundness,
)
from agents.theorems.crowds import find_crowd
from agents.theorems.lab import THRESHOLD, Lab, Topic, procedural
from agents.theorems.learned import load_pair, train_pair
from agents.theorems.page import render, show
from agents.theorems.pairs import guarantee
from agents.theorems.rows import shared_level
from fbs.whole_file import WriteError, check_place, write, write_json

TOPICS = (
    completeness, soundness, amplification, honesty, lower_bound, composition, cost, beyond_the_paper, real_judgements,
)  # fmt: skip
PAGE, DATA = "report.html", "report.json"


class ReportError(ValueError):
    """A report that cannot be written.

    Attributes:
        result: What would have been in report.json; None if nothing has been measured yet.
    """

    def __init__(self, error: WriteError, result: dict[str, Any] | None = None) -> None:
        super().__init__(f"--out: {error}; give another folder")
        self.result = result


def report(
    out: str, quick: bool = False, seed: int = 0, learned: str | None = None, crowd: str | None = None,
    crowd_truth: str | None = None, progress: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run every topic and write the report.

    Args:
        out: The folder, made if it is not there.
        quick: Sample a tenth, train a little.
        seed: Of everything that is drawn.
        learned: A run folder whose pair is taken; by default one is trained.
        crowd, crowd_truth: CSV files of a crowd's answers and of the truth; by default a synthetic crowd.
        progress: Say on standard error how far it is: bars on a terminal, elsewhere a line a topic.

    Returns:
        What is in report.json: `claims`, each {topic, claim, setting, value, low, high, bound, holds, relation, exact,
        p_value, fails_as_the_paper_says}; `hold`, `total`, `sampled`: numbers of rows; `level`, of one sampled row's
        test; `seed`, `quick`, `seconds`, `learned`, `crowd`, `report`: the page's place.

    Raises:
        ReportError: the folder cannot be written to. RunError, ProblemError, CrowdError: a file that will not do.
    """
    started = time.monotonic()
    people, pair = find_crowd(crowd, crowd_truth), load_pair(learned) if learned else None
    folder = Path(out)
    _check(folder)  # after every other mistake, before any work
    pair = pair or train_pair(quick, seed, progress)
    lab = Lab(quick, seed, pair, people, progress)
    default = procedural(THRESHOLD)
    learned_guarantee = guarantee(default, pair.bob(default))  # refuses a pair that cannot play before time is spent
    topics = _study(lab)
    result = summary(topics, lab) | {
        "learned_guarantee": learned_guarantee,
        "seconds": round(time.monotonic() - started, 1),
        "report": str(folder / PAGE),
    }
    page = render(topics, result)
    try:
        write_json(result, folder / DATA)  # makes the folder
        write(folder / PAGE, lambda file: file.write(page.encode()))
    except WriteError as error:
        raise ReportError(error, result) from None
    return result


def _study(lab: Lab) -> list[Topic]:
    topics: list[Topic] = []
    with tqdm(TOPICS, unit="topic", disable=None if lab.progress else True, dynamic_ncols=True) as bar:
        for module in bar:
            name = module.__name__.rpartition(".")[2].replace("_", " ")
            bar.set_description(name)
            topics.append(module.study(lab))
            if lab.progress and bar.disable:
                print(f"{name}: {len(topics[-1].rows)} rows", file=sys.stderr, flush=True)
    return topics


def _check(folder: Path) -> None:
    try:
        for name in (PAGE, DATA):
            check_place(folder / name)
    except WriteError as error:
        raise ReportError(error) from None


def summary(topics: Sequence[Topic], lab: Lab) -> dict[str, Any]:
    """The rows, judged, and what the report was made from."""
    rows = [row for topic in topics for row in topic.rows]
    level = shared_level(rows)
    claims = [{"topic": topic.name, **row.record(level)} for topic in topics for row in topic.rows]
    return {
        "claims": claims,
        "hold": sum(claim["holds"] for claim in claims),
        "total": len(claims),
        "sampled": sum(not claim["exact"] for claim in claims),
        "level": level,
        "seed": lab.seed,
        "quick": lab.quick,
        "learned": lab.learned.about,
        "crowd": lab.crowd.about,
    }


def format_report(result: dict[str, Any]) -> str:
    """The report in a few lines: each topic's rows, those that do not hold, and where the page is."""
    lines = []
    for topic, rows in groupby(result["claims"], key=lambda claim: claim["topic"]):
        verdicts = [row["holds"] for row in rows]
        lines.append(f"{topic:<19} {sum(verdicts):>3} of {len(verdicts):>3} rows hold")
    for claim in result["claims"]:
        if not claim["holds"]:
            wanted = f"{'not ' * claim['fails_as_the_paper_says']}{claim['relation']} {show(claim['bound'])}"
            lines += ["", f"DOES NOT HOLD ({claim['topic']}): {claim['claim']}", f"  {claim['setting']}",
                      f"  {show(claim['value'])}, claimed {wanted}"]  # fmt: skip
    total = f"{result['hold']} of {result['total']} rows hold, {result['sampled']} of them sampled"
    return "\n".join([*lines, "", f"{total}; {result['seconds']:.0f} s", f"report: {result['report']}"])
