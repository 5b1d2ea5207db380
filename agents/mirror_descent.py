"""Magnetic mirror descent by self-play, the default learner.

At every position a policy takes a step along its action values Q and towards its magnet (`agents.mirror_step`). The
networks are fitted to that target by a few gradient steps. The action values Q are exact given
the after-state values (`agents.lookahead`), and are measured in units of what is at stake at the position, so that one
step size serves every depth. The magnet is a slowly moving average of the policy, which takes away the bias of a fixed
one. No part of this sees a sensitivity, a cover or a block.

In the first rounds true claims are lost, some of them more often than others. A Bob who took that for their worth
would look at the sub-claims that are lost most, lie or not, and Alice would come to lie where he does not look; both
would be long in coming back. So the after-state values of sub-claims stay for a while what they are set to at the
start, where a true claim always holds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from agents.fixed_bob import FixedBob
from agents.learner_config import LearnerConfig
from agents.lookahead import (
    AfterStateValues,
    Claims,
    Menus,
    Outlook,
    answer_log_chances,
    draw_answers,
    lies,
    look_ahead,
    menus_met,
)
from agents.mirror_step import LOWEST, mirror_step, score_error
from agents.networks import NetworkInput
from agents.orbits import listing
from agents.policy import AlicePolicy, BobPolicy, LearnedPlayer, cross_entropy, masked
from envs.config import ConfigError
from envs.engine import debate
from envs.game import Game
from envs.rules import ASSIGN

FEWEST_DRAWN, MOST_DRAWN = 8, 128  # assignments of a claim, where they are drawn and not listed
CLAMP = 1.0  # advantages beyond so many stakes are cut: they are decided, and would only blow up the scores
HELD = 0.1  # the part of the rounds before the values of sub-claims begin to be learned
SCORES = 0.1  # how much Bob's scores are fitted beside his chances
ANSWERS = 2.0  # the same of Alice's listed answers, where they alone decide what is a lie: with drawn truths


class MirrorDescent:
    """Self-play of two networks by magnetic mirror descent.

    Args:
        game: The game on torch, its trembles included.
        config: The learner's configuration.
        seed: Of the networks' start and of every draw.

    Attributes:
        iteration: Rounds done.
    """

    def __init__(self, game: Game, config: LearnerConfig, seed: int) -> None:
        if game.sees_truth and game.adversarial:
            raise ConfigError("learner.name: 'mmd' with env.bob_sees truth needs env.oracle random; or use 'ppo'")
        self.game, self.config = game, config
        self.generator = torch.Generator(game.library.device or "cpu").manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.alice, self.bob = AlicePolicy(game, config.hidden), BobPolicy(game, config.hidden)
        if config.bob != "learned":
            self.bob = FixedBob(config.bob, game)
        self.magnets = copy.deepcopy((self.alice, self.bob))
        self.averages = copy.deepcopy((self.alice, self.bob))
        self.values = AfterStateValues(game)
        self.listing = listing(game)
        self.optimizer = torch.optim.Adam(
            [*self.alice.parameters(), *self.bob.parameters()], lr=config.learning_rate, fused=True
        )
        self.iteration = 0

    def players(self) -> dict[str, LearnedPlayer]:
        """The averaged pair (`alice`, `bob`), which is reported, and the last iterate (`alice_last`, `bob_last`)."""
        alice, bob = self.averages
        pairs = {"alice": alice, "bob": bob, "alice_last": self.alice, "bob_last": self.bob}
        return {name: LearnedPlayer(policy) for name, policy in pairs.items()}

    def state_dict(self) -> dict[str, Any]:
        """A snapshot of everything that the next step depends on."""
        modules = {"alice": self.alice, "bob": self.bob}
        modules |= {"alice_magnet": self.magnets[0], "bob_magnet": self.magnets[1]}
        modules |= {"alice_average": self.averages[0], "bob_average": self.averages[1]}
        snapshot = {name: module.state_dict() for name, module in modules.items()} | {
            "values": self.values.table, "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(), "iteration": self.iteration,
        }  # fmt: skip
        return copy.deepcopy(snapshot)

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        for name, module in (("alice", self.alice), ("bob", self.bob)):
            module.load_state_dict(saved[name])
        for kind, pair in (("magnet", self.magnets), ("average", self.averages)):
            for name, module in zip(("alice", "bob"), pair, strict=True):
                module.load_state_dict(saved[f"{name}_{kind}"])
        self.values.table = saved["values"].to(self.values.table.device, copy=True)
        self.optimizer.load_state_dict(saved["optimizer"])
        self.generator.set_state(saved["generator"])
        self.iteration = int(saved["iteration"])

    def step(self) -> dict[str, float]:
        """One round: self-play, look ahead, one mirror descent step at every position met."""
        menus = self._self_play()
        tried = self.listing
        if tried is None:
            each = min(MOST_DRAWN, max(2, self._budget() // len(menus.candidates.level)))
            tried = draw_answers(self.game, self.alice, menus.candidates, each, self.generator)
        outlook = look_ahead(self.game, self.values, self.alice, self.bob, menus.candidates, tried)
        targets = Targets(self, menus, outlook)
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * (1 - self.iteration / self.config.iterations)
        for _ in range(self.config.epochs):
            losses = targets.losses(self.alice, self.bob, self._minibatch)
            self.optimizer.zero_grad()
            sum(losses.values()).backward()
            nn.utils.clip_grad_norm_([p for g in self.optimizer.param_groups for p in g["params"]], 1.0)
            self.optimizer.step()
        self._learn_values(menus, targets)
        self._follow()
        self.iteration += 1
        metrics = {f"losses/{name}": float(loss.detach()) for name, loss in losses.items()}
        return metrics | {
            "debug/learning_rate": self.optimizer.param_groups[0]["lr"],
            "debug/positions": float(len(outlook.claim)),
            "debug/bob_step": targets.bob_step,
        }

    def _self_play(self) -> Menus:
        """The claims met in a batch of debates."""
        record: list = []
        uniform = lambda n, k: torch.rand((n, k), dtype=torch.float64, generator=self.generator)  # noqa: E731
        pair = LearnedPlayer(self.alice), LearnedPlayer(self.bob)
        debate(self.game, *pair, self.config.batch, uniform, record)
        states = [decision.state for decision in record if decision.state.phase == ASSIGN]
        each = FEWEST_DRAWN if self.listing is None else self.listing.count.double().mean()
        limit = max(1, int(self._budget() / (self.game.menu * each)))
        return menus_met(self.game, states, limit, self.generator)

    def _minibatch(self, positions: int) -> Tensor | None:
        """A few of so many positions, for one gradient step; None for all, where they are few enough."""
        if positions <= self.config.minibatch:
            return None
        return torch.randperm(positions, generator=self.generator)[: self.config.minibatch]

    def _budget(self) -> int:
        """Pairs of a claim and an assignment looked at in a round: fewer where they are wide."""
        return max(64, self.config.positions * 10 // max(10, self.game.width))

    def _learn_values(self, menus: Menus, targets: Targets) -> None:
        first = menus.candidates.take(torch.arange(0, len(menus.candidates.level), self.game.menu))
        place = self.values.place(first.node, first.level)
        held = (self.iteration < HELD * self.config.iterations) & (first.level < self.game.depth)
        count = menus.count * ~held
        self.values.learn(place, first.claimed, first.truth, targets.menu_value, count, self.config.value_rate)

    @torch.no_grad()
    def _follow(self) -> None:
        """Move the magnets and the averaged copies towards the policies."""
        for copies, rate in ((self.magnets, self.config.magnet_rate), (self.averages, self.config.average_rate)):
            for slow, fast in zip(copies, (self.alice, self.bob), strict=True):
                for ours, theirs in zip(slow.parameters(), fast.parameters(), strict=True):
                    ours.lerp_(theirs, rate)


class Targets:
    """The distributions that one mirror descent step moves to, at every position of an outlook."""

    @torch.no_grad()
    def __init__(self, learner: MirrorDescent, menus: Menus, outlook: Outlook) -> None:
        self.game, self.menus, self.outlook = learner.game, menus, outlook
        left = 1 - learner.iteration / learner.config.iterations
        self.step_size, self.magnet = learner.config.step_size * left, learner.config.magnet
        self.claims: Claims = menus.candidates
        self.pairs = self.claims.take(outlook.claim)
        self.alices, self.bobs = (learner.alice, learner.magnets[0]), (learner.bob, learner.magnets[1])
        self.listed = learner.listing is not None
        self.bob_step = 0.0
        self._answers()
        if self.game.menu > 1:
            self._candidates()
        if self.game.adversarial:
            self._lies()
        if isinstance(learner.bob, BobPolicy):
            self._responses()
        if self.game.free_root:
            self._root_claims(learner)

    def _moved(self, old: Tensor, magnet: Tensor, advantage: Tensor, legal: Tensor) -> Tensor:
        """The target distribution, from log-probabilities and advantages in stakes (N, M)."""
        pull, gain = self.step_size * self.magnet, self.step_size * advantage.clamp(-CLAMP, CLAMP).float()
        return masked(mirror_step(old.clamp(min=LOWEST), gain, magnet.clamp(min=LOWEST), pull), legal).exp()

    def _answers(self) -> None:
        out, claims = self.outlook, len(self.claims.level)
        share = out.log_share.exp()
        self.claim_value = _sums(out.claim, share * out.value, claims)
        self.claim_stake = torch.zeros(claims, dtype=torch.float64).index_put_((out.claim,), out.stake)
        advantage = (out.value - self.claim_value[out.claim]) / out.stake
        pull = self.step_size * self.magnet
        gain = self.step_size * advantage.clamp(-CLAMP, CLAMP)
        moved = mirror_step(out.log_chance, gain, self._log_answers(self.alices[1]), pull)
        target = (moved + out.log_share - out.log_chance).exp()
        self.answers = target / _sums(out.claim, target, claims)[out.claim]
        size = out.log_size.exp()
        tremble = self.game.env.tremble
        self.reached = (1 - tremble) * share + tremble * size / _sums(out.claim, size, claims)[out.claim]
        self.menu_value = self.claim_value.view(-1, self.game.menu)[:, 0]
        self.picked = torch.ones_like(self.claim_value)

    def _log_answers(self, policy: AlicePolicy) -> Tensor:
        return self._log_answers_at(policy, None)

    def _log_answers_at(self, policy: AlicePolicy, part: Tensor | None) -> Tensor:
        claim, z, log_size = (
            column if part is None else column[part]
            for column in (self.outlook.claim, self.outlook.assignment, self.outlook.log_size)
        )
        return answer_log_chances(self.game, policy, self.claims, claim, z) + log_size

    def _candidates(self) -> None:
        values = self.claim_value.view(-1, self.game.menu)
        old, magnet = (self._score_candidates(policy) for policy in self.alices)
        chances = old.double().exp() * self.menus.offered
        self.menu_value = (chances * values).sum(-1)
        stake = self.claim_stake.view(-1, self.game.menu).amax(-1, keepdim=True).clamp(min=1e-9)
        advantage = (values - self.menu_value[:, None]) / stake
        self.candidates = self._moved(old, magnet, advantage, self.menus.offered)
        self.picked = chances.view(-1)

    def _score_candidates(self, policy: AlicePolicy) -> Tensor:
        scores = policy.candidates(self.claims.inputs(None, informed=True))
        return masked(scores.view(-1, self.game.menu), self.menus.offered)

    def _lies(self) -> None:
        out = self.outlook
        self.lies = lies(self.game, self.pairs, out.assignment)
        per_lie = self._caught() * out.gain / out.stake[:, None]
        self.lies.aim(*self.alices, per_lie, self.step_size, self.step_size * self.magnet)

    def _caught(self) -> Tensor:
        """How likely Bob is to look at each sub-claim, float64 (P, Q), as Alice reckons when she lies.

        Beside a true claim a lie can never gain anything, whatever Bob does, but against a Bob who has ceased to look
        at some sub-claims it costs nothing either, and would stay. There she reckons with a Bob who looks anywhere half
        of the time, which changes no optimum. Beside a false claim she reckons with Bob as he is.
        """
        out = self.outlook
        anywhere = (~self.game.beyond[self.pairs.aggregator]).double()
        anywhere /= anywhere.sum(-1, keepdim=True)
        true = (self.pairs.claimed == self.pairs.truth)[:, None]
        return torch.where(true, (out.bob[:, 2:] + anywhere) / 2, out.bob[:, 2:])

    def _responses(self) -> None:
        out = self.outlook
        rows = len(out.bob_inputs.level)
        weight = self.menus.count.repeat_interleave(self.game.menu)[out.claim] * self.picked[out.claim] * self.reached
        weight = weight + 1e-12
        false = (self.pairs.claimed != self.pairs.truth).double()
        total = _sums(out.bob_row, weight, rows)
        stake = _sums(out.bob_row, weight * out.stake * false, rows)
        q = torch.zeros((rows, out.response.shape[1]), dtype=torch.float64)
        q = q.index_add_(0, out.bob_row, -weight[:, None] * out.response) / total[:, None]
        beyond = self.game.beyond[out.bob_inputs.aggregator]
        self.responses_legal = torch.cat([torch.ones((rows, 2)) > 0, ~beyond], -1)
        old, magnet = (self._score_responses(policy) for policy in self.bobs)
        chances = old.double().exp() * self.responses_legal
        mean = (chances * q).sum(-1, keepdim=True)
        advantage = (q - mean) / (stake / total).clamp(min=1e-6)[:, None]
        self.responses = self._moved(old, magnet, advantage, self.responses_legal)
        self.bob_step = float((self.responses - old.exp()).abs().sum(-1).mean() / 2)

    def _root_claims(self, learner: MirrorDescent) -> None:
        """Alice's claim at the root, for both truths: worth what the claim is worth."""
        self.roots = root_inputs(self.game)
        truth = self.roots.truth
        place = learner.values.place(torch.zeros_like(truth), self.roots.level)
        q = learner.values.table[place[:, None], torch.tensor([[0, 1]]), truth[:, None]]
        either = torch.ones((len(truth), 2)) > 0
        old, magnet = (masked(policy.claims(self.roots), either) for policy in self.alices)
        stake = (q.amax(-1) - q.amin(-1)).clamp(min=1e-9)
        mean = (old.double().exp() * q).sum(-1)
        self.root_claims = self._moved(old, magnet, (q - mean[:, None]) / stake[:, None], either)

    def _score_responses(self, policy: BobPolicy, part: Tensor | None = None) -> Tensor:
        rows, legal = self.outlook.bob_inputs, self.responses_legal
        if part is not None:
            rows, legal = rows.take(part), legal[part]
        return masked(policy.responses(rows), legal)

    def losses(
        self, alice: AlicePolicy, bob: BobPolicy, minibatch: Callable[[int], Tensor | None]
    ) -> dict[str, Tensor]:
        """How far the policies are from the targets, in chances (cross entropy) and in scores (`score_error`).

        `minibatch` says at which of so many positions.
        """
        losses, positions = {}, len(self.outlook.claim)
        some = minibatch(positions)
        answers, share = (self.answers, 1.0) if some is None else (self.answers[some], len(some) / positions)
        log_answers = self._log_answers_at(alice, some).clamp(min=-60)
        losses["assign"] = -(answers * log_answers).sum() / (share * len(self.claims.level))
        if self.listed and not self.game.adversarial:
            losses["assign"] += ANSWERS * score_error(log_answers, answers.log())
        if isinstance(bob, BobPolicy):
            rows = minibatch(len(self.responses))
            target = self.responses if rows is None else self.responses[rows]
            scores = self._score_responses(bob, rows)
            losses["respond"] = cross_entropy(target, scores) + SCORES * score_error(scores, target.log())
        if self.game.adversarial:
            losses["lie"] = (self.lies if some is None else self.lies.part(some)).loss(alice)
        if self.game.free_root:
            log_probabilities = masked(alice.claims(self.roots), self.root_claims >= 0)
            losses["claim"] = cross_entropy(self.root_claims, log_probabilities)
        if self.game.menu > 1:
            losses["decompose"] = cross_entropy(self.candidates, self._score_candidates(alice))
        return losses


def root_inputs(game: Game) -> NetworkInput:
    """The root claim before Alice claims a bit, for each truth it can have."""
    truth = torch.arange(2) if game.tree is None else game.tree.answer[:1].long()
    hidden = torch.full((len(truth), game.width), -1)
    return NetworkInput(
        torch.full_like(truth, game.depth), torch.zeros_like(truth), truth, torch.full_like(truth, -1), hidden, hidden
    )


def _sums(group: Tensor, values: Tensor, groups: int) -> Tensor:
    return torch.zeros(groups, dtype=torch.float64).index_add_(0, group, values)
