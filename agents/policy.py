"""The learned policies: networks turned into distributions over whole moves.

Alice's answers, and her lies, are independent coin flips for each sub-claim, conditioned on being legal: one score a
sub-claim, and P(move) in proportion to exp(sum of the scores of its ones) over the legal moves. Such a family
reaches, as closely as one likes, every profile of how often each sub-claim is a lie, and that profile is all that
decides Bob's payoff. Bob's responses are a softmax of one score each.

Where Alice knows the truths (the random oracle) a profile is not enough: to answer four of five like sub-claims by 1
may be best, three being too sensitive and five one lie too many, and flips alike cannot say "four". There a small
network scores each assignment as a whole beside the flips. Where assignments are too many to list (claim trees with
wide aggregators), or truths are not drawn, the flips are all there is, also to an Alice who learned with that network.

All scores start at 0, so that play starts uniform. Random ones would favour some claims before anything is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agents.conditional_flips import AnswerFlips
from agents.networks import CLAIM_FEATURES, DebaterNetwork, Facts, NetworkInput
from agents.unique_rows import unique_rows
from envs.game import Game
from envs.rules import ASSIGN, CLAIM, DECOMPOSE, LIE, RESPOND
from envs.view import View, legal_moves

CLAIM_SCORE, CANDIDATE_SCORE = 0, 1  # Alice's outputs for a claim
ANSWER_SCORE, LIE_SCORE = 0, 1  # Alice's outputs for each sub-claim


class AlicePolicy(nn.Module):
    """Alice: claim, decompose, assign and lie heads on one network."""

    def __init__(self, game: Game, hidden: int) -> None:
        super().__init__()
        facts = Facts(game.library, game.depth, game.env.rho)
        self.network = DebaterNetwork(facts, hidden, whole=2, each=2).silenced()
        self.knows_truths = not game.adversarial
        with torch.random.fork_rng(devices=[]):  # drawn aside: where it is of no use it changes nothing
            self.joint = JointScores(hidden)

    def candidates(self, seen: NetworkInput) -> Tensor:
        """A score for each candidate decomposition (N,)."""
        return self.network(seen)[0][:, CANDIDATE_SCORE]

    def claims(self, seen: NetworkInput) -> Tensor:
        """Scores (N, 2) of claiming 0 and 1."""
        score = self.network(seen)[0][:, CLAIM_SCORE]
        return torch.stack([-score, score], -1)

    def answers(self, seen: NetworkInput) -> Tensor:
        """The log-odds (N, Q) that each answer is 1, before the condition."""
        return self.network(seen)[1][:, :, ANSWER_SCORE]

    def answer_scores(self, seen: NetworkInput, bits: Tensor) -> Tensor:
        """Scores (N, 2^Q) of all assignments, bits float (2^Q, Q)."""
        h, g = self.network.features(seen)
        scores = self.network.each(h)[:, :, ANSWER_SCORE] @ bits.T
        return scores + self.joint(h, g, bits) if self.knows_truths else scores

    def lies(self, seen: NetworkInput) -> Tensor:
        """The log-odds (N, Q) that each answer is a lie, before the condition."""
        return self.network(seen)[1][:, :, LIE_SCORE]


class JointScores(nn.Module):
    """Scores of whole assignments, read from the sum of what their ones look like; 0 until something is learned."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.ones, self.claim = nn.Linear(hidden, hidden), nn.Linear(CLAIM_FEATURES, hidden, bias=False)
        self.score = nn.Linear(hidden, 1)
        nn.init.zeros_(self.score.weight)
        nn.init.zeros_(self.score.bias)

    def forward(self, h: Tensor, g: Tensor, bits: Tensor) -> Tensor:
        """(N, 2^Q), from the sub-claims' features h (N, Q, H), the claim's g (N, G) and bits float (2^Q, Q)."""
        read = bits @ self.ones(h) + self.claim(g)[:, None, :]
        return self.score(nn.functional.gelu(read))[:, :, 0]


class BobPolicy(nn.Module):
    """Bob: one head over accept, challenge and the sub-claims."""

    def __init__(self, game: Game, hidden: int) -> None:
        super().__init__()
        facts = Facts(game.library, game.depth, game.env.rho)
        self.network = DebaterNetwork(facts, hidden, whole=2, each=1).silenced()

    def responses(self, seen: NetworkInput) -> Tensor:
        """Scores (N, 2 + Q); unmasked."""
        whole, each = self.network(seen)
        return torch.cat([whole, each[:, :, 0]], -1)


def masked(scores: Tensor, legal: Tensor) -> Tensor:
    """Log-probabilities (N, M) of a softmax over the legal moves; a row without one is uniform over all."""
    legal = legal | ~legal.any(-1, keepdim=True)
    return torch.log_softmax(scores.masked_fill(~legal, -1e9), -1)


def cross_entropy(target: Tensor, log_probabilities: Tensor) -> Tensor:
    """Of distributions (N, M), averaged over the rows; what the policy next to never does counts as that."""
    return -(target * log_probabilities.clamp(min=-60)).sum(-1).mean()


def network_input(seen: View) -> NetworkInput:
    """The view's content as a network reads it (a menu is read candidate by candidate: `candidate_input`)."""
    return _input(seen, seen.aggregator, seen.truths)


def candidate_input(seen: View, k: int) -> NetworkInput:
    """The positions where candidate k of the menu is the one chosen."""
    return _input(seen, seen.menu[:, k], None if seen.answers is None else seen.answers[:, k])


def _input(seen: View, aggregator: Any, truths: Any) -> NetworkInput:
    n, width = len(seen.level), seen.game.width

    def column(values: Any, shape: tuple[int, ...]) -> Tensor:
        return torch.full(shape, -1) if values is None else torch.as_tensor(values).long()

    return NetworkInput(
        column(seen.level, (n,)), column(seen.claimed, (n,)), column(seen.truth, (n,)), column(aggregator, (n,)),
        column(seen.assignment, (n, width)), column(truths, (n, width)),
    )  # fmt: skip


class LearnedPlayer:
    """A policy as a player, on NumPy or torch views.

    Args:
        policy: An `AlicePolicy` or a `BobPolicy`.
    """

    needs_state = False

    def __init__(self, policy: AlicePolicy | BobPolicy) -> None:
        self.policy = policy

    @torch.no_grad()
    def probabilities(self, seen: View) -> Any:
        """float64 (N, M), of the view's array library; assignments and lies need a tabulated library."""
        result = move_log_probabilities(self.policy, seen).double().exp()
        result = result / result.sum(-1, keepdim=True)
        return result.cpu().numpy() if seen.game.xp is np else result

    @torch.no_grad()
    def act(self, seen: View, u: Any) -> Any:
        """A move for each debate: drawn by u[:, 0], or by one column a sub-claim where the library is not tabulated."""
        library, xp = seen.game.library, seen.game.xp
        if seen.phase in (ASSIGN, LIE) and not library.tabulated:
            flipped = self._flip(seen, torch.as_tensor(u[:, 1:]))
            return library.array(flipped.cpu() if xp is np else flipped, "int8")
        cumulative = self.probabilities(seen).cumsum(-1)
        drawn = xp.minimum((u[:, :1] >= cumulative).sum(-1), xp.asarray(cumulative.shape[-1] - 1))
        return library.bits[drawn] if seen.phase in (ASSIGN, LIE) else drawn

    def _flip(self, seen: View, u: Tensor) -> Tensor:
        """Answers or lies int64 (N, Q), flip by flip."""
        rows, flips = network_input(seen), AnswerFlips(seen.game.library.aggregators)
        aggregator = rows.aggregator.clamp(min=0)
        if seen.phase == ASSIGN:
            return flips.draw(aggregator, self.policy.answers(rows), rows.claimed, u)
        z = rows.assignment
        return z ^ flips.draw(aggregator, self.policy.lies(rows) * (1 - 2 * z), rows.truth, u)


def move_log_probabilities(policy: AlicePolicy | BobPolicy, seen: View) -> Tensor:
    """log-probabilities (N, M) in the order of `envs.view.legal_moves`, differentiable in the policy."""
    legal = torch.as_tensor(legal_moves(seen))
    if seen.phase == DECOMPOSE:
        candidates = [distinct(candidate_input(seen, k)) for k in range(seen.menu.shape[1])]
        return masked(torch.stack([policy.candidates(rows)[inverse] for rows, inverse in candidates], -1), legal)
    rows, inverse = distinct(network_input(seen))
    if seen.phase == CLAIM:
        scores = policy.claims(rows)
    elif seen.phase == RESPOND:
        scores = policy.responses(rows)
    else:
        bits = torch.as_tensor(seen.game.library.bits).float()
        scores = policy.answer_scores(rows, bits) if seen.phase == ASSIGN else policy.lies(rows) @ bits.T
    return masked(scores[inverse], legal)


def distinct(seen: NetworkInput) -> tuple[NetworkInput, Tensor]:
    """The distinct positions, and for each position the number of its own."""
    packed = torch.cat([column.reshape(len(column), -1) for column in seen], -1)
    rows, inverse, _ = unique_rows(packed)
    width = seen.assignment.shape[1]
    parts = rows.split([1, 1, 1, 1, width, width], -1)
    return NetworkInput(*(part[:, 0] for part in parts[:4]), *parts[4:]), inverse
