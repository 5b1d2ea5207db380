"""python -m fbs: the documented keys, the readable answer, and how mistakes are answered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import aggregators, assignments, quick

from fbs.__main__ import as_json, main, report
from fbs.aggregator import Aggregator
from fbs.notation import assignment, parse
from fbs.sensitivity import sensitivity

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "fbs", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


def test_json_alone_on_standard_output() -> None:
    done = run("threshold 3,2,2,1,1 >= 5", "11111", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    # DESIGN 3: 9/5. By symmetry of the program the cover is (3, 2, 2, 1, 1)/5, the only optimum.
    assert answer["value"] == {"exact": "9/5", "float": 1.8}
    assert answer["cover"] == pytest.approx([0.6, 0.4, 0.4, 0.2, 0.2])
    assert answer["sampling"] == pytest.approx([3 / 9, 2 / 9, 2 / 9, 1 / 9, 1 / 9])
    assert (answer["aggregator"], answer["assignment"]) == ("threshold 3,2,2,1,1 >= 5", "11111")
    assert (answer["output"], answer["verified"]) == (1, True)
    assert sum(item["weight"] for item in answer["packing"]) == pytest.approx(1.8)


@pytest.mark.parametrize(
    ("f", "z", "exact"),
    [
        # The table of DESIGN 3.
        ("majority", "1" * 66 + "0" * 33, "66/17"),
        ("majority", "1" * 50 + "0" * 49, "50"),
        ("and", "1111", "4"),
        ("and", "1001", "1"),
        ("parity", "10110", "5"),
        ("threshold 3,2,2,1,1 >= 5", "11100", "2"),
        ("threshold 3,2,2,1,1 >= 5", "10001", "3"),
        ("majority(majority 3, majority 3, majority 3)", "111 110 000", "7/2"),
        ("or(and 3, and 3)", "000000", "2"),
        # A function that is constant has no sensitive block.
        ("at_least 0", "101", "0"),
        ("threshold 1,-1 >= 2", "10", "0"),
    ],
)
def test_values(f: str, z: str, exact: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f, z, "--json", "-"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["value"] == {"exact": exact, "float": pytest.approx(float(Fraction(exact)))}
    assert (answer["sampling"] is None) == (exact == "0")


@quick
@given(aggregators(), st.data())
def test_json_proves_its_value(f: Aggregator, data: st.DataObject) -> None:
    z = data.draw(assignments(f.width))
    certificate = sensitivity(f, z)
    answer = json.loads(json.dumps(as_json(certificate)))
    g = parse(answer["aggregator"])
    bits = assignment(answer["assignment"])
    assert (g, tuple(bits), answer["output"]) == (f, z, int(f(z)))
    loads = [0.0] * f.width
    for item in answer["packing"]:
        flipped = bits.copy()
        flipped[item["block"]] ^= 1
        assert g(flipped) != g(bits)
        for i in item["block"]:
            loads[i] += item["weight"]
    assert max(loads) <= 1 + 1e-9
    value = answer["value"]["float"]
    assert sum(item["weight"] for item in answer["packing"]) == pytest.approx(value)
    assert sum(answer["cover"]) == pytest.approx(value)
    assert f.lightest_block(z, answer["cover"]) is None or f.lightest_block(z, answer["cover"])[0] >= 1 - 1e-9


def test_report_for_a_reader(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["majority", "110"]) == 0
    # Blocks {0} and {1} flip it; so does every block that contains one of them alone.
    assert capsys.readouterr().out.splitlines() == [
        "f     majority 3",
        "z     110",
        "f(z)  1",
        "fbs   2",
        "",
        "sub-claim (from 0)  z  cover  sampled with",
        "0                   1  1      0.5",
        "1                   1  1      0.5",
        "2                   0  0      0",
        "",
        "packing weight  block",
        "1               0",
        "1               1",
        "",
        "verified: the packing and the cover are feasible and weigh the same, so both are optimal",
    ]


def test_report_of_a_constant_function() -> None:
    text = report(sensitivity(parse("at_least 0 2"), (1, 0)))
    assert "fbs   0\n" in text
    assert "constant" in text


@pytest.mark.parametrize(
    ("f", "z"),
    [
        ("majority", "1" * 700 + "0" * 299),
        ("threshold " + ",".join(str(17 * i % 50 + 1) for i in range(99)) + " >= 1000", "1" * 60 + "0" * 39),
        ("or(" + ", ".join(["and 10"] * 10) + ")", "1" * 95 + "0" * 5),
    ],
)
def test_report_of_a_wide_assignment_is_short(f: str, z: str) -> None:
    lines = report(sensitivity(parse(f, len(z)), assignment(z))).splitlines()
    assert len(lines) < 45
    assert max(map(len, lines)) < 120
    if f == "majority":  # equal sub-claims in one line; by the closed form, blocks of 201 of the 700 ones
        assert "0-699               1  1/201  0.00142857 each" in lines
        assert any("201 sub-claims" in line for line in lines)


def test_json_file_beside_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, new = tmp_path / "answer.json", tmp_path / "new" / "folder" / "answer.json"
    path.write_text("old")
    for file in (path, new):
        assert main(["majority", "111", "--json", str(file)]) == 0
        assert "verified" in capsys.readouterr().out
        assert json.loads(file.read_text())["value"]["exact"] == "3/2"
        assert list(file.parent.iterdir()) == [file]  # the temporary file has been renamed
        file.unlink()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: AGGREGATOR, ASSIGNMENT"),
        (["majority"], "required: ASSIGNMENT"),
        (["maj\x1b[31mority", "110"], r"\x1b[31m"),
        (["majority", "1102"], "one 0 or 1 for each sub-claim"),
        (["majority", ""], "1 to 100000 bits"),
        (["majorty", "110"], "expected majority"),
        (["and 4", "110"], "has 4 sub-claims, where 3 are given"),
        (["at_least", "3", "110"], "put what contains spaces in quotes"),
        (["majority", "110", "--jsn", "-"], "unrecognized arguments"),
        (["majority", "110", "--json", "/dev/null/x.json"], "--json: cannot write /dev/null/x.json: Not a directory"),
        (["majority", "110", "--json", "."], "--json: cannot write .: Is a directory"),
        (["majority", "110", "--json", ""], "--json: cannot write '': Is a directory"),
        (["majority", "110", "--json", "/dev/fd/777"], "--json: cannot write /dev/fd/777: No such file"),
        (
            ["threshold " + ",".join(str(10**9 + i) for i in range(20)) + f" >= {10**10}", "1" * 20],
            "divide the weights",
        ),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    output = capsys.readouterr()
    assert stopped.value.code == 2
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert message in output.err


def test_a_mistake_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["majorty", "111", "--json", str(tmp_path / "new" / "answer.json")])
    assert list(tmp_path.iterdir()) == []


def test_the_answer_is_printed_though_the_file_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A device that is always full: there is no way to tell beforehand."""
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with pytest.raises(SystemExit) as stopped:
        main(["majority", "111", "--json", str(full)])
    output = capsys.readouterr()
    assert stopped.value.code == 2
    assert "verified" in output.out
    assert f"--json: cannot write {full}: No space left on device" in output.err
    assert full.is_char_device()


def test_json_to_a_pipe_or_through_a_link_leaves_these_in_place(tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.json", tmp_path / "target.json"
    os.mkfifo(pipe)
    target.write_text("old")
    link.symlink_to(target)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    assert main(["majority", "111", "--json", str(pipe)]) == 0
    assert json.loads(reader.communicate(timeout=30)[0])["value"]["exact"] == "3/2"
    shown = subprocess.run(["sh", "-c", f"{sys.executable} -m fbs and 11 --json /dev/stdout | cat"], cwd=ROOT,
                           capture_output=True, text=True)  # fmt: skip
    assert json.loads(shown.stdout.splitlines()[0])["value"]["exact"] == "2"
    assert main(["majority", "111", "--json", str(link)]) == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["value"]["exact"] == "3/2"


def test_json_to_an_open_file_is_added_to_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"echo before >&2; {sys.executable} -m fbs majority 110 --json /dev/stderr | cat; echo after >&2"
    with log.open("w") as file:
        done = subprocess.run(["sh", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=file, text=True)
    lines = log.read_text().splitlines()
    assert (lines[0], lines[2]) == ("before", "after")
    assert json.loads(lines[1])["value"]["exact"] == "2"
    assert "verified" in done.stdout


def test_a_packing_that_would_fill_the_memory_is_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A majority of 100,000 has a packing of some 10^9 entries."""
    with pytest.raises(SystemExit) as stop:
        main(["majority", "1" * 100_000])
    assert stop.value.code == 2
    assert "up to width 2000" in capsys.readouterr().err


def test_a_mistake_from_the_shell_shows_no_traceback() -> None:
    done = run("majority(and 2", "110")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "python -m fbs: error: expected , or ), at character 15: majority(and 2^; see --help\n"


def test_help_explains_the_grammar(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for word in ("majority", "at_least", "symmetric", "threshold", "table", "examples:", "--json"):
        assert word in text


def interrupting(folder: Path, module: str, *, then: str) -> dict[str, str]:
    """An environment in which the import of `module` is interrupted, and what comes of it."""
    interrupted = f"try:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt:\n    {then}"
    (folder / f"{module}.py").write_text(f"import os, signal\n{interrupted}\nraise ImportError('went on')\n")
    return os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}


def heeds_interrupts() -> None:
    """In the new process: as one started from a terminal, also where these tests run in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


COMMANDS = {
    "fbs": ["-m", "fbs", "majority", "110"],
    "eval": ["eval.py", "match", "--debates", "10"],
    "train": ["train.py"],
}


@pytest.mark.parametrize("module", ["argparse", "numpy"])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupt_while_a_command_imports_is_silent(command: str, module: str, tmp_path: Path) -> None:
    environment = interrupting(tmp_path, module, then="raise")
    done = subprocess.run(
        [sys.executable, *COMMANDS[command]],
        cwd=ROOT,
        capture_output=True,
        env=environment,
        preexec_fn=heeds_interrupts,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize("then", ["raise", "raise ImportError('initialization failed')"])
def test_an_interrupt_inside_a_late_import_is_one_line(then: str, tmp_path: Path) -> None:
    """The second is what an extension module makes of it."""
    environment = interrupting(tmp_path, "torch", then=then)
    command = [sys.executable, ROOT / "train.py", "--config", ROOT / "configs" / "smoke.yaml"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=60, preexec_fn=heeds_interrupts
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.startswith("train.py: interrupted")
    assert done.stderr.count("\n") == 1


def test_who_ignores_interrupts_goes_on_ignoring_them(tmp_path: Path) -> None:
    environment = interrupting(tmp_path, "yaml", then="raise")
    command = ["sh", "-c", f"trap '' INT; exec {sys.executable} train.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=30)
    assert "went on" in done.stderr


@pytest.mark.parametrize("arguments", [COMMANDS["fbs"], COMMANDS["eval"], ["eval.py", "--help"]], ids=" ".join)
def test_a_reader_who_leaves_is_answered_by_silence(arguments: list[str]) -> None:
    gone, output = os.pipe()
    os.close(gone)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.PIPE, env=environment, timeout=60)
    os.close(output)
    assert (done.returncode, done.stderr) == (141, b"")


def test_full_and_closed_standard_output() -> None:
    command = f'{sys.executable} -m fbs majority 110 "$@"'
    for redirected, status, words in (
        (">/dev/full", 2, "python -m fbs: error: standard output: No space left on device\n"),
        (">&-", 0, ""),
    ):
        done = subprocess.run(["sh", "-c", f"{command} {redirected}"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (status, words)
