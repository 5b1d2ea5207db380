"""Neural fictitious self-play, the control that averages.

Fictitious play answers the opponent's average strategy so far by a best response, and takes that into its own average;
in a zero-sum game the averages approach an equilibrium. Here (Heinrich and Silver, "Deep reinforcement learning from
self-play in imperfect-information games", arXiv 1603.01121) both parts are networks that learn from play. Each side
has action values, fitted to the rewards that its own moves came to in recent debates, whose highest is its best
response; and an average policy, fitted to a reservoir of the moves that its best response made. In a share of the
debates, the anticipatory parameter, a side plays its best response, in the others its average.

The only reward comes at the end, so a move's return is Alice's final reward or its negative, nothing is bootstrapped,
and a value counts on the mover's going on as it did. A tremble changes Alice's assignment: its return goes to the
assignment that was played, while the reservoir takes the one she meant.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from agents.action_values import AliceValues, BestResponse, BobValues, Mixture, value_of
from agents.learner_config import LearnerConfig
from agents.policy import AlicePolicy, BobPolicy, LearnedPlayer, move_log_probabilities
from agents.replay import Memory, Moves
from envs.config import NARROW, ConfigError
from envs.engine import Decision, debate
from envs.game import Game
from envs.rules import ALICE_PHASES, ASSIGN, LIE, PHASES, RESPOND
from envs.view import view

EXPLORE = 0.06  # at the start, as in the paper; it falls to 0 linearly
RECENT, RESERVOIR = 1 << 15, 1 << 16  # moves of each phase kept for the values, and for the average


class FictitiousPlay:
    """Neural fictitious self-play of two debaters; arguments and attributes as `MirrorDescent`'s.

    Raises:
        ConfigError: an aggregator is too wide for every assignment to be valued.
    """

    def __init__(self, game: Game, config: LearnerConfig, seed: int) -> None:
        if not game.library.tabulated:
            raise ConfigError(
                f"problem.aggregators: 'nfsp' values every assignment and takes aggregators of width up to {NARROW} "
                "(and at most 131072 assignments in all); use narrower or fewer ones, or --learner.name mmd"
            )
        self.game, self.config = game, config
        self.generator = torch.Generator(game.library.device or "cpu").manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.averages = AlicePolicy(game, config.hidden), BobPolicy(game, config.hidden)
            self.values = AliceValues(game, config.hidden), BobValues(game, config.hidden)
        phases = (*ALICE_PHASES, RESPOND)
        self.recent = {phase: Memory(game, phase, RECENT) for phase in phases}
        self.reservoir = {phase: Memory(game, phase, RESERVOIR) for phase in phases}
        groups = [[p for network in pair for p in network.parameters()] for pair in (self.averages, self.values)]
        self.parameters = [*groups[0], *groups[1]]
        self.optimizer = torch.optim.Adam([{"params": group} for group in groups], lr=config.learning_rate)
        self.iteration = 0

    def players(self) -> dict[str, LearnedPlayer]:
        """The average pair (`alice`, `bob`), which is reported, and the best responses (`alice_last`, `bob_last`)."""
        average, best = [LearnedPlayer(policy) for policy in self.averages], [BestResponse(q) for q in self.values]
        return {"alice": average[0], "bob": average[1], "alice_last": best[0], "bob_last": best[1]}

    def _modules(self) -> dict[str, nn.Module]:
        names = ("alice_average", "bob_average", "alice_values", "bob_values")
        return dict(zip(names, (*self.averages, *self.values), strict=True))

    def _memories(self) -> dict[str, dict[int, Memory]]:
        return {"recent": self.recent, "reservoir": self.reservoir}

    def state_dict(self) -> dict[str, Any]:
        """A snapshot of everything that the next step depends on."""
        snapshot = {name: module.state_dict() for name, module in self._modules().items()} | {
            "optimizer": self.optimizer.state_dict(), "generator": self.generator.get_state(),
            "iteration": self.iteration,
        }  # fmt: skip
        for kind, memories in self._memories().items():
            snapshot[kind] = {PHASES[phase]: memory.state_dict() for phase, memory in memories.items()}
        return copy.deepcopy(snapshot)

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        saved = copy.deepcopy(saved)
        for name, module in self._modules().items():
            module.load_state_dict(saved[name])
        for kind, memories in self._memories().items():
            for phase, memory in memories.items():
                memory.load_state_dict(saved[kind][PHASES[phase]])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.generator.set_state(saved["generator"])
        self.iteration = int(saved["iteration"])

    def step(self) -> dict[str, float]:
        """One round: a batch of debates is played and remembered, then a few gradient steps on what is remembered."""
        left = 1 - self.iteration / self.config.iterations
        self._play(EXPLORE * left)
        # The values' rate stays: a best response that no longer follows the opponent is none.
        self.optimizer.param_groups[0]["lr"] = self.config.learning_rate * left
        for _ in range(self.config.epochs):
            losses = {"value": self._value_loss(), "average": self._average_loss()}
            self.optimizer.zero_grad()
            sum(losses.values()).backward()
            nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimizer.step()
        self.iteration += 1
        return {f"losses/{name}": float(loss.detach()) for name, loss in losses.items()} | {
            "debug/learning_rate": self.optimizer.param_groups[0]["lr"],
            "debug/reservoir": float(max(len(memory) for memory in self.reservoir.values())),
        }

    def _play(self, explore: float) -> None:
        record: list[Decision] = []
        uniform = lambda n, k: torch.rand((n, k), dtype=torch.float64, generator=self.generator)  # noqa: E731
        best = uniform(self.config.batch, 2) < self.config.anticipatory
        alice, bob = (
            Mixture(average, BestResponse(values, explore), chosen)
            for average, values, chosen in zip(self.averages, self.values, best.T, strict=True)
        )
        end = debate(self.game, alice, bob, self.config.batch, uniform, record)
        for number, decision in enumerate(record):
            meant = self._moves(decision, end.reward)
            going = ~decision.state.over
            chosen = best[:, int(decision.state.phase == RESPOND)]
            played = meant
            if decision.state.phase == ASSIGN:  # a tremble may have come between
                played = meant._replace(move=record[number + 1].state.assignment)
            self._remember(played.take(going), meant.take(going & chosen))

    def _moves(self, decision: Decision, reward: Tensor) -> Moves:
        seen = view(self.game, decision.state)
        side = -1.0 if seen.phase == RESPOND else 1.0
        return Moves(seen, decision.move, (side * reward).float())

    def _remember(self, played: Moves, answers: Moves) -> None:
        phase = played.seen.phase
        self.recent[phase].add(played, torch.full((len(played.move),), self.iteration, dtype=torch.float64))
        keys = torch.rand(len(answers.move), dtype=torch.float64, generator=self.generator)
        self.reservoir[phase].add(answers, keys)

    def _value_loss(self) -> Tensor:
        """Squared error of the values of moves made, against the rewards they came to."""
        loss = torch.zeros(())
        for phase, memory in self.recent.items():
            if len(memory):
                moves = memory.draw(self.config.batch, self.generator)
                guess = value_of(self.values[int(phase == RESPOND)], moves.seen, moves.move)
                loss = loss + (guess - moves.result).square().mean()
        return loss

    def _average_loss(self) -> Tensor:
        """Cross entropy of the average policies against the best responses' moves."""
        loss = torch.zeros(())
        for phase, memory in self.reservoir.items():
            if len(memory):
                moves = memory.draw(self.config.batch, self.generator)
                chances = move_log_probabilities(self.averages[int(phase == RESPOND)], moves.seen)
                index = self.game.library.code(moves.move) if phase in (ASSIGN, LIE) else moves.move.long()
                loss = loss - chances.gather(1, index[:, None])[:, 0].clamp(min=-60).mean()
        return loss
