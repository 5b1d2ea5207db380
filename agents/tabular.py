"""Magnetic mirror descent in tables: `agents.mirror_descent` without networks, samples or fitting.

Every round sweeps the whole game. Values go up from the leaves, how often a claim is reached goes down from the root,
both exactly and under the present policies, and then every policy of both debaters, at every level, takes the same step
(`agents.mirror_step`) along the same action values, measured in the same units of what is at stake, as the networks are
fitted to. What this reaches, and a network does not, is the network's error. As there the step has to
fall: eta goes down to 0 linearly. Nothing here sees a sensitivity, a cover or a block.

Alice stands in a *situation*: what she knows of a claim beside its level, its claimed bit and the aggregator. With the
adversarial oracle it is the claim's truth (2 of them); with the random oracle it is the code of the true answers (2^Q),
which give the truth. Codes are padded ones (`envs.library`).
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.learner_config import LearnerConfig
from agents.lookahead import AfterStateValues
from agents.mirror_descent import CLAMP
from agents.mirror_step import mirror_step
from agents.policy import LearnedPlayer, masked
from envs.config import ConfigError
from envs.game import Game
from envs.rules import ASSIGN, CLAIM, DECOMPOSE, LIE
from envs.view import View

MOST_CELLS = 1 << 22  # numbers in the largest table; a sweep holds a score of such tables


class Policies(NamedTuple):
    """Both debaters' tables, a number for each move; d levels (level 1 first), A aggregators, N situations, S = 2^Q.

    Attributes:
        claims: float64 (2 truth, 2), Alice's claim at the root, where she is free.
        answers: float64 (d, A, 2 claimed, N, S).
        lies: float64 (d, A, 2 truth, S answers, S); of no rows with the random oracle.
        responses: float64 (d, A, S answers, 2 + Q).
    """

    claims: Tensor
    answers: Tensor
    lies: Tensor
    responses: Tensor


class TabularMirrorDescent:
    """Self-play of two tables by magnetic mirror descent; arguments and attributes as `MirrorDescent`'s.

    Nothing is drawn, so the seed changes nothing.

    Raises:
        ConfigError: the game is not one to be swept: a claim tree, menus, a Bob who sees truths, or too large.
    """

    def __init__(self, game: Game, config: LearnerConfig, seed: int) -> None:
        check_sweepable(game)
        self.game, self.config = game, config
        self.board = Board(game)
        self.policies = self.board.uniform()  # log-probabilities
        self.magnets = copy.deepcopy(self.policies)  # the same, up to a constant a row
        self.averages = Policies(*(table.exp() for table in self.policies))  # probabilities
        self.iteration = 0

    def players(self) -> dict[str, LearnedPlayer]:
        """The averaged pair and the last iterate, as `MirrorDescent.players`."""
        average, last = TablePlayer(self.averages), TablePlayer(Policies(*(table.exp() for table in self.policies)))
        return {"alice": average, "bob": average, "alice_last": last, "bob_last": last}

    def state_dict(self) -> dict[str, Any]:
        """A snapshot of everything that the next step depends on."""
        kinds = {"policy": self.policies, "magnet": self.magnets, "average": self.averages}
        return copy.deepcopy({name: tables._asdict() for name, tables in kinds.items()} | {"iteration": self.iteration})

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from `state_dict()`.

        Raises:
            ConfigError: the tables are another game's.
        """
        for name, table in saved["policy"].items():
            if table.shape != getattr(self.policies, name).shape:
                raise ConfigError(
                    "env.depth, env.oracle or problem.aggregators: these tables are of another game and say nothing "
                    "about this one; let them play the game they learned"
                )
        device = self.policies.answers.device
        self.policies, self.magnets, self.averages = (
            Policies(**{name: table.to(device, copy=True) for name, table in saved[kind].items()})
            for kind in ("policy", "magnet", "average")
        )
        self.iteration = int(saved["iteration"])

    def step(self) -> dict[str, float]:
        """One round: one sweep, one mirror descent step everywhere."""
        step_size = self.config.step_size * (1 - self.iteration / self.config.iterations)
        advantages = Sweep(self.board, self.policies).advantages()
        before, tables = self.policies, zip(self.board.legal, self.policies, self.magnets, advantages, strict=True)
        self.policies = Policies(*(self._moved(*table, step_size) for table in tables))
        for magnet, average, policy in zip(self.magnets, self.averages, self.policies, strict=True):
            magnet.lerp_(policy, self.config.magnet_rate)
            average.lerp_(policy.exp(), self.config.average_rate)
        self.iteration += 1
        return {
            "debug/step_size": step_size,
            "debug/alice_step": _distance(before.answers, self.policies.answers),
            "debug/bob_step": _distance(before.responses, self.policies.responses),
        }

    def _moved(self, legal: Tensor, old: Tensor, magnet: Tensor, advantage: Tensor, step_size: float) -> Tensor:
        pull = step_size * self.config.magnet
        return masked(mirror_step(old, step_size * advantage.clamp(-CLAMP, CLAMP), magnet, pull), legal)


def _distance(old: Tensor, new: Tensor) -> float:
    """Total variation between tables of log-probabilities, the mean over their rows."""
    return float((new.exp() - old.exp()).abs().sum(-1).mean() / 2)


class Board:
    """The game as arrays: what is legal, how the claims are dealt, and how many situations there are.

    Attributes:
        bits: float64 (S, Q), the assignment behind each code.
        output, stable: bool (A, S), of the aggregator at each code. inside: bool (A, Q), False past its width.
        truth: bool (A, N), the claim's truth in each situation.
        nature: float64 (A, 2, N), the chance of aggregator and situation given claimed bit and the situation's truth.
        leaves: float64 (2 claimed, 2 truth), Alice's reward at a leaf.
        root: float64 (2 claimed, 2 truth), how root claims are dealt.
        legal: `Policies` of bools.
    """

    def __init__(self, game: Game) -> None:
        self.game, library = game, game.library
        self.bits = library.bits.double()
        self.output, self.stable, self.inside = library.legal[:, 1], library.stabilities, ~game.beyond
        count, size = self.output.shape
        self.truth = self.output if not game.adversarial else torch.tensor([[False, True]]).expand(count, -1)
        self.nature = torch.as_tensor(self._dealt()).to(self.bits.device)
        self.leaves = AfterStateValues(game).table[0]
        false = 1 - torch.eye(2, dtype=torch.float64)
        self.root = (false * game.p_false + (1 - false) * (1 - game.p_false)) / 2
        a, t, z = (index.reshape(-1) for index in torch.meshgrid(*map(torch.arange, (count, 2, size)), indexing="ij"))
        lies = library.legal_lies(a, t, library.bits[z]).view(count, 2, size, size)
        self.legal = Policies(
            torch.ones((2, 2)) > 0,
            library.legal[:, :, None].expand(game.depth, -1, -1, self.truth.shape[1], -1),
            (lies if game.adversarial else lies[:, :, :0]).expand(game.depth, -1, -1, -1, -1),
            game.responses[:, None].expand(game.depth, -1, size, -1),
        )

    def _dealt(self) -> np.ndarray:
        """`nature`, from the deck; a menu of one candidate is redrawn until it is stable."""
        game, deck = self.game, self.game.deck
        nature = np.zeros((len(self.output), 2, self.truth.shape[1]))
        for bit in (0, 1):
            entries = np.arange(deck.first[bit], deck.last[bit] + 1)
            entries = entries[deck.stable[entries]]
            chance = deck.probability[entries] / deck.probability[entries].sum()
            if game.adversarial:
                nature[deck.aggregator[entries], bit] = chance[:, None]
            else:
                nature[deck.aggregator[entries], :, deck.code[entries]] = chance[:, None]
        return nature

    def uniform(self) -> Policies:
        """Uniform policies over the legal moves, as log-probabilities."""
        return Policies(*(masked(torch.zeros(legal.shape, dtype=torch.float64), legal) for legal in self.legal))

    def lied(self, lies: Tensor) -> Tensor:
        """float64 (A or 1, N, S, Q): how likely each answer is a lie, from a level's probabilities of lies."""
        if self.game.adversarial:
            return lies @ self.bits
        return (self.bits != self.bits[:, None]).double()[None]  # with drawn truths it is settled


class Level(NamedTuple):
    """One level, looked ahead from under the present policies; values are Alice's expected reward.

    Attributes:
        gain: float64 (A, S, Q), by how much a lie at sub-claim i changes her reward if Bob samples i.
        stake: float64 (A, S), the largest |gain|.
        lied: float64 (A or 1, N, S, Q). bob: float64 (A, S, 2 + Q), his probabilities.
        response: float64 (A, N, S, 2 + Q), her reward after each response of his.
        value: float64 (A, N, S), of each assignment. claim: float64 (A, 2, N), of each claim.
    """

    gain: Tensor
    stake: Tensor
    lied: Tensor
    bob: Tensor
    response: Tensor
    value: Tensor
    claim: Tensor


class Sweep:
    """Exact action values of every move of the game, under given policies.

    Args:
        board: The game. policies: As log-probabilities.

    Attributes:
        values: float64 (d + 1, 2 claimed, 2 truth), what claims of each level are worth to Alice.
    """

    def __init__(self, board: Board, policies: Policies) -> None:
        self.board, self.policies = board, Policies(*(table.exp() for table in policies))
        self.levels: list[Level] = []
        values = [board.leaves]
        for number in range(board.game.depth):
            self.levels.append(self._look_ahead(number, values[-1]))
            weighted = board.nature * self.levels[-1].claim
            truth = board.truth[:, None]
            values.append(torch.stack([(weighted * (truth == bit)).sum((0, 2)) for bit in (False, True)], -1))
        self.values = torch.stack(values)

    def _look_ahead(self, number: int, below: Tensor) -> Level:
        board = self.board
        answers, lies, bob = (table[number] for table in self.policies[1:])
        z = board.bits.long()
        held, broken = below[z, z], below[z, 1 - z]
        gain = (broken - held) * board.inside[:, None]
        lied = board.lied(lies)
        sampled = held + lied * gain[:, None]
        challenged = torch.where(board.stable, 1.0, -1.0).double()[:, None, :, None].expand(*sampled.shape[:3], 1)
        response = torch.cat([torch.ones_like(challenged), challenged, sampled], -1)
        value = (bob[:, None] * response).sum(-1)
        claim = (answers * value[:, None]).sum(-1)
        return Level(gain, gain.abs().amax(-1).clamp(min=1e-9), lied, bob, response, value, claim)

    def advantages(self) -> Policies:
        """What each move is worth over the policy's mean, in stakes, in the shape of the tables."""
        alice = [(self._answers(level), self._lies(level)) for level in self.levels]
        bob, reach = [], self._root_reach()
        for number in reversed(range(len(self.levels))):
            joint = self._joint(number, reach)
            bob.insert(0, self._responses(self.levels[number], joint))
            reach = self._reach_below(self.levels[number], joint)
        answers, lies = zip(*alice, strict=True)
        return Policies(self._root_claims(), torch.stack(answers), torch.stack(lies), torch.stack(bob))

    def _answers(self, level: Level) -> Tensor:
        return (level.value[:, None] - level.claim[..., None]) / level.stake[:, None, None]

    def _lies(self, level: Level) -> Tensor:
        """Values of sets of lies, up to a constant; beside true claims as `mirror_descent.Targets` reckons them."""
        board = self.board
        if not board.game.adversarial:
            return self.policies.lies[0]
        caught = level.bob[:, None, :, 2:]
        anywhere = (board.inside / board.inside.sum(-1, keepdim=True))[:, None, None]
        true = board.output[:, None] == board.truth[:, :, None]
        caught = torch.where(true[..., None], (caught + anywhere) / 2, caught)
        return (caught * (level.gain / level.stake[..., None])[:, None]) @ board.bits.T

    def _root_reach(self) -> Tensor:
        """float64 (2 claimed, 2 truth): how often each root claim is met. Where Alice claims it herself, half of the
        weight is on dealt claims: what is known about lies would wither else."""
        if not self.board.game.free_root:
            return self.board.root
        return (self.policies.claims.T / 2 + self.board.root) / 2

    def _joint(self, number: int, reach: Tensor) -> Tensor:
        """float64 (A, N, S): how likely a debate comes to each situation and assignment, trembles included."""
        board, tremble = self.board, self.board.game.tremble
        legal = board.legal.answers[number].double()
        played = (1 - tremble) * self.policies.answers[number] + tremble * legal / legal.sum(-1, keepdim=True)
        met = reach.T[board.truth.long()].transpose(1, 2) * board.nature  # (A, 2, N)
        return (met[..., None] * played * legal).sum(1)

    def _reach_below(self, level: Level, joint: Tensor) -> Tensor:
        flow = joint[..., None] * level.bob[:, None, :, 2:]
        lies = (flow * level.lied).sum((0, 1))
        held = flow.sum((0, 1)) - lies
        ones = self.board.bits
        rows = [torch.stack([(held * (1 - ones)).sum(), (lies * (1 - ones)).sum()]),
                torch.stack([(lies * ones).sum(), (held * ones).sum()])]  # fmt: skip
        return torch.stack(rows)

    def _responses(self, level: Level, joint: Tensor) -> Tensor:
        """As Bob believes: situations weigh by how often they come with the assignment before him."""
        board = self.board
        joint = joint + 1e-12 * (board.nature.sum(1) > 0)[..., None]
        total = joint.sum(1)[..., None]
        false = board.output[:, None] != board.truth[:, :, None]
        stake = level.stake[..., None] * (joint * false).sum(1)[..., None] / total
        q = -(joint[..., None] * level.response).sum(1) / total
        mean = (level.bob * q).sum(-1, keepdim=True)
        return (q - mean) / stake.clamp(min=1e-6) * board.game.responses[:, None]

    def _root_claims(self) -> Tensor:
        q, claims = self.values[-1].T, self.policies.claims
        if not self.board.game.free_root:
            return torch.zeros_like(claims)
        stake = (q.amax(-1, keepdim=True) - q.amin(-1, keepdim=True)).clamp(min=1e-9)
        return (q - (claims * q).sum(-1, keepdim=True)) / stake


class TablePlayer(LearnedPlayer):
    """Tables as a player, on NumPy or torch views; one object plays either side.

    Args:
        tables: Probabilities.
    """

    def __init__(self, tables: Policies) -> None:
        self.tables = tables

    def probabilities(self, seen: View) -> Any:
        """float64 (N, M), of the view's array library, in the order of `envs.view.legal_moves`."""
        found = self._rows(seen)
        return found.cpu().numpy() if seen.game.xp is np else found

    def _rows(self, seen: View) -> Tensor:
        claims, answers, lies, responses = self.tables
        number = lambda column: torch.as_tensor(column).long().to(claims.device)  # noqa: E731
        if seen.phase == DECOMPOSE:
            return torch.ones((len(seen.level), 1), dtype=torch.float64)
        if seen.phase == CLAIM:
            return claims[number(seen.truth)]
        code = seen.game.library.code
        level, a = number(seen.level) - 1, number(seen.aggregator)
        if seen.phase == ASSIGN:
            situation = seen.truth if seen.game.adversarial else code(seen.truths)
            return answers[level, a, number(seen.claimed), number(situation)]
        z = number(code(seen.assignment))
        return lies[level, a, number(seen.truth), z] if seen.phase == LIE else responses[level, a, z]


def check_sweepable(game: Game) -> None:
    """Raise `ConfigError` for a game that tables do not hold."""
    use = "or use --learner.name mmd"
    if game.tree is not None:
        raise ConfigError(f"problem.path: 'tabular' sweeps procedural problems only; give problem.aggregators, {use}")
    if game.menu > 1:
        raise ConfigError(f"problem.menu is {game.menu}; 'tabular' has no table of menus; use problem.menu 1, {use}")
    if game.sees_truth:
        raise ConfigError("env.bob_sees: 'tabular' has no table of truths for Bob; use env.bob_sees claims, or ppo")
    if not game.library.tabulated:
        raise ConfigError(f"problem.aggregators: 'tabular' lists every assignment; use narrower aggregators, {use}")
    cells = game.depth * len(game.library.aggregators) * 2 << 2 * game.width
    if cells > MOST_CELLS:
        raise ConfigError(
            f"problem.aggregators, env.depth: 'tabular' would need {cells} numbers a table, more than {MOST_CELLS}; "
            f"use narrower or fewer aggregators or fewer levels, {use}"
        )
