"""The PettingZoo environment: PettingZoo's own tests, and ours."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pettingzoo
import pytest
from configurations import CONFIGURATIONS, FOOTBRIDGE, arguments
from pettingzoo.test import api_test, render_test, seed_test

from envs import fbs_debate_v0, rules
from envs.claim_tree import ClaimTree
from envs.config import ConfigError, ProblemConfig
from envs.engine import Query
from envs.fbs_debate import ALICE, BOB, OTHER, raw_env
from fbs.notation import parse

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.filterwarnings("ignore")  # PettingZoo's tests warn of all-zero masks, which are meant


@pytest.fixture(params=CONFIGURATIONS)
def kwargs(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return arguments(request.param, tmp_path)


def legal_action(mask: np.ndarray, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


def play(env: Any, rng: np.random.Generator, illegal: float = 0.0) -> list[tuple]:
    """One debate after `reset`: what `last` gave and the action, for every step."""
    steps = []
    for agent in env.agent_iter():
        seen, reward, terminated, truncated, info = env.last()
        action = None if terminated else legal_action(seen["action_mask"], rng)
        if not terminated and rng.random() < illegal:
            action = None
        steps.append((agent, seen["observation"].tobytes(), seen["action_mask"].tobytes(), reward, terminated, action))
        assert not truncated
        env.step(action)
        assert sum(env.rewards.values()) == 0
    return steps


def advance(env: Any, phase: int, rng: np.random.Generator) -> Any:
    """Reset and play random legal actions until a move of that phase is asked for; the bare environment."""
    raw = env.unwrapped
    while True:
        env.reset()
        while not raw.terminations[raw.agent_selection]:
            if raw._state.phase == phase:
                return raw
            env.step(legal_action(raw._mask, rng))


def named(raw: raw_env, observation: np.ndarray) -> dict[str, list[float]]:
    """An observation by field name."""
    return {f.name: observation[f.start : f.stop].round(4).tolist() for f in raw.layout.fields}


class TestPettingZoo:
    def test_api(self, kwargs: dict) -> None:
        api_test(fbs_debate_v0.env(**kwargs), num_cycles=100)

    def test_seed(self, kwargs: dict) -> None:
        seed_test(lambda: fbs_debate_v0.env(**kwargs), num_cycles=100)

    @pytest.mark.parametrize("name", ["defaults", "free root", "menu of three", "bob sees truth", "claim tree", "crowd"])
    def test_render(self, name: str, tmp_path: Path) -> None:
        render_test(lambda render_mode: fbs_debate_v0.env(render_mode=render_mode, **arguments(name, tmp_path)))

    def test_raw_environment_passes_as_well(self) -> None:
        api_test(fbs_debate_v0.raw_env(), num_cycles=100)

    def test_registered_id(self) -> None:
        if not hasattr(pettingzoo, "make"):
            pytest.skip("PettingZoo before 1.27 has no registry")
        env = pettingzoo.make("aec", "fbs_debate_v0", depth=3)
        assert str(env) == "fbs_debate_v0"
        assert env.unwrapped.game.depth == 3


class TestReproducibility:
    def test_twenty_debates_from_one_seed_are_the_same_twenty(self, kwargs: dict) -> None:
        def twenty() -> list:
            env, rng = fbs_debate_v0.env(**kwargs), np.random.default_rng(1)
            debates = []
            for number in range(20):
                env.reset(seed=7 if number == 0 else None)
                debates.append(play(env, rng))
            return debates

        first = twenty()
        assert twenty() == first
        assert len({str(debate) for debate in first}) > 1  # the stream goes on: not one debate twenty times

    def test_a_seed_starts_over_and_another_differs(self) -> None:
        env = fbs_debate_v0.env(oracle="random", problem={"aggregators": ["majority 7"], "menu": 2}, rho=4)
        starts = []
        for seed in (3, 3, 4, 5, 6):
            env.reset(seed=seed)
            starts.append(env.state().tobytes())
        assert starts[0] == starts[1]
        assert len(set(starts)) > 2

    def test_a_copy_in_the_middle_of_a_debate_goes_on_alike(self, kwargs: dict) -> None:
        env = fbs_debate_v0.env(**kwargs)
        env.reset(seed=0)
        for _ in range(3):
            if not env.terminations[env.agent_selection]:
                env.step(legal_action(env.observe(env.agent_selection)["action_mask"], np.random.default_rng(0)))
        copies = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
        debates = [play(e, np.random.default_rng(1)) for e in (env, *copies)]
        assert debates[0] == debates[1] == debates[2]
        env.reset(), copies[0].reset()
        assert np.array_equal(env.state(), copies[0].state())  # and so do their streams

    def test_a_fresh_environment_pickles(self, kwargs: dict) -> None:
        env = pickle.loads(pickle.dumps(fbs_debate_v0.env(**kwargs)))
        other = fbs_debate_v0.env(**kwargs)
        env.reset(seed=5), other.reset(seed=5)
        assert play(env, np.random.default_rng(0)) == play(other, np.random.default_rng(0))


class TestRewards:
    def test_sum_to_zero_at_every_step_illegal_moves_included(self, kwargs: dict) -> None:
        env, rng = fbs_debate_v0.env(**kwargs), np.random.default_rng(2)
        cost, endings = env.unwrapped.game.query_cost, set()
        for _ in range(40):
            env.reset()
            steps = play(env, rng, illegal=0.05)  # asserts the sum
            total = {agent: reward for agent, _, _, reward, terminated, _ in steps if terminated}
            assert set(total) == {ALICE, BOB}
            assert total[ALICE] in (-1, 1, -1 + cost, 1 + cost)
            endings.add(int(env.unwrapped._state.ending[0]))
        assert rules.ILLEGAL in endings

    @pytest.mark.parametrize("phase", [rules.CLAIM, rules.DECOMPOSE, rules.ASSIGN, rules.LIE, rules.RESPOND])
    def test_an_illegal_action_loses_for_whoever_made_it(self, phase: int) -> None:
        problem = {"aggregators": ["and 2", "or 3"], "menu": 2}
        env, rng = fbs_debate_v0.env(root_claim="free", problem=problem), np.random.default_rng(0)
        env.reset(seed=0)
        beyond = 5 if phase == rules.RESPOND else 2
        for action in (None, -1, beyond, 10**30, "0", 0.0, [0], np.array([0, 1]), np.float32(1)):
            advance(env, phase, rng)
            self.loses(env, action)

    def test_a_masked_action_loses(self) -> None:
        env = fbs_debate_v0.env(problem={"aggregators": ["and 2"]})
        env.reset(seed=0)
        for phase in (rules.ASSIGN, rules.LIE, rules.RESPOND):
            found = 0
            while found < 10:
                raw = advance(env, phase, np.random.default_rng(0))
                if not raw._mask.all():
                    found += 1
                    self.loses(env, int(np.flatnonzero(raw._mask == 0)[0]))
                elif phase == rules.RESPOND:
                    break  # one width only: Bob may sample every sub-claim

    def loses(self, env: Any, action: Any) -> None:
        loser = env.agent_selection
        env.step(action)
        assert env.rewards == {loser: -1, OTHER[loser]: 1}
        assert env.terminations == {ALICE: True, BOB: True}
        assert env.infos[ALICE]["ending"] == "an illegal move"
        env.step(None), env.step(None)
        assert env.agents == []

    def test_integers_of_any_make_are_legal(self) -> None:
        import torch

        for one in (1, True, np.int8(1), np.uint64(1), np.array(1), torch.tensor(1)):
            env = fbs_debate_v0.env(root_claim="free")
            env.reset(seed=0)
            env.step(one)
            assert not env.terminations[ALICE]

    def test_the_query_costs_bob(self) -> None:
        env = fbs_debate_v0.env(query_cost=0.25, depth=1, problem={"aggregators": ["table 01"]}, rho=1)
        seen = set()
        for seed in range(20):
            env.reset(seed=seed)
            while env.agent_selection == ALICE:
                env.step(legal_action(env.observe(ALICE)["action_mask"], np.random.default_rng(0)))
            false = env.state()[env.unwrapped.layout.size : env.unwrapped.layout.size + 2].prod() < 0
            env.step(2)
            assert env.rewards[ALICE] == (-0.75 if false else 1.25)  # the winner's 1, and 0.25 from Bob to Alice
            assert env.infos[BOB]["query_book"] == [Query("0", int(env.unwrapped._state.answer[0]))]
            seen.add(false)
        assert seen == {True, False}

    def test_accepting_concedes_and_asks_nobody(self) -> None:
        env = fbs_debate_v0.env(query_cost=0.25)
        env.reset(seed=0)
        advance(env, rules.RESPOND, np.random.default_rng(0))
        env.step(0)
        assert env.rewards == {ALICE: 1, BOB: -1}
        assert env.infos[ALICE]["query_book"] == []

    def test_a_challenge_is_decided_by_the_sensitivity(self) -> None:
        """threshold 3,2,2,1,1 >= 5 has sensitivity 2 at 11100 and 3 at 01110 (known values): rho 2 parts them."""
        for z, winner in (([1, 1, 1, 0, 0], ALICE), ([0, 1, 1, 1, 0], BOB)):
            env = fbs_debate_v0.env(rho=2, tremble=0)
            env.reset(seed=0)
            while env.unwrapped._state.claimed[0] != 1:
                env.reset()
            for bit in z:
                env.step(bit)
            while env.agent_selection == ALICE:
                env.step(legal_action(env.observe(ALICE)["action_mask"], np.random.default_rng(0)))
            env.step(1)
            assert env.rewards == {winner: 1, OTHER[winner]: -1}

    def test_a_claim_that_cannot_be_defended_is_lost_at_the_start(self) -> None:
        always = ClaimTree.from_breadth_first(
            "t", [parse("at_least 0 2")], [0, -1, -1], [0, 1, 1], [-1] * 3, ["c", "x", "y"], ["at_least 0", "", ""]
        )
        env = fbs_debate_v0.env(problem=always, p_false=1)
        env.reset(seed=0)
        assert env.terminations == {ALICE: True, BOB: True}
        for agent in env.agent_iter():
            assert env.last()[1] == {ALICE: -1, BOB: 1}[agent]
            env.step(None)
        assert env.agents == []
        env = fbs_debate_v0.env(problem=always, root_claim="free")
        env.reset(seed=0)
        env.step(0)
        assert env.rewards == {ALICE: -1, BOB: 1}


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


class TestArguments:
    @pytest.mark.parametrize(
        ("bad", "key"),
        [
            ({"dept": 3}, "env.dept"),
            ({"depth": 0}, "env.depth"),
            ({"depth": "3"}, "env.depth"),
            ({"rho": 0.5}, "env.rho"),
            ({"rho": 1.0}, "env.rho"),  # no stable candidate
            ({"oracle": "Random"}, "env.oracle"),
            ({"bob_sees": True}, "env.bob_sees"),
            ({"tremble": 2}, "env.tremble"),
            ({"query_cost": 1}, "env.query_cost"),
            ({"render_mode": "text"}, "render_mode"),
            ({"problem": {"aggregator": ["and 2"]}}, "problem.aggregator"),
            ({"problem": {"menu": 0}}, "problem.menu"),
            ({"problem": {"aggregators": ["and"]}}, "problem.aggregators"),
            ({"problem": 3}, "problem"),
        ],
    )
    def test_a_wrong_one_is_refused_by_name(self, bad: dict, key: str) -> None:
        with pytest.raises(ConfigError, match=rf"^{re.escape(key)}\b"):
            fbs_debate_v0.env(**bad)

    def test_a_problem_may_be_given_in_four_ways(self) -> None:
        tree = raw_env(problem=FOOTBRIDGE).game.source
        for problem in (FOOTBRIDGE, Path(FOOTBRIDGE), {"path": FOOTBRIDGE}, ProblemConfig(path=FOOTBRIDGE), tree):
            assert raw_env(problem=problem).game.source.text == tree.text
        assert raw_env().game.problem == ProblemConfig()

    def test_importing_it_loads_neither_torch_nor_matplotlib(self) -> None:
        heavy = "{'torch', 'matplotlib', 'cvxpy', 'scipy.optimize'} & set(sys.modules)"
        code = f"import sys; from envs import fbs_debate_v0; fbs_debate_v0.env().reset(); sys.exit(str({heavy} or ''))"
        assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stderr == "\n"


class TestRendering:
    def finished(self, **kwargs: Any) -> Any:
        """The debate of the README: Alice says that all is well, Bob picks the bolts and among them S3."""
        env = fbs_debate_v0.env(problem=FOOTBRIDGE, rho=9, p_false=1, **kwargs)
        env.reset(seed=0)
        for action in (1, 1, 1, 1, 1, 4, *[1] * 8, 8):
            env.step(action)
        return env

    def test_a_transcript_can_be_read(self) -> None:
        text = self.finished(render_mode="ansi").render()
        for line in (
            "The root claim, level 3: The Mill Lane footbridge can stay open this winter",
            "  Alice claims that it is true (1).",
            "  It is decided by 'threshold 3,2,2,1,1 >= 7'. She answers 1 1 1 1 1 (sensitivity 3, stable).",
            "    4  The divers found no scour at either pier: 1",
            "  Bob samples sub-claim 2.",
            "  It is decided by 'and'. She answers 1 1 1 1 1 1 1 1 (sensitivity 8, stable).",
            "Claim 2/6, level 0: Bolt S3 was tightened to 320 Nm (the log has no entry for it)",
            "  The oracle is asked and answers 0.",
            "Bob wins: the oracle contradicted Alice.",
            "In truth the root claim was false.",
            "  Below the root claim Alice lied about 2, 3.",
            "  Below claim 2 Alice lied about 6.",
        ):
            assert line in text.splitlines()

    def test_the_unfinished_assignment_is_shown(self) -> None:
        env = fbs_debate_v0.env(render_mode="ansi")
        env.reset(seed=0)
        env.step(1), env.step(0)
        assert env.render().splitlines()[-1] == "  Alice is answering: 1 0 ..."

    def test_people_get_the_lines_as_they_come(self, capsys: pytest.CaptureFixture) -> None:
        self.finished(render_mode="human")
        assert capsys.readouterr().out == self.finished(render_mode="ansi").render()

    def test_every_ending_is_told(self) -> None:
        env = fbs_debate_v0.env(render_mode="ansi", rho=2, root_claim="free")
        rng, seen = np.random.default_rng(0), set()
        env.reset(seed=0)
        while len(seen) < 7:
            env.reset()
            play(env, rng, illegal=0.02)
            lines = env.render().splitlines()
            seen |= {line for line in lines if re.match("(Alice|Bob) wins", line)}
        assert seen == {
            "Alice wins: Bob accepted the claim.",
            "Alice wins: Bob made an illegal move.",
            "Bob wins: Alice made an illegal move.",
            "Alice wins: the oracle agreed with Alice.",
            "Bob wins: the oracle contradicted Alice.",
            "Bob wins: Bob showed that the assignment is too sensitive.",
            "Alice wins: Bob challenged an assignment that is not too sensitive.",
        }

    def test_a_picture_has_one_size_and_changes(self) -> None:
        env, rng = fbs_debate_v0.env(render_mode="rgb_array", problem=FOOTBRIDGE), np.random.default_rng(0)
        env.reset(seed=0)
        pictures = [env.render()]
        for _ in range(4):
            for _ in range(4):
                if not env.terminations[env.agent_selection]:
                    env.step(legal_action(env.observe(env.agent_selection)["action_mask"], rng))
            pictures.append(env.render())
        assert len({picture.shape for picture in pictures}) == 1
        assert len({picture.tobytes() for picture in pictures}) >= 4

    def test_without_a_mode_it_says_so(self) -> None:
        env = fbs_debate_v0.env()
        env.reset()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert env.render() is None
        assert "render_mode" in str(caught[0].message)


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
