"""Reading and writing aggregators: the round trip, the grammar, and what is refused."""

from __future__ import annotations

import pickle
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import aggregators, assignments, quick

from fbs.aggregator import (
    Aggregator,
    Composition,
    Table,
    Threshold,
    at_least,
    conjunction,
    disjunction,
    majority,
    parity,
    symmetric,
)
from fbs.notation import NotationError, assignment, parse


@quick
@given(aggregators(8))
def test_what_str_writes_is_read_back(f: Aggregator) -> None:
    assert parse(str(f)) == f
    assert parse(f.written, width=f.width) == f
    assert parse(f"  {f}\n".upper().replace(",", " ,\t"), width=f.width) == f


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("majority", 7, majority(7)),
        ("majority 7", None, majority(7)),
        ("and 1", None, conjunction(1)),
        ("or", 2, disjunction(2)),
        ("Parity 4", 4, parity(4)),
        ("at_least 3", 7, at_least(3, 7)),
        ("at_least 3 7", None, at_least(3, 7)),
        ("at_least 0 2", None, at_least(0, 2)),
        ("symmetric 0010", None, symmetric((0, 0, 1, 0))),
        ("threshold 3,2,2,1,1 >= 5", None, Threshold((3, 2, 2, 1, 1), 5)),
        ("threshold 0,-2>=-1", None, Threshold((0, -2), -1)),
        ("table 0001", None, Table((0, 0, 0, 1))),
        (
            "majority(and 2, or 3, parity 2)",
            None,
            Composition(majority(3), (conjunction(2), disjunction(3), parity(2))),
        ),
        (
            "threshold 2,1 >= 2(table 01, or(and 2, and 1))",
            4,
            Composition(
                Threshold((2, 1), 2), (Table((0, 1)), Composition(disjunction(2), (conjunction(2), conjunction(1))))
            ),
        ),
        (
            "or(and 2)(parity 2, parity 3)",
            None,
            Composition(Composition(disjunction(1), (conjunction(2),)), (parity(2), parity(3))),
        ),
    ],
)
def test_grammar(text: str, width: int | None, expected: Aggregator) -> None:
    assert parse(text, width) == expected


@pytest.mark.parametrize(
    ("text", "width", "message"),
    [
        ("", None, "expected majority, and, or"),
        ("majorty 3", None, r"expected majority, and.*at character 1: \^majorty 3"),
        ("majority", None, "expected a width too, as in 'majority 3'"),
        ("at_least 2", None, "expected a width too, as in 'at_least 2 3'"),
        ("at_least", 3, "expected how many must be true"),
        ("at_least -1 3", None, "between 0 and"),
        ("majority 0", None, "between 1 and 100000"),
        ("majority -3", None, "between 1 and 100000"),
        ("majority 3 4", None, "expected the end"),
        ("threshold 3,x >= 5", None, r"expected a whole number.*at character 13: threshold 3,\^x >= 5"),
        ("threshold 3 2 >= 5", None, "expected , or >="),
        ("threshold >= 5", None, "expected a whole number"),
        ("threshold 1,2 >=", None, "expected a whole number"),
        ("threshold 1.5 >= 1", None, r"at character 12: threshold 1\^\.5"),
        ("threshold 9999999999999999999 >= 1", None, "between -4611686018427387904 and"),
        ("threshold 4611686018427387904,1 >= 1", None, "at most 2\\*\\*62"),
        ("table 010", None, "2, 4, 8"),
        ("table 1", None, "2, 4, 8"),
        ("table 012", None, "as in 'table 0001'"),
        ("symmetric 0", None, "two of them at least"),
        ("majority(and 2, or 3", None, r"expected , or \).*character 21"),
        ("majority(and 2, or 3))", None, "expected the end"),
        ("majority()", None, r"character 10: majority\(\^\)"),
        ("majority(and, or 2)", None, r"expected a width too, as in 'and 3', at character 10: majority\(\^and"),
        ("majority 3(and 2, or 3)", None, "has 3 sub-claims, where 2 are given"),
        ("or(and 2)(and 2, or 1, or 1)", None, "expected 2 parts, not 3"),
        ("threshold 3,2 >= 5", 3, "has 2 sub-claims, where 3 are given"),
        ("majority(and 2, or 2)", 5, "has 4 sub-claims, where 5 are given"),
        ("majority", 0, "width must be 1 to 100000"),
        (None, 3, "an aggregator is a text"),
        (3, 3, "an aggregator is a text"),
    ],
)
def test_refusals_say_where_and_what_was_expected(text: str, width: int | None, message: str) -> None:
    with pytest.raises(NotationError, match=message) as caught:
        parse(text, width)
    assert "\n" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch owned')",
        "eval(and 2)",
        "lambda: 1",
        "majority(__class__)",
        "majority 3; import os",
        "and 2 or 3",
        "$(touch owned)",
        "{and} 2",
        "threshold 2**70 >= 1",
        "threshold 1e5 >= 1",
        "threshold 0x10 >= 1",
        "majority ³",
        "majority ٣",
        "ｍajority 3",
        "majority\x003",
    ],
)
def test_executable_or_odd_text_is_refused(text: str) -> None:
    with pytest.raises(NotationError):
        parse(text)


@quick
@given(st.text(alphabet="andorty_ ,()>=-0123456789^", max_size=40) | st.text(max_size=20))
def test_any_text_is_read_or_refused_by_name(text: str) -> None:
    try:
        f = parse(text)
    except NotationError as error:
        assert error.text == text
        assert 0 <= error.position <= len(text)
    else:
        assert parse(str(f)) == f


@pytest.mark.parametrize(
    "text",
    [
        "majority 100001",
        "and 999999999999",
        "or " + "9" * 100_000,
        "majority(" + ", ".join(["or 60000"] * 2000) + ")",
        "and 99999(" + "or 1)",
        "symmetric " + "01" * 60_000,
    ],
)
def test_a_width_too_large_is_refused_before_anything_is_allocated(text: str) -> None:
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(NotationError) as caught:
        parse(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000  # one aggregator of 60000 takes 0.5 MB, 2000 of them a thousand times that
    assert time.process_time() - started < 1
    assert len(str(caught.value)) < 200  # a long text is not repeated


def test_nesting_is_limited_both_ways() -> None:
    assert parse("or(" * 50 + "or 1" + ")" * 50).width == 1
    for text in ("or(" * 51 + "or 1" + ")" * 51, "or 1" + "(or 1)" * 51, "or(" * 100_000):
        with pytest.raises(NotationError, match="nested 50 deep"):
            parse(text)
    # Thirty applications at each of forty levels would be 1200 deep, past what Python can recurse into.
    mixed = "or 1"
    for _ in range(40):
        mixed = f"or 1({mixed})" + "(or 1)" * 29
    with pytest.raises(NotationError, match="nested 50 deep"):
        parse(mixed)


def test_composition_of_the_largest_width_is_read() -> None:
    assert parse("majority(" + ", ".join(["or 50000"] * 2) + ")").width == 100_000
    inner = "majority(" + ", ".join(["or 2"] * 3) + ")"  # six values, which are not sub-claims
    assert parse(inner + "(" + ", ".join(["or 16666"] * 6) + ")").width == 99_996


@quick
@given(st.integers(1, 30).flatmap(assignments))
def test_assignment_reads_text_sequences_and_arrays(z: tuple[int, ...]) -> None:
    text = "".join(map(str, z))
    for written in (text, f" {text[:3]} {text[3:]} ", z, list(map(float, z)), np.array(z, dtype=bool)):
        bits = assignment(written)
        assert bits.dtype == np.int8
        assert bits.tolist() == list(z)


@pytest.mark.parametrize(
    "bad", ["", " ", "012", "1,0", "one", [], [0, 2], [0.5], [[0, 1]], [[0], [0, 1]], None, "0" * 100_001]
)
def test_assignment_refuses_anything_else(bad: object) -> None:
    with pytest.raises(NotationError, match="an assignment has") as caught:
        assignment(bad)
    assert len(str(caught.value)) < 300
