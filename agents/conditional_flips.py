"""Independent coin flips conditioned on what an aggregator makes of them, at any width.

Alice's answers to a claim's sub-claims are flips with log-odds `scores`, conditioned on the aggregator giving the bit
she claimed. What is needed is the chance of the condition and exact draws. Both follow from one recursion over the
sub-claims, on a running sum that decides the aggregator's output: the number of ones of a symmetric aggregator, the
weighted sum of a threshold, the code of a truth table. `chance[i][s]` is the probability that the condition will hold
when the first i sub-claims sum to s:

    chance[q][s] = [output(s) = bit],   chance[i][s] = (1 - p_i) chance[i+1][s] + p_i chance[i+1][s + w_i].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from envs.config import NARROW, ConfigError
from fbs.aggregator import Aggregator, Symmetric, Threshold

MAX_SUM = 100_000
TINY = 1e-300


class ConditionalFlips:
    """Flips for assignments of one aggregator.

    Args:
        aggregator: Symmetric or a threshold of any width, or any aggregator at most `NARROW` wide.

    Raises:
        ConfigError: another aggregator, or a threshold whose weights sum to more than `MAX_SUM`.
    """

    def __init__(self, aggregator: Aggregator) -> None:
        self.aggregator = aggregator
        if isinstance(aggregator, Symmetric):
            self.steps = np.ones(aggregator.width, int)
            outputs = np.array(aggregator.by_count)
        elif isinstance(aggregator, Threshold):
            self.steps = np.array(aggregator.weights)
            if np.abs(self.steps).sum() > MAX_SUM:
                raise ConfigError(f"problem: the weights of '{aggregator}' sum to more than {MAX_SUM}; scale them down")
            lowest = self.steps[self.steps < 0].sum()
            outputs = np.arange(lowest, self.steps[self.steps > 0].sum() + 1) >= aggregator.threshold
        elif aggregator.width <= NARROW:
            self.steps = 1 << np.arange(aggregator.width - 1, -1, -1)
            outputs = aggregator.table()
        else:
            raise ConfigError(
                f"problem: '{aggregator}' is {aggregator.width} wide; learners take aggregators wider than {NARROW} "
                "if they are symmetric or thresholds"
            )
        self.start = int(-self.steps[self.steps < 0].sum())  # so that a running sum is an index
        self.outputs = torch.as_tensor(np.asarray(outputs).astype(np.int64))

    def _chances(self, odds: Tensor, bit: Tensor) -> list[Tensor]:
        """chance[0..q], each float64 (N, sums); entries no running sum reaches are not meaningful."""
        chance = [(self.outputs[None, :] == bit[:, None]).double()]
        for i in range(len(self.steps) - 1, -1, -1):
            p, later, w = odds[:, i : i + 1], chance[0], int(self.steps[i])
            shifted = torch.zeros_like(later)
            if w >= 0:
                shifted[:, : later.shape[1] - w] = later[:, w:]
            else:
                shifted[:, -w:] = later[:, :w]
            chance.insert(0, (1 - p) * later + p * shifted)
        return chance

    def log_condition(self, scores: Tensor, bit: Tensor) -> Tensor:
        """log-probability float64 (N,) that free flips with log-odds `scores` (N, width) give `bit` (N,)."""
        chance = self._chances(torch.sigmoid(scores.double()), bit)[0][:, self.start]
        return chance.clamp(min=TINY).log()

    def log_probability(self, scores: Tensor, bit: Tensor, z: Tensor) -> Tensor:
        """log-probability float64 (N,) of assignments z (N, width), given scores (N, width) and output bit (N,)."""
        scores = scores.double()
        free = (scores * z - torch.nn.functional.softplus(scores)).sum(-1)
        return free - self.log_condition(scores, bit)

    @torch.no_grad()
    def chances(self, scores: Tensor, bit: Tensor) -> Tensor:
        """float64 (N, width): how likely each flip is a one, given the condition."""
        odds = torch.sigmoid(scores.double())
        later = self._chances(odds, bit)
        sums = torch.zeros_like(later[0])
        sums[:, self.start] = 1.0  # how likely each running sum is, free flips
        ones = []
        for i, w in enumerate(self.steps.tolist()):
            p = odds[:, i : i + 1]
            flipped = torch.roll(p * sums, w, 1)  # nothing goes round the end: no sum leaves the range
            ones.append((flipped * later[i + 1]).sum(-1))
            sums = (1 - p) * sums + flipped
        return torch.stack(ones, -1) / later[0][:, self.start].clamp(min=TINY)[:, None]

    @torch.no_grad()
    def draw(self, scores: Tensor, bit: Tensor, u: Tensor) -> Tensor:
        """Assignments int64 (N, width) by draws u (N, width); where no assignment gives the bit, anything."""
        odds = torch.sigmoid(scores.double())
        chances = self._chances(odds, bit)
        rows = torch.arange(len(bit))
        total = torch.full_like(rows, self.start)
        z = torch.zeros_like(scores, dtype=torch.int64)
        for i, w in enumerate(self.steps.tolist()):
            # The sums that a legal prefix reaches are in range; for impossible ones the index is only kept in range.
            ahead = (total + w).clamp(0, len(self.outputs) - 1)
            one = odds[:, i] * chances[i + 1][rows, ahead]
            zero = (1 - odds[:, i]) * chances[i + 1][rows, total]
            z[:, i] = (u[:, i] * (one + zero) < one).long()
            total = torch.where(z[:, i] > 0, ahead, total)
        return z


class AnswerFlips:
    """`ConditionalFlips` for the rows of a batch, each with its own aggregator.

    Args:
        aggregators: A library's aggregators; each is looked at when it is first met.
    """

    def __init__(self, aggregators: tuple[Aggregator, ...]) -> None:
        self.aggregators = aggregators
        self._flips: dict[int, ConditionalFlips] = {}

    def log_condition(self, aggregator: Tensor, scores: Tensor, bit: Tensor) -> Tensor:
        """log-probability float64 (N,) that free flips give the output bit (N,)."""
        return self._gather(aggregator, lambda flips, q, rows: flips.log_condition(scores[rows, :q], bit[rows]))

    def log_probability(self, aggregator: Tensor, scores: Tensor, bit: Tensor, z: Tensor) -> Tensor:
        """log-probability float64 (N,) of assignments z (N, Q), given scores (N, Q), output bit (N,)."""
        return self._gather(
            aggregator, lambda flips, q, rows: flips.log_probability(scores[rows, :q], bit[rows], z[rows, :q])
        )

    def chances(self, aggregator: Tensor, scores: Tensor, bit: Tensor) -> Tensor:
        """float64 (N, Q): how likely each flip is a one given the condition; 0 beyond the width."""
        result = torch.zeros(scores.shape, dtype=torch.float64)
        for flips, q, rows in self._groups(aggregator):
            result[rows, :q] = flips.chances(scores[rows, :q], bit[rows])
        return result

    def draw(self, aggregator: Tensor, scores: Tensor, bit: Tensor, u: Tensor) -> Tensor:
        """Assignments int64 (N, Q), zeros beyond the width, by draws u (N, Q)."""
        z = torch.zeros(scores.shape, dtype=torch.int64)
        for flips, q, rows in self._groups(aggregator):
            z[rows, :q] = flips.draw(scores[rows, :q], bit[rows], u[rows, :q])
        return z

    def _gather(self, aggregator: Tensor, ask: Callable[[ConditionalFlips, int, Tensor], Tensor]) -> Tensor:
        """Answers (N,) in the order of the rows; differentiable."""
        groups = self._groups(aggregator)
        answers = torch.cat([ask(flips, q, rows) for flips, q, rows in groups])
        return answers[torch.argsort(torch.cat([rows for _, _, rows in groups]))]

    def _groups(self, aggregator: Tensor) -> list[tuple[ConditionalFlips, int, Tensor]]:
        groups = []
        for a in torch.unique(aggregator).tolist():
            if a not in self._flips:
                self._flips[a] = ConditionalFlips(self.aggregators[a])
            rows = (aggregator == a).nonzero()[:, 0]
            groups.append((self._flips[a], self.aggregators[a].width, rows))
        return groups
