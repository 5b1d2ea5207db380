"""Crowd labels: what people answered about tasks, from a CSV file in Crowd-Kit's layout.

    task,worker,label
    image_7,worker_03,1
    image_7,worker_11,0

The columns may come in any order; further columns are ignored. Each row is one person's answer, 0 or 1. They become a
claim tree of two levels: a task is decided by the `majority` of its own workers, and the root claim says that at least
half of the n tasks are answered yes, `at_least ceil(n/2)`. Tasks and workers keep the order in which they first appear.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from envs.claim_tree import ClaimTree
from envs.document import MAX_CLAIMS, TOO_MANY, ProblemError, read_text
from fbs.aggregator import MAX_WIDTH, Aggregator, at_least, majority

COLUMNS = ("task", "worker", "label")

Answers = dict[str, dict[str, int]]  # task -> worker -> label


def load_crowd(path: str | Path) -> ClaimTree:
    """Read the labels of a crowd as a claim tree.

    Raises:
        ProblemError: the file cannot be read, a column is missing, a row is ragged, a label is neither 0 nor 1, a
            worker answers a task twice, or there is no answer at all. The message names the file and the line.
    """
    source = str(path)
    answers = _read_answers(source, read_text(path))
    tasks = list(answers)
    widest = max(len(tasks), *map(len, answers.values()))
    if widest > MAX_WIDTH:
        raise ProblemError(source, f"{widest} answers would decide one claim, at most {MAX_WIDTH:,} can; split it")
    least = (len(tasks) + 1) // 2
    aggregators: list[Aggregator] = [at_least(least, len(tasks))]
    number_of_width: dict[int, int] = {}
    for labels in answers.values():
        if len(labels) not in number_of_width:
            number_of_width[len(labels)] = len(aggregators)
            aggregators.append(majority(len(labels)))
    everybody = [(task, worker, label) for task, labels in answers.items() for worker, label in labels.items()]
    name = Path(path).name
    return ClaimTree.from_breadth_first(
        source,
        aggregators,
        aggregator=[0] + [number_of_width[len(labels)] for labels in answers.values()] + [-1] * len(everybody),
        answer=[0] * (1 + len(tasks)) + [label for _, _, label in everybody],
        claimed=[-1] * (1 + len(tasks) + len(everybody)),
        text=[
            f"{name}: at least {least} of {len(tasks)} tasks are answered yes",
            *(f"{task}: the majority of {_people(len(labels))} yes" for task, labels in answers.items()),
            *(f"{worker} on {task}" for task, worker, _ in everybody),
        ],
        written=[f"at_least {least}", *["majority"] * len(tasks), *[""] * len(everybody)],
    )


def _people(number: int) -> str:
    return f"{number} people say" if number != 1 else "1 person says"


def _read_answers(source: str, text: str) -> Answers:
    if not text.strip():
        raise ProblemError(source, f"the file is empty; expected the columns {','.join(COLUMNS)}")
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    places: dict[str, int] | None = None
    answers: Answers = {}
    lines: dict[tuple[str, str], int] = {}
    try:
        for row in rows:
            line, cells = rows.line_num, [cell.strip() for cell in row]
            if not any(cells) and len(cells) < 2:
                continue  # an empty line
            if places is None:
                places, columns = _header(source, cells, line), len(cells)
                continue
            if len(cells) != columns:
                message = f"has {len(cells)} columns, but the header has {columns}"
                raise ProblemError(source, message, f"line {line}")
            task, worker, label = (cells[places[column]] for column in COLUMNS)
            _check_row(source, line, task, worker, label)
            if (task, worker) in lines:
                message = f"{worker} answers {task} again, after line {lines[task, worker]}; keep one of the two"
                raise ProblemError(source, message, f"line {line}")
            lines[task, worker] = line
            if len(lines) > MAX_CLAIMS:
                raise ProblemError(source, TOO_MANY, f"line {line}")
            answers.setdefault(task, {})[worker] = int(label)
    except csv.Error as error:
        raise ProblemError(source, f"not CSV: {error}", f"line {rows.line_num}") from None
    if not answers:
        raise ProblemError(source, "there is a header, but no answer below it")
    return answers


def _header(source: str, cells: list[str], line: int) -> dict[str, int]:
    """Where each of the three columns is."""
    for column in COLUMNS:
        if cells.count(column) != 1:
            found = "is missing" if column not in cells else "is there twice"
            expected = f"expected {','.join(COLUMNS)} in any order, found {','.join(cells)[:200]}"
            raise ProblemError(source, f"the column '{column}' {found}; {expected}", f"line {line}")
    return {column: cells.index(column) for column in COLUMNS}


def _check_row(source: str, line: int, task: str, worker: str, label: str) -> None:
    for column, cell in (("task", task), ("worker", worker)):
        if not cell:
            raise ProblemError(source, f"the {column} has no name", f"line {line}")
    if label not in ("0", "1"):
        message = f"the label of {worker} on {task} is '{label[:60]}'; expected 0 or 1"
        raise ProblemError(source, message, f"line {line}")
