"""Alice's lies at P positions: how likely each answer is a lie, and one mirror descent step on the policy of lies.

Given her answers z, the lies B are coin flips conditioned on the truths z xor B giving the claim's real truth. Where
the library is tabulated all sets of lies are listed. Elsewhere nothing is listed: what Bob's look-out for each
sub-claim costs is linear in B, so a mirror descent step stays inside the family of flips and is a step of the log-odds
alone, and the cross entropy needs only how likely each flip is under the target, and the chance of the condition
(`agents.conditional_flips`).
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from agents.conditional_flips import AnswerFlips
from agents.mirror_step import LOWEST, mirror_step, score_error
from agents.networks import NetworkInput
from agents.policy import AlicePolicy, cross_entropy, masked
from envs.game import Game

LOWEST_BESIDE_TRUE = -8.0  # a score's floor there: no lie ever pays, and there is nothing to remember


class ListedLies:
    """Every set of lies, for a tabulated library.

    Args:
        game: The rules.
        inputs: The positions as Alice sees them.
        aggregator, truth: int64 (P,). z: int64 (P, Q).
    """

    def __init__(self, game: Game, inputs: NetworkInput, aggregator: Tensor, truth: Tensor, z: Tensor) -> None:
        library = game.library
        self.inputs, self.bits = inputs, library.bits.float()
        codes = library.code(z)[:, None] ^ torch.arange(1 << game.width)
        self.legal = library.legal[aggregator, truth].gather(1, codes)

    def _log_chances(self, scores: Tensor) -> Tensor:
        return masked(scores @ self.bits.T, self.legal)

    def chances(self, alice: AlicePolicy) -> Tensor:
        """float64 (P, Q): how likely each answer is a lie."""
        return (self._log_chances(alice.lies(self.inputs)).exp() @ self.bits).double()

    def aim(self, alice: AlicePolicy, magnet: AlicePolicy, per_lie: Tensor, step_size: float, pull: float) -> None:
        """Set the target: a step of size `step_size` along the value `per_lie` (P, Q) of each lie, and the magnet."""
        old, slow, gain = alice.lies(self.inputs), magnet.lies(self.inputs), step_size * per_lie.float()
        moved = mirror_step(self._log_chances(old), gain @ self.bits.T, self._log_chances(slow), pull)
        self.target = torch.softmax(moved.masked_fill(~self.legal, -1e9), -1)
        self.scores = _moved_scores(self.inputs, old, gain, slow, pull)

    def part(self, index: Tensor) -> ListedLies:
        """The same, target included, at some of the positions."""
        some = copy.copy(self)
        some.inputs, some.legal = self.inputs.take(index), self.legal[index]
        some.target, some.scores = self.target[index], self.scores[index]
        return some

    def loss(self, alice: AlicePolicy) -> Tensor:
        """Distance between the target and the policy, averaged over the positions."""
        scores = alice.lies(self.inputs)
        entropy = cross_entropy(self.target, self._log_chances(scores))
        return entropy + score_error(scores, self.scores, _floor(self.inputs))


class FlippedLies:
    """Lies as conditioned flips, at any width; arguments and methods as `ListedLies`.

    A flip is written as the truth y = z xor B, whose log-odds are those of the lie with the sign turned where z is 1.
    """

    def __init__(self, game: Game, inputs: NetworkInput, aggregator: Tensor, truth: Tensor, z: Tensor) -> None:
        self.inputs, self.aggregator, self.truth, self.z = inputs, aggregator, truth, z
        self.sign = (1 - 2 * z).double()
        self.within = (~game.beyond[aggregator]).double()
        self.flips = AnswerFlips(game.library.aggregators)

    def _odds(self, scores: Tensor) -> Tensor:
        return scores.double() * self.sign

    def chances(self, alice: AlicePolicy) -> Tensor:
        true = self.flips.chances(self.aggregator, self._odds(alice.lies(self.inputs)), self.truth)
        return torch.where(self.z > 0, 1 - true, true) * self.within

    def aim(self, alice: AlicePolicy, magnet: AlicePolicy, per_lie: Tensor, step_size: float, pull: float) -> None:
        old, slow, gain = alice.lies(self.inputs), magnet.lies(self.inputs), step_size * per_lie
        odds = mirror_step(self._odds(old), gain * self.sign, self._odds(slow), pull)
        self.target = self.flips.chances(self.aggregator, odds, self.truth) * self.within
        self.scores = _moved_scores(self.inputs, old, gain.float(), slow, pull)

    def part(self, index: Tensor) -> FlippedLies:
        some = copy.copy(self)
        some.inputs = self.inputs.take(index)
        for name in ("aggregator", "truth", "z", "sign", "within", "target", "scores"):
            setattr(some, name, getattr(self, name)[index])
        return some

    def loss(self, alice: AlicePolicy) -> Tensor:
        scores = alice.lies(self.inputs)
        odds = self._odds(scores)
        free = (self.target * odds - torch.nn.functional.softplus(odds) * self.within).sum(-1)
        entropy = -(free - self.flips.log_condition(self.aggregator, odds, self.truth)).mean()
        return entropy + score_error(scores, self.scores, _floor(self.inputs))


def _floor(inputs: NetworkInput) -> Tensor:
    return torch.where((inputs.claimed == inputs.truth)[:, None], LOWEST_BESIDE_TRUE, LOWEST)


def _moved_scores(inputs: NetworkInput, old: Tensor, gain: Tensor, magnet: Tensor, pull: float) -> Tensor:
    floor = _floor(inputs)
    return mirror_step(torch.maximum(old, floor), gain, torch.maximum(magnet, floor), pull)


def lies_at(game: Game, inputs: NetworkInput, aggregator: Tensor, truth: Tensor, z: Tensor) -> ListedLies | FlippedLies:
    """The lies at positions, listed where the library is tabulated."""
    kind = ListedLies if game.library.tabulated else FlippedLies
    return kind(game, inputs, aggregator, truth, z)
