"""Crowd labels: what a CSV becomes, and what is refused."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from envs.claim_tree import ClaimTree, ProblemError
from envs.crowd import load_crowd
from envs.problem import load_problem
from fbs.notation import parse

BLUEBIRDS = Path(__file__).parents[2] / "shared" / "data" / "bluebirds.csv"

SMALL = """task,worker,label
kite,ann,1
kite,ben,0
wren,ann,0
kite,cal,1
owl,ben,1
"""


def load(folder: Path, text: str | bytes) -> ClaimTree:
    file = folder / "labels.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_problem(file)


def refused(folder: Path, text: str | bytes) -> str:
    with pytest.raises(ProblemError) as caught:
        load(folder, text)
    message = str(caught.value)
    assert message.startswith(str(folder / "labels.csv")) and "\n" not in message
    return message


def test_a_small_crowd_by_hand(tmp_path: Path) -> None:
    """Three tasks of 3, 1 and 1 answers: the majorities are 1, 0, 1, and two of three is at least ceil(3/2) = 2."""
    tree = load(tmp_path, SMALL)
    assert tree.text == (
        "labels.csv: at least 2 of 3 tasks are answered yes",
        "kite: the majority of 3 people say yes",
        "wren: the majority of 1 person says yes",
        "owl: the majority of 1 person says yes",
        "ann on kite",
        "ben on kite",
        "cal on kite",
        "ann on wren",
        "ben on owl",
    )
    assert tree.written == ("at_least 2", "majority", "majority", "majority", *[""] * 5)
    assert tree.aggregators == (parse("at_least 2", 3), parse("majority 3"), parse("majority 1"))
    assert tree.width.tolist() == [3, 3, 1, 1, 0, 0, 0, 0, 0]
    assert tree.answer.tolist() == tree.claimed.tolist() == [1, 1, 0, 1, 1, 0, 1, 0, 1]
    assert tree.depth == 2 and tree.leaves == 5
    assert [tree.path(node) for node in tree.preorder()] == ["", "0", "0/0", "0/1", "0/2", "1", "1/0", "2", "2/0"]


def same(one: ClaimTree, two: ClaimTree) -> bool:
    columns = ("aggregator", "width", "answer", "claimed")
    return one.text == two.text and all(np.array_equal(getattr(one, c), getattr(two, c)) for c in columns)


def test_columns_in_any_order_more_columns_and_blanks(tmp_path: Path) -> None:
    rows = [line.split(",") for line in SMALL.split()]
    shuffled = "\n".join(f"{label}, {task} ,x,{worker}" for task, worker, label in rows)
    assert same(load(tmp_path, shuffled), load(tmp_path, SMALL))
    assert same(load(tmp_path, "\n" + SMALL.replace("\n", "\n\n")), load(tmp_path, SMALL))


def test_windows_line_ends_a_byte_order_mark_and_quotes(tmp_path: Path) -> None:
    plain = load(tmp_path, SMALL)
    assert same(load(tmp_path, "\ufeff" + SMALL.replace("\n", "\r\n")), plain)
    assert same(load(tmp_path, SMALL.replace("kite", '"kite"').rstrip()), plain)
    assert load(tmp_path, SMALL.replace("kite", '"kite, red"')).text[1] == "kite, red: the majority of 3 people say yes"


def test_the_root_needs_half_of_the_tasks_rounded_up(tmp_path: Path) -> None:
    for tasks, least in ((1, 1), (2, 1), (3, 2), (4, 2), (5, 3)):
        tree = load(tmp_path, "task,worker,label\n" + "".join(f"t{i},w,{int(i < least)}\n" for i in range(tasks)))
        assert tree.written[0] == f"at_least {least}" and tree.answer[0] == 1
        tree = load(tmp_path, "task,worker,label\n" + "".join(f"t{i},w,{int(i < least - 1)}\n" for i in range(tasks)))
        assert tree.answer[0] == 0


HEADER = "task,worker,label\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["the file is empty", "task,worker,label"]),
        ("\ufeff\r\n \r\n", ["the file is empty"]),
        (HEADER, ["a header, but no answer"]),
        ("task,worker\nt,w\n", ["line 1", "column 'label' is missing", "found task,worker"]),
        ("t,w,1\n", ["line 1", "column 'task' is missing", "found t,w,1"]),
        ("task;worker;label\nt;w;1\n", ["line 1", "column 'task' is missing", "found task;worker;label"]),
        ("task,worker,label,task\nt,w,1,t\n", ["line 1", "column 'task' is there twice"]),
        (HEADER + "t,w,1\nt,v\n", ["line 3", "has 2 columns", "header has 3"]),
        (HEADER + "t,w,1,0\n", ["line 2", "has 4 columns", "header has 3"]),
        (HEADER + "t,w,yes\n", ["line 2", "label of w on t is 'yes'", "expected 0 or 1"]),
        (HEADER + "t,w,1.0\n", ["line 2", "is '1.0'", "expected 0 or 1"]),
        (HEADER + "t,w,2\n", ["line 2", "is '2'"]),
        (HEADER + "t,w,\n", ["line 2", "is ''"]),
        (HEADER + "t,w,\u0661\n", ["line 2", "is '\u0661'"]),  # an Arabic one: a digit to int(), not to a reader
        (HEADER + ",w,1\n", ["line 2", "the task has no name"]),
        (HEADER + "t, ,1\n", ["line 2", "the worker has no name"]),
        (HEADER + "t,w,1\nt,v,1\nt,w,0\n", ["line 4", "w answers t again", "line 2"]),
        (HEADER + "t,w,1\r\n t ,w,1\r\n", ["line 3", "w answers t again", "line 2"]),
        (HEADER + '"t,w,1\n', ["line 2", "not CSV"]),
        (HEADER.encode() + b"caf\xe9,w,1\n", ["line 2", "not UTF-8"]),
        (HEADER + "x" * 200_000 + ",w,1\n", ["line 2", "not CSV"]),
    ],
)
def test_malformed_labels(tmp_path: Path, text: str | bytes, parts: list[str]) -> None:
    message = refused(tmp_path, text)
    assert all(part in message for part in parts), message


def test_too_many_answers_for_one_task(tmp_path: Path) -> None:
    text = HEADER + "".join(f"t,w{i},1\n" for i in range(100_001))
    assert "100001 answers" in refused(tmp_path, text) and "100,000" in refused(tmp_path, text)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="no such file"):
        load_crowd(tmp_path / "labels.csv")


@pytest.mark.skipif(not BLUEBIRDS.exists(), reason=f"the bluebirds labels are not at {BLUEBIRDS}")
def test_bluebirds() -> None:
    """108 photographs, 39 people, every one answering; the counts recomputed from the rows without any of our code."""
    tree = load_problem(BLUEBIRDS)
    yes: dict[str, int] = defaultdict(int)
    with BLUEBIRDS.open() as file:
        for row in csv.DictReader(file):
            yes[row["task"]] += int(row["label"])
    assert len(yes) == 108 and tree.width.tolist() == [108] + [39] * 108 + [0] * 4212
    assert tree.written[0] == "at_least 54" and set(tree.written[1:109]) == {"majority"}
    assert [text.split(":")[0] for text in tree.text[1:109]] == list(yes)
    assert tree.answer[1:109].tolist() == [int(ones >= 20) for ones in yes.values()]
    assert tree.answer[109:].reshape(108, 39).sum(1).tolist() == list(yes.values())
    assert tree.answer[0] == int(sum(ones >= 20 for ones in yes.values()) >= 54)
