"""A run that was killed and resumed ends with the weights of one that was not, to the last bit.

The expected weights are those of a run that nobody touched; nothing else could be the right answer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from states import assert_identical

import train
from agents import training
from agents.run_folder import RunError, RunFolder, load_checkpoint

ROOT = Path(__file__).resolve().parent.parent
ITERATIONS = 9
TINY = [
    "--problem.aggregators", "[majority 3]", "--env.depth", "1", "--env.rho", "2", "--learner.batch", "64",
    "--learner.hidden", "8", "--learner.iterations", str(ITERATIONS), "--threads", "1", "--evaluations", "2",
    "--checkpoint_every", "2", "--debates", "20", "--learner.epochs", "1",
]  # fmt: skip
# train.py, without the pictures: they cost more than all else here.
PROGRAM = (
    "import train; from agents import report; report.can_picture = lambda game: False; "
    'from fbs.command import run_program; run_program("train.py", train.main)'
)


def run(folder, *extra):
    return train.main([*TINY, "--run_dir", str(folder), *extra])


def final_state(folder):
    checkpoint = load_checkpoint(RunFolder(folder).last)
    assert checkpoint["iteration"] == ITERATIONS
    return checkpoint["learner"], checkpoint["best"]


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("untouched") / "run"
    assert run(folder) == 0
    return folder


@pytest.fixture(autouse=True)
def no_pictures(untouched, monkeypatch):
    """The untouched run alone has them, so they are seen to change nothing."""
    monkeypatch.setattr(training.report, "can_picture", lambda game: False)


@contextlib.contextmanager
def in_its_own_process(folder, *extra):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *TINY, "--run_dir", str(folder), *extra], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(process, words):
    said = []
    for line in process.stderr:
        said.append(line)
        if words in line:
            return
    pytest.fail(f"never said {words!r}, but: {''.join(said)}")


def test_killed_at_several_moments(untouched, tmp_path):
    folder = tmp_path / "run"
    # When the first evaluation is over and its checkpoint is about to be written, in the middle of the run, and after
    # the last step, while the end is being evaluated.
    for words in ("iteration 0 of 9", "iteration 5 of 9", "iteration 9 of 9"):
        with in_its_own_process(folder, "--resume", "auto") as process:
            wait_for(process, words)
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=30)
            assert process.returncode == -signal.SIGKILL
        assert not (folder / "summary.json").exists()
    assert run(folder, "--resume", "auto") == 0
    assert_identical(final_state(untouched), final_state(folder))


class Killed(BaseException):
    """The process ended here."""


def test_killed_at_every_write(untouched, tmp_path, monkeypatch):
    """Each session ends at its next write to disk, before or after the rename, until none of them is left."""
    folder, replace, sessions, left = tmp_path / "run", os.replace, 0, 0

    def ending_replace(source, target):
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1
        replace(source, target)

    monkeypatch.setattr(os, "replace", ending_replace)
    while sessions < 60:
        sessions += 1
        left = sessions % 3 + 1  # writes that this session completes before it ends
        try:
            assert run(folder, "--resume", "auto") == 0
            break
        except Killed:
            continue
    assert 5 < sessions < 60
    assert_identical(final_state(untouched), final_state(folder))


def test_sigint_saves_and_says_how_to_go_on(untouched, tmp_path, capfd):
    folder = tmp_path / "a run"
    with in_its_own_process(folder) as process:
        wait_for(process, "iteration 0 of 9")
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert f"python train.py --run_dir '{folder}' --resume auto" in said
    assert "Traceback" not in said
    stopped = load_checkpoint(RunFolder(folder).last)
    assert 1 <= stopped["iteration"] < ITERATIONS
    # The command it printed, word for word: no configuration is repeated in it.
    assert train.main(["--run_dir", str(folder), "--resume", "auto"]) == 0
    assert f"tensorboard --logdir '{folder}'" in capfd.readouterr().out
    assert_identical(final_state(untouched), final_state(folder))


def test_a_second_session_in_the_folder_is_refused_until_the_first_has_died(untouched, tmp_path, capsys):
    folder = tmp_path / "run"
    with in_its_own_process(folder, "--resume", "auto") as process:
        wait_for(process, "iteration 0 of 9")
        process.send_signal(signal.SIGSTOP)
        before = sorted(entry.name for entry in folder.iterdir())
        assert run(folder, "--resume", "auto") == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        assert f"another train.py (process {process.pid}) is at work in {folder}" in line
        assert sorted(entry.name for entry in folder.iterdir()) == before
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
    assert run(folder, "--resume", "auto") == 0
    assert_identical(final_state(untouched), final_state(folder))


def test_of_two_that_begin_at_once_one_is_refused(tmp_path):
    from agents.configuration import TrainConfig

    first, second = RunFolder(tmp_path / "run"), RunFolder(tmp_path / "run")
    config = TrainConfig()
    assert first.open(config) is None and second.open(config) is None
    first.begin(config)
    with pytest.raises(RunError, match="is at work"):
        second.begin(config)
    first.release()
    with pytest.raises(RunError, match="has begun a run"):
        second.begin(config)


def test_without_locks_nothing_is_locked(tmp_path, monkeypatch):
    """A network file system that knows none must not keep anybody from training."""
    import fcntl

    def refused(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    assert run(tmp_path / "run") == 0


def test_a_reader_of_the_log_who_leaves_ends_the_run_quietly_and_it_can_go_on(untouched, tmp_path):
    folder = tmp_path / "run"
    command = f"{sys.executable} -c '{PROGRAM}' {' '.join(map(shlex.quote, TINY))} --run_dir {folder} 2>&1 | head -1"
    program = f"set -o pipefail; {command}"
    done = subprocess.run(["bash", "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (141, "")
    assert done.stdout.startswith("iteration 0 of 9: ")
    assert run(folder, "--resume", "auto") == 0
    assert_identical(final_state(untouched), final_state(folder))


def test_how_often_is_evaluated_and_saved_changes_no_weight(untouched, tmp_path):
    folder = tmp_path / "run"
    assert run(folder, "--evaluations", "9", "--checkpoint_every", "5", "--debates", "7") == 0
    assert_identical(final_state(untouched)[0], final_state(folder)[0])


def test_the_seed_changes_the_weights(untouched, tmp_path):
    folder = tmp_path / "run"
    assert run(folder, "--seed", "1") == 0
    with pytest.raises(AssertionError):
        assert_identical(final_state(untouched)[0], final_state(folder)[0])


def test_events_past_the_checkpoint_are_purged(tmp_path, monkeypatch):
    """A session that got to iteration 3 past a checkpoint at 2 leaves no second point at 3."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder, step = tmp_path / "run", training.Run.step

    def ending_step(self):
        if self.learner.iteration == 3:
            raise Killed
        return step(self)

    with monkeypatch.context() as patch:
        patch.setattr(training.Run, "step", ending_step)
        with pytest.raises(Killed):
            run(folder)
    assert load_checkpoint(RunFolder(folder).last)["iteration"] == 2
    assert run(folder, "--resume") == 0
    events = EventAccumulator(str(folder)).Reload()
    for tag in ("losses/respond", "charts/iterations_per_second"):
        assert [event.step for event in events.Scalars(tag)] == list(range(1, ITERATIONS + 1)), tag
    assert [event.step for event in events.Scalars("eval/bob/worst_case_catch")] == [0, 5, 9]


def test_seconds_of_all_sessions_are_summed(tmp_path):
    folder = RunFolder(tmp_path / "run")
    assert run(folder) == 0
    checkpoint = load_checkpoint(folder.last)
    folder.summary.unlink()
    folder.save({**checkpoint, "seconds": checkpoint["seconds"] + 1000})
    assert run(folder, "--resume") == 0
    assert 1000 < folder.load_summary()["seconds"] < 1100


def test_repeats_on_several_threads_too():
    # The gradient of a gather adds up rows with the same index, on two threads and from 32,768 numbers on in an order
    # that changes from call to call, unless torch is told otherwise.
    from agents.configuration import TrainConfig

    config = TrainConfig(threads=2)
    training.new_learner(config, training.training_game(config))
    generator = torch.Generator().manual_seed(0)
    index, values = torch.randint(0, 50, (60_000,), generator=generator), torch.randn(60_000, 8, generator=generator)
    sums = [torch.zeros(50, 8).index_put_((index,), values, accumulate=True) for _ in range(20)]
    assert all(torch.equal(one, sums[0]) for one in sums)
    torch.set_num_threads(1)
