"""Networks fitted to tables: what they are fitted to, that they come close, and that a restored pair goes on alike."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agents.distillation import Distillation
from agents.learner_config import LearnerConfig
from agents.measures import bob_measures
from envs.config import ConfigError, EnvConfig, ProblemConfig
from envs.game import Game

SMALL = LearnerConfig(name="distilled", iterations=150, hidden=32, epochs=6, minibatch=128)


def test_networks_come_close_to_tables_that_come_close_to_the_linear_program():
    """Two aggregators of three sub-claims at depth 1: the tables' Bob within 5% of the linear program at every
    assignment, the networks' within 15%, from the same self-play; a fresh network is far off."""
    game = Game(EnvConfig(depth=1), ProblemConfig(aggregators=["threshold 2,1,1 >= 2", "majority 3"]), torch)
    learner = Distillation(game, SMALL, seed=0)
    arena = game.on(np).evaluation()
    fresh = bob_measures(arena, learner.players()["bob"])["catch_ratio"]["min"]
    for _ in range(SMALL.iterations):
        metrics = learner.step()
    assert all(np.isfinite(value) for value in metrics.values())
    players = learner.players()
    tables, networks = (bob_measures(arena, players[name])["catch_ratio"]["min"] for name in ("bob_last", "bob"))
    assert fresh < 0.75
    assert tables > 0.95
    assert networks > 0.85


def test_every_place_is_an_assignment_of_its_aggregator():
    """A padded code of a narrower aggregator ends in zeros: "and 2" beside "or 3" leaves 4 of 8 codes."""
    game = Game(EnvConfig(depth=2, rho=5), ProblemConfig(aggregators=["and 2", "or 3"]), torch)
    learner = Distillation(game, SMALL, seed=0)
    for level in (0, 1):
        codes = [code for at, a, code in learner.answered.tolist() if (at, a) == (level, 0)]
        assert codes == [0, 2, 4, 6]
        assert {code for at, a, _, code in learner.lies.tolist() if (at, a) == (level, 0)} == {0, 2, 4, 6}


def test_a_restored_pair_goes_on_bit_for_bit():
    game = Game(EnvConfig(root_claim="free"), ProblemConfig(aggregators=["majority 3"]), torch)
    first, second = Distillation(game, SMALL, seed=0), Distillation(game, SMALL, seed=1)
    for _ in range(3):
        first.step()
    second.load_state_dict(first.state_dict())
    assert first.step() == second.step()
    for one, other in zip(first.bob.parameters(), second.bob.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_random_oracle_is_refused():
    game = Game(EnvConfig(oracle="random"), ProblemConfig(aggregators=["majority 3"]), torch)
    with pytest.raises(ConfigError, match=r"env\.oracle"):
        Distillation(game, SMALL, seed=0)
