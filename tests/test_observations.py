"""What agents observe and may do in the PettingZoo environment, and that the documentation says the same."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from configurations import CONFIGURATIONS, advance, arguments, legal_action

from envs import fbs_debate_v0, rules
from envs.engine import step
from envs.fbs_debate import ALICE, BOB, raw_env
from envs.game import Game
from envs.observation import Layout
from envs.view import View, view

ROOT = Path(__file__).parent.parent


@pytest.fixture(params=CONFIGURATIONS)
def kwargs(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return arguments(request.param, tmp_path)


def named(raw: raw_env, observation: np.ndarray) -> dict[str, list[float]]:
    """An observation by field name."""
    return {f.name: observation[f.start : f.stop].round(4).tolist() for f in raw.layout.fields}


def bobs_or_alices(game: Game, state: rules.State, rng: np.random.Generator) -> np.ndarray:
    """Whole moves of a batch: true answers as far as there are any, no lies, samples of the first sub-claim."""
    n, a = len(state.level), np.asarray(rules.aggregator(game, state))
    if state.phase in (rules.CLAIM, rules.DECOMPOSE):
        return rng.integers(0, 2 if state.phase == rules.CLAIM else game.menu, n)
    if state.phase == rules.RESPOND:
        return np.full(n, rules.SAMPLE)
    z = np.zeros((n, game.width), np.int8)
    for row in range(n if state.phase == rules.ASSIGN else 0):
        f = game.library.aggregators[a[row]]
        while f(z[row, : f.width]) != int(state.claimed[row]):
            z[row, : f.width] = rng.integers(0, 2, f.width)
    if state.phase == rules.LIE:
        for row in range(n):
            f, answers = game.library.aggregators[a[row]], np.asarray(state.assignment[row])
            while f((z[row] ^ answers)[: f.width]) != int(state.truth[row]):
                z[row, : f.width] = rng.integers(0, 2, f.width)
    return z


class TestObservations:
    def test_in_their_space_for_both_agents_at_any_time(self, kwargs: dict) -> None:
        env, rng = fbs_debate_v0.env(**kwargs), np.random.default_rng(3)
        raw = env.unwrapped
        for agent in (ALICE, BOB):
            assert env.observation_space(agent) is env.observation_space(agent)
            assert env.action_space(agent) is env.action_space(agent)
        assert env.action_space(ALICE).n == max(2, raw.game.menu)
        assert env.action_space(BOB).n == 2 + raw.game.width
        for _ in range(3):
            env.reset()
            for agent in env.agent_iter():
                for other in (ALICE, BOB):
                    seen = env.observe(other)
                    assert env.observation_space(other).contains(seen)
                    if other in env.agents:
                        assert np.array_equal(env.infos[other]["action_mask"], seen["action_mask"])
                    if other != agent or env.terminations[agent]:
                        assert not seen["observation"].any()
                        assert not seen["action_mask"].any()
                    else:
                        assert seen["action_mask"].any()
                state = env.state()
                assert state.dtype == np.float32
                assert env.state_space.contains(state)
                mask = env.observe(agent)["action_mask"]
                env.step(legal_action(mask, rng) if mask.any() else None)

    def test_bob_sees_nothing_that_depends_on_a_hidden_truth(self, kwargs: dict) -> None:
        """Turn every truth around behind Bob's back: observation, mask, infos and transcript must stay the same."""
        env, rng = fbs_debate_v0.env(render_mode="ansi", **kwargs), np.random.default_rng(4)
        env.reset(seed=1)
        for _ in range(10):
            raw = advance(env, rules.RESPOND, rng)
            before = self.bobs(raw)
            state = raw._state
            turned = {name: 1 - getattr(state, name) for name in ("truth", "root_truth", "truths", "answers")}
            raw._history.pop()
            raw._enter(state._replace(**turned))
            raw._history[0] = raw._history[0]._replace(truth=turned["root_truth"], root_truth=turned["root_truth"])
            if raw.game.sees_truth:
                assert self.bobs(raw) != before  # so the test can tell
            else:
                assert self.bobs(raw) == before

    def bobs(self, raw: raw_env) -> tuple:
        seen = raw.observe(BOB)
        info = {key: str(value) for key, value in raw.infos[BOB].items()}
        return seen["observation"].tobytes(), seen["action_mask"].tobytes(), info, raw.render()

    def test_infos_hold_the_mask_alone_until_the_end(self, kwargs: dict) -> None:
        env, rng = fbs_debate_v0.env(**kwargs), np.random.default_rng(5)
        env.reset()
        for agent in env.agent_iter():
            if env.terminations[agent]:
                for info in env.infos.values():
                    assert set(info) == {"action_mask", "query_book", "ending"}
                env.step(None)
            else:
                assert all(set(info) == {"action_mask"} for info in env.infos.values())
                env.step(legal_action(env.observe(agent)["action_mask"], rng))

    def test_a_debate_on_the_defaults_field_by_field(self) -> None:
        """Depth 2, rho 3, threshold 3,2,2,1,1 >= 5 (weights add up to 9); the numbers are read off the rules."""
        env = fbs_debate_v0.env(tremble=0, p_false=1)
        env.reset(seed=0)
        raw = env.unwrapped
        while raw._state.claimed[0] != 1:
            env.reset()
        aggregator = {
            "weights": np.float32([3 / 9, 2 / 9, 2 / 9, 1 / 9, 1 / 9]).round(4).tolist(),
            "present": [1] * 5, "threshold": [np.float32(5 / 9).round(4)], "kind": [0, 1, 0, 0],
            "table": [1 if 3 * a + 2 * b + 2 * c + d + e >= 5 else -1 for a, b, c, d, e in product((0, 1), repeat=5)],
        }  # fmt: skip
        common = {"level": [1], "claimed": [1], "rho": [np.float32(1 / 3).round(4)], "truths": [0] * 5, **aggregator}
        for bit in (1, 1, 0):
            env.step(bit)
        expected = {
            "phase": [0, 0, 1, 0, 0], "truth": [-1], "position": [0, 0, 0, 1, 0], "assignment": [1, 1, -1, 0, 0],
            "lies": [0] * 5,
        }  # fmt: skip
        assert named(raw, env.observe(ALICE)["observation"]) == {**common, **expected}
        env.step(0), env.step(1)  # z = 11001 has output 1
        for bit in (1, 0):
            env.step(bit)
        expected |= {"phase": [0, 0, 0, 1, 0], "position": [0, 0, 1, 0, 0], "assignment": [1, 1, -1, -1, 1]}
        assert named(raw, env.observe(ALICE)["observation"]) == {**common, **expected, "lies": [1, -1, 0, 0, 0]}
        for bit in (0, 0, 0):
            env.step(bit)
        expected |= {"phase": [0, 0, 0, 0, 1], "truth": [0], "position": [0] * 5}
        assert named(raw, env.observe(BOB)["observation"]) == {**common, **expected}
        env.step(2)
        seen = named(raw, env.observe(ALICE)["observation"])
        assert (seen["level"], seen["claimed"], seen["truth"]) == ([0.5], [1], [-1])
        assert seen["phase"] == [0, 0, 1, 0, 0]

    @pytest.mark.parametrize("xp", [np, torch], ids=["NumPy", "torch"])
    def test_a_batch_shows_each_debate_what_the_environment_would(self, kwargs: dict, xp: Any) -> None:
        """Row by row what `write` gives of a batch of one, before the first bit is said."""
        game, rng, n = raw_env(**kwargs).game.on(xp), np.random.default_rng(5), 12
        layout, single = Layout(game), Layout(game.on(np))
        state = rules.deal(game, xp.asarray(rng.random((n, game.draws))))
        written, phases = np.zeros(layout.size, np.float32), set()
        while state.phase != rules.OVER:
            phases.add(state.phase)
            seen = view(game, state)
            shown = layout.batch(seen)
            assert shown.dtype == xp.float32
            running = np.flatnonzero(np.asarray(seen.active))
            for row in running:
                one = [part[row : row + 1] if hasattr(part, "shape") else part for part in seen]
                single.write(written, View(*(np.asarray(part) if hasattr(part, "shape") else part for part in one)))
                assert np.array_equal(np.asarray(shown[row]), written)
            move = bobs_or_alices(game, state, rng)
            state = step(game, state, xp.asarray(move), xp.asarray(rng.random((n, game.draws))))
        assert phases >= {rules.ASSIGN, rules.RESPOND}

    def test_alice_sees_the_answers_on_the_menu_with_the_random_oracle(self) -> None:
        problem = {"aggregators": ["majority 3", "parity 2"], "menu": 3}
        env = fbs_debate_v0.env(oracle="random", problem=problem)
        env.reset(seed=0)
        raw = advance(env, rules.DECOMPOSE, np.random.default_rng(0))
        seen, state = named(raw, raw.observe(ALICE)["observation"]), raw._state
        for k in range(3):
            width = (3, 2)[state.menu[0, k]]
            answers = (2 * state.answers[0, k, :width] - 1).tolist()
            assert seen[f"candidate {k}: answers"] == answers + [0] * (3 - width)
            assert seen[f"candidate {k}: present"] == [1] * width + [0] * (3 - width)
            table = [-1, -1, -1, 1, -1, 1, 1, 1] if width == 3 else [-1, 1, 1, -1, 0, 0, 0, 0]
            assert seen[f"candidate {k}: table"] == table
        assert not any(seen["weights"])
        env.step(1)
        assert named(raw, raw.observe(ALICE)["observation"])["truths"] == seen["candidate 1: answers"]
        raw = advance(env, rules.RESPOND, np.random.default_rng(0))
        seen = named(raw, raw.observe(BOB)["observation"])
        assert not any(any(values) for name, values in seen.items() if name.startswith("candidate"))

    def test_the_state_tells_what_bob_is_not_told(self) -> None:
        env = fbs_debate_v0.env()
        env.reset(seed=0)
        raw = advance(env, rules.RESPOND, np.random.default_rng(0))
        told, seen = named(raw, env.state()), named(raw, env.observe(BOB)["observation"])
        lies = raw._state.assignment[0] ^ raw._state.truths[0]
        assert told["lies"] == (2 * lies - 1).tolist()
        assert told["truths"] == (2 * raw._state.truths[0] - 1).tolist()
        assert told["truth"] == [2 * raw._state.truth[0] - 1]
        hidden = ("lies", "truths", "truth")
        assert {k: v for k, v in told.items() if k not in hidden} == {k: v for k, v in seen.items() if k not in hidden}
        assert not any(any(seen[name]) for name in hidden)


class TestMasks:
    def test_a_bit_is_legal_where_some_assignment_completes_it(self, kwargs: dict) -> None:
        """Against the list of all assignments of that output; at widths where there are too many, against a count."""
        env, rng = fbs_debate_v0.env(**kwargs), np.random.default_rng(6)
        raw = env.unwrapped
        for _ in range(4):
            env.reset()
            while not raw.terminations[raw.agent_selection]:
                if raw._prefix is not None:
                    allowed = self.completable(raw)
                    assert [bool(m) for m in raw._mask] == allowed + [False] * (len(raw._mask) - 2)
                env.step(legal_action(raw._mask, rng))
            assert raw._state.ending[0] not in (rules.ILLEGAL, rules.INCONSISTENT)

    def completable(self, raw: raw_env) -> list[bool]:
        state, lying = raw._state, raw._state.phase == rules.LIE
        f = raw.game.library.aggregators[rules.aggregator(raw.game, state)[0]]
        wanted = state.truth[0] if lying else state.claimed[0]
        flips = state.assignment[0, : f.width] if lying else np.zeros(f.width, np.int8)
        if f.width <= 10:
            every = np.array(list(product((0, 1), repeat=f.width)), np.int8)
            every = every[f(every) == wanted] ^ flips
            begun = (every[:, : len(raw._bits)] == raw._bits).all(-1)
            return [bool((every[begun, len(raw._bits)] == bit).any()) for bit in (0, 1)]
        assert str(f).startswith("majority")
        least, result = f.width // 2 + 1, []
        for bit in (0, 1):
            said = np.array([*raw._bits, bit]) ^ flips[: len(raw._bits) + 1]
            most_ones = said.sum() + f.width - len(said)
            result.append(bool(most_ones >= least if wanted else said.sum() < least))
        return result

    def test_forced_bits_are_asked_for_as_well(self) -> None:
        env = fbs_debate_v0.env(problem={"aggregators": ["and 4"]}, rho=4, tremble=0)
        env.reset(seed=0)
        while env.unwrapped._state.claimed[0] != 1:
            env.reset()
        for _ in range(4):  # an AND claimed true has one assignment
            assert env.agent_selection == ALICE
            assert env.observe(ALICE)["action_mask"].tolist() == [0, 1]
            env.step(1)
        assert env.unwrapped._state.phase == rules.LIE

    def test_bob_may_sample_up_to_the_width_of_the_aggregator(self) -> None:
        env = fbs_debate_v0.env(problem={"aggregators": ["majority 5", "and 2"]})
        env.reset(seed=0)
        seen = set()
        for _ in range(20):
            raw = advance(env, rules.RESPOND, np.random.default_rng(0))
            width = int(raw.game.library.widths[raw._state.menu[0, 0]])
            assert env.observe(BOB)["action_mask"].tolist() == [1] * (2 + width) + [0] * (5 - width)
            seen.add(width)
        assert seen == {2, 5}


class TestDocumentation:
    page = ROOT / "docs" / "environment.md"

    def test_its_index_tables_are_those_of_the_layout(self) -> None:
        menu_of_two = {"oracle": "random", "problem": {"aggregators": ["majority 3"], "menu": 2}}
        for documented in ({}, menu_of_two):
            assert str(raw_env(**documented).layout) in self.page.read_text()

    def test_its_examples_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "examples").symlink_to(ROOT / "examples")
        (tmp_path / "docs").mkdir()
        monkeypatch.chdir(tmp_path)
        blocks = re.findall(r"```python\n(.*?)```", self.page.read_text(), re.DOTALL)
        assert blocks
        for block in blocks:
            exec(compile(block, str(self.page), "exec"), {})
        assert (tmp_path / "docs" / "debate.png").exists()
