"""Proximal policy optimisation on sampled returns, the control.

Both debaters play, each treats the other as part of its environment, and each climbs its own return (Schulman et al.,
"Proximal policy optimization algorithms", arXiv 1707.06347). The returns are built over an agent's own decision
points: Alice and Bob move unevenly often, so one sequence over both would mix their rewards. The only reward comes at
the end and is not discounted, so the return of every decision of a debate is Alice's final reward, or its negative.
In a zero-sum game this has no reason to converge, and is kept to be seen not to.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from agents.conditional_flips import AnswerFlips
from agents.learner_config import LearnerConfig
from agents.networks import DebaterNetwork, Facts
from agents.policy import AlicePolicy, BobPolicy, LearnedPlayer, distinct, move_log_probabilities, network_input
from envs.engine import Decision, debate
from envs.game import Game
from envs.rules import ASSIGN, LIE, RESPOND
from envs.view import View, view


class ProximalPolicy:
    """Self-play of two networks by proximal policy optimisation; arguments and attributes as `MirrorDescent`'s."""

    def __init__(self, game: Game, config: LearnerConfig, seed: int) -> None:
        self.game, self.config = game, config
        self.generator = torch.Generator(game.library.device or "cpu").manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.alice, self.bob = AlicePolicy(game, config.hidden), BobPolicy(game, config.hidden)
            facts = Facts(game.library, game.depth, game.env.rho)
            self.critics = nn.ModuleList(DebaterNetwork(facts, config.hidden, whole=1, each=1) for _ in range(2))
        self.averages = copy.deepcopy((self.alice, self.bob))
        self.flips = AnswerFlips(game.library.aggregators)
        modules = (self.alice, self.bob, self.critics)
        self.parameters = [p for module in modules for p in module.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=config.learning_rate, fused=True)
        self.iteration = 0

    def players(self) -> dict[str, LearnedPlayer]:
        """The averaged pair and the last iterate, as `MirrorDescent.players`."""
        alice, bob = self.averages
        pairs = {"alice": alice, "bob": bob, "alice_last": self.alice, "bob_last": self.bob}
        return {name: LearnedPlayer(policy) for name, policy in pairs.items()}

    def _modules(self) -> dict[str, nn.Module]:
        alice, bob = self.averages
        return {
            "alice": self.alice, "bob": self.bob, "critics": self.critics, "alice_average": alice, "bob_average": bob
        }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """A snapshot of everything that the next step depends on."""
        snapshot = {name: module.state_dict() for name, module in self._modules().items()} | {
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "iteration": self.iteration,
        }
        return copy.deepcopy(snapshot)

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        for name, module in self._modules().items():
            module.load_state_dict(saved[name])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.generator.set_state(saved["generator"])
        self.iteration = int(saved["iteration"])

    def step(self) -> dict[str, float]:
        """One round: a batch of debates, then a few epochs of clipped policy gradient on it."""
        record: list[Decision] = []
        uniform = lambda n, k: torch.rand((n, k), dtype=torch.float64, generator=self.generator)  # noqa: E731
        end = debate(self.game, LearnedPlayer(self.alice), LearnedPlayer(self.bob), self.config.batch, uniform, record)
        experience = [self._experience(decision, end.reward) for decision in record]
        experience = [moment for moment in experience if len(moment.result)]
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * (1 - self.iteration / self.config.iterations)
        for _ in range(self.config.epochs):
            policy_loss, value_loss, entropy = (sum(parts) for parts in zip(*map(self._terms, experience), strict=True))
            loss = (policy_loss + 0.5 * value_loss - self.config.entropy * entropy) / len(experience)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.parameters, 0.5)
            self.optimizer.step()
        self._follow()
        self.iteration += 1
        count = len(experience)
        return {
            "losses/policy": float(policy_loss.detach()) / count,
            "losses/value": float(value_loss.detach()) / count,
            "losses/entropy": float(entropy.detach()) / count,
            "debug/learning_rate": self.optimizer.param_groups[0]["lr"],
        }

    @torch.no_grad()
    def _experience(self, decision: Decision, reward: Tensor) -> Moment:
        going = (~decision.state.over).nonzero()[:, 0]
        state = decision.state._replace(
            **{name: column[going] for name, column in decision.state._asdict().items() if isinstance(column, Tensor)}
        )
        seen, move = view(self.game, state), decision.move[going].long()
        side = -1.0 if seen.phase == RESPOND else 1.0
        result = (side * reward[going]).float()
        if not len(going):
            return Moment(seen, move, result, result, result)
        chance, _ = self._log_chance(seen, move)
        advantage = result - self._value(seen)
        return Moment(seen, move, result, chance, (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-6))

    def _value(self, seen: View) -> Tensor:
        rows, inverse = distinct(network_input(seen))
        return self.critics[int(seen.phase == RESPOND)](rows)[0][inverse, 0]

    def _log_chance(self, seen: View, move: Tensor) -> tuple[Tensor, Tensor]:
        """log-probability (N,) of the moves, and the policy's entropy (N,)."""
        library = self.game.library
        if seen.phase in (ASSIGN, LIE) and not library.tabulated:
            chance = self._flips_chance(seen, move)
            return chance, -chance  # the entropy's one-sample estimate
        chances = move_log_probabilities(self.bob if seen.phase == RESPOND else self.alice, seen)
        index = library.code(move) if seen.phase in (ASSIGN, LIE) else move
        entropy = -(chances.exp() * chances.clamp(min=-60)).sum(-1)
        return chances.gather(1, index[:, None])[:, 0], entropy

    def _flips_chance(self, seen: View, move: Tensor) -> Tensor:
        rows = network_input(seen)
        if seen.phase == ASSIGN:
            return self.flips.log_probability(rows.aggregator, self.alice.answers(rows), rows.claimed, move).float()
        z = rows.assignment
        odds = self.alice.lies(rows) * (1 - 2 * z)
        return self.flips.log_probability(rows.aggregator, odds, rows.truth, z ^ move).float()

    def _terms(self, moment: Moment) -> tuple[Tensor, Tensor, Tensor]:
        chance, entropy = self._log_chance(moment.seen, moment.move)
        ratio = (chance - moment.log_chance).exp()
        clipped = ratio.clamp(1 - self.config.clip, 1 + self.config.clip)
        policy_loss = -torch.minimum(ratio * moment.advantage, clipped * moment.advantage).mean()
        return policy_loss, (self._value(moment.seen) - moment.result).square().mean(), entropy.mean()

    @torch.no_grad()
    def _follow(self) -> None:
        for slow, fast in zip(self.averages, (self.alice, self.bob), strict=True):
            for ours, theirs in zip(slow.parameters(), fast.parameters(), strict=True):
                ours.lerp_(theirs, self.config.average_rate)


class Moment(NamedTuple):
    """One agent's decisions at one point of a batch of debates.

    Attributes:
        seen: What the agent saw. move: int64 (N,) or (N, Q).
        result: float32 (N,), the agent's own reward at the end. log_chance: (N,), of the move when it was made.
        advantage: float32 (N,), the result over the critic's guess, standardised.
    """

    seen: View
    move: Tensor
    result: Tensor
    log_chance: Tensor
    advantage: Tensor
