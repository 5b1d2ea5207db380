"""What the command line and configuration files accept, and what they refuse: by name, on one line."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import yaml

from agents.configuration import CONFIGS, TrainConfig, differing, from_dict, load_file, load_train_config
from agents.learner_config import LearnerConfig
from envs.config import ConfigError, EnvConfig, ProblemConfig

ROOT = Path(__file__).resolve().parent.parent


def test_without_arguments_the_default_file_is_taken_from_beside_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config, name = load_train_config([])
    assert name == "default"
    assert config == TrainConfig()


def test_default_file_is_the_designs_default():
    # DESIGN section 2: threshold 3,2,2,1,1 >= 5, depth 2, rho 3, K 1, adversarial oracle, p_false 1/2, tremble 0.2.
    config = load_file(CONFIGS / "default.yaml")
    assert config.env == EnvConfig(2, 3.0, "adversarial", "assigned", 0.5, "claims", 0.0, 0.0, 0.2)
    assert config.problem.aggregators == ["threshold 3,2,2,1,1 >= 5"]
    assert config.problem.menu == 1


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_experiment_loads_and_says_what_it_asks(path):
    text = path.read_text()
    assert text.startswith("# ")
    assert "?" in text.split("\n\n")[0] or path.stem == "smoke"
    assert isinstance(load_file(path), TrainConfig)


def test_experiments_change_what_they_are_named_for():
    def load(name):
        return load_file(CONFIGS / f"{name}.yaml")

    assert load("rho2") == TrainConfig(env=EnvConfig(rho=2.0))
    assert load("depth3") == TrainConfig(env=EnvConfig(depth=3))
    assert load("free_root") == TrainConfig(env=EnvConfig(root_claim="free"))
    assert load("random_oracle") == TrainConfig(env=EnvConfig(oracle="random"))
    assert load("thresholds").problem == ProblemConfig(family="threshold")
    assert load("majority7").problem.aggregators == ["majority 7"]
    assert load("menus").problem.menu == 4
    assert load("ppo").learner.name == "ppo"


def test_flags_go_over_the_file():
    config, name = load_train_config(
        ["--config", str(CONFIGS / "rho2.yaml"), "--env.depth", "3", "--problem.aggregators", "[majority 3, and 5]"]
    )
    assert name == "rho2"
    assert (config.env.rho, config.env.depth) == (2.0, 3)
    assert config.problem.aggregators == ["majority 3", "and 5"]


@pytest.mark.parametrize(
    ("given", "resume"), [([], "never"), (["--resume"], "always"), (["--resume", "auto", "--seed", "1"], "auto")]
)
def test_resume_with_and_without_a_word(given, resume):
    assert load_train_config(given)[0].resume == resume


def test_resume_takes_the_runs_own_configuration(tmp_path):
    recorded = TrainConfig(env=EnvConfig(depth=4), seed=7).recorded
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(recorded))
    config, name = load_train_config(["--run_dir", str(tmp_path), "--resume", "auto"])
    assert (config.env.depth, config.seed, name) == (4, 7, tmp_path.name)
    config, _ = load_train_config(["--run_dir", str(tmp_path), "--resume", "auto", "--env.depth", "3"])
    assert config.env.depth == 3  # the run folder then says that this differs


def test_recorded_configuration_reads_back(tmp_path):
    config = TrainConfig(
        env=EnvConfig(rho=2.5, oracle="random"), problem=ProblemConfig(family="table", menu=3),
        learner=LearnerConfig(iterations=7), seed=3, threads=1, run_dir="x", resume="auto", json="-",
    )  # fmt: skip
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config.recorded))
    assert load_file(file) == dataclasses.replace(config, run_dir=None, resume="never", json=None)


def test_a_problems_path_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert from_dict(TrainConfig, {"problem": {"path": "tree.json"}}).problem.path == str(tmp_path / "tree.json")


def test_differing_names_the_keys_and_leaves_out_those_that_change_no_weight():
    old = TrainConfig(env=EnvConfig(depth=2)).recorded
    new = TrainConfig(env=EnvConfig(depth=3), seed=4, evaluations=99, debates=1).recorded
    assert differing(old, new) == ["env.depth: 2, now 3", "seed: 0, now 4"]
    assert differing(old, old) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--env.depht", "3"], ["env.depht", "env.depth"]),
        (["--env.depth", "two"], ["env.depth", "int", "two"]),
        (["--env.depth", "0"], ["env.depth", "0", "1 to 200"]),
        (["--env.rho", "0.9"], ["env.rho", "0.9"]),
        (["--env.oracle", "psychic"], ["env.oracle", "adversarial", "psychic"]),
        (["--problem.family", "cubic"], ["problem.family", "threshold", "cubic"]),
        (["--problem.aggregators", "majority 3"], ["problem.aggregators", "list"]),
        (["--learner.name", "dqn"], ["learner.name", "mmd", "ppo", "dqn"]),
        (["--learner.iterations", "0"], ["learner.iterations", "0"]),
        (["--seed", "-1"], ["seed", "-1"]),
        (["--seed", "1.5"], ["seed", "int"]),
        (["--threads", "0"], ["threads", "0"]),
        (["--threads", "1000000"], ["threads", "1000000", "1 to 1024"]),
        (["--debates", "1000001"], ["debates", "1000001", "1 to 1000000"]),
        (["--resume", "maybe"], ["resume", "maybe"]),
        (["--seed"], ["--seed", "argument"]),
        (["stray"], ["stray"]),
        (["--config", "missing.yaml"], ["missing.yaml"]),
    ],
    ids=" ".join,
)
def test_mistakes_on_the_command_line_are_named(arguments, words):
    _refused(arguments, words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("env: {depth: 2, rhoo: 3}", ["env.rhoo", "env.rho"]),
        ("enw: {depth: 2}", ["enw", "env"]),
        ("env: {depth: true}", ["env.depth", "int"]),
        ("env: {depth: 2.5}", ["env.depth", "int"]),
        ("env: {rho: high}", ["env.rho", "float"]),
        ("env: {rho: .nan}", ["env.rho"]),
        ("env: 3", ["env", "3", "env.depth"]),
        ("- env", ["file.yaml"]),
        ("", ["file.yaml"]),
        ("env: {depth: 2", ["file.yaml", "line"]),
        ('env: {depth: !!python/object/apply:os.system ["touch executed"]}', ["file.yaml", "python/object"]),
        (b"\xff\xfe", ["file.yaml"]),
        ("seed: " + 5000 * "9", ["file.yaml", "digits"]),
        ("[" * 5000, ["file.yaml"]),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "file.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    _refused(["--config", str(file)], words)
    assert not (tmp_path / "executed").exists()


def _refused(arguments, words):
    with pytest.raises(ConfigError) as refusal:
        load_train_config(arguments)
    message = str(refusal.value)
    assert "\n" not in message
    assert [word for word in words if word not in message] == []


def test_help_explains_every_key_without_loading_what_it_does_not_need():
    watch = (
        "import runpy, sys\n"
        "try: runpy.run_path('train.py', run_name='__main__')\n"
        "finally: print('LOADED', [m for m in ('torch', 'cvxpy', 'scipy.optimize', 'matplotlib') if m in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", watch, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert "LOADED []" in shown
    keys = [f"--{section}.{field.name}" for section, kind in
            (("env", EnvConfig), ("problem", ProblemConfig), ("learner", LearnerConfig))
            for field in dataclasses.fields(kind)]  # fmt: skip
    keys += [f"--{field.name}" for field in dataclasses.fields(TrainConfig)]
    assert [key for key in keys if key not in shown] == []
    assert "continue the run there" in " ".join(shown.split())  # the docstring's words reach the help


@pytest.mark.parametrize(
    ("text", "said"), [("env: &a\n  x: *a\n", "itself"), ("env: {rho: 4}\nenv: {depth: 3}\n", "twice")]
)
def test_what_a_yaml_loader_takes_in_silence_is_refused(text, said, tmp_path):
    """A mapping inside itself, which would be walked for ever; a key given twice, whose first value would be lost."""
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_train_config(["--config", str(file)])


@pytest.mark.parametrize(("key", "value"), [("batch", 10**12), ("hidden", 10**9), ("learning_rate", math.inf)])
def test_learner_settings_beyond_any_machine_are_refused(key, value):
    with pytest.raises(ConfigError, match=rf"learner\.{key}"):
        LearnerConfig(**{key: value})


def test_a_path_that_is_no_text_is_refused():
    with pytest.raises(ConfigError, match=r"problem\.path"):
        ProblemConfig(path=3)


@pytest.mark.parametrize("kind", [EnvConfig, ProblemConfig, LearnerConfig, TrainConfig])
def test_numbers_of_any_library_are_taken_and_recorded_as_pythons(kind):
    from fractions import Fraction

    import numpy as np

    plain = kind()
    for whole, real in ((np.int64, np.float64), (np.uint8, np.float32), (int, int), (int, Fraction)):
        values = {}
        for field in dataclasses.fields(kind):
            value = getattr(plain, field.name)
            if field.type == "int":
                values[field.name] = whole(min(value, 255))
            elif field.type == "float":
                values[field.name] = real(min(round(value) or 1, 1) if field.name != "noise" else 0)
        if kind is EnvConfig:
            values["query_cost"] = real(0)
        made = kind(**values)
        for name, value in values.items():
            assert type(getattr(made, name)) is type(getattr(plain, name)), name
            assert getattr(made, name) == value
        recorded = made.recorded if kind is TrainConfig else dataclasses.asdict(made)
        assert yaml.safe_load(yaml.safe_dump(recorded)) == recorded


def test_lists_and_texts_of_numpy_are_recorded_as_pythons():
    import numpy as np

    made = ProblemConfig(aggregators=(np.str_("majority 3"),))
    assert made == ProblemConfig(aggregators=["majority 3"])
    assert yaml.safe_load(yaml.safe_dump(dataclasses.asdict(made)))["aggregators"] == ["majority 3"]


def test_an_environment_takes_numbers_of_numpy():
    import numpy as np

    from envs import fbs_debate_v0

    env = fbs_debate_v0.env(depth=np.int64(2), rho=np.float64(3), problem={"menu": np.int8(1)})
    assert env.unwrapped.game.env == EnvConfig()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (EnvConfig, {"depth": True}), (EnvConfig, {"depth": 2.0}), (EnvConfig, {"rho": True}),
        (EnvConfig, {"rho": "3"}),
        (EnvConfig, {"rho": None}), (EnvConfig, {"rho": 10**400}), (EnvConfig, {"noise": 1j}),
        (ProblemConfig, {"menu": 1.0}), (ProblemConfig, {"seed": False}), (ProblemConfig, {"seed": [1]}),
        (LearnerConfig, {"batch": 64.0}), (LearnerConfig, {"clip": True}), (LearnerConfig, {"clip": "wide"}),
        (LearnerConfig, {"magnet": None}), (LearnerConfig, {"learning_rate": math.nan}), (TrainConfig, {"seed": 1.0}),
        (TrainConfig, {"seed": True}),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_number_is_refused_by_name(kind, values):
    import numpy as np

    for value in (*values.values(), np.bool_(True)):
        with pytest.raises(ConfigError, match=rf"{next(iter(values))}[ :]"):
            kind(**dict.fromkeys(values, value))


def test_every_learner_that_can_be_named_is_there_and_no_other():
    from agents.learner_config import Name
    from agents.learning import LEARNERS

    assert set(LEARNERS) == set(get_args(Name))


def test_a_bob_that_can_be_named_is_a_scripted_one():
    from agents.learner_config import Opponent
    from agents.players import BOBS

    assert set(get_args(Opponent)) - {"learned"} <= set(BOBS)
