"""Exact action values by looking one move ahead through the rules, with learned values of what comes after.

Self-play knows both policies and the rules are ours, so the value of a move need not be sampled: from a claim, every
assignment, every set of lies and every response is followed for one level, and the claim that Bob then stands at is
worth what `AfterStateValues` says. All values are Alice's expected reward.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from agents.conditional_flips import AnswerFlips
from agents.lies import FlippedLies, ListedLies, lies_at
from agents.networks import NetworkInput
from agents.orbits import Listing
from agents.policy import AlicePolicy, BobPolicy, distinct, masked
from agents.unique_rows import unique_rows
from envs.game import Game
from envs.rules import State


class AfterStateValues:
    """What a claim is worth, by level (in a claim tree: by node), claimed bit and truth.

    Leaves are known from the rules; the rest starts where half the lies are caught a level and is learned.

    Attributes:
        table: float64 (places, 2, 2), indexed by place, claimed bit, truth.
    """

    def __init__(self, game: Game) -> None:
        self.tree = game.tree
        level = torch.arange(game.depth + 1) if game.tree is None else game.tree.level
        caught = (1 - 2 * game.noise) * 0.5 ** level.double() + game.noise
        held = torch.full_like(caught, game.noise)
        same, other = 1 - 2 * held + game.query_cost, 1 - 2 * caught + game.query_cost
        self.table = torch.stack([torch.stack([same, other], -1), torch.stack([other, same], -1)], -2)

    def place(self, node: Tensor, level: Tensor) -> Tensor:
        """int64 (N,): the row of the table for claims at these nodes and levels."""
        return level if self.tree is None else node

    def sub_claims(self, claims: Claims) -> Tensor:
        """int64 (N, Q): the rows of the sub-claims."""
        q = claims.truths.shape[1]
        if self.tree is None:
            return (claims.level - 1)[:, None].expand(-1, q)
        children = self.tree.first_child[claims.node][:, None] + torch.arange(q)
        return children.clamp(max=len(self.tree.level) - 1)

    def learn(self, place: Tensor, claimed: Tensor, truth: Tensor, value: Tensor, weight: Tensor, rate: float) -> None:
        """Move the entries of the claims given towards the weighted mean of `value` (N,)."""
        flat = place * 4 + claimed * 2 + truth
        total = torch.zeros(self.table.numel(), dtype=torch.float64)
        mass = torch.zeros_like(total)
        total.index_add_(0, flat, weight * value)
        mass.index_add_(0, flat, weight)
        met = mass > 0
        view = self.table.view(-1)
        view[met] += rate * (total[met] / mass[met] - view[met])


class Claims(NamedTuple):
    """N claims with the candidate decomposition taken; truths are -1 with the adversarial oracle."""

    node: Tensor
    level: Tensor
    claimed: Tensor
    truth: Tensor
    aggregator: Tensor
    truths: Tensor  # int64 (N, Q)

    def take(self, index: Tensor) -> Claims:
        """The claims at `index`."""
        return Claims(*(column[index] for column in self))

    def inputs(self, assignment: Tensor | None, informed: bool) -> NetworkInput:
        """As a network sees them: `informed` with the truths (Alice, or Bob where he sees them)."""
        hidden = torch.full_like(self.truths, -1)
        return NetworkInput(
            self.level, self.claimed, self.truth if informed else hidden[:, 0], self.aggregator,
            hidden if assignment is None else assignment, self.truths if informed else hidden,
        )  # fmt: skip


UNMET = 0.01  # how much the opposite of a claim counts, for each time that the claim itself was met


class Menus(NamedTuple):
    """Distinct claims met in self-play and their opposites, how often each was met, and the K candidates of each.

    Attributes:
        count: float64 (U,). candidates: Claims of U * K rows, menu by menu. offered: bool (U, K).
    """

    count: Tensor
    candidates: Claims
    offered: Tensor


def menus_met(game: Game, states: list[State], limit: int, generator: torch.Generator) -> Menus:
    """The distinct claims of the states before Alice's answers, at most `limit` of them (a uniform choice).

    Each is looked at the other way round too, as if the opposite bit had been claimed once in a while. What Alice has
    ceased to claim, Bob would cease to be ready for, and what it is worth would no longer be learned: play could settle
    where she avoids a claim only because neither knows any more how it is argued.
    """
    rows, _, met = unique_rows(torch.cat([_menu_rows(game, state) for state in states]))
    opposite, possible = _opposite(game, rows)
    rows, place, _ = unique_rows(torch.cat([rows, opposite]))
    weight = torch.cat([met.double(), UNMET * met[possible]])
    count = torch.zeros(len(rows), dtype=torch.float64).index_add_(0, place, weight)
    if len(rows) > limit:
        kept = torch.randperm(len(rows), generator=generator)[:limit]
        rows, count = rows[kept], count[kept]
    k, q = game.menu, game.width
    claim, menu, answers = rows.split([4, k, k * q], -1)
    repeated = claim.repeat_interleave(k, 0)
    aggregator = menu.reshape(-1)
    candidates = Claims(*repeated.unbind(-1), aggregator.clamp(min=0), answers.reshape(-1, q))
    return Menus(count, candidates, menu >= 0)


def _opposite(game: Game, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The rows with the other bit claimed, where every candidate on offer can give it; and which rows those are."""
    bit, menu = 1 - rows[:, 2], rows[:, 4 : 4 + game.menu]
    possible = (game.library.producible[menu.clamp(min=0), bit[:, None]] | (menu < 0)).all(-1)
    opposite = rows.clone()
    opposite[:, 2] = bit
    return opposite[possible], possible


def _menu_rows(game: Game, state: State) -> Tensor:
    claim = torch.stack([state.node, state.level, state.claimed.long(), state.truth.long()], -1)
    answers = state.answers.long().flatten(1)
    answers = torch.full_like(answers, -1) if game.adversarial else answers
    return torch.cat([claim, state.menu, answers], -1)[~state.over]


class Outlook(NamedTuple):
    """Assignments of C claims, looked ahead from: P (claim, assignment) pairs, those of a claim together.

    Attributes:
        claim: int64 (P,) number of the claim. assignment: int64 (P, Q).
        log_size: float64 (P,) logarithm of how many assignments the pair stands for (`agents.orbits`).
        log_chance: float64 (P,) log-probability that Alice plays one of them.
        log_share: float64 (P,) the part of her policy that the pair stands for: that same probability where every
            legal assignment is listed, an equal share where they were drawn from it, nothing where they were explored.
        response: float64 (P, 2 + Q) Alice's reward after each response of Bob, given her policy of lies.
        gain: float64 (P, Q) by how much a lie at sub-claim i changes her reward if Bob samples i.
        bob: float64 (P, 2 + Q) Bob's probabilities.
        value: float64 (P,) Alice's expected reward.
        stake: float64 (P,) the largest |gain|: what is at stake at this level.
        bob_row: int64 (P,) number of the position as Bob sees it. bob_inputs: those positions.
    """

    claim: Tensor
    assignment: Tensor
    log_size: Tensor
    log_chance: Tensor
    log_share: Tensor
    response: Tensor
    gain: Tensor
    bob: Tensor
    value: Tensor
    stake: Tensor
    bob_row: Tensor
    bob_inputs: NetworkInput


@torch.no_grad()
def look_ahead(
    game: Game,
    values: AfterStateValues,
    alice: AlicePolicy,
    bob: BobPolicy,
    claims: Claims,
    tried: Listing | AnswerSample,
) -> Outlook:
    """Follow assignments of the claims by one level, under the present policies: every legal one, or those drawn."""
    library = game.library
    if isinstance(tried, Listing):
        claim, row = tried.of(claims.aggregator, claims.claimed)
        z, log_size = tried.assignment[row], tried.log_size[row]
    else:
        claim, z, explored = tried
        log_size = torch.zeros(len(claim), dtype=torch.float64)
    at = claims.take(claim)
    log_chance = answer_log_chances(game, alice, claims, claim, z) + log_size
    if isinstance(tried, Listing):
        log_share = log_chance
    else:
        shares = torch.zeros(len(claims.level), dtype=torch.float64).index_add_(0, claim, (~explored).double())
        log_share = (-shares[claim].log()).masked_fill(explored, -torch.inf)
    held, broken = _sub_claim_values(values, at, z)
    gain = torch.where(game.beyond[at.aggregator], 0.0, broken - held)
    # With drawn truths it is settled which answers are lies.
    lied = lies(game, at, z).chances(alice) if game.adversarial else (z != at.truths).double()
    sampled = held + lied * gain
    stable = library.stable(at.aggregator, z)
    settled = torch.stack([torch.ones_like(claim), torch.where(stable, 1, -1)], -1).double()
    response = torch.cat([settled, sampled], -1)
    rows, bob_row = distinct(at.inputs(z, informed=game.sees_truth))
    legal = torch.cat([torch.ones_like(settled) > 0, ~game.beyond[at.aggregator]], -1)
    chances = masked(bob.responses(rows)[bob_row], legal).double().exp()
    return Outlook(
        claim, z, log_size, log_chance, log_share, response, gain, chances, (chances * response).sum(-1),
        gain.abs().amax(-1).clamp(min=1e-9), bob_row, rows,
    )  # fmt: skip


class AnswerSample(NamedTuple):
    """Assignments looked ahead from where there are too many to list.

    Attributes:
        claim: int64 (P,). assignment: int64 (P, Q).
        explored: bool (P,), False where it was drawn from Alice's policy, True where from anywhere.
    """

    claim: Tensor
    assignment: Tensor
    explored: Tensor


@torch.no_grad()
def draw_answers(game: Game, alice: AlicePolicy, claims: Claims, each: int, generator: torch.Generator) -> AnswerSample:
    """`each` assignments of every claim: half from Alice's policy, half with any share of ones.

    The other half does what trembles do for narrow aggregators: Bob meets assignments that Alice never plays. A
    uniform assignment would nearly always have half ones, so its log-odds of a one are drawn first, up to 3 either way.
    """
    claim = torch.arange(len(claims.level)).repeat_interleave(each)
    at = claims.take(claim)
    explored = torch.arange(len(claim)) % 2 == 1
    scores = alice.answers(claims.inputs(None, informed=True))[claim].double()
    tilt = 6 * torch.rand((len(claim), 1), dtype=torch.float64, generator=generator) - 3
    scores = torch.where(explored[:, None], tilt, scores)
    u = torch.rand(scores.shape, dtype=torch.float64, generator=generator)
    z = AnswerFlips(game.library.aggregators).draw(at.aggregator, scores, at.claimed, u)
    return AnswerSample(claim, z, explored)


def answer_log_chances(game: Game, alice: AlicePolicy, claims: Claims, claim: Tensor, z: Tensor) -> Tensor:
    """log-probability (P,) of Alice's answers z (P, Q) to the claims numbered `claim` (P,); differentiable."""
    seen, library = claims.inputs(None, informed=True), game.library
    if library.tabulated:
        scores = alice.answer_scores(seen, library.bits.float())
        return masked(scores, library.legal[claims.aggregator, claims.claimed])[claim, library.code(z)].double()
    at, scores = claims.take(claim), alice.answers(seen)
    return AnswerFlips(library.aggregators).log_probability(at.aggregator, scores[claim], at.claimed, z)


def lies(game: Game, at: Claims, z: Tensor) -> ListedLies | FlippedLies:
    """Alice's lies beside her answers z (P, Q) to the claims `at`."""
    return lies_at(game, at.inputs(z, informed=True), at.aggregator, at.truth, z)


def _sub_claim_values(values: AfterStateValues, at: Claims, z: Tensor) -> tuple[Tensor, Tensor]:
    """float64 (P, Q): the sub-claims' values where the answer is true, and where it is a lie."""
    place = values.sub_claims(at)
    return values.table[place, z, z], values.table[place, z, 1 - z]
