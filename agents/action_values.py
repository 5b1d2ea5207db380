"""Networks that say what a whole move is worth, and the players that move by them.

Bob has one value for each response. Alice's moves are too many for a value each, but the position after one is a
position like any other: a claim, a candidate and an assignment are worth what a network reads off the position they
lead to. Her lies B lead to positions that differ in what she alone knows; Bob asks about one sub-claim, so their worth
is a sum, c + sum of a_i over i in B, and nothing is lost by giving it that form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agents.networks import DebaterNetwork, Facts, NetworkInput
from agents.policy import AlicePolicy, BobPolicy, LearnedPlayer, candidate_input, distinct, network_input
from envs.game import Game
from envs.rules import ASSIGN, CLAIM, DECOMPOSE
from envs.view import View, legal_moves

TIE = 1e-4  # of reward; to the networks interchangeable sub-claims differ by rounding alone


class AliceValues(nn.Module):
    """Values of Alice's moves, in her own reward."""

    def __init__(self, game: Game, hidden: int) -> None:
        super().__init__()
        self.network = DebaterNetwork(Facts(game.library, game.depth, game.env.rho), hidden, whole=2, each=1)

    def reached(self, rows: NetworkInput) -> Tensor:
        """float32 (N,): what it is worth to have come to these positions."""
        return self.network(rows)[0][:, 0]

    def lies(self, rows: NetworkInput, bits: Tensor) -> Tensor:
        """float32 (N, M): the value of the lies bits (M, Q) at each position."""
        whole, each = self.network(rows)
        return whole[:, 1:] + each[:, :, 0] @ bits.T


class BobValues(BobPolicy):
    """Values of Bob's responses, in his own reward: the scores of his policy's network, read as rewards; 0 at first."""


def action_values(network: AliceValues | BobValues, seen: View) -> Tensor:
    """float32 (N, M): values in the order of `envs.view.legal_moves`; those of illegal moves mean nothing."""
    if seen.phase == DECOMPOSE:
        return torch.stack([network.reached(candidate_input(seen, k)) for k in range(seen.menu.shape[1])], -1)
    rows, inverse = distinct(network_input(seen))
    if isinstance(network, BobValues):
        return network.responses(rows)[inverse]
    if seen.phase == CLAIM:
        claimed = [torch.full_like(rows.claimed, bit) for bit in (0, 1)]
        return torch.stack([network.reached(rows._replace(claimed=bit)) for bit in claimed], -1)[inverse]
    bits = torch.as_tensor(seen.game.library.bits)
    if seen.phase != ASSIGN:
        return network.lies(rows, bits.float())[inverse]
    legal = torch.as_tensor(seen.game.library.legal)[rows.aggregator, rows.claimed]
    row, code = legal.nonzero(as_tuple=True)
    values = torch.zeros(legal.shape)
    values[row, code] = network.reached(rows.take(row)._replace(assignment=bits[code].long()))
    return values[inverse]


def value_of(network: AliceValues | BobValues, seen: View, move: Tensor) -> Tensor:
    """float32 (N,): values of the moves made: an assignment or lies (N, Q), otherwise a number (N,)."""
    if seen.phase == ASSIGN:
        rows, inverse = distinct(network_input(seen)._replace(assignment=move.long()))
        return network.reached(rows)[inverse]
    index = move if move.dim() == 1 else seen.game.library.code(move)
    return action_values(network, seen).gather(1, index[:, None])[:, 0]


class BestResponse(LearnedPlayer):
    """Plays the move of the highest value, each as often if there are several.

    Args:
        values: An `AliceValues` or a `BobValues`.
        explore: The probability of a uniform legal move instead.
    """

    def __init__(self, values: AliceValues | BobValues, explore: float = 0.0) -> None:
        self.values, self.explore = values, explore

    @torch.no_grad()
    def chances(self, seen: View) -> Tensor:
        """float64 (N, M), in the order of `envs.view.legal_moves`."""
        legal = torch.as_tensor(legal_moves(seen))
        legal = legal | ~legal.any(-1, keepdim=True)
        values = action_values(self.values, seen).masked_fill(~legal, -torch.inf)
        best = values >= values.amax(-1, keepdim=True) - TIE
        shares = [moves.double() / moves.sum(-1, keepdim=True) for moves in (best, legal)]
        return (1 - self.explore) * shares[0] + self.explore * shares[1]

    def probabilities(self, seen: View) -> Any:
        """float64 (N, M), of the view's array library."""
        found = self.chances(seen)
        return found.cpu().numpy() if seen.game.xp is np else found


class Mixture(LearnedPlayer):
    """An average policy in some debates of a batch, a best response in the others.

    Args:
        average: The policy. best: The best response.
        chosen: bool (N,), True in the debates that the best response plays.
    """

    def __init__(self, average: AlicePolicy | BobPolicy, best: BestResponse, chosen: Tensor) -> None:
        super().__init__(average)
        self.best, self.chosen = best, chosen

    def probabilities(self, seen: View) -> Tensor:
        """float64 (N, M), of a torch view of the whole batch."""
        return torch.where(self.chosen[:, None], self.best.chances(seen), super().probabilities(seen))
