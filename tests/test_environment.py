"""The PettingZoo environment: PettingZoo's own tests, reproducibility, rewards, arguments."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pettingzoo
import pytest
import torch
from configurations import CONFIGURATIONS, FOOTBRIDGE, advance, arguments, legal_action, play
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


class TestPettingZoo:
    def test_api(self, kwargs: dict) -> None:
        api_test(fbs_debate_v0.env(**kwargs), num_cycles=100)

    def test_seed(self, kwargs: dict) -> None:
        seed_test(lambda: fbs_debate_v0.env(**kwargs), num_cycles=100)

    @pytest.mark.parametrize(
        "name", ["defaults", "free root", "menu of three", "bob sees truth", "claim tree", "crowd"]
    )
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
