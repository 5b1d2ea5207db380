"""The environment under other libraries' wrappers (extra `interop`); skipped without them."""

from __future__ import annotations

from pathlib import Path

import pytest
from configurations import arguments

from envs import fbs_debate_v0
from envs.fbs_debate import ALICE, BOB

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", ["defaults", "menu of three, random oracle", "free root of a claim tree", "crowd"])
def test_torchrl_rolls_out_with_masks(name: str, tmp_path: Path) -> None:
    wrappers = pytest.importorskip("torchrl.envs.libs.pettingzoo")
    env = fbs_debate_v0.env(**arguments(name, tmp_path))
    wrapped = wrappers.PettingZooWrapper(env, use_mask=True, return_state=True)
    wrapped.set_seed(0)
    for _ in range(8):
        rollout = wrapped.rollout(400, break_when_any_done=True)
        assert rollout["next", "done"][-1].all()
        assert not rollout["next", "done"][:-1].any()
        for agent in (ALICE, BOB):
            turn, mask = rollout[agent, "mask"], rollout[agent, "action_mask"]
            taken = mask.gather(-1, rollout[agent, "action"].unsqueeze(-1)).squeeze(-1)
            assert taken[turn].all()  # every action was legal when it was made
            seen = rollout[agent, "observation", "observation"]
            assert seen.shape[2:] == env.observation_space(agent)["observation"].shape
            assert seen[turn].any(-1).all()
            assert not seen[~turn].any()
        rewards = [rollout["next", agent, "reward"].flatten() for agent in (ALICE, BOB)]
        assert not (rewards[0] + rewards[1]).any()
        assert rewards[0].abs().tolist() == [0] * (len(rollout) - 1) + [1]
        assert rollout["state"].shape[1:] == env.state_space.shape
        assert env.infos[ALICE]["ending"] != "an illegal move"
