"""The benchmarks count what they say they count. Their timings are not tested."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from configurations import CONFIGURATIONS, configs

import benchmarks.__main__ as command
from benchmarks import engine, environment, mathematics, startup, training, trees
from benchmarks.measurement import Budget, Curve, Row, Skipped, Target, interleaved, number, rate_of, ratios
from benchmarks.sampler import Sampler, part_of_file
from envs import rules
from envs.claim_tree import load_claim_tree
from envs.engine import step
from envs.fbs_debate import env as fbs_debate
from envs.game import Game
from envs.rules import ASSIGN, LIE, OVER
from envs.view import legal_moves, view
from fbs.aggregator import Table, Threshold
from fbs.table import SensitivityTable

INSTANT = Budget(repeats=5, seconds=1e-9, quick=True)


class TestMeasurement:
    def test_a_row_shows_median_spread_and_verdict(self) -> None:
        row = Row("engine", (3.0, 1.0, 2.0), "moves/s", Target(at_least=2.5), "a note")
        assert str(row).split() == ["engine", "2", "moves/s", "[1,", "3]", ">=", "2.5", "MISSED", "a", "note"]
        assert row.to_json() == {
            "name": "engine", "unit": "moves/s", "note": "a note", "repeats": [3.0, 1.0, 2.0], "median": 2.0,
            "low": 1.0, "high": 3.0, "target": {"at_least": 2.5}, "holds": False,
        }  # fmt: skip
        assert Row("a", (1.0,), "s", Target(at_most=1)).holds is True
        assert Row("a", (1.0,), "s").holds is None

    @pytest.mark.parametrize(
        ("value", "unit", "text"),
        [
            (0.0, "x", "0"),
            (12.34, "x", "12.3"),
            (0.8333, "x", "0.833"),
            (999.6, "moves/s", "1k"),
            (16_720_000, "moves/s", "16.7M"),
            (0.0119, "s", "11.9ms"),
            (136e-6, "s", "136us"),
            (5, "s", "5s"),
        ],
    )
    def test_numbers_have_three_digits(self, value: float, unit: str, text: str) -> None:
        assert number(value, unit) == text

    def test_a_rate_counts_whole_calls_until_the_time_is_over(self) -> None:
        """Calls that count 7 and take 2 seconds each, by a clock of our own: three of them pass 5 seconds."""
        ticks = iter(range(0, 100, 2))
        assert rate_of(lambda: 7, 5.0, lambda: next(ticks)) == 3 * 7 / 6

    def test_measures_take_turns(self) -> None:
        log: list[str] = []
        results = interleaved({name: lambda name=name: float(log.append(name) or len(log)) for name in "ab"}, 3)
        assert log == ["a", "b"] * 3
        assert results == {"a": (1.0, 3.0, 5.0), "b": (2.0, 4.0, 6.0)}
        assert ratios(results["b"], results["a"]) == (2.0, 4 / 3, 6 / 5)


class TestEngine:
    TABULATED = [name for name in CONFIGURATIONS if name not in ("wide", "crowd")]

    @pytest.mark.parametrize("name", TABULATED)
    @pytest.mark.parametrize("xp", [np, torch], ids=["NumPy", "torch"])
    def test_moves_are_legal(self, name: str, xp: Any, tmp_path: Path) -> None:
        game = Game(*configs(name, tmp_path)).on(xp)
        uniform = engine.draws(game)
        state = rules.deal(game, uniform(200, game.draws))
        while state.phase != OVER:
            seen, move = view(game, state), engine.random_move(game, state, uniform(200, 1)[:, 0])
            number = np.asarray(game.library.code(move) if state.phase in (ASSIGN, LIE) else move)
            legal = np.asarray(legal_moves(seen))[np.arange(200), number]
            assert legal[np.asarray(seen.active)].all()
            state = step(game, state, move, uniform(200, game.draws))

    def test_moves_are_uniform(self) -> None:
        """At the middles of equal pieces of the unit interval each legal assignment comes up equally often."""
        game = engine.new_game(1)
        library = game.library
        for bit in (0, 1):
            legal = np.flatnonzero(library.legal[0, bit])
            u = (np.arange(10 * len(legal)) + 0.5) / (10 * len(legal))
            state = rules.deal(game, np.full((len(u), game.draws), 0.999 * (1 - bit)))
            assert (state.claimed == bit).all()
            codes = library.code(engine.random_move(game, state, u))
            assert np.array_equal(np.bincount(codes, minlength=32)[legal], np.full(len(legal), 10))

    @pytest.mark.parametrize("flat", [False, True])
    def test_counts_the_moves_of_running_debates(self, flat: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        """Second route: on the defaults, played legally, a debate has three moves a level until it is over, and it goes
        one level on each time Bob samples."""
        game, last = engine.new_game(3), []
        layout = engine.Layout(game) if flat else None

        def recorded(*arguments: Any) -> Any:
            last[:] = [step(*arguments)]
            return last[0]

        monkeypatch.setattr(engine, "step", recorded)
        moves = engine.rollout(game, 500, engine.draws(game), layout)
        sampled = sum((place >= 0).sum() for place in last[0].path[:-1])
        assert moves == 3 * (500 + sampled)

    def test_departure_from_a_line(self) -> None:
        assert engine.departure_from_line([1, 2, 4], [5, 7, 11]) == pytest.approx(0, abs=1e-9)
        assert engine.departure_from_line([1, 2, 3], [1, 4, 9]) > 10

    def test_goes_without_openspiel(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyspiel", None)
        assert "not installed" in str(engine.kuhn_poker(INSTANT))


class TestEnvironment:
    def test_counts_every_step(self) -> None:
        raw = fbs_debate()
        steps: list[Any] = []
        taken = raw.step
        raw.step = lambda action: (steps.append(action), taken(action))
        counted = environment.episode(raw)
        assert counted == len(steps)
        assert steps[-2:] == [None, None]  # both agents leave
        assert not raw.agents

    def test_goes_without_peers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(name: str) -> Any:
            raise ImportError(f"no {name}")

        monkeypatch.setattr(environment, "peer", missing)
        results = list(environment.measure(INSTANT))
        assert [type(result) for result in results] == [Skipped, Skipped, Row]
        assert "tictactoe_v3 env(): left out, not installed (no tictactoe_v3)" in str(results[0])


class TestMathematics:
    def test_a_wrong_answer_stops_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        f = mathematics.random_table(np.random.default_rng(0), 4)
        mathematics.check_by_cvxpy(f, range(16))
        monkeypatch.setattr(SensitivityTable, "value", property(lambda table: table._plain[0] + 1e-3))
        with pytest.raises(mathematics.DisagreementError, match="but cvxpy says"):
            mathematics.check_by_cvxpy(f, range(16))


class TestTrees:
    @pytest.mark.parametrize("nodes", [*range(4, 40), 5_000])
    def test_has_the_claims_asked_for(self, nodes: int) -> None:
        tree = trees.random_tree(nodes, seed=nodes)
        assert len(tree.width) == nodes
        assert tree.width[tree.width > 0].min() >= 3

    def test_is_of_the_kinds_and_widths_asked_for(self) -> None:
        """45% majority, 45% at least k, 5% thresholds, 5% tables up to width 8; four standard deviations."""
        rng = np.random.default_rng(0)
        found = [trees.random_aggregator(rng, 10**6) for _ in range(4000)]
        assert {f.width for f in found if not isinstance(f, Table)} == set(range(3, 100))
        assert {f.width for f in found if isinstance(f, Table)} == set(range(3, 9))
        thresholds = [f for f in found if isinstance(f, Threshold)]
        assert {w for f in thresholds for w in f.weights} == set(range(1, 51))
        kinds = {"majority": 0.45, "at_least": 0.45, "threshold": 0.05, "table": 0.05}
        for kind, share in kinds.items():
            count = sum(f.written.startswith(kind) for f in found)
            assert abs(count - 4000 * share) < 4 * (4000 * share * (1 - share)) ** 0.5

    def test_its_file_reads_back_the_same(self, tmp_path: Path) -> None:
        tree, file = trees.random_tree(800, seed=1), tmp_path / "tree.json"
        file.write_text(json.dumps(trees.document(tree)))
        read = load_claim_tree(file)
        for column in ("first_child", "width", "answer", "claimed", "level"):
            assert np.array_equal(getattr(tree, column), getattr(read, column))
        assert (tree.text, tree.written) == (read.text, read.written)
        assert trees.whole(tree).values == trees.whole(read).values


class TestSampler:
    @pytest.mark.parametrize(
        ("file", "part"),
        [
            ("fbs/table.py", "mathematics (fbs/)"),
            ("envs/rules.py", "environment (envs/)"),
            ("agents/networks.py", "networks forward"),
            ("agents/exact.py", "evaluation"),
            ("benchmarks/training.py", None),
        ],
    )
    def test_knows_whose_a_file_is(self, file: str, part: str | None) -> None:
        assert part_of_file(file) == part

    def test_charges_time_to_who_spent_it(self) -> None:
        """Half a second in fbs/, most of it inside NumPy."""
        f = mathematics.random_table(np.random.default_rng(0), 8)
        with Sampler() as sampler:
            while sampler.counts.total() < 20:
                mathematics.solve_all(f)
        assert next(iter(sampler.shares)) == "mathematics (fbs/)"
        assert sum(sampler.shares.values()) == pytest.approx(100)


class TestCommand:
    def results(self, topic: str, budget: Budget) -> Any:
        assert budget.repeats >= 5
        yield Row(f"of {topic}", (1.0, 2.0, 4.0), "s", Target(at_most=3))
        yield Skipped("a peer", "not installed")
        yield Curve("Cost", "n", "s", {"ours": [(1, 1.0), (2, 2.0)]})

    def test_prints_writes_and_draws(self, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(command, "measured", self.results)
        report = tmp_path / "report.json"
        assert command.main(["--only", "trees", "engine", "--json", str(report), "--plots", str(tmp_path)]) == 0
        out = capsys.readouterr().out
        assert "of trees" in out and "<= 3s ok" in out and "a peer: left out, not installed" in out
        topics = json.loads(report.read_text())["topics"]
        assert list(topics) == ["trees", "engine"]
        assert topics["engine"]["rows"][0]["median"] == 2.0
        assert topics["engine"]["left_out"] == ["a peer: left out, not installed"]
        assert (tmp_path / "trees.png").stat().st_size > 5000

    def test_json_to_standard_output_is_alone_there(
        self, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(command, "measured", self.results)
        command.main(["--quick", "--only", "trees", "--json", "-", "--plots", str(tmp_path)])
        assert json.loads(capsys.readouterr().out)["quick"] is True

    def test_every_topic_can_be_measured(self) -> None:
        modules = (environment, engine, mathematics, trees, startup, training)
        assert {module.__name__ for module in modules} == {f"benchmarks.{topic}" for topic in command.TOPICS}
        assert all(callable(module.measure) for module in modules)

    def test_an_unknown_topic_is_refused(self, capsys: Any) -> None:
        with pytest.raises(SystemExit):
            command.main(["--only", "speed"])
        assert "invalid choice: 'speed'" in capsys.readouterr().err


def test_nothing_heavy_is_imported_early() -> None:
    """The documented promise behind the start-up times."""
    assert not startup.imported() & set(startup.HEAVY)
