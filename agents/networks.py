"""The learned debaters' networks: equivariant in the sub-claims and of any width.

A position is described by one vector for the claim and one for each sub-claim (`NetworkInput`). Rounds of exchange
between the sub-claims and their sum (deep sets) give each sub-claim a feature; heads read them. How an aggregator is
told apart from others depends on how many there are:

- A few are known by name: each aggregator has a code, and so has each class of sub-claims that can be swapped for one
  another (`agents.orbits.interchangeable`). This says all there is to say, and is quick to learn from. Where their
  assignments are few as well, up to such swaps, each of them has a vector of its own that is learned: in an aggregator
  without symmetry, what is right at one assignment says little about the next.
- Among many it is their written facts that matter, which aggregators never met have too: weights and threshold, and
  for tables and compositions at most `TABLE_WIDTH` wide the truth table, which takes part in the exchange. A row of
  the table gathers the sub-claims by the bit it gives them, hears of the rows within it, and gives back by the same
  bits, so that swapping sub-claims swaps the table's columns with them. Once the sub-claims are answered all is seen
  from the answers: which changes of them turn the output. To swap a sub-claim for its negation changes nothing then,
  so aggregators that differ by that are one to the networks. Of a threshold they see how much of the weight that has
  to change each answer brings, which is all that matters to a lie; answers that bring nothing they do not see, unless
  their truth is known.

The networks see the written facts of an aggregator alone: never its sensitivity, a cover or a block. They see rho
beside a few; among many, whose networks may be taken to other games, they would make of another rho what chance has it.
The networks of few cannot read many, nor the other way round: such weights are refused.
"""

from __future__ import annotations

import zlib
from itertools import accumulate
from operator import mul
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from agents.orbits import interchangeable
from envs.library import Library

TABLE_WIDTH = 6
CODES = 8  # at most so many aggregators, of so many classes of sub-claims each, are known by name
NAMES = 256  # at most so many assignments are
KINDS = ("symmetric", "threshold", "table", "composition")
SUB_CLAIM_FEATURES = 7 + 3 * CODES
CLAIM_FEATURES = 13 + CODES


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
        sub_claim, claim = np.zeros((count, width, 3 + CODES)), np.zeros((count, 6 + CODES))
        classes = [interchangeable(f) for f in library.aggregators]
        self.named = max(count, *(part.max() + 1 for part in classes)) <= CODES
        for a, f in enumerate(library.aggregators):
            weights = np.array(f.weights, float)
            total = max(np.abs(weights).sum(), 1.0)
            scaled = (weights / np.abs(weights).max(initial=1), 4 * weights / total, np.ones(f.width))
            sub_claim[a, : f.width, :3] = np.stack(scaled, -1)
            claim[a, KINDS.index(f.kind)] = 1
            claim[a, 4] = 0 if f.threshold is None else 2 * f.threshold / total
            claim[a, 5] = f.width / 8
            if self.named:
                claim[a, 6 + a] = 1
                sub_claim[a, np.arange(f.width), 3 + classes[a]] = 1
        self._name_assignments(classes, width)
        self.depth, self.rho, self.width, self.aggregators = depth, rho, width, library.aggregators
        thresholds = [f.threshold for f in library.aggregators]
        totals = [max(sum(map(abs, f.weights)), 1) for f in library.aggregators]
        turning = [
            (4 * (t or 0) / total, 4 / total, t is not None) for t, total in zip(thresholds, totals, strict=True)
        ]
        self.register_buffer("turning", torch.tensor(turning, dtype=torch.float32), persistent=False)
        by_table = not self.named and any(f.kind in KINDS[2:] for f in library.aggregators)
        self.tabled = by_table and width <= TABLE_WIDTH
        turns = [self.tabled or t is not None for t in thresholds]
        self.register_buffer("turns", torch.tensor(turns), persistent=False)
        self.register_buffer("sub_claim", torch.tensor(sub_claim, dtype=torch.float32), persistent=False)
        self.register_buffer("claim", torch.tensor(claim, dtype=torch.float32), persistent=False)
        if self.tabled:
            outputs = torch.as_tensor(library.outputs)
            rows = torch.as_tensor(library.legal).any(1).float()
            bits = torch.as_tensor(library.bits).float()
            powers = 2.0 ** torch.arange(width - 1, -1, -1)
            for name, value in (("outputs", outputs), ("rows", rows), ("bits", bits), ("powers", powers)):
                self.register_buffer(name, value, persistent=False)

    def _name_assignments(self, classes: list[np.ndarray], width: int) -> None:
        """Number them by how many ones there are in each class of sub-claims; all by 0 if they are many."""
        place, first = np.zeros((len(classes), width), np.int64), np.zeros(len(classes), np.int64)
        factors = [[1, *accumulate((np.bincount(part) + 1).tolist(), mul)] for part in classes]
        total = sum(numbers[-1] for numbers in factors)
        if self.named and total <= NAMES:
            for a, (part, numbers) in enumerate(zip(classes, factors, strict=True)):
                place[a, : len(part)] = np.array(numbers)[part]
                first[a] = sum(before[-1] for before in factors[:a])
        else:
            total = 0
        self.names = total + 1  # the last is that of an assignment not finished
        self.register_buffer("place", torch.tensor(place), persistent=False)
        self.register_buffer("first", torch.tensor(first), persistent=False)

    def name(self, seen: NetworkInput) -> Tensor:
        """int64 (N,): the number of the assignment, below `names`."""
        a, z = seen.aggregator.clamp(min=0), seen.assignment
        number = self.first[a] + (self.place[a] * z.clamp(min=0)).sum(-1)
        return torch.where((z >= 0).any(-1) & (seen.aggregator >= 0), number, self.names - 1)

    def forward(self, seen: NetworkInput) -> tuple[Tensor, Tensor, Tensor]:
        """Sub-claim features (N, Q, F), claim features (N, G), and which sub-claims are present, float (N, Q, 1)."""
        a = seen.aggregator.clamp(min=0)
        none = (seen.aggregator < 0)[:, None]
        facts = self.sub_claim[a] * ~none[:, :, None]
        z, y = seen.assignment, seen.truths
        claim, claimed, truth = self.claim[a] * ~none, seen.claimed, seen.truth
        if not self.named:
            turned = (z >= 0).any(-1) & self.turns[a] & ~none[:, 0]
            shares = self._shares(facts[:, :, 1], z, self.turning[a]) * turned[:, None]
            presence = facts[:, :, 2]
            if not self.tabled:
                presence = presence * ((shares > 0) | (y >= 0))
            by_shares = torch.stack([torch.zeros_like(shares)] * 2 + [presence, shares], -1)
            by_shares = nn.functional.pad(by_shares, (0, CODES - 1))
            facts = torch.where(turned[:, None, None], by_shares, facts)
            claim = claim * ~turned[:, None]
            y = torch.where(turned[:, None] & (y >= 0), (y == z).long(), y)
            z = torch.where(turned[:, None] & (z >= 0), 1, z)
            truth = torch.where(turned & (truth >= 0), (truth == claimed).long(), truth)
            claimed = torch.where(turned, 1, claimed)
        present, code = facts[:, :, 2:3], facts[:, :, 3:]
        known = torch.stack([z == 1, z == 0, y == 1, y == 0], -1).float()
        signs = known[:, :, 0::2] - known[:, :, 1::2]  # of z and of y: 1, -1, or 0 where not known
        level = seen.level.float()
        numbers = torch.stack(
            [
                level / self.depth, 1 / (1 + level), claimed.float(), (truth == 1).float(),
                (truth == 0).float(), torch.full_like(level, 1 / self.rho if self.named else 0.0), none[:, 0].float(),
            ], -1,
        )  # fmt: skip
        x = torch.cat([facts, known * present, code * signs[:, :, :1], code * signs[:, :, 1:]], -1)
        return x, torch.cat([numbers, claim], -1), present

    def _shares(self, weights: Tensor, z: Tensor, turning: Tensor) -> Tensor:
        """What a change of each answer brings (N, Q) of the weight that has to change before a threshold's output
        does, at most all of it; zeros where there is no threshold."""
        threshold, unit, there = turning.T
        total = (weights * z.clamp(min=0)).sum(-1)
        above = total > threshold - unit / 2
        distance = torch.where(above, total - threshold + unit, threshold - total)
        moves = weights * (1 - 2 * z)  # what the sum gains by a change
        helps = torch.where(above[:, None], -moves, moves).clamp(min=0)
        return (helps / distance.clamp(min=1e-6)[:, None]).clamp(max=1) * there[:, None]

    def table(self, seen: NetworkInput) -> tuple[Tensor, Tensor]:
        """The truth tables, float (N, 2^Q, 2), and which rows count, float (N, 2^Q, 1).

        Once the sub-claims are answered the table is read from there on: row B is the output after the answers in B
        have changed. The columns are the output, and whether it is the bit claimed; once answered, both are the
        latter.
        """
        a = seen.aggregator.clamp(min=0)
        codes = torch.arange(self.outputs.shape[1], device=a.device)
        start = (seen.assignment.clamp(min=0).float() @ self.powers).long()
        outputs = self.outputs[a[:, None], codes ^ start[:, None]]
        held = outputs == seen.claimed[:, None]
        answered = (seen.assignment >= 0).any(-1)[:, None]
        columns = torch.stack([torch.where(answered, held, outputs == 1), held], -1)
        return columns.float(), self.rows[a][:, :, None]


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
        self.each_in = Shared(SUB_CLAIM_FEATURES, CLAIM_FEATURES, hidden)
        self.names = nn.Embedding(facts.names, hidden)
        digest = zlib.crc32("; ".join(map(str, facts.aggregators)).encode())
        self.register_buffer("learned_on", torch.tensor([int(facts.named), digest]))
        self.register_load_state_dict_pre_hook(_carry_over)
        self.mixes = nn.ModuleList(Shared(hidden, hidden + CLAIM_FEATURES, hidden) for _ in range(rounds))
        self.outs = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(rounds))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(rounds))
        self.tables = nn.ModuleList(TableExchange(hidden) for _ in range(rounds if facts.tabled else 0))
        self.whole = nn.Sequential(nn.Linear(hidden + CLAIM_FEATURES, hidden), nn.GELU(), nn.Linear(hidden, whole))
        self.each = nn.Linear(hidden, each)

    def silenced(self) -> DebaterNetwork:
        """The same with outputs that are all 0 until something is learned."""
        for head in (self.whole[-1], self.each):
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
        return self

    def forward(self, seen: NetworkInput) -> tuple[Tensor, Tensor]:
        """Outputs of the claim (N, whole) and of each sub-claim (N, Q, each)."""
        h, g = self.features(seen)
        return self.whole(torch.cat([h.sum(1) / 4, g], -1)), self.each(h)

    def features(self, seen: NetworkInput) -> tuple[Tensor, Tensor]:
        """What the heads read: of each sub-claim (N, Q, H) and of the claim (N, G)."""
        x, g, present = self.facts(seen)
        h = (self.each_in(x, g) + self.names(self.facts.name(seen))[:, None, :]) * present
        if self.facts.tabled:
            table, read = self.facts.table(seen)
        for number, (mix, out, norm) in enumerate(zip(self.mixes, self.outs, self.norms, strict=True)):
            mixed = mix(h, torch.cat([h.sum(1) / 4, g], -1))
            h = norm(h + out(nn.functional.gelu(mixed))) * present
            if self.facts.tabled:
                h = (h + self.tables[number](h, table, read, self.facts.bits)) * present
        return h, g


def _carry_over(network: DebaterNetwork, saved: dict[str, Tensor], prefix: str, *others: Any) -> None:
    """Make weights fit that may come from another library: assignments named there are as ones not finished here.

    Adds an error to those of `load_state_dict` where one library is known by name and the other is not.
    """
    named, names, here = f"{prefix}learned_on", f"{prefix}names.weight", network.learned_on
    if not {named, names} <= saved.keys() or torch.equal(saved[named].cpu(), here.cpu()):
        return
    if saved[named][0] != here[0]:
        others[-1].append("the weights know aggregators by name and this library's have none, or the other way round")
    saved[names] = saved[names][-1:].expand(network.facts.names, -1)
    saved[named] = here


class Shared(nn.Module):
    """A linear layer of each sub-claim's features beside features of the claim, which are multiplied once."""

    def __init__(self, each: int, claim: int, out: int) -> None:
        super().__init__()
        self.each, self.claim = nn.Linear(each, out), nn.Linear(claim, out, bias=False)

    def forward(self, x: Tensor, g: Tensor) -> Tensor:
        """(N, Q, out) from x (N, Q, each) and g (N, claim)."""
        return self.each(x) + self.claim(g)[:, None, :]


class TableExchange(nn.Module):
    """One exchange between sub-claims and the rows of a truth table, unchanged when both are reordered together.

    A row hears of the rows whose ones are among its own, since whether a block of flips is minimal depends on the
    blocks within it. The rows' features are few and their nonlinearity cheap: there are 2^Q of them for each position.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        size = max(8, hidden // 4)
        self.gather_one, self.gather_zero = nn.Linear(hidden, size), nn.Linear(hidden, size)
        self.output = nn.Linear(2, size)
        self.own, self.below = nn.Linear(size, size), nn.Linear(size, size, bias=False)
        self.give_one, self.give_zero = nn.Linear(size, hidden), nn.Linear(size, hidden)

    def forward(self, h: Tensor, table: Tensor, read: Tensor, bits: Tensor) -> Tensor:
        """Changes (N, Q, H) to the sub-claims' features h (N, Q, H); bits float (2^Q, Q), the rest `Facts.table`'s."""
        rows = bits @ self.gather_one(h) + (1 - bits) @ self.gather_zero(h)
        rows = torch.relu(rows / 2 + self.output(table)) * read
        within = ((bits @ (1 - bits).T) == 0).float() - torch.eye(len(bits), device=bits.device)
        rows = torch.relu(self.own(rows) + self.below(within.T @ rows) / 2) * read / 8
        return self.give_one(bits.T @ rows) + self.give_zero((1 - bits).T @ rows)
