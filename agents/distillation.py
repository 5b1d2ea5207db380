"""One pair of networks for a whole library: self-play in tables, and networks that learn to read the tables' play.

Where a library holds many aggregators, networks that chase a moving target at every assignment of every one of them
fall behind it, and their play cycles. Here the play is found in tables, by `agents.tabular`, which no network holds up;
the networks are fitted to the tables' averaged policies all the while (policy distillation: Rusu et al.,
arXiv 1511.06295). Tables know the aggregators they were made for and no others; the networks read an aggregator's
written facts, and can be asked about one that they never met. What is distilled is what self-play found: neither the
tables nor the networks see a sensitivity, a cover or a block.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from agents.learner_config import LearnerConfig
from agents.networks import NetworkInput
from agents.policy import AlicePolicy, BobPolicy, LearnedPlayer, cross_entropy, masked
from agents.tabular import TabularMirrorDescent
from envs.config import ConfigError
from envs.game import Game


class Distillation:
    """Self-play in tables, read by two networks; arguments and attributes as `MirrorDescent`'s.

    Raises:
        ConfigError: tables cannot hold the game, or the oracle is the random one.
    """

    def __init__(self, game: Game, config: LearnerConfig, seed: int) -> None:
        if not game.adversarial:
            raise ConfigError("env.oracle: 'distilled' learns with the adversarial oracle; or use --learner.name mmd")
        self.game, self.config = game, config
        self.tables = TabularMirrorDescent(game, config, seed)
        self.generator = torch.Generator(game.library.device or "cpu").manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.alice, self.bob = AlicePolicy(game, config.hidden), BobPolicy(game, config.hidden)
        parameters = [*self.alice.parameters(), *self.bob.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=config.learning_rate, fused=True)
        legal = self.tables.board.legal
        # Places in the tables: level - 1, aggregator, and then claimed bit and truth; truth and code; code.
        self.claims = legal.answers.any(-1).nonzero()
        self.lies = legal.lies.any(-1).nonzero()
        written = game.library.legal.any(1)  # codes of no more than the aggregator's width
        self.lies = self.lies[written[self.lies[:, 1], self.lies[:, 3]]]
        self.answered = written.expand(game.depth, -1, -1).nonzero()

    @property
    def iteration(self) -> int:
        """Rounds done."""
        return self.tables.iteration

    def players(self) -> dict[str, LearnedPlayer]:
        """The networks (`alice`, `bob`), which are reported, and the averaged tables (`alice_last`, `bob_last`)."""
        tables = self.tables.players()
        networks = {"alice": LearnedPlayer(self.alice), "bob": LearnedPlayer(self.bob)}
        return networks | {"alice_last": tables["alice"], "bob_last": tables["bob"]}

    def state_dict(self) -> dict[str, Any]:
        """A snapshot of everything that the next step depends on."""
        snapshot = {
            "tables": self.tables.state_dict(), "alice": self.alice.state_dict(), "bob": self.bob.state_dict(),
            "optimizer": self.optimizer.state_dict(), "generator": self.generator.get_state(),
            "iteration": self.iteration,
        }  # fmt: skip
        return copy.deepcopy(snapshot)

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self.tables.load_state_dict(saved["tables"])
        self.alice.load_state_dict(saved["alice"])
        self.bob.load_state_dict(saved["bob"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.generator.set_state(saved["generator"])

    def step(self) -> dict[str, float]:
        """One round: a sweep of the tables, then a few gradient steps towards their averaged policies."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * (1 - self.iteration / self.config.iterations)
        metrics = self.tables.step()
        for _ in range(self.config.epochs):
            losses = {"assign": self._answers(), "lie": self._lies(), "respond": self._responses()}
            if self.game.free_root:
                losses["claim"] = self._root_claims()
            self.optimizer.zero_grad()
            sum(losses.values()).backward()
            nn.utils.clip_grad_norm_([p for g in self.optimizer.param_groups for p in g["params"]], 1.0)
            self.optimizer.step()
        losses = {f"losses/{name}": float(loss.detach()) for name, loss in losses.items()}
        return metrics | losses | {"debug/learning_rate": self.optimizer.param_groups[0]["lr"]}

    def _some(self, places: Tensor) -> Tensor:
        """At most a minibatch of the places, with replacement where they are more."""
        if len(places) <= self.config.minibatch:
            return places
        return places[torch.randint(len(places), (self.config.minibatch,), generator=self.generator)]

    def _seen(self, level: Tensor, claimed: Tensor, truth: Tensor | None, a: Tensor, z: Tensor | None) -> NetworkInput:
        hidden = torch.full((len(level), self.game.width), -1)
        return NetworkInput(
            level + 1, claimed, hidden[:, 0] if truth is None else truth, a, hidden if z is None else z, hidden
        )

    def _answers(self) -> Tensor:
        level, a, claimed, truth = self._some(self.claims).T
        scores = self.alice.answers(self._seen(level, claimed, truth, a, None)) @ self._bits()
        legal = self.game.library.legal[a, claimed]
        return cross_entropy(self.tables.averages.answers[level, a, claimed, truth].float(), masked(scores, legal))

    def _lies(self) -> Tensor:
        level, a, truth, code = self._some(self.lies).T
        claimed = self.game.library.outputs[a, code].long()
        scores = self.alice.lies(self._seen(level, claimed, truth, a, self._assignment(code))) @ self._bits()
        legal = self.tables.board.legal.lies[level, a, truth, code]
        return cross_entropy(self.tables.averages.lies[level, a, truth, code].float(), masked(scores, legal))

    def _responses(self) -> Tensor:
        level, a, code = self._some(self.answered).T
        claimed = self.game.library.outputs[a, code].long()
        scores = self.bob.responses(self._seen(level, claimed, None, a, self._assignment(code)))
        return cross_entropy(
            self.tables.averages.responses[level, a, code].float(), masked(scores, self.game.responses[a])
        )

    def _root_claims(self) -> Tensor:
        truth = torch.arange(2)
        top = torch.full_like(truth, self.game.depth - 1)
        seen = self._seen(top, torch.zeros_like(truth), truth, torch.full_like(truth, -1), None)
        return cross_entropy(
            self.tables.averages.claims.float(), masked(self.alice.claims(seen), torch.ones((2, 2)) > 0)
        )

    def _bits(self) -> Tensor:
        return self.game.library.bits.float().T

    def _assignment(self, code: Tensor) -> Tensor:
        return self.game.library.bits[code].long()
