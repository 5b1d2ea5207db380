"""Claim trees: what a file becomes, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.claim_tree import ClaimTree, ProblemError, load_claim_tree
from envs.document import MAX_CLAIMS, MAX_DEPTH
from envs.problem import load_problem
from fbs.notation import parse

EXAMPLES = Path(__file__).parents[1] / "examples"


def leaf(answer: object = 1, **more: object) -> dict:
    return {"claim": "a leaf", "answer": answer, **more}


def inner(aggregator: object, *children: object, **more: object) -> dict:
    return {"claim": "an inner claim", "aggregator": aggregator, "children": list(children), **more}


def load(folder: Path, document: object, name: str = "tree.json") -> ClaimTree:
    file = folder / name
    text = document if isinstance(document, str) else json.dumps(document)  # JSON is YAML as well
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_problem(file)


def refused(folder: Path, document: object, name: str = "tree.json") -> str:
    """The message of a refusal, which always names the file."""
    with pytest.raises(ProblemError) as caught:
        load(folder, document, name)
    message = str(caught.value)
    assert str(folder / name) in message
    assert "Traceback" not in message and "\n" not in message
    return message


# What a file becomes.


def test_the_arrays_of_the_module_s_example(tmp_path: Path) -> None:
    """The docstring's table, which was filled in by hand."""
    seen = inner("and", leaf(1), leaf(1))
    tree = load(tmp_path, inner("or", leaf(0), seen))
    assert tree.aggregator.tolist() == [0, -1, 1, -1, -1]
    assert tree.first_child.tolist() == [1, 0, 3, 0, 0]
    assert tree.width.tolist() == [2, 0, 2, 0, 0]
    assert tree.parent.tolist() == [-1, 0, 0, 2, 2]
    assert tree.level.tolist() == [2, 0, 1, 0, 0]
    assert tree.answer.tolist() == tree.claimed.tolist() == [1, 0, 1, 1, 1]
    assert tree.written == ("or", "", "and", "", "")
    assert tree.depth == 2 and tree.leaves == 3
    assert [tree.path(node) for node in tree.preorder()] == ["", "0", "1", "1/0", "1/1"]


def test_claimed_defaults_to_what_the_answers_give_not_to_what_is_claimed_below(tmp_path: Path) -> None:
    tree = load(tmp_path, inner("and", leaf(0, claimed=1), leaf(1), inner("or", leaf(0), claimed=1)))
    assert tree.answer.tolist() == [0, 0, 1, 0, 0]
    assert tree.claimed.tolist() == [0, 1, 1, 1, 0]


@st.composite
def documents(draw: st.DrawFn, depth: int = 4) -> dict:
    claimed = draw(st.sampled_from([{}, {"claimed": 0}, {"claimed": 1}]))
    if depth == 0 or (depth < 4 and draw(st.booleans())):
        return leaf(draw(st.integers(0, 1)), **claimed)
    children = draw(st.lists(documents(depth=depth - 1), min_size=1, max_size=4))
    return inner(draw(st.sampled_from(["majority", "and", "or", "parity", "at_least 2"])), *children, **claimed)


def truth(document: dict) -> int:
    """The answer of a claim by plain recursion and by counting, the second route."""
    if "answer" in document:
        return document["answer"]
    answers = [truth(child) for child in document["children"]]
    ones, width = sum(answers), len(answers)
    by_name = {"majority": 2 * ones > width, "and": ones == width, "or": ones > 0, "parity": ones % 2}
    return int({**by_name, "at_least 2": ones > 1}[document["aggregator"]])


def height(document: dict) -> int:
    return 1 + max(map(height, document["children"])) if "children" in document else 0


def walk(document: dict, path: tuple[int, ...] = ()) -> list[tuple[str, dict]]:
    below = [walk(child, (*path, i)) for i, child in enumerate(document.get("children", []))]
    return [("/".join(map(str, path)), document), *(item for items in below for item in items)]


@settings(max_examples=60, deadline=None)
@given(document=documents())
def test_answers_levels_and_preorder_by_recursion(document: dict, tmp_path_factory: pytest.TempPathFactory) -> None:
    tree = load(tmp_path_factory.mktemp("tree"), document)
    expected = walk(document)
    assert len(expected) == len(tree.width)
    for node, (path, claim) in zip(tree.preorder(), expected, strict=True):
        assert tree.path(node) == path
        assert tree.answer[node] == truth(claim)
        assert tree.claimed[node] == claim.get("claimed", truth(claim))
        assert tree.level[node] == height(claim)
        assert tree.width[node] == len(claim.get("children", []))
        assert set(tree.parent[tree.children(node)].tolist()) <= {node}


def test_json_and_yaml_give_the_same_tree(tmp_path: Path) -> None:
    document = json.loads((EXAMPLES / "published_papers.json").read_text(encoding="utf-8"))
    one = load(tmp_path, document)
    two = load(tmp_path, yaml.safe_dump(document), "tree.yml")
    assert one.text == two.text and one.written == two.written
    for column in ("aggregator", "first_child", "width", "parent", "level", "answer", "claimed"):
        assert np.array_equal(getattr(one, column), getattr(two, column))


def test_aliases_are_copies(tmp_path: Path) -> None:
    text = """
claim: root
aggregator: or
children:
  - &shared {claim: twice, aggregator: and, children: [{claim: x, answer: 1}, {claim: y, answer: 0}]}
  - *shared
"""
    tree = load(tmp_path, text, "tree.yaml")
    assert tree.text == ("root", "twice", "twice", "x", "y", "x", "y")
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1, 2, 2]


def test_aggregators_are_parsed_once_and_shared(tmp_path: Path) -> None:
    pair = inner("AND", leaf(), leaf())
    tree = load(tmp_path, inner("and", pair, inner("and 2", leaf(), leaf()), inner("majority", leaf())))
    assert tree.aggregators == (parse("and 3"), parse("and 2"), parse("majority 1"))
    assert tree.written[:4] == ("and", "AND", "and 2", "majority")


@pytest.mark.parametrize("name", ["tree.json", "tree.yaml"])
def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path, name: str) -> None:
    text = json.dumps(inner("or", leaf(0), leaf(1)), indent=1).replace("\n", "\r\n")
    assert load(tmp_path, "\ufeff" + text, name).answer.tolist() == [1, 0, 1]


def test_yaml_texts_that_look_like_dates_stay_texts(tmp_path: Path) -> None:
    tree = load(tmp_path, "claim: 2024-05-01\naggregator: or\nchildren:\n- {claim: '7', answer: 0x1}\n", "tree.yaml")
    assert tree.text == ("2024-05-01", "7") and tree.answer.tolist() == [1, 1]


def test_the_deepest_tree_allowed(tmp_path: Path) -> None:
    document = leaf()
    for _ in range(MAX_DEPTH):
        document = inner("or", document)
    assert load(tmp_path, document).depth == MAX_DEPTH
    assert load(tmp_path, document, "tree.yaml").depth == MAX_DEPTH
    assert load(tmp_path, document).path(MAX_DEPTH).count("/") == MAX_DEPTH - 1
    message = refused(tmp_path, inner("or", document))
    assert f"more than {MAX_DEPTH} levels" in message and "root/children[0]" in message
    assert f"more than {MAX_DEPTH} levels" in refused(tmp_path, inner("or", document), "tree.yaml")


def test_a_large_tree(tmp_path: Path) -> None:
    """20 * 500 leaves of answer 1 but one claim in twenty: the answers by counting."""
    tasks = [inner("majority", *[leaf(int(i % 20 != 0))] * 500) for i in range(40)]
    tree = load(tmp_path, inner("at_least 38", *tasks))
    assert len(tree.width) == 1 + 40 + 20_000
    assert tree.answer[0] == 1 and tree.answer[1:41].sum() == 38


# What is refused.

LEAF_TEXT = '{"claim": "x", "answer": 1}'


def nested(levels: int) -> str:
    start = '{"claim": "x", "aggregator": "or", "children": ['
    return start * levels + LEAF_TEXT + "]}" * levels


MALFORMED = [
    # a child missing, in every sense
    (inner("majority", leaf(), None, leaf()), ["root/children[1]", "expected a claim", "nothing (null)"]),
    (inner("majority 3", leaf(), leaf()), ["root", "2 children", "majority 3"]),
    (inner("and", inner("or", leaf()), inner("or")), ["root/children[1]", "`children` is empty"]),
    ({"claim": "x", "aggregator": "or", "children": None}, ["root", "list of claims", "nothing (null)"]),
    ({"claim": "x", "aggregator": "or"}, ["root", "has no `children`"]),
    ({"claim": "x", "children": [leaf()]}, ["root", "has no `aggregator`"]),
    (inner("or", leaf(), {"claim": "x"}), ["root/children[1]", "neither `answer: 0`"]),
    (inner("or", {**inner("or", leaf()), "answer": 1}), ["root/children[0]", "both `answer` and `children`"]),
    (inner("or", leaf(aggregator="or")), ["root/children[0]", "both `answer` and `aggregator`"]),
    ({"claim": "x", "aggregator": "or", "children": {"a": leaf()}}, ["root", "list of claims", "a mapping"]),
    # keys and texts
    (inner("or", leaf(), leaf(truth=1)), ["root/children[1]", "unknown key 'truth'"]),
    (inner("or", {"answer": 1}), ["root/children[0]", "`claim`", "missing"]),
    (inner("or", {"claim": 7, "answer": 1}), ["root/children[0]", "`claim`", "the number 7"]),
    (inner("or", {"claim": " ", "answer": 1}), ["root/children[0]", "`claim` is empty"]),
    (inner("or", {"claim": "\ud800", "answer": 1}), ["root/children[0]", "half a character"]),
    # aggregators
    (inner("most", leaf()), ["root", "most", "majority, and, or"]),
    (inner(3, leaf()), ["root", "`aggregator` must be text", "the number 3"]),
    (inner("__import__('os').system('true')", leaf()), ["root", "__import__"]),
    (inner("majority 99999999999999999999", leaf()), ["root", "majority"]),
    (inner("and", leaf(), leaf(), inner("threshold 3,2 >= 2", leaf(), leaf(), leaf())),
     ["root/children[2]", "3 children", "threshold 3,2 >= 2"]),
    (inner("or(and 2, and 2)", leaf(), leaf(), leaf()), ["root", "3 children"]),
    # bits
    *[(inner("or", leaf(), leaf(value)), ["root/children[1]", "`answer` must be 0 or 1", found])
      for value, found in [(True, "truth value true"), ("1", "the text '1'"), (1.0, "the number 1.0"), (2, "number 2"),
                           (None, "nothing (null)"), ([], "a list"), (10**300, "huge number"), (float("nan"), "nan")]],
    (inner("or", leaf(claimed="yes")), ["root/children[0]", "`claimed` must be 0 or 1", "'yes'"]),
    (inner("or", leaf(), claimed=2), ["root", "`claimed` must be 0 or 1", "the number 2"]),
    # the root
    (leaf(), ["root", "is a leaf"]),
    ([leaf()], ["root", "expected a claim", "a list"]),
    ("null", ["root", "expected a claim"]),
    ("", ["the file is empty"]),
    ("  \n", ["the file is empty"]),
]  # fmt: skip


@pytest.mark.parametrize("name", ["tree.json", "tree.yaml"])
@pytest.mark.parametrize(("document", "parts"), MALFORMED, ids=[parts[-1] for _, parts in MALFORMED])
def test_malformed_claims(tmp_path: Path, document: object, parts: list[str], name: str) -> None:
    if name.endswith("yaml") and "half a character" in parts:
        pytest.skip("YAML has no way to write a lone surrogate")
    message = refused(tmp_path, document, name)
    for part in parts:
        assert part in message
    assert f"{name}, root" in message or "empty" in message  # the place follows the file


@pytest.mark.parametrize("name", ["tree.json", "tree.yaml"])
@pytest.mark.parametrize("levels", [201, 1_000, 10_000, 100_000])
def test_endless_nesting_is_no_recursion_error(tmp_path: Path, levels: int, name: str) -> None:
    limit = sys.getrecursionlimit()
    assert f"more than {MAX_DEPTH} levels" in refused(tmp_path, nested(levels), name)
    assert any(part in refused(tmp_path, "[" * levels, name) for part in ("nest", "not JSON"))  # lists, never closed
    assert sys.getrecursionlimit() == limit


MALFORMED_JSON = [
    ('{"claim": "x",}', ["line 1, column 1", "not JSON"]),
    ("{'claim': 1}", ["line 1", "not JSON"]),
    (LEAF_TEXT + LEAF_TEXT, ["line 1", "not JSON", "Extra data"]),
    ('{"claim": "x", "answer": 0, "answer": 1}', ["'answer' is given twice", "claim 'x'"]),
    ('{"claim": "x", "answer": ' + "1" * 5000 + "}", ["not JSON"]),
]
MALFORMED_YAML = [
    ("&root\nclaim: x\naggregator: or\nchildren: [*root]\n", ["line 4", "contains itself", "&root of line 1"]),
    ("claim: x\naggregator: or\nchildren: &c [{claim: y, children: *c}]\n", ["line 3", "contains itself"]),
    ("claim: x\naggregator: or\nchildren: [*other]\n", ["line 3", "no anchor &other"]),
    ("claim: x\nanswer: 1\nanswer: 0\n", ["line 3", "'answer' is given twice"]),
    ("claim: x\nanswer: [1\n", ["line 3", "not YAML"]),
    ("claim: x\n\tanswer: 1\n", ["line 2", "not YAML"]),
    ("claim: x\x07\nanswer: 1\n", ["not YAML"]),
    ("claim: x\nanswer: 1\n---\nclaim: y\nanswer: 1\n", ["line 3", "second document"]),
    ("claim: x\naggregator: or\nchildren: [{claim: y, answer: yes}]\n", ["root/children[0]", "truth value true"]),
    ("claim: !!python/object/apply:os.system [ls]\nanswer: 1\n", ["line 1", "tag", "not allowed"]),
    ("claim: !secret x\nanswer: 1\n", ["line 1", "!secret", "not allowed"]),
    ("claim: x\nanswer: !!int one\n", ["line 2", "'one' is not", "int"]),
    ("claim: x\nanswer: !!bool one\n", ["line 2", "'one' is not", "bool"]),
    ("? [claim]\n: x\n", ["line 1", "key must be a word"]),
    ("base: &b {answer: 1}\n<<: *b\n", ["root", "unknown key 'base'"]),
    ("# nothing\n", ["root", "nothing (null)"]),
]


@pytest.mark.parametrize(("text", "parts"), MALFORMED_JSON, ids=[parts[-1] for _, parts in MALFORMED_JSON])
def test_malformed_json(tmp_path: Path, text: str, parts: list[str]) -> None:
    message = refused(tmp_path, text)
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(("text", "parts"), MALFORMED_YAML, ids=[" ".join(parts) for _, parts in MALFORMED_YAML])
def test_malformed_yaml(tmp_path: Path, text: str, parts: list[str]) -> None:
    message = refused(tmp_path, text, "tree.yaml")
    assert all(part in message for part in parts), message


def test_an_alias_bomb_is_refused_before_it_is_copied(tmp_path: Path) -> None:
    """Ten aliases on each of 30 levels: 10^30 claims in 3 kB."""
    layers = ["&a0 {claim: x, answer: 1}"]
    for i in range(1, 31):
        children = ", ".join([layers[-1]] + [f"*a{i - 1}"] * 9)
        layers.append(f"&a{i} {{claim: x, aggregator: and, children: [{children}]}}")
    message = refused(tmp_path, layers[-1], "tree.yaml")
    assert f"more than {MAX_CLAIMS:,} claims" in message and "line 1" in message


def test_a_chain_of_aliases_deeper_than_any_nesting_written_out(tmp_path: Path) -> None:
    children = ["&a0 {claim: x, answer: 1}"]
    children += [f"&a{i} {{claim: x, aggregator: or, children: [*a{i - 1}]}}" for i in range(1, 300)]
    text = "claim: x\naggregator: or\nchildren:\n" + "".join(f"  - {child}\n" for child in children)
    message = refused(tmp_path, text, "tree.yaml")
    assert f"more than {MAX_DEPTH} levels" in message and "root/children[200]/children[0]" in message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "latin.json"
    file.write_bytes(json.dumps(leaf()).encode() + b'\n\n"caf\xe9"')
    cases = [
        (tmp_path / "missing.json", "no such file"),
        (tmp_path / "missing" / "tree.yaml", "no such file"),
        (tmp_path, "is a folder"),
        (file, "line 3: the byte 0xe9 is not UTF-8"),
        (tmp_path / "tree.txt", "ends in '.txt'"),
        (tmp_path / "tree", "ends in ''"),
        (tmp_path / "nul\0.json", "cannot be read"),
    ]
    for path, part in cases:
        with pytest.raises(ProblemError) as caught:
            load_problem(path)
        assert part in str(caught.value) and str(path) in str(caught.value)


def test_utf_16_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tree.json"
    file.write_bytes(json.dumps(leaf()).encode("utf-16"))
    with pytest.raises(ProblemError, match="line 1: the byte 0xff is not UTF-8"):
        load_claim_tree(file)


def test_the_pure_python_yaml_parser_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML was built without libyaml there is no CSafeLoader."""
    fast = load_problem(EXAMPLES / "footbridge.yaml")
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    slow = load_problem(EXAMPLES / "footbridge.yaml")
    assert slow.text == fast.text and np.array_equal(slow.parent, fast.parent)
    assert "contains itself" in refused(tmp_path, MALFORMED_YAML[0][0], "tree.yaml")
    assert f"more than {MAX_DEPTH} levels" in refused(tmp_path, nested(10_000), "tree.yaml")


def test_the_errors_survive_pickling(tmp_path: Path) -> None:
    import pickle

    error = ProblemError("tree.json", "is a leaf", "root")
    assert str(pickle.loads(pickle.dumps(error))) == "tree.json, root: is a leaf"
