"""Audits of claim trees: values by closed form, by hand and by enumerating every set of lies."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from agents.audit import AuditError, answers_needed, audit, format_audit
from envs.claim_tree import ClaimTree, ProblemError
from envs.problem import load_problem
from fbs.aggregator import Aggregator
from fbs.max_entropy import max_entropy_sampling
from fbs.notation import parse
from fbs.stability import RhoError

EXAMPLES = Path(__file__).parents[1] / "examples"
BLUEBIRDS = Path(__file__).parents[2] / "shared" / "data" / "bluebirds.csv"


def leaf(claimed: int, answer: int | None = None) -> dict:
    return {"claim": "leaf", "answer": claimed if answer is None else answer, "claimed": claimed}


def inner(aggregator: str, *children: dict, claimed: int | None = None) -> dict:
    """A claim that claims what the bits claimed below it give, unless told otherwise."""
    if claimed is None:
        claimed = int(parse(aggregator, len(children))([child["claimed"] for child in children]))
    return {"claim": "inner", "aggregator": aggregator, "children": list(children), "claimed": claimed}


def load(folder: Path, document: dict) -> ClaimTree:
    file = folder / "tree.json"
    file.write_text(json.dumps(document))
    return load_problem(file)


def majorities(*groups: str) -> dict:
    return inner("majority", *(inner("majority", *(leaf(int(bit)) for bit in group)) for group in groups))


# Known values.


def test_majority_of_three_majorities(tmp_path: Path) -> None:
    """110 / 111 / 000: R = 7/2, worst case 1/4 for local sampling and 2/7 for tree-optimal (the design's table).

    By hand: the parts have fbs 2, 3/2, 3/2; the root's block is either part that claims 1, so R = 2 + 3/2, and local
    sampling takes each of the two half of the time, catching with min(1/2 * 1/2, 1/2 * 2/3). ceil(ln .05 / ln 5/7) = 9.
    """
    report = audit(load(tmp_path, majorities("110", "111", "000")), rho=2)
    assert report["tree_sensitivity_exact"] == "7/2" and report["tree_sensitivity"] == 3.5
    assert report["worst_case_catch"]["local"] == pytest.approx(1 / 4, abs=1e-8)
    assert report["worst_case_catch"]["tree_optimal"] == pytest.approx(2 / 7, abs=1e-12)
    assert [claim["fbs_exact"] for claim in report["claims"]] == ["2", "2", "3/2", "3/2"]
    assert [claim["path"] for claim in report["claims"]] == ["", "0", "1", "2"]
    assert [claim["claimed"] for claim in report["claims"]] == [1, 1, 1, 0]
    assert [claim["tree_sensitivity"] for claim in report["claims"]] == [3.5, 2, 1.5, 1.5]
    assert report["answers_needed"] == {"confidence": 0.95, "debate": 9, "every_leaf": 9}
    assert report["stable"] == report["total"] == 4 and report["inconsistent"] == 0


def test_the_paper_s_published_papers() -> None:
    """66 of 99: fbs 66/17; one level, so local and tree-optimal agree. ceil(ln .05 / ln(49/66)) = ceil(10.06) = 11."""
    tree = load_problem(EXAMPLES / "published_papers.json")
    assert tree.claimed[1:].sum() == 66 and tree.answer[1:].sum() == 49
    assert tree.claimed[0] == 1 and tree.answer[0] == 0
    assert not (tree.answer > tree.claimed).any()  # Alice hides no paper that supports her
    report = audit(tree, rho=4)
    assert report["claims"][0]["fbs_exact"] == report["tree_sensitivity_exact"] == "66/17"
    assert report["stable"] == report["total"] == 1
    assert report["worst_case_catch"]["local"] == pytest.approx(17 / 66, abs=1e-8)
    assert report["worst_case_catch"]["tree_optimal"] == pytest.approx(17 / 66, abs=1e-12)
    assert report["answers_needed"] == {"confidence": 0.95, "debate": 11, "every_leaf": 99}


def test_the_footbridge() -> None:
    """By hand: `and` of 8 ones is 8 and a majority of 5 in 9 is 5, both above rho 4.

    The root, threshold 3,2,2,1,1 >= 7 at all ones, falls with a weight of 3: {0}, {1, 2} or a 2 with a 1, fbs 3. R of
    its parts: the cables, `at_least 5` of 6 ones where cable 4 (majority of 110) has R = 2: blocks are pairs, so
    min over j of (7 - j largest)/(2 - j) = min(7/2, 5) = 7/2; the deck: both halves of the `or` must fall, so
    min(2, 3) = 2; bolts 8, people 5, divers 1. Of those five capacities the root makes a linear program, solved here.
    """
    tree = load_problem(EXAMPLES / "footbridge.yaml")
    assert tree.answer[0] == 0 and tree.claimed[0] == 1 and tree.depth == 3
    report = audit(tree, rho=4)
    fbs = {claim["path"]: claim["fbs_exact"] for claim in report["claims"]}
    assert fbs == {"": "3", "0": "3", "0/3": "2", "1": "2", "2": "8", "3": "5"}
    assert {claim["path"] for claim in report["claims"] if not claim["stable"]} == {"2", "3"}
    assert report["inconsistent"] == 0
    parts = [7 / 2, 2, 8, 5, 1]
    blocks = [[0], [1, 2], [1, 3], [1, 4], [2, 3], [2, 4]]
    rows = [[-float(i in block) for i in range(5)] for block in blocks]
    program = linprog(parts, A_ub=rows, b_ub=-np.ones(6))
    assert report["tree_sensitivity"] == pytest.approx(program.fun, abs=1e-9)
    false = tree.claimed != tree.answer
    assert [tree.path(node) for node in np.flatnonzero(false & (tree.width == 0))] == ["2/6", "3/4"]


# Every set of lies, enumerated.


def children(tree: ClaimTree, node: int) -> range:
    return range(tree.first_child[node], tree.first_child[node] + tree.width[node])


def leaves_below(tree: ClaimTree, opaque: set[int], node: int) -> list[int]:
    if tree.width[node] == 0 or node in opaque:
        return [node]
    return [end for child in children(tree, node) for end in leaves_below(tree, opaque, child)]


def is_false(tree: ClaimTree, lies: set[int], node: int, ends: set[int]) -> bool:
    """Whether a claim is false when the lies among the ends are."""
    if node in ends:
        return node in lies
    truths = [int(tree.claimed[child]) ^ is_false(tree, lies, child, ends) for child in children(tree, node)]
    return int(tree.aggregators[tree.aggregator[node]](truths)) != tree.claimed[node]


def local_distribution(tree: ClaimTree, ends: set[int], node: int) -> dict[int, float]:
    """Where a Bob who samples claim by claim ends up."""
    if node in ends:
        return {node: 1.0}
    f: Aggregator = tree.aggregators[tree.aggregator[node]]
    z = tree.claimed[tree.children(node)]
    uniform = np.full(f.width, 1 / f.width)
    p = uniform if len(set(f.table().tolist())) == 1 else max_entropy_sampling(f, z)
    end: dict[int, float] = defaultdict(float)
    for i, child in enumerate(children(tree, node)):
        for at, probability in local_distribution(tree, ends, child).items():
            end[at] += p[i] * probability
    return end


def by_enumeration(tree: ClaimTree, inconsistent: set[int]) -> tuple[float | None, float | None]:
    """(local, tree-optimal) worst-case catch over all sets of lies that make the root claim false."""
    ends = leaves_below(tree, inconsistent, 0)
    flips = [set(itertools.compress(ends, bits)) for bits in itertools.product((0, 1), repeat=len(ends))]
    lies = [flip for flip in flips if is_false(tree, flip, 0, set(ends))]
    if not lies:
        return None, None
    local = local_distribution(tree, set(ends), 0)
    # max v  s.t.  v <= p(S) for every set S of lies,  sum p = 1
    rows = [[1.0] + [-float(x in lie) for x in ends] for lie in lies]
    objective, total = [-1.0] + [0.0] * len(ends), [[0.0] + [1.0] * len(ends)]
    program = linprog(objective, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=total, b_eq=[1.0])
    return min(sum(local[x] for x in lie) for lie in lies), -program.fun


@st.composite
def documents(draw: st.DrawFn, depth: int = 3, most: int = 3) -> dict:
    if depth == 0 or (depth < 3 and draw(st.booleans())):
        return leaf(draw(st.integers(0, 1)))
    width = draw(st.integers(1, most))
    children = [draw(documents(depth=depth - 1, most=2)) for _ in range(width)]
    names = ["majority", "and", "or", "parity", "at_least 2", f"threshold {','.join('321'[:width])} >= 3"]
    claimed = draw(st.sampled_from([None, None, None, None, 0, 1]))
    return inner(draw(st.sampled_from(names)), *children, claimed=claimed)


@settings(max_examples=150, deadline=None)
@given(document=documents())
def test_worst_cases_by_enumeration(document: dict, tmp_path_factory: pytest.TempPathFactory) -> None:
    tree = load(tmp_path_factory.mktemp("tree"), document)
    report = audit(tree, rho=2)
    inconsistent = {
        node for node in range(len(tree.width)) if tree.width[node]
        and tree.aggregators[tree.aggregator[node]](tree.claimed[tree.children(node)]) != tree.claimed[node]
    }  # fmt: skip
    flagged = {claim["path"] for claim in report["claims"] if not claim["consistent"]}
    assert flagged == {tree.path(node) for node in inconsistent}
    local, optimal = by_enumeration(tree, inconsistent)
    assert report["worst_case_catch"]["local"] == (None if local is None else pytest.approx(local, abs=1e-7))
    assert report["worst_case_catch"]["tree_optimal"] == (None if optimal is None else pytest.approx(optimal, abs=1e-7))
    if local is not None:
        assert local <= optimal + 1e-9
    json.dumps(report, allow_nan=False)
    assert format_audit(report)


# Claims that contradict themselves, and constant ones.


def test_an_inconsistent_claim_counts_as_a_leaf(tmp_path: Path) -> None:
    """`and` of (and 111 claimed 0, 1, 1), claimed 0: the first is caught on arrival.

    The only minimal lie of the root is that first claim (0, with two ones), so R = 1, though the claim's own fbs is 3.
    """
    broken = inner("and", leaf(1), leaf(1), leaf(1), claimed=0)
    report = audit(load(tmp_path, inner("and", broken, leaf(1), leaf(1))), rho=2)
    assert [claim["consistent"] for claim in report["claims"]] == [True, False]
    assert [claim["fbs"] for claim in report["claims"]] == [1, 3]
    assert [claim["stable"] for claim in report["claims"]] == [True, False]
    assert report["tree_sensitivity"] == 1 and report["inconsistent"] == 1
    assert report["worst_case_catch"] == {"local": 1, "tree_optimal": 1}
    assert "Inconsistent: 1 of 2" in format_audit(report)


def test_an_inconsistent_root(tmp_path: Path) -> None:
    report = audit(load(tmp_path, inner("and", leaf(1), leaf(1), claimed=0)), rho=2)
    assert report["claims"][0]["consistent"] is False and report["tree_sensitivity"] == 1
    assert report["answers_needed"]["debate"] == 1
    assert "before anybody is asked" in format_audit(report)


def test_a_claim_that_no_lie_can_falsify(tmp_path: Path) -> None:
    """`at_least 0` is always true: R = 0, and an `or` that leans on it cannot fall either."""
    always = inner("at_least 0", leaf(0), leaf(0))
    report = audit(load(tmp_path, inner("or", always, leaf(1))), rho=2)
    assert report["tree_sensitivity"] == 0 and report["worst_case_catch"] == {"local": None, "tree_optimal": None}
    assert report["answers_needed"]["debate"] == 0
    assert report["claims"][1]["fbs"] == 0 and report["claims"][1]["stable"]
    assert "nobody need be asked" in format_audit(report)
    report = audit(load(tmp_path, inner("and", always, leaf(1))), rho=2)  # falls with the leaf alone
    assert report["tree_sensitivity"] == 1
    assert report["worst_case_catch"]["local"] == pytest.approx(1 / 2)  # half of local Bob's samples are wasted
    report = audit(load(tmp_path, inner("table 00000011", leaf(1), leaf(1), always)), rho=2)  # never asked about it
    assert report["worst_case_catch"] == {"local": pytest.approx(1 / 2), "tree_optimal": 1 / 2}


def test_weights_that_no_program_can_hold_are_refused_with_their_place(tmp_path: Path) -> None:
    weights = [10**9 + 7 * i for i in range(1, 21)]
    heavy = inner(f"threshold {','.join(map(str, weights))} >= {sum(weights) // 2}", *[leaf(1)] * 20)
    with pytest.raises(ProblemError, match=r"tree\.json, root/children\[1\]: cannot be audited: weights too large"):
        audit(load(tmp_path, inner("or", leaf(0), heavy)), 4)


# How many answers.


@pytest.mark.parametrize(
    ("r", "confidence"), [(66 / 17, 0.95), (2.0, 0.5), (9.0, 0.99), (1e6, 0.95), (1.0, 0.95), (1.5, 0.1)]
)
def test_the_answers_are_enough_and_no_fewer_are(r: float, confidence: float) -> None:
    """The definition: n samples miss with (1 - 1/r)^n."""
    n = answers_needed(r, confidence)
    assert (1 - 1 / r) ** n <= (1 - confidence) * (1 + 1e-9)
    assert n == 1 or (1 - 1 / r) ** (n - 1) > 1 - confidence


def test_exact_powers_are_not_rounded_up() -> None:
    """(1/2)^k = 1 - (1 - 2^-k) exactly: k answers and not k + 1."""
    assert [answers_needed(2.0, 1 - 2.0**-k) for k in range(1, 30)] == list(range(1, 30))


def test_confidence_and_rho_are_checked(tmp_path: Path) -> None:
    tree = load(tmp_path, majorities("110", "111", "000"))
    for confidence in (0, 1, -1, 1.5, math.nan, "0.9", True):
        with pytest.raises(AuditError, match="confidence must lie between 0 and 1"):
            audit(tree, 4, confidence)
    with pytest.raises(RhoError):
        audit(tree, 0.5)
    assert audit(tree, 4, 0.5)["answers_needed"]["debate"] == 3  # (5/7)^2 = .51, (5/7)^3 = .36


# Crowds.


def closed_form(ones: int, width: int, least: int) -> Fraction:
    """Sensitivity of "at least so many of width": all ones by the fewest that overturn them, or all zeros."""
    return Fraction(ones, ones - least + 1) if ones >= least else Fraction(width - ones, least - ones)


@pytest.mark.skipif(not BLUEBIRDS.exists(), reason=f"the bluebirds labels are not at {BLUEBIRDS}")
def test_bluebirds() -> None:
    yes: dict[str, int] = defaultdict(int)
    with BLUEBIRDS.open() as file:
        for row in csv.DictReader(file):
            yes[row["task"]] += int(row["label"])
    expected = [closed_form(ones, 39, 20) for ones in yes.values()]
    positive = sum(ones >= 20 for ones in yes.values())
    tree = load_problem(BLUEBIRDS)
    for rho in (1, 2, 3, 4, 5, 10, 20):
        report = audit(tree, rho)
        tasks = report["claims"][1:]
        assert [claim["fbs_exact"] for claim in tasks] == [str(value) for value in expected]
        assert sum(claim["stable"] for claim in tasks) == sum(value <= rho for value in expected)
    root = report["claims"][0]
    assert (root["aggregator"], root["path"], root["sub_claims"]) == ("at_least 54", "", 108)
    assert root["fbs_exact"] == str(closed_form(positive, 108, 54))
    # `needed` of the tasks of one sort must fall: R = min over j of (sum of all but the j largest) / (needed - j)
    chosen = sorted(r for r, ones in zip(expected, yes.values(), strict=True) if (ones >= 20) == (positive >= 54))
    needed = positive - 53 if positive >= 54 else 54 - positive
    whole = min(sum(chosen[: len(chosen) - j]) / (needed - j) for j in range(needed))
    assert report["tree_sensitivity_exact"] == str(whole)
    assert report["total"] == 109 and report["answers_needed"]["every_leaf"] == 4212
    local = Fraction(1, len(chosen)) * sum(sorted(1 / r for r in chosen)[:needed])  # uniform over the tasks
    assert report["worst_case_catch"]["local"] == pytest.approx(float(local), abs=1e-9)


# What a person sees.


def long_report() -> dict[str, Any]:
    claims = [
        {"path": "/".join("0" * i), "claim": f"claim\t{i}\x1b[31m " + "very " * 40, "aggregator": "majority",
         "level": 1, "sub_claims": 3, "claimed": 1, "answer": 1, "fbs": 2 + i, "fbs_exact": str(2 + i),
         "stable": 2 + i <= 9, "consistent": True, "tree_sensitivity": 3.0}
        for i in range(30)
    ]  # fmt: skip
    return {
        "source": "tree.json", "rho": 9.0, "claims": claims, "stable": 8, "total": 30, "inconsistent": 0,
        "tree_sensitivity": 4.0, "tree_sensitivity_exact": "4",
        "worst_case_catch": {"local": 0.2, "tree_optimal": 0.25},
        "answers_needed": {"confidence": 0.95, "debate": 11, "every_leaf": 4212},
    }  # fmt: skip


def test_the_table_is_aligned_short_and_harmless() -> None:
    lines = format_audit(long_report(), limit=5).splitlines()
    assert "Too sensitive at rho 9: 22 of 30" in lines and "Stable at rho 9: 8 of 30" in lines
    assert "  ... and 17 more" in lines and "  ... and 3 more" in lines
    rows = lines[lines.index("Too sensitive at rho 9: 22 of 30") + 1 :][:6]
    assert len({row.index("claim\\t") if i else row.rindex("claim") for i, row in enumerate(rows)}) == 1
    assert [row.split()[1] for row in rows[1:]] == ["31", "30", "29", "28", "27"]  # the worst first
    assert all(len(line) <= 160 and line.isprintable() for line in lines)
    assert "claim\\t29\\x1b[31m very" in rows[1]
    assert "11 human answers instead of all 4,212" in " ".join(lines)


def test_the_advice_when_sampling_saves_nothing() -> None:
    report = long_report()
    report["answers_needed"] = {"confidence": 0.95, "debate": 11, "every_leaf": 9}
    assert "takes 11 samples, so ask for all of the 9 human answers" in " ".join(format_audit(report).split())


def test_progress_goes_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = load(tmp_path, majorities("110", "111", "000"))
    assert audit(tree, 2, progress=True) == audit(tree, 2)
    captured = capsys.readouterr()
    assert captured.out == "" and "4/4" in captured.err
