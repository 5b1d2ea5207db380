"""`eval.py theorems` as a user calls it: the page, the JSON, the exit status, and what it refuses."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

import eval as program
from agents.theorems import completeness, learned, report
from agents.theorems.lab import Topic
from agents.theorems.rows import exact

TOPICS = [
    "Completeness", "Soundness", "Amplification", "Honesty", "Lower bound", "Composition", "Cost", "Beyond the paper",
    "On real judgements",
]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The whole report once, quick, with a pair that has hardly learned and fewer random Bobs."""
    out = tmp_path_factory.mktemp("reports") / "paper"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learned, "QUICK", 2)
        patch.setattr(completeness, "RANDOM_BOBS", 50)
        status = program.main(["theorems", "--quick", "--out", str(out), "--json", str(out / "copy.json")])
    return out, status


def test_all_rows_hold_and_the_files_are_there(made):
    out, status = made
    found = json.loads((out / "report.json").read_text())
    assert [claim for claim in found["claims"] if not claim["holds"]] == []
    assert status == 0
    assert {path.name for path in out.iterdir()} == {"report.html", "report.json", "copy.json"}  # nothing half-written
    assert json.loads((out / "copy.json").read_text()) == found


def test_rows_of_every_topic(made):
    found = json.loads((made[0] / "report.json").read_text())
    claims = found["claims"]
    assert list(dict.fromkeys(claim["topic"] for claim in claims)) == TOPICS
    assert len(claims) == found["total"] >= 20
    for claim in claims:
        assert {"claim", "setting", "value", "low", "high", "bound", "holds"} <= claim.keys()
        assert claim["low"] <= claim["value"] <= claim["high"], claim
        assert (claim["p_value"] is None) == claim["exact"]
        if claim["exact"]:
            assert claim["low"] == claim["value"] == claim["high"]
    sampled = [claim for claim in claims if not claim["exact"]]
    assert found["sampled"] == len(sampled) > 20
    assert found["level"] == pytest.approx(0.01 / len(sampled))
    assert sum(claim["fails_as_the_paper_says"] for claim in claims) >= 5


def test_the_page_loads_nothing_and_shows_everything(made):
    page = (made[0] / "report.html").read_text()
    assert re.findall(r"<(?:script|link|iframe|object|img|image|base)\b|@import|url\(\s*['\"]?(?!#)|\bsrc=", page) == []
    assert [link for link in re.findall(r'href="([^"]*)"', page) if not link.startswith("#")] == []
    figures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(figures) == len(TOPICS)
    for figure in figures:
        ElementTree.fromstring(figure)
    ids = [set(re.findall(r'\bid="(m\w{10}|p\w{10}|h\w{10})"', figure)) for figure in figures]
    assert all(not a & b for i, a in enumerate(ids) for b in ids[:i])  # drawn shapes of one figure are not another's
    found = json.loads((made[0] / "report.json").read_text())
    assert page.count('class="verdict"') + page.count('class="verdict fails"') == found["total"]
    assert 'class="verdict no"' not in page
    assert "ρ<sup>-d</sup>" in page and "^" not in re.sub(r"<(style|svg).*?</\1>", "", page, flags=re.DOTALL)


def topic(*rows):
    from agents.theorems.figures import canvas

    return Topic("One <topic>", "nowhere", ("A & B.",), rows, ("Found.",), canvas(1)[0], "Seen.")


class Fake:
    __name__ = "agents.theorems.fake"

    def __init__(self, *rows):
        self.rows = rows

    def study(self, lab):
        return topic(*self.rows)


@pytest.fixture
def fake(monkeypatch):
    """Reports of a single topic with the rows given."""
    monkeypatch.setattr(learned, "QUICK", 1)
    return lambda *rows: monkeypatch.setattr(report, "TOPICS", (Fake(*rows),))


def test_a_row_that_does_not_hold_is_the_exit_status(fake, tmp_path, capsys):
    fake(exact("One is two", "counting", 1, "=", 2), exact("One is one", "counting", 1, "=", 1))
    assert program.main(["theorems", "--quick", "--out", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "DOES NOT HOLD (One <topic>): One is two" in out and "1 of 2 rows hold" in out
    page = (tmp_path / "report.html").read_text()
    assert page.count('class="verdict no"') == 1 and "One &lt;topic&gt;" in page and "A &amp; B." in page
    assert "<b>1 of them do not hold</b>" in page


def test_json_to_standard_output_and_the_same_again(fake, tmp_path, capsys):
    fake(exact("One is one", "counting", 1, "=", 1))
    found = []
    for name in ("a", "b"):
        arguments = ["theorems", "--quick", "--out", str(tmp_path / name), "--seed", "3", "--json", "-"]
        assert program.main(arguments) == 0
        found.append(json.loads(capsys.readouterr().out))
    same = [{key: value for key, value in one.items() if key not in ("seconds", "report")} for one in found]
    assert same[0] == same[1] and same[0]["seed"] == 3


def test_the_rows_are_printed_though_the_report_cannot_be_written(fake, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    fake(exact("One is one", "counting", 1, "=", 1))
    monkeypatch.setattr(report, "render", lambda *_: out.write_text("a file stands where the folder was to be") and "")
    assert program.main(["theorems", "--quick", "--out", str(out)]) == 2
    captured = capsys.readouterr()
    assert "1 of 1 rows hold" in captured.out
    assert f"--out: cannot write {out}/report.json: Not a directory" in captured.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "/dev/null/x"], ["--out", "/dev/null/x"]),
        (["--learned", "nowhere"], ["nowhere", "no such folder"]),
        (["--crowd", "none.csv"], ["none.csv"]),
        (["--crowd_truth", "none.csv"], ["--crowd_truth", "--crowd"]),
        (["--seed", "-1"], ["seed", "-1"]),
        (["--quickly"], ["quickly"]),
    ],
    ids=" ".join,
)
def test_mistakes_are_named(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert program.main(["theorems", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("eval.py theorems: error:")
    assert [word for word in words if word not in captured.err] == []


def test_the_pair_of_a_run(fake, tmp_path, capsys):
    import train

    run = tmp_path / "run"
    small = ["--learner.iterations", "1", "--learner.batch", "32", "--learner.hidden", "8", "--evaluations", "1",
             "--debates", "20", "--run_dir", str(run)]  # fmt: skip
    assert train.main(small) == 0
    fake(exact("One is one", "counting", 1, "=", 1))
    assert program.main(["theorems", "--learned", str(run), "--out", str(tmp_path / "out")]) == 0
    found = json.loads((tmp_path / "out" / "report.json").read_text())
    assert found["learned"] == f"taken from {run}" and 0 <= found["learned_guarantee"] <= 1 / 9 + 1e-9
