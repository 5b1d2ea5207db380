"""The learners: exact look-ahead against play, mirror descent's step against its formula, resuming, and learning."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from random_weights import random_weights

from agents.learner_config import LearnerConfig
from agents.learning import LEARNERS
from agents.lies import FlippedLies, ListedLies
from agents.lookahead import AfterStateValues, look_ahead, menus_met
from agents.mirror_descent import MirrorDescent, Targets
from agents.mirror_step import score_error
from agents.networks import NetworkInput
from agents.policy import AlicePolicy, LearnedPlayer
from envs import rules
from envs.claim_tree import ClaimTree
from envs.config import ConfigError, EnvConfig, ProblemConfig
from envs.engine import debate
from envs.game import Game
from envs.rules import ASSIGN, CHALLENGE, RESPOND
from envs.view import legal_moves, view
from fbs import parse

GAMES = {
    "adversarial": (EnvConfig(tremble=0), ProblemConfig()),
    "random": (EnvConfig(tremble=0, oracle="random", noise=0.1), ProblemConfig(aggregators=["majority 3"])),
    "truth": (
        EnvConfig(tremble=0, oracle="random", bob_sees="truth", query_cost=0.2),
        ProblemConfig(aggregators=["and 2", "parity 2"]),
    ),
    "menus": (EnvConfig(tremble=0, rho=2), ProblemConfig(aggregators=["majority 3", "threshold 2,1,1 >= 2"], menu=2)),
}
SMALL = LearnerConfig(iterations=10, batch=256, hidden=16)


def uniform(seed: int):
    generator = torch.Generator().manual_seed(seed)
    return lambda n, k: torch.rand((n, k), dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("name", GAMES)
def test_looking_ahead_gives_the_mean_reward_of_play(name):
    """With values learned level by level, the root's value is what 40,000 sampled debates average to (4 standard
    errors; the two routes share only the rules' tables)."""
    game = Game(*GAMES[name], torch)
    learner = MirrorDescent(game, SMALL, seed=0)
    random_weights(learner.alice, 1), random_weights(learner.bob, 2)
    record: list = []
    debate(game, LearnedPlayer(learner.alice), LearnedPlayer(learner.bob), 4000, uniform(1), record)
    states = [decision.state for decision in record if decision.state.phase == ASSIGN]
    menus = menus_met(game, states, 10**6, torch.Generator().manual_seed(0))
    first = menus.candidates.take(torch.arange(0, len(menus.candidates.level), game.menu))
    for _ in range(game.depth):
        outlook = look_ahead(game, learner.values, learner.alice, learner.bob, menus.candidates, learner.listing)
        targets = Targets(learner, menus, outlook)
        learner.values.learn(first.level, first.claimed, first.truth, targets.menu_value, menus.count, 1.0)
    end = debate(game, LearnedPlayer(learner.alice), LearnedPlayer(learner.bob), 40_000, uniform(2))
    for claimed in (0, 1):
        for truth in (0, 1):
            rewards = end.reward[(end.root_claimed == claimed) & (end.root_truth == truth)]
            error = float(rewards.std() / len(rewards) ** 0.5)
            value = float(learner.values.table[game.depth, claimed, truth])
            assert value == pytest.approx(float(rewards.mean()), abs=4 * error + 0.01)


def test_after_state_values_know_the_leaves():
    """A leaf's value follows from the rules alone: 1 - 2 eps where the claim is true, its negative where false, plus
    the query's price."""
    values = AfterStateValues(Game(EnvConfig(noise=0.1, query_cost=0.05), ProblemConfig(), torch))
    np.testing.assert_allclose(values.table[0], [[0.85, -0.75], [-0.75, 0.85]])


def test_every_claim_met_is_looked_at_the_other_way_round_too():
    """Alice claims 0 where it is false, thrice, and 1 where it is true, once; the opposites count a hundredth each, and
    what is met both ways adds up. The menus stay as they were dealt."""
    game = Game(EnvConfig(depth=1), ProblemConfig(), torch)
    claimed, truth = torch.tensor([0, 0, 0, 1], dtype=torch.int8), torch.tensor([1, 1, 1, 1], dtype=torch.int8)
    state = rules.deal(game, torch.rand((4, game.draws), dtype=torch.float64))
    state = state._replace(claimed=claimed, truth=truth)
    menus = menus_met(game, [state], 10, torch.Generator())
    found = dict(
        zip(zip(*(column.tolist() for column in menus.candidates[2:4]), strict=True), menus.count.tolist(), strict=True)
    )
    assert found == pytest.approx({(0, 1): 3 + 0.01, (1, 1): 1 + 0.03})
    assert menus.candidates.aggregator.tolist() == [0, 0]


def test_a_claim_that_no_answers_give_is_not_looked_at():
    """The root is true whatever its only sub-claim is, so nobody can argue that it is false."""
    tree = ClaimTree.from_breadth_first(
        "test", [parse("at_least 0 1")], [0, -1], [1, 0], [-1, -1], ["root", "leaf"], ["at_least 0 1", ""]
    )
    game = Game(EnvConfig(oracle="random", root_claim="free"), tree, torch)
    state = rules.deal(game, torch.rand((1, game.draws), dtype=torch.float64))
    state = rules.claim(game, state, torch.tensor([1]), torch.rand((1, game.draws), dtype=torch.float64))
    menus = menus_met(game, [state], 10, torch.Generator())
    assert menus.candidates.claimed.tolist() == [1]


def test_scores_below_the_floor_are_left_alone_and_called_back_above_it():
    """Smooth L1 is x^2 / 2 up to 1 and |x| - 1/2 beyond. Floor -14: of -20 against -17 nothing is asked; -20 against
    -13.5 pulls from -20, 6.5 away; -13 against -20 goes to the floor, 1 away; 2 against 2.5 as it is. Mean of four."""
    scores = torch.tensor([[-20.0, -20.0, -13.0, 2.0]], requires_grad=True)
    error = score_error(scores, torch.tensor([[-17.0, -13.5, -20.0, 2.5]]))
    assert float(error.detach()) == pytest.approx((0 + 6.0 + 0.5 + 0.125) / 4)
    error.backward()
    np.testing.assert_allclose(4 * scores.grad, [[0, -1, 1, -0.5]])


def test_the_targets_are_the_mirror_descent_step():
    """Bob's target against log pi' = (log pi + eta Q + eta alpha log magnet) / (1 + eta alpha), row by row in NumPy."""
    game = Game(EnvConfig(), ProblemConfig(), torch)
    learner = MirrorDescent(game, dataclasses.replace(SMALL, step_size=0.7, magnet=0.3), seed=0)
    random_weights(learner.alice, 1), random_weights(learner.bob, 2)
    for _ in range(3):
        learner.step()
    menus = learner._self_play()
    outlook = look_ahead(game, learner.values, learner.alice, learner.bob, menus.candidates, learner.listing)
    targets = Targets(learner, menus, outlook)
    inputs = outlook.bob_inputs
    with torch.no_grad():
        old, magnet = (p.responses(inputs).double().log_softmax(-1).numpy() for p in (learner.bob, learner.magnets[1]))
    row = 5
    pairs = np.flatnonzero(np.asarray(outlook.bob_row) == row)
    count = np.asarray(menus.count)[np.asarray(outlook.claim)[pairs]]
    reached = np.asarray(targets.reached)[pairs]
    weight = count * reached / (count * reached).sum()
    q = -(weight[:, None] * np.asarray(outlook.response)[pairs]).sum(0)
    false = np.asarray(menus.candidates.claimed != menus.candidates.truth)[np.asarray(outlook.claim)[pairs]]
    stake = (weight * np.asarray(outlook.stake)[pairs] * false).sum()
    advantage = np.clip((q - np.exp(old[row]) @ q) / stake, -1, 1)
    eta = 0.7 * (1 - 3 / SMALL.iterations)  # it falls to 0
    logits = (old[row] + eta * advantage + eta * 0.3 * magnet[row]) / (1 + eta * 0.3)
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(targets.responses[row], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["mmd", "ppo", "nfsp"])
@pytest.mark.parametrize("oracle", ["adversarial", "random"])
def test_play_starts_uniform(name, oracle):
    """Every legal move of every decision is as likely as any other before the first round."""
    problem = ProblemConfig(menu=2, aggregators=["majority 3", "or 2"])
    game = Game(EnvConfig(root_claim="free", oracle=oracle), problem, torch)
    players = LEARNERS[name](game, dataclasses.replace(SMALL, name=name), seed=0).players()
    record: list = []
    debate(game, players["alice"], players["bob"], 64, uniform(0), record)
    for decision in record:
        seen = view(game, decision.state)
        player, legal = players["bob" if seen.phase == RESPOND else "alice"], legal_moves(seen)
        even = legal / legal.sum(-1, keepdim=True).clamp(min=1)
        np.testing.assert_allclose(player.probabilities(seen)[seen.active], even[seen.active], atol=1e-6)


def test_after_state_values_wait_a_tenth_of_the_rounds():
    """Of 20 rounds the first two leave what sub-claims are worth as it was: true ones hold, whoever argues them. The
    root's value, by which Alice claims where she is free to, is that of play from the first."""
    learner = MirrorDescent(
        Game(EnvConfig(), ProblemConfig(), torch), dataclasses.replace(SMALL, iterations=20), seed=0
    )
    start = learner.values.table.clone()
    changed = []
    for _ in range(4):
        learner.step()
        changed.append((learner.values.table != start).any(-1).any(-1).tolist())
    assert changed == [[False, False, True]] * 2 + [[False, True, True]] * 2


@pytest.mark.parametrize("name", ["mmd", "ppo"])
@pytest.mark.parametrize("oracle", ["adversarial", "random"])
def test_a_restored_learner_goes_on_bit_for_bit(name, oracle):
    """Three rounds, saved, two more; against a new learner that loads the state and does the same two."""
    problem = ProblemConfig(menu=2, aggregators=["majority 3", "or 2"])
    game = Game(EnvConfig(root_claim="free", oracle=oracle), problem, torch)
    config = dataclasses.replace(SMALL, name=name, epochs=2)
    first, second = LEARNERS[name](game, config, seed=0), LEARNERS[name](game, config, seed=1)
    for _ in range(3):
        first.step()
    second.load_state_dict(first.state_dict())
    metrics = [(first.step(), second.step()) for _ in range(2)]
    assert metrics[0][0] == metrics[0][1]
    ours, theirs = first.state_dict(), second.state_dict()
    assert ours["iteration"] == theirs["iteration"] == 5
    for part in ("alice", "bob", "alice_average", "bob_average"):
        for key, value in ours[part].items():
            assert torch.equal(value, theirs[part][key]), (part, key)


def test_bob_learns_the_depth_one_game():
    """Majority of 3 at depth 1: the packing bound says no Bob catches all lies more often than 1/fbs; the learned one
    must come within 10% of it at every assignment, from an untrained one that is far off."""
    game = Game(EnvConfig(depth=1), ProblemConfig(aggregators=["threshold 2,1,1 >= 2"]), torch)
    learner = MirrorDescent(game, LearnerConfig(iterations=100, batch=256, hidden=32), seed=0)
    before = worst_ratio(game, learner.players()["bob_last"])
    for _ in range(100):
        learner.step()
    assert before < 0.7
    assert worst_ratio(game, learner.players()["bob"]) > 0.9


def worst_ratio(game: Game, bob: LearnedPlayer) -> float:
    """The least catch ratio over all assignments, by listing all sets of lies in plain Python."""
    import itertools

    from agents.networks import NetworkInput
    from agents.policy import masked

    f = game.library.aggregators[0]
    ratios = []
    for z in itertools.product((0, 1), repeat=f.width):
        claimed = int(f(np.array(z)))
        one = torch.ones(1, dtype=torch.long)
        seen = NetworkInput(one, one * claimed, -one, one * 0, torch.tensor([z]), torch.full((1, f.width), -1))
        with torch.no_grad():
            p = masked(bob.policy.responses(seen), torch.ones((1, 2 + f.width)) > 0).exp()[0, 2:].numpy()
        blocks = [b for b in itertools.product((0, 1), repeat=f.width) if int(f(np.array(z) ^ np.array(b))) != claimed]
        ratios.append(
            float(game.library.sensitivity_tables[0].value[int("".join(map(str, z)), 2)])
            * min(float(p @ np.array(b)) for b in blocks)
        )
    return min(ratios)


def test_wide_lies_are_those_that_listing_gives():
    """Chances, the mirror descent target and its loss of conditioned flips against listing every set of lies."""
    game = Game(EnvConfig(), ProblemConfig(aggregators=["threshold 3,2,2,1,1 >= 5", "majority 3"]), torch)
    torch.manual_seed(0)
    alice, magnet, moved = (random_weights(AlicePolicy(game, 16), seed) for seed in range(3))
    aggregator, claimed, truth = torch.tensor([0, 0, 1, 0]), torch.tensor([1, 1, 0, 0]), torch.tensor([0, 1, 1, 1])
    z = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 1, 0], [0, 1, 0, 0, 0], [0, 1, 0, 0, 1]])
    inputs = NetworkInput(torch.ones_like(truth), claimed, truth, aggregator, z, torch.full_like(z, -1))
    both = [kind(game, inputs, aggregator, truth, z) for kind in (ListedLies, FlippedLies)]
    per_lie = -torch.rand((4, 5), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    per_lie[2, 3:] = 0  # beyond the width
    losses = []
    with torch.no_grad():
        for lies in both:
            lies.aim(alice, magnet, per_lie, 1.5, 0.3)
            losses.append([float(lies.loss(policy)) for policy in (alice, magnet, moved)])
        np.testing.assert_allclose(both[0].chances(alice), both[1].chances(alice), atol=1e-6)
        np.testing.assert_allclose(both[0].target @ both[0].bits, lie_marginals(both[1]), atol=1e-6)
    np.testing.assert_allclose(losses[0], losses[1], atol=1e-5)


def lie_marginals(lies: FlippedLies) -> np.ndarray:
    """How likely each answer is a lie under the target, whose flips are written as truths."""
    return (torch.where(lies.z > 0, 1 - lies.target, lies.target) * lies.within).numpy()


@pytest.mark.parametrize("written", ["majority 15", "threshold 1,2,3,4,5,6,7,8,9,10,11 >= 33"])
def test_a_wide_game_trains(written):
    """Wider than what is tabulated, with few orbits to list or with too many: an untrained Bob challenges stable
    claims, a trained one does not."""
    game = Game(EnvConfig(depth=1, rho=15), ProblemConfig(aggregators=[written]), torch)
    learner = MirrorDescent(game, LearnerConfig(iterations=15, batch=64, hidden=16, positions=128, epochs=6), seed=0)
    assert (learner.listing is None) == (written[0] == "t")
    before = challenges(learner)
    losses = [list(learner.step().values()) for _ in range(15)]
    assert np.isfinite(losses).all()
    assert challenges(learner) < 0.7 * before


def challenges(learner: MirrorDescent) -> float:
    """How often Bob challenges the all-true assignment, which is as stable as any."""
    view = NetworkInput(
        *(torch.tensor([value]) for value in (1, 1, -1, 0)),
        torch.ones((1, learner.game.width), dtype=torch.int64), torch.full((1, learner.game.width), -1),
    )  # fmt: skip
    with torch.no_grad():
        return float(learner.bob.responses(view).softmax(-1)[0, CHALLENGE])


def test_learners_refuse_what_they_cannot_play():
    with pytest.raises(ConfigError, match=r"env\.oracle random"):
        MirrorDescent(Game(EnvConfig(bob_sees="truth"), ProblemConfig(), torch), SMALL, 0)
    with pytest.raises(ConfigError, match=r"learner\.epochs"):
        LearnerConfig(epochs=0)
