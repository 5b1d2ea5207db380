"""Alice learns against a Bob who does not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agents.fixed_bob import FixedBob
from agents.learner_config import LearnerConfig
from agents.measures import bob_measures, honesty_rate
from agents.mirror_descent import MirrorDescent
from agents.networks import NetworkInput
from envs.config import ConfigError, EnvConfig, ProblemConfig
from envs.game import Game


def test_his_scores_are_the_linear_programs_sampling():
    """At 11100 of 3,2,2,1,1 >= 5 the cover program's optimum of most entropy puts 1/2 on the first sub-claim and 1/4 on
    each of the next two (the blocks are {1}, {2, 3} and what holds them); all false answers are sampled alike at 11111
    of majority 5, where any three make a block."""
    game = Game(EnvConfig(), ProblemConfig(aggregators=["threshold 3,2,2,1,1 >= 5", "majority 5"]), torch)
    ones = torch.ones(2, dtype=torch.int64)
    z = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    seen = NetworkInput(ones, ones, -ones, torch.tensor([0, 1]), z, torch.full_like(z, -1))
    chances = FixedBob("lp", game).responses(seen).exp()
    np.testing.assert_allclose(chances[1, 2:], np.full(5, 0.2), atol=1e-6)
    np.testing.assert_allclose(chances[0], [0, 0, 0.5, 0.25, 0.25, 0, 0], atol=1e-6)


def test_alice_grows_honest_against_the_linear_program():
    """Majority of 3 at depth 1: a lie at the root is caught half of the time, the truth never."""
    game = Game(EnvConfig(depth=1, rho=2, root_claim="free"), ProblemConfig(aggregators=["majority 3"]), torch)
    learner = MirrorDescent(game, LearnerConfig(bob="lp", iterations=25, batch=128, hidden=16, epochs=8), seed=0)
    arena = game.on(np).evaluation()
    assert honesty_rate(arena, learner.players()["alice_last"]) < 0.9
    for _ in range(25):
        metrics = learner.step()
    assert "losses/respond" not in metrics
    assert honesty_rate(arena, learner.players()["alice_last"]) > 0.99
    assert bob_measures(arena, learner.players()["bob"])["catch_ratio"]["min"] == pytest.approx(1, abs=1e-6)


def test_a_bob_who_needs_more_than_positions_is_refused():
    with pytest.raises(ConfigError, match=r"learner\.bob is 'tree_optimal'"):
        LearnerConfig(bob="tree_optimal")
    with pytest.raises(ConfigError, match=r"learner\.name mmd"):
        LearnerConfig(name="ppo", bob="lp")
    with pytest.raises(ConfigError, match=r"learner\.bob.*whole state"):
        FixedBob("informed", Game(EnvConfig(), ProblemConfig(), torch))
