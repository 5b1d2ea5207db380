"""The learned debaters' networks: equivariant in the sub-claims and of any width.

A position is described by one vector for the claim and one for each sub-claim (`NetworkInput`). Rounds of exchange
between the sub-claims and their sum (deep sets) give each sub-claim a feature; heads read them. Where an aggregator is
not told by weights and a threshold (tables, compositions) and is at most `TABLE_WIDTH` wide, its truth table takes
part in the exchange: a row of the table gathers the sub-claims by the bit it gives them, and gives back by the same
bits, so that swapping sub-claims swaps the table's columns with them.

The networks see the written facts of an aggregator alone: never its sensitivity, a cover or a block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from envs.library import Library

TABLE_WIDTH = 6
KINDS = ("symmetric", "threshold", "table", "composition")
SUB_CLAIM_FEATURES = 7
CLAIM_FEATURES = 13


class NetworkInput(NamedTuple):
    """N positions that a network looks at.

    Attributes:
        level: int64 (N,). claimed: int64 (N,).
        truth: int64 (N,), -1 where it is hidden.
        aggregator: int64 (N,), -1 where there is none yet (the root claim).
        assignment: int64 (N, Q), -1 where it is not finished.
        truths: int64 (N, Q), -1 where they are hidden or not settled.
    """

    level: Tensor
    claimed: Tensor
    truth: Tensor
    aggregator: Tensor
    assignment: Tensor
    truths: Tensor

    def take(self, index: Tensor) -> NetworkInput:
        """The positions at `index`."""
        return NetworkInput(*(column[index] for column in self))


class Facts(nn.Module):
    """The written facts of a library's aggregators, as arrays that positions are looked up in.

    Args:
        library: The aggregators. depth, rho: the game's.
    """

    def __init__(self, library: Library, depth: int, rho: float) -> None:
        super().__init__()
        count, width = len(library.aggregators), library.width
        sub_claim, claim = np.zeros((count, width, 3)), np.zeros((count, 6))
        for a, f in enumerate(library.aggregators):
            weights = np.array(f.weights, float)
            total = max(np.abs(weights).sum(), 1.0)
            scaled = (weights / np.abs(weights).max(initial=1), 4 * weights / total, np.ones(f.width))
            sub_claim[a, : f.width] = np.stack(scaled, -1)
            claim[a, KINDS.index(f.kind)] = 1
            claim[a, 4] = 0 if f.threshold is None else 2 * f.threshold / total
            claim[a, 5] = f.width / 8
        self.depth, self.rho, self.width = depth, rho, width
        self.tabled = width <= TABLE_WIDTH and any(f.kind in KINDS[2:] for f in library.aggregators)
        self.register_buffer("sub_claim", torch.tensor(sub_claim, dtype=torch.float32), persistent=False)
        self.register_buffer("claim", torch.tensor(claim, dtype=torch.float32), persistent=False)
        if self.tabled:
            outputs = torch.as_tensor(library.outputs).float()
            rows = torch.as_tensor(library.legal).any(1).float()
            bits = torch.as_tensor(library.bits).float()
            for name, value in (("outputs", outputs), ("rows", rows), ("bits", bits)):
                self.register_buffer(name, value, persistent=False)

    def forward(self, seen: NetworkInput) -> tuple[Tensor, Tensor, Tensor]:
        """Sub-claim features (N, Q, F), claim features (N, G), and which sub-claims are present, float (N, Q, 1)."""
        a = seen.aggregator.clamp(min=0)
        none = (seen.aggregator < 0)[:, None]
        facts = self.sub_claim[a] * ~none[:, :, None]
        z, y = seen.assignment, seen.truths
        present = facts[:, :, 2:]
        known = torch.stack([z == 1, z == 0, y == 1, y == 0], -1).float()
        level = seen.level.float()
        numbers = torch.stack(
            [
                level / self.depth, 1 / (1 + level), seen.claimed.float(), (seen.truth == 1).float(),
                (seen.truth == 0).float(), torch.full_like(level, 1 / self.rho), none[:, 0].float(),
            ], -1,
        )  # fmt: skip
        return torch.cat([facts, known * present], -1), torch.cat([numbers, self.claim[a] * ~none], -1), present


class DebaterNetwork(nn.Module):
    """Scores for the moves of one debater.

    Args:
        facts: What it looks aggregators up in.
        hidden: Width of the layers.
        whole: How many outputs belong to the claim as a whole.
        each: How many outputs belong to each sub-claim.
        rounds: Rounds of exchange between the sub-claims.
    """

    def __init__(self, facts: Facts, hidden: int, whole: int, each: int, rounds: int = 2) -> None:
        super().__init__()
        self.facts = facts
        self.each_in = nn.Linear(SUB_CLAIM_FEATURES + CLAIM_FEATURES, hidden)
        self.rounds = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * hidden + CLAIM_FEATURES, hidden), nn.GELU(), nn.Linear(hidden, hidden))
            for _ in range(rounds)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(rounds))
        self.tables = nn.ModuleList(TableExchange(hidden) for _ in range(rounds if facts.tabled else 0))
        self.whole = nn.Sequential(nn.Linear(hidden + CLAIM_FEATURES, hidden), nn.GELU(), nn.Linear(hidden, whole))
        self.each = nn.Linear(hidden, each)

    def forward(self, seen: NetworkInput) -> tuple[Tensor, Tensor]:
        """Outputs of the claim (N, whole) and of each sub-claim (N, Q, each)."""
        x, g, present = self.facts(seen)
        spread = g[:, None, :].expand(-1, x.shape[1], -1)
        h = self.each_in(torch.cat([x, spread], -1)) * present
        for number, (mix, norm) in enumerate(zip(self.rounds, self.norms, strict=True)):
            pooled = h.sum(1, keepdim=True).expand_as(h) / 4
            h = norm(h + mix(torch.cat([h, pooled, spread], -1))) * present
            if self.facts.tabled:
                h = (h + self.tables[number](h, seen.aggregator.clamp(min=0), self.facts)) * present
        return self.whole(torch.cat([h.sum(1) / 4, g], -1)), self.each(h)


class TableExchange(nn.Module):
    """One exchange between sub-claims and the rows of a truth table, unchanged when both are reordered together.

    The rows' features are few and their nonlinearity cheap, since there are 2^Q of them for each position.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        size = max(8, hidden // 4)
        self.gather_one, self.gather_zero = nn.Linear(hidden, size), nn.Linear(hidden, size)
        self.output = nn.Linear(1, size)
        self.give_one, self.give_zero = nn.Linear(size, hidden), nn.Linear(size, hidden)

    def forward(self, h: Tensor, aggregator: Tensor, facts: Facts) -> Tensor:
        """Changes (N, Q, H) to the sub-claims' features h (N, Q, H)."""
        bits = facts.bits
        rows = bits @ self.gather_one(h) + (1 - bits) @ self.gather_zero(h)
        rows = torch.relu(rows / 2 + self.output(facts.outputs[aggregator][:, :, None]))
        rows = rows * facts.rows[aggregator][:, :, None] / 8
        return self.give_one(bits.T @ rows) + self.give_zero((1 - bits).T @ rows)
