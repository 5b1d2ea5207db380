"""`eval.py run`, `match` and `audit` as a user calls them: results, JSON, and what they refuse."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import eval as program
import train
from agents import report, training
from agents.lock import hold
from agents.run_folder import RunFolder

ROOT = Path(__file__).resolve().parent.parent
TREE = {
    "claim": "root",
    "aggregator": "majority",
    "children": [
        {"claim": f"part {i}", "aggregator": "and", "children": [
            {"claim": f"leaf {i}{j}", "answer": int(i < 2)} for j in range(2)]}
        for i in range(3)
    ],
}  # fmt: skip
CROWD = "worker,task,label\n" + "".join(f"w{w},t{t},{int(t < 3)}\n" for t in range(4) for w in range(3))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on the default game, stopped far too early to be any good."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "can_picture", lambda game: False)
        arguments = ["--learner.iterations", "2", "--learner.batch", "64", "--learner.hidden", "8", "--threads", "1",
                     "--evaluations", "1", "--debates", "60", "--seed", "5", "--run_dir", str(folder)]  # fmt: skip
        assert train.main(arguments) == 0
    return folder


@pytest.fixture
def problems(tmp_path):
    (tmp_path / "tree.json").write_text(json.dumps(TREE))
    (tmp_path / "tree.yaml").write_text(json.dumps(TREE))  # JSON is YAML
    (tmp_path / "crowd.csv").write_text(CROWD)
    return tmp_path


def result(capsys, *arguments):
    """What `--json -` prints, which is all that is printed."""
    assert program.main([*map(str, arguments), "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def refusal(capsys, *arguments):
    """The one line that says what is wrong."""
    assert program.main([*map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("eval.py ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_worst_case_alice_against_lp_bob_meets_the_game_value(capsys):
    # V_2 = 1/9 (DESIGN section 2); 4 standard errors of a rate over the false half of 40,000 debates.
    found = result(capsys, "match", "--debates", 40_000)
    assert found["game_value"] == pytest.approx(1 / 9)
    assert found["bound"] == pytest.approx(1 / 9)
    assert abs(found["catch_rate"]["mean"] - 1 / 9) < 4 * math.sqrt(1 / 9 * 8 / 9 / 19_000)
    assert (found["alice"], found["bob"], found["debates"]) == ("worst_case", "lp", 40_000)
    assert set(found["alice_win_rate"]) == {"mean", "low", "high"}
    assert found["queries"]["per_debate"] == 1.0


@pytest.mark.parametrize("bob", ["lp", "game_optimal", "uniform", "informed", "random"])
def test_honest_alice_never_loses_on_the_defaults(capsys, bob):
    found = result(capsys, "match", "--alice", "honest", "--bob", bob, "--debates", 2000)
    assert found["alice_win_rate"]["mean"] == 1.0
    assert found["catch_rate"] is None


def test_match_repeats_by_seed_and_writes_a_file(capsys, tmp_path):
    arguments = ("match", "--debates", 500, "--bob", "uniform")
    one = result(capsys, *arguments, "--seed", 3)
    assert result(capsys, *arguments, "--seed", 3) == one
    assert result(capsys, *arguments, "--seed", 4) != one
    file = tmp_path / "new" / "match.json"
    assert program.main([*map(str, arguments), "--seed", "3", "--json", str(file)]) == 0
    assert json.loads(file.read_text()) == one
    assert "worst_case (Alice) against uniform (Bob)" in capsys.readouterr().out


def test_match_takes_a_configuration_and_flags_over_it(capsys):
    # rho 2: V_2 = 1/4 (DESIGN section 2); one level: 1/2.
    assert result(capsys, "match", "--config", ROOT / "configs/rho2.yaml", "--debates", 50)["game_value"] == 0.25
    found = result(capsys, "match", "--config", ROOT / "configs/rho2.yaml", "--env.depth", 1, "--debates", 50)
    assert found["game_value"] == 0.5


@pytest.mark.parametrize("name", ["tree.json", "tree.yaml", "crowd.csv"])
def test_match_and_audit_on_the_users_own_problem(capsys, problems, name):
    found = result(capsys, "match", "--problem.path", problems / name, "--bob", "tree_optimal", "--debates", 200)
    assert found["game_value"] is None
    found = result(capsys, "audit", problems / name, "--rho", 4)
    assert found["claims"][0]["path"] == ""
    assert set(found["claims"][0]) >= {"path", "aggregator", "claimed", "fbs", "stable"}
    assert found["total"] == len(found["claims"])
    needed = found["answers_needed"]
    # DESIGN section 8: debate = ceil(ln(1 - confidence) / ln(1 - 1/R_root)).
    assert needed["debate"] == math.ceil(math.log(0.05) / math.log(1 - 1 / found["tree_sensitivity"]))
    assert needed["every_leaf"] == {"crowd.csv": 12}.get(name, 6)


def test_audit_of_the_tree_by_hand(capsys, problems):
    # By fbs = m/a + (q-m)/b, a missing term being 0: the majority at 110 has 2/1 = 2, a conjunction at 11 has 2/1 = 2,
    # one at 00 has 2/2 = 1. Whole tree: flipping either true part flips the root, so t = (1, 1, 0), R = 2 + 2 = 4.
    found = result(capsys, "audit", problems / "tree.json", "--rho", 3)
    assert [claim["fbs"] for claim in found["claims"]] == pytest.approx([2, 2, 2, 1])
    assert found["tree_sensitivity"] == pytest.approx(4)
    assert found["stable"] == 4


def test_run_repeats_the_summary(trained, capsys):
    found = result(capsys, "run", trained)
    summary = RunFolder(trained).load_summary()
    assert found["seed"] == 5
    assert found["iteration"] == 2
    for key in ("game_value", "worst_case_catch", "catch_ratio", "optimal_face_tv", "challenge_errors",
                "exploitability", "honesty_rate", "last", "cross_play"):  # fmt: skip
        assert found[key] == summary[key], key
    assert found["seconds"] > 0


def test_a_run_in_progress_can_be_measured(trained, capsys):
    with hold(trained):
        assert result(capsys, "run", trained, "--debates", 20)["iteration"] == 2


def test_a_checkpoint_of_other_networks_is_named(trained, tmp_path, capsys):
    import torch

    folder = RunFolder(tmp_path / "run")
    shutil.copytree(trained, folder.path)
    checkpoint = torch.load(folder.last, weights_only=True)
    checkpoint["learner"]["bob_average"].popitem()
    torch.save(checkpoint, folder.last)
    for arguments in (["run", folder], ["match", "--bob", folder, "--debates", 10]):
        line = refusal(capsys, *arguments)
        assert str(folder.last) in line
        assert "learner.bob_average." in line


def test_run_shows_the_table_and_takes_the_best_checkpoint(trained, capsys):
    assert program.main(["run", str(trained), "--checkpoint", "best", "--debates", "20"]) == 0
    out = capsys.readouterr().out
    assert "worst-case catch" in out
    assert "game value" in out


def test_match_with_learned_players(trained, capsys):
    found = result(capsys, "match", "--bob", trained, "--alice", trained, "--debates", 100)
    assert found["bob"] == str(trained)
    assert found["game_value"] == pytest.approx(1 / 9)  # the run's own game, since nothing else was asked for
    worst = RunFolder(trained).load_summary()["worst_case_catch"]
    found = result(capsys, "match", "--bob", trained, "--alice", "best_response", "--debates", 20_000)
    assert abs(found["catch_rate"]["mean"] - worst) < 4 * math.sqrt(worst / 9_000)


def test_learned_players_play_games_they_did_not_learn(trained, capsys):
    found = result(capsys, "match", "--bob", trained, "--problem.aggregators", "[majority 7, or 3]", "--env.rho", 4,
                   "--debates", 100)  # fmt: skip
    assert found["debates"] == 100
    drawn = result(capsys, "match", "--alice", trained, "--bob", trained, "--env.oracle", "random", "--debates", 100)
    assert drawn["debates"] == 100
    many = "[table 0110, and 2, or 2, and 3, or 3, and 4, or 4, parity 3, parity 4]"  # too many to be known by name
    line = refusal(capsys, "match", "--bob", trained, "--problem.aggregators", many, "--env.rho", 4, "--debates", 10)
    assert "truth tables" in line


def test_runs_of_different_games_need_a_configuration(trained, tmp_path, capsys):
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.yaml").write_text((trained / "config.yaml").read_text().replace("depth: 2", "depth: 3"))
    line = refusal(capsys, "match", "--alice", trained, "--bob", other)
    assert "env.depth: 2, now 3" in line
    assert "--config" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nowhere"], ["nowhere", "no such folder"]),
        (["run", "."], ["no config.yaml", "train.py"]),
        (["run"], ["run"]),
        (["run", "x", "--checkpoint", "worst"], ["checkpoint", "last", "best", "worst"]),
        (["match", "--alice", "nobody"], ["nobody", "honest", "worst_case"]),
        (["match", "--bob", "nobody"], ["nobody", "lp"]),
        (["match", "--bob", "best_response"], ["best response", "eval.py run"]),
        (["match", "--bob", "runs/none"], ["runs/none"]),
        (["match", "--debates", "0"], ["debates", "0"]),
        (["match", "--debates", "1000000001"], ["debates", "1000000001", "1 to 1000000000"]),
        (["run", "{run}", "--debates", "1000001"], ["debates", "1000001", "1 to 1000000"]),
        (["match", "--seed", "-1"], ["seed", "-1"]),
        (["match", "--env.rhoo", "3"], ["env.rhoo", "env.rho"]),
        (["match", "--env.rho", "1"], ["env.rho", "no stable candidate"]),
        (["match", "--problem.aggregators", "[__import__('os')]"], ["problem.aggregators"]),
        (["match", "--problem.aggregators", "[majority 99999999999]"], ["problem.aggregators"]),
        (["match", "--problem.path", "none.json"], ["none.json"]),
        (["match", "--config", "none.yaml"], ["none.yaml"]),
        (["audit", "none.csv"], ["none.csv"]),
        (["audit", "problem.txt"], ["problem.txt", ".csv"]),
        (["audit", "none.csv", "--rho", "high"], ["rho", "float", "high"]),
        (["audit", "{tree}", "--rho", "0.5"], ["rho", "0.5"]),
        (["audit", "{tree}", "--confidence", "1"], ["confidence", "1"]),
        (["audit", "{tree}", "--json", "/dev/null/x.json"], ["--json", "/dev/null/x.json"]),
    ],
    ids=" ".join,
)
def test_mistakes_are_named(capsys, problems, trained, monkeypatch, arguments, words):
    monkeypatch.chdir(problems)
    line = refusal(capsys, *(argument.format(tree="tree.json", run=trained) for argument in arguments))
    assert [word for word in words if word not in line] == []


@pytest.mark.parametrize("command", ["run", "match", "audit", "theorems"])
@pytest.mark.parametrize(
    ("place", "reason"),
    [("/dev/null/x.json", "Not a directory"), ("{here}", "Is a directory"), ("", "Is a directory"),
     ("{here}/tree.json/x.json", "Not a directory"), ("{here}/" + 300 * "x", "File name too long")],
)  # fmt: skip
def test_json_to_where_nothing_can_be_written_is_noticed_before_the_work(
    trained, problems, capsys, monkeypatch, command, place, reason
):
    import agents.audit
    import agents.match
    import agents.theorems.report

    for module, name in ((training, "conclude"), (agents.match, "match"), (agents.audit, "audit"),
                         (agents.theorems.report, "report")):  # fmt: skip
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("the work was begun"))
    extra = {"run": [trained], "audit": [problems / "tree.json"]}.get(command, [])
    before = sorted(problems.iterdir())
    line = refusal(capsys, command, *extra, "--json", place.format(here=problems))
    assert line.startswith(f"eval.py {command}: error: --json: cannot write ")
    assert reason in line
    assert sorted(problems.iterdir()) == before


def test_json_over_the_file_that_is_read_is_refused(problems, capsys):
    file = problems / "tree.json"
    for arguments in (["audit", file], ["match", "--problem.path", file]):
        assert "is what is read" in refusal(capsys, *arguments, "--json", f"{problems}/./tree.json")
    assert json.loads(file.read_text()) == TREE


def test_a_read_only_file_is_not_replaced(problems, capsys, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # the superuser may do everything
    (problems / "old.json").write_text("{}")
    assert "Permission denied" in refusal(capsys, "audit", problems / "tree.json", "--json", problems / "old.json")


def test_the_result_is_printed_though_its_file_cannot_be_written(trained, problems, capsys):
    """A device that is always full: there is no way to tell beforehand."""
    full = problems / "full"
    full.symlink_to("/dev/full")
    for arguments, words in (
        (["run", trained, "--debates", 20], "worst-case catch"),
        (["match", "--debates", 20], "oracle queries"),
        (["audit", problems / "tree.json"], "Root claim"),
    ):
        assert program.main([*map(str, arguments), "--json", str(full)]) == 2
        captured = capsys.readouterr()
        assert words in captured.out
        assert captured.err.endswith(f"error: --json: cannot write {full}: No space left on device\n")


def test_control_characters_are_written_out_but_json_keeps_them(problems, capsys):
    file, text = problems / "tree.json", "red \x1b[31m\nand\ttab\N{RIGHT-TO-LEFT OVERRIDE}"
    file.write_text(json.dumps({**TREE, "claim": text}))
    assert program.main(["audit", str(file)]) == 0
    out = capsys.readouterr().out
    assert out.replace("\n", "").isprintable()
    assert r"Root claim: red \x1b[31m\nand\ttab\u202e" in out
    assert result(capsys, "audit", file)["claims"][0]["claim"] == text
    line = refusal(capsys, "audit", f"{problems}/\x1b[31m.json")
    assert r"\x1b[31m.json" in line


def test_text_that_the_terminal_cannot_show_is_escaped(problems):
    file = problems / "tree.json"
    file.write_text(json.dumps({**TREE, "claim": "Ça \N{SNOWMAN}"}))
    done = subprocess.run([sys.executable, "eval.py", "audit", str(file)], cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, "PYTHONIOENCODING": "ascii"})  # fmt: skip
    assert done.returncode == 0
    assert "Root claim: \\xc7a \\u2603" in done.stdout


def test_unknown_commands_and_none(capsys):
    assert program.main(["theorem"]) == 2
    assert "run, match, audit" in capsys.readouterr().err
    assert program.main([]) == 2
    assert program.main(["--help"]) == 0
    assert "python eval.py match" in capsys.readouterr().out


def test_help_of_each_command_loads_nothing_slow():
    watch = (
        "import contextlib, sys, eval\n"
        "for command in eval.COMMANDS:\n"
        "    with contextlib.suppress(SystemExit): eval.main([command, '--help'])\n"
        "print('LOADED', [m for m in ('torch', 'cvxpy', 'scipy.optimize', 'matplotlib') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", watch], cwd=ROOT, capture_output=True, text=True, timeout=60).stdout
    assert "LOADED []" in shown
    for words in ("--checkpoint", "--env.depth", "--alice", "--confidence", "--json"):
        assert words in shown


def keys_of(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("config", "cross_play"):  # keyed by what a configuration or a player is called
                yield key
                yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def test_documentation_lists_every_key_and_tag(trained, problems, capsys):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    written = (ROOT / "docs" / "output.md").read_text()
    outputs = [
        RunFolder(trained).load_summary(),
        result(capsys, "run", trained, "--debates", 20),
        result(capsys, "match", "--debates", 20),
        result(capsys, "match", "--problem.path", problems / "tree.json", "--debates", 20),
        result(capsys, "audit", problems / "crowd.csv"),
    ]
    assert {key for output in outputs for key in keys_of(output) if f"`{key}`" not in written} == set()
    tags = EventAccumulator(str(trained)).Reload().Tags()["scalars"]
    tags = [tag for tag in tags if not tag.startswith("eval/win_rate/")]
    assert {tag for tag in tags if f"`{tag}`" not in written} == set()
