"""`train.py` from end to end on a tiny game: its files, what it prints, and what it refuses."""

from __future__ import annotations

import errno
import json
import math
import os
import random
import resource
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import eval
import train
from agents import report, training
from agents.configuration import load_train_config
from agents.run_folder import RunFolder, load_checkpoint

TINY = [
    "--problem.aggregators", "[majority 3]", "--env.depth", "1", "--env.rho", "2", "--learner.batch", "64",
    "--learner.hidden", "8", "--learner.iterations", "4", "--learner.epochs", "1", "--threads", "1",
    "--evaluations", "2", "--checkpoint_every", "1", "--debates", "50",
]  # fmt: skip


def run(folder, *extra):
    return train.main([*TINY, "--run_dir", str(folder), *extra])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    assert run(folder) == 0
    return folder


def refusal(capsys, status=2):
    """The one line that a refused call printed."""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("train.py: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


def test_summary_has_the_keys_that_scripts_rely_on(finished):
    # DESIGN section 8; the game value of majority 3 at depth 1, rho 2: each bit has stable assignments of sensitivity
    # 3/2 (unanimous) and 2 (one dissents), by fbs = m/a + (q-m)/b, so Bob catches with probability 1/2 at the worst.
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["game_value"] == pytest.approx(0.5)
    assert summary["bound"] == pytest.approx(0.5)
    assert summary["seed"] == 0
    assert summary["seconds"] > 0
    assert 0 <= summary["worst_case_catch"] <= 0.5 + 1e-9
    assert 0 <= summary["catch_ratio"]["min"] <= summary["catch_ratio"]["mean"] <= 1 + 1e-9
    assert 0 <= summary["optimal_face_tv"] <= 1
    assert set(summary["challenge_errors"]) == {"stable", "unstable"}
    assert summary["challenge_errors"]["unstable"] is None
    assert set(summary["exploitability"]) == {"alice", "bob"}
    assert summary["honesty_rate"] is None
    assert summary["cross_play"]["honest"]["learned"]["mean"] == 1.0
    assert summary["iterations"] == 4
    assert summary["last"]["game_value"] == summary["game_value"]


def test_exploitability_of_bob_is_twice_what_his_worst_case_lacks_on_false_claims(finished):
    # Rewards are +1 and -1, and half of the root claims are false: gain = 2 * 1/2 * (game value - worst-case catch).
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["exploitability"]["bob"] == pytest.approx(summary["game_value"] - summary["worst_case_catch"])


def test_run_folder_holds_what_it_should(finished):
    names = {entry.name.split(".")[0] for entry in finished.iterdir() if entry.name != ".lock"}
    assert names == {"config", "checkpoints", "events", "summary"}
    assert {entry.name for entry in (finished / "checkpoints").iterdir()} == {"last.pt", "best.pt"}
    config = yaml.safe_load((finished / "config.yaml").read_text())
    assert config["learner"]["iterations"] == 4
    assert "run_dir" not in config
    last = torch.load(finished / "checkpoints" / "last.pt", weights_only=True)
    best = torch.load(finished / "checkpoints" / "best.pt", weights_only=True)
    assert last["iteration"] == 4
    assert best["iteration"] == last["best"]["iteration"]


def test_best_is_the_evaluation_of_lowest_exploitability(finished):
    events = EventAccumulator(str(finished)).Reload()
    points = {event.step: event.value for event in events.Scalars("eval/exploitability")}
    best = load_checkpoint(RunFolder(finished).best)
    assert sorted(points) == [0, 2, 4]
    assert points[best["iteration"]] == min(points.values())
    assert best["best"]["score"] == pytest.approx(min(points.values()))


def test_curves_and_pictures(finished):
    events = EventAccumulator(str(finished), size_guidance={"images": 0}).Reload()
    tags = events.Tags()
    for tag in (
        "charts/seconds", "charts/iterations_per_second", "losses/respond", "eval/win_rate/learned_vs_learned",
        "eval/win_rate/worst_case_vs_learned", "eval/win_rate/learned_vs_lp", "eval/bob/worst_case_catch",
        "eval/bob/game_value", "eval/bob/bound", "eval/bob/catch_ratio_mean", "eval/bob/catch_ratio_min",
        "eval/bob/optimal_face_tv", "eval/exploitability/alice", "eval/exploitability/bob",
        "eval/exploitability",
    ):  # fmt: skip
        assert tag in tags["scalars"], tag
    assert tags["images"] == ["eval/bob/sampling_level_1"]
    assert {tag.split("/")[0] for tag in tags["scalars"]} <= {"charts", "losses", "eval", "debug"}
    picture = events.Images("eval/bob/sampling_level_1")[-1]
    assert picture.width > 800
    assert picture.height > 300
    chart = report.LAYOUT["Bob beside the linear program"]["worst-case catch"][1]
    assert [tag for tag in chart if tag not in tags["scalars"]] == []


def test_sampling_picture_shows_bob_beside_the_linear_program():
    # LP Bob's own bars are the maximum-entropy optimum, so both bars of each pair are equal.
    from agents import players
    from envs.config import EnvConfig, ProblemConfig
    from envs.game import Game

    game = Game(EnvConfig(tremble=0.0), ProblemConfig())
    figure = report.sampling_figure(game, players.bob("lp", game), level=2)
    shown = [panel for panel in figure.axes if panel.get_visible()]
    assert len(shown) == report.PANELS
    for panel in shown:
        learned, lp = ([bar.get_height() for bar in bars] for bars in panel.containers)
        assert learned == pytest.approx(lp, abs=1e-9)
        assert sum(lp) == pytest.approx(1)
        assert panel.get_title().startswith("threshold 3,2,2,1,1 >= 5 at ")


def test_last_lines_say_where_the_run_is_and_how_to_see_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(report, "can_picture", lambda game: False)
    folder = tmp_path / "run"
    assert run(folder) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-2:] == [f"run: {folder}", f"curves: tensorboard --logdir {folder}"]
    for words in ("worst-case catch", "catch ratio, mean", "exploitability", "game value", "honest", "best_response"):
        assert words in out


def test_json_to_standard_output_is_all_that_is_printed_there(finished, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(report, "can_picture", lambda game: False)
    assert run(tmp_path / "run", "--json", "-") == 0
    new = json.loads(capsys.readouterr().out)
    old = json.loads((finished / "summary.json").read_text())
    assert {key for key in old if old[key] != new[key]} <= {"seconds"}


def test_json_that_cannot_be_written_is_noticed_before_training(tmp_path, capsys):
    for place in ("/dev/null/x.json", str(tmp_path), ""):
        assert run(tmp_path / "run", "--json", place) == 2
        assert "--json: cannot write" in refusal(capsys)
        assert not (tmp_path / "run").exists()


def test_the_table_is_printed_though_json_cannot_be_written(tmp_path, capsys, monkeypatch):
    """A device that is always full: there is no way to tell beforehand."""
    monkeypatch.setattr(report, "can_picture", lambda game: False)
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    assert run(tmp_path / "run", "--json", str(full)) == 2
    captured = capsys.readouterr()
    assert "worst-case catch" in captured.out
    assert captured.err.endswith(f"train.py: error: --json: cannot write {full}: No space left on device\n")
    assert (tmp_path / "run" / "summary.json").is_file()


def test_a_finished_run_says_so(finished, capsys):
    for resume in (["--resume"], ["--resume", "auto"]):
        assert run(finished, *resume) == 0
        assert "is finished" in capsys.readouterr().out
    assert train.main(["--run_dir", str(finished), "--resume", "auto", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((finished / "summary.json").read_text())


def test_an_existing_run_is_refused_with_what_to_type(finished, capsys):
    assert run(finished) == 2
    line = refusal(capsys)
    assert f"python eval.py run {finished}" in line
    assert f"--run_dir {finished}-2" in line


def test_an_unfinished_run_is_refused_with_what_to_type(tmp_path, capsys):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_text("seed: 0\n")
    assert run(folder) == 2
    assert f"python train.py --run_dir {folder} --resume auto" in refusal(capsys)


def test_the_default_run_folder_is_named_after_the_configuration(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "default-seed3").mkdir(parents=True)
    (tmp_path / "runs" / "default-seed3" / "config.yaml").write_text("seed: 3\n")
    assert train.main(["--seed", "3"]) == 2
    assert "runs/default-seed3 " in refusal(capsys)


@pytest.mark.parametrize(("place", "words"), [("missing", "no run to resume"), ("", "not a run folder")])
def test_resuming_what_is_no_run(tmp_path, capsys, place, words):
    (tmp_path / "notes.txt").write_text("not a run")
    assert run(tmp_path / place, "--resume") == 2
    assert words in refusal(capsys)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["notes.txt"]


def test_resuming_under_another_configuration_names_the_keys(finished, capsys):
    assert run(finished, "--resume", "--env.rho", "3", "--learner.hidden", "16") == 2
    line = refusal(capsys)
    assert "env.rho: 2.0, now 3.0" in line
    assert "learner.hidden: 8, now 16" in line


def test_a_checkpoint_of_another_game_is_refused(finished, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(report, "can_picture", lambda game: False)
    other = RunFolder(tmp_path / "other")
    assert run(other.path, "--problem.aggregators", "[majority 5]", "--env.rho", "3") == 0
    capsys.readouterr()
    other.summary.unlink()
    other.last.write_bytes(RunFolder(finished).last.read_bytes())
    assert train.main(["--run_dir", str(other.path), "--resume"]) == 2
    line = refusal(capsys)
    assert "problem.aggregators: ['majority 3'], now ['majority 5']" in line


class Payload:
    """Runs something if a checkpoint is unpickled without care."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ([1, 2], "it holds a list"),
        ({"format": 2}, "format is 2; expected 1"),
        ({"format": None}, "format is missing"),
        ({"best": None}, "best is missing"),
        ({"config": "rho 3"}, "config is 'rho 3'"),
        ({"config": {"env": {3: 4}}}, "config is a dict; expected settings"),
        ({"config": {"env": torch.zeros(2)}}, "config is a dict; expected settings"),
        ({"config": {}}, "env: None, now"),
        ({"problem_digest": 3}, "problem_digest is 3"),
        ({"iteration": -1}, "iteration is -1"),
        ({"iteration": 2.0}, "iteration is 2.0"),
        ({"iteration": 3}, "learner.iteration is not 3"),
        ({"iteration": 5, "learner.iteration": 5}, "iteration is 5 of 4"),
        ({"seconds": "long"}, "seconds is 'long'"),
        ({"seconds": math.nan}, "seconds is nan"),
        ({"best": {"score": 0.5}}, "best is a dict"),
        ({"learner": torch.zeros(3)}, "learner is a tensor"),
        ({"learner": {"iteration": 4}}, "learner.alice is missing"),
        ({"learner.bob": None}, "learner.bob is missing"),
        ({"learner.critics": {}}, "learner.critics is unknown"),  # another learner's
        ({"learner.values": torch.zeros(7)}, "learner.values has the shape (7,) of float"),
        ({"learner.values": 3}, "learner.values is 3"),
        ({"learner.bob": {"network.each.weight": torch.full((1, 8), math.inf)}}, "not finite"),
        ({"learner.generator": torch.zeros(5056, dtype=torch.uint8)}, "mt19937"),  # torch's own words
        ({"learner.optimizer": {"state": {0: {}}, "param_groups": []}}, "learner.optimizer.param_groups are 0, not 1"),
    ],
    ids=str,
)
def test_a_checkpoint_made_by_hand_is_refused(finished, tmp_path, capsys, change, words):
    folder = RunFolder(tmp_path / "run")
    folder.last.parent.mkdir(parents=True)
    folder.config.write_bytes(RunFolder(finished).config.read_bytes())
    checkpoint = torch.load(RunFolder(finished).last, weights_only=True)
    if isinstance(change, dict):
        for name, value in change.items():
            *outer, key = name.split(".")
            inner = checkpoint[outer[0]] if outer else checkpoint
            inner.pop(key) if value is None else inner.update({key: value})
    torch.save(checkpoint if isinstance(change, dict) else change, folder.last)
    assert train.main(["--run_dir", str(folder), "--resume"]) == 2
    line = refusal(capsys)
    assert str(folder.last) in line
    assert "--run_dir" in line
    assert words in line


def places(state, outer=()):
    """Every place in nested dicts and lists, as the keys that lead there."""
    items = state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, list | tuple) else ()
    for key, value in items:
        yield (*outer, key)
        yield from places(value, (*outer, key))


def change(state, place, value):
    """A copy of the nested state with another value, or none, at that place."""
    if not place:
        return value
    key, *inner = place
    if isinstance(state, dict):
        left = {k: v for k, v in state.items() if k != key}
        return left if not inner and value is None else left | {key: change(state[key], inner, value)}
    items = list(state)
    items[key : key + 1] = [] if not inner and value is None else [change(state[key], inner, value)]
    return type(state)(items)


@pytest.mark.parametrize("name", ["mmd", "ppo"])
def test_whatever_is_changed_in_a_learners_state_is_refused_or_does_no_harm(name, tmp_path):
    """At every kind of place: nothing there, text, a number, a tensor of another size; then one more round."""
    from agents.checkpoint import CheckpointError, restore

    config = load_train_config([*TINY, "--learner.name", name])[0]
    game = training.training_game(config)
    learner = training.new_learner(config, game)
    learner.step()
    rest = {"format": 1, "config": {}, "problem_digest": None, "iteration": 1, "seconds": 1.0,
            "best": {"score": 0.0, "iteration": 0}}  # fmt: skip
    state, refused, file = learner.state_dict(), 0, tmp_path / "last.pt"
    sample = random.Random(0).sample(list(places(state)), 40)
    sample += [("optimizer", "param_groups", 0, key) for key in state["optimizer"]["param_groups"][0]]
    first = min(state["optimizer"]["state"])
    sample += [("generator",), ("iteration",), ("optimizer", "state", first, "step"), ("optimizer", "state", first)]
    for number, place in enumerate(sample):
        value = (None, "text", 10**6, torch.zeros(2, 3), math.nan)[number % 5]
        torch.save({**rest, "learner": change(state, place, value)}, file)
        learner = training.new_learner(config, game)
        try:
            restore(learner, load_checkpoint(file))
        except CheckpointError as error:
            refused += 1
            assert str(file) in str(error), place
            continue
        learner.step()
    assert refused > 35


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda text: text.replace("  rho: 2.0\n", ""), ["the key env.rho is missing"]),
        (lambda text: text.replace("  rho: 2.0\n", "  rho: 2.0\n  rhoo: 2\n"), ["unknown key env.rhoo", "env.rho?"]),
        (lambda text: text + "gpus: 2\n", ["unknown key gpus"]),
        (lambda text: text.replace("rho: 2.0", "rho: high"), ["env.rho", "high"]),
        (lambda text: text.replace("learning_rate: 0.006", "learning_rate: fast"), ["learner.learning_rate", "fast"]),
        (lambda text: text.replace("hidden: 8", "hidden: null"), ["learner.hidden", "None"]),
        (lambda text: "env: 3\n" + text[text.index("problem:") :], ["env is 3"]),
        (lambda text: "[1, 2]", ["[1, 2]"]),
        (lambda text: "", ["None"]),
        (lambda text: "env: {", ["cannot be read", "line 1"]),
        (lambda text: text.replace("seed: 0", "seed: " + 5000 * "9"), ["cannot be read", "digits"]),
        (lambda text: "[" * 1000, ["cannot be read"]),
        (lambda text: "\x00", ["cannot be read"]),
    ],
)
def test_a_run_folders_broken_or_foreign_configuration_is_named(finished, tmp_path, capsys, edit, words):
    import eval as evaluation

    folder = RunFolder(tmp_path / "run")
    shutil.copytree(finished, folder.path)
    folder.summary.unlink()
    folder.config.write_text(edit(folder.config.read_text()))
    for call in (
        lambda: train.main(["--run_dir", str(folder), "--resume", "auto"]),
        lambda: evaluation.main(["run", str(folder)]),
        lambda: evaluation.main(["match", "--bob", str(folder)]),
    ):
        assert call() == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert str(folder.config) in captured.err
        assert [word for word in words if word not in captured.err] == []


def test_a_checkpoint_that_may_not_be_read_is_not_called_damaged(finished, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(ValueError, match=r"last\.pt cannot be read: Permission denied$"):
        load_checkpoint(RunFolder(finished).last)


def test_a_configuration_without_what_changes_no_weight_is_taken(finished, tmp_path):
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(finished, folder.path)
    folder.config.write_text(folder.config.read_text().replace("debates: 50\n", ""))
    assert folder.load_config().debates == 4000


@pytest.mark.parametrize("damage", ["torn", "empty", "text", "pickle", "foreign"])
def test_a_damaged_checkpoint_is_refused_with_what_remains(finished, tmp_path, capsys, damage):
    folder = RunFolder(tmp_path / "run")
    folder.last.parent.mkdir(parents=True)
    folder.config.write_bytes(RunFolder(finished).config.read_bytes())
    whole = RunFolder(finished).last.read_bytes()
    folder.best.write_bytes(whole)
    if damage == "pickle":
        torch.save({"format": 1, "config": Payload(tmp_path / "executed")}, folder.last)
    elif damage == "foreign":
        torch.save({"weights": torch.zeros(2)}, folder.last)
    else:
        folder.last.write_bytes({"torn": whole[: len(whole) // 2], "empty": b"", "text": b"hello"}[damage])
    assert train.main(["--run_dir", str(folder), "--resume"]) == 2
    line = refusal(capsys)
    assert str(folder.last) in line
    assert "damaged" in line
    assert not (tmp_path / "executed").exists()
    assert f"cp {folder.best} {folder.last}" in line
    folder.best.unlink()
    assert train.main(["--run_dir", str(folder), "--resume"]) == 2
    assert "another --run_dir" in refusal(capsys)


def full_disk(*arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fill_checkpoints(folder, monkeypatch):
    """No file may grow to a checkpoint's size; the interpreter turns the signal about it into an error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (RunFolder(folder).last.stat().st_size - 1, before[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fill_curves(folder, monkeypatch):
    from tensorboard.compat.tensorflow_stub.io import gfile

    monkeypatch.setattr(gfile.LocalFileSystem, "append", full_disk)
    return monkeypatch.undo


def fill_summary(folder, monkeypatch):
    replace = os.replace
    monkeypatch.setattr(
        os, "replace", lambda old, new: full_disk() if Path(new).name == "summary.json" else replace(old, new)
    )
    return monkeypatch.undo


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    ("fill", "file", "reached"),
    [
        (fill_checkpoints, "checkpoints/", {2}),
        (fill_curves, "events.*", {2, 3}),  # a thread writes them, and is asked how it went a little later
        (fill_summary, "summary.json", {4}),
    ],
)
def test_a_full_disk_stops_the_run_in_one_line_and_the_run_can_go_on(tmp_path, capsys, fill, file, reached):
    folder, step = RunFolder(tmp_path / "run"), training.Run.step
    with pytest.MonkeyPatch.context() as patch, pytest.MonkeyPatch.context() as disk:
        patch.setattr(report, "can_picture", lambda game: False)
        empty_again = []

        def filling_step(self):
            if self.learner.iteration == 2:
                empty_again.append(fill(folder.path, disk))
            return step(self)

        patch.setattr(training.Run, "step", filling_step)
        try:
            assert run(folder.path) == 2
        finally:
            empty_again[0]()
        line = capsys.readouterr().err.splitlines()[-1]
        assert line.startswith(f"train.py: error: cannot write {folder}/{file}")
        assert os.strerror(errno.EFBIG if fill is fill_checkpoints else errno.ENOSPC) in line
        assert f"{folder.last} is whole" in line
        assert folder.resume_command in line
        assert list(folder.path.rglob("*.tmp")) == []
        assert load_checkpoint(folder.last)["iteration"] in reached
        patch.setattr(training.Run, "step", step)
        assert run(folder.path, "--resume", "auto") == 0
    assert folder.finished


def test_a_disk_full_from_the_start(tmp_path, capsys):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size, words in ((100, "cannot write to the run folder"), (8000, "no checkpoint is saved yet")):
        folder = tmp_path / str(size)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            assert run(folder) == 2
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        assert words in captured.err.splitlines()[-1]
        assert list(folder.rglob("*.tmp")) == []


def test_what_a_killed_session_left_half_written_is_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "can_picture", lambda game: False)
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    remains = folder.path / "config.yaml.123.tmp"
    remains.write_text("half")
    assert run(folder.path) == 0
    assert not remains.exists()
    folder.summary.unlink()
    remains, own = folder.last.with_name("last.pt.4.tmp"), folder.path / "mine.tmp"
    for file in (remains, own):
        file.write_text("half")
    assert run(folder.path, "--resume", "auto") == 0
    assert [file.exists() for file in (remains, own)] == [False, True]


def test_a_mistake_found_late_leaves_no_run_folder(tmp_path, capsys):
    folder = tmp_path / "run"
    missing = str(tmp_path / "none.json")
    for extra in (["--env.rho", "1"], ["--problem.path", missing], ["--problem.aggregators", "[and]"]):
        assert run(folder, *extra) == 2
        refusal(capsys)
        assert not folder.exists()


class Broken:
    """A learner whose loss, or weight, stops being a number at iteration 3."""

    def __init__(self, game, config, seed):
        self.iteration, self.weight = 0, torch.zeros(3)

    def step(self):
        self.iteration += 1
        if self.iteration == 3:
            self.weight[1] = math.nan
        return {"losses/respond": math.nan if self.loss_too and self.iteration == 3 else 0.5}

    def state_dict(self):
        return {"bob": {"layer.weight": self.weight}, "iteration": self.iteration}

    def load_state_dict(self, state):
        self.weight, self.iteration = state["bob"]["layer.weight"].clone(), state["iteration"]

    def players(self):
        from agents.players import alice, bob
        from envs.config import EnvConfig, ProblemConfig
        from envs.game import Game

        game = Game(EnvConfig(), ProblemConfig())
        one, other = alice("random", game), bob("uniform", game)
        return {"alice": one, "bob": other, "alice_last": one, "bob_last": other}


@pytest.mark.parametrize(("loss_too", "names"), [(True, "losses/respond"), (False, "learner.bob.layer.weight")])
def test_a_number_that_is_none_stops_the_run(tmp_path, capsys, monkeypatch, loss_too, names):
    monkeypatch.setattr(Broken, "loss_too", loss_too, raising=False)
    monkeypatch.setitem(training.LEARNERS, "mmd", Broken)
    monkeypatch.setattr(report, "can_picture", lambda game: False)
    folder = RunFolder(tmp_path / "run")
    assert run(folder.path) == 1
    captured = capsys.readouterr()
    line = captured.err.splitlines()[-1]
    assert "iteration 3" in line
    assert names in line
    assert "--learner.learning_rate" in line
    assert str(folder.last) in line
    assert "Traceback" not in captured.err
    assert load_checkpoint(folder.last)["iteration"] == 2
    assert not folder.summary.exists()


def test_trains_on_a_claim_tree_and_notices_when_it_changes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "can_picture", lambda game: False)
    leaves = [{"claim": f"leaf {i}", "answer": int(i < 2)} for i in range(3)]
    tree = {"claim": "root", "aggregator": "majority", "children": leaves}
    (tmp_path / "tree.json").write_text(json.dumps(tree))
    folder = tmp_path / "run"
    arguments = ["--problem.path", "tree.json", *TINY[2:], "--run_dir", str(folder)]
    assert train.main(arguments) == 0
    assert json.loads((folder / "summary.json").read_text())["game_value"] is None
    capsys.readouterr()
    leaves[0]["answer"] = 0
    (tmp_path / "tree.json").write_text(json.dumps(tree))
    assert train.main([*arguments, "--resume"]) == 2
    assert "problem.path: the contents of" in refusal(capsys)
    (tmp_path / "tree.json").unlink()
    assert train.main([*arguments, "--resume"]) == 2
    assert "problem.path: cannot read" in refusal(capsys)


def test_score_prefers_nash_conv_then_worst_case_then_ratio():
    full = {"nash_conv": 0.3, "worst_case_catch": 0.1, "catch_ratio": {"mean": 0.9}}
    assert report.score(full) == 0.3
    assert report.score({**full, "nash_conv": None}) == -0.1
    assert report.score({"nash_conv": None, "worst_case_catch": None, "catch_ratio": {"mean": 0.9}}) == -0.9
    assert report.score({"nash_conv": None, "worst_case_catch": None, "catch_ratio": None}) == 0.0


def test_progress_line():
    measured = {"worst_case_catch": 0.1012, "game_value": 1 / 9, "catch_ratio": {"mean": 0.934}}
    assert report.progress_line(measured) == "worst-case catch 0.101 of 0.111 | ratio 0.93"
    assert report.progress_line({"worst_case_catch": 0.25, "game_value": None}) == "worst-case catch 0.250"
    assert report.progress_line({"catch_ratio": None}) == "evaluated"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_named(tmp_path, capsys):
    assert train.main(["--device", "cuda", "--run_dir", str(tmp_path / "run")]) == 2
    assert "device is 'cuda'" in capsys.readouterr().err


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_training_on_a_gpu_ends_with_a_pair_that_plays_on_the_cpu(tmp_path):
    flags = [
        "--device",
        "cuda",
        "--learner.iterations",
        "2",
        "--learner.batch",
        "64",
        "--run_dir",
        str(tmp_path / "run"),
    ]
    try:
        assert train.main(flags) == 0
    finally:
        torch.set_default_device(None)
    assert eval.main(["run", str(tmp_path / "run")]) == 0
