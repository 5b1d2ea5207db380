"""The step of magnetic mirror descent, in scores, and how far a network is from where it leads.

Cross entropy is blind to what is next to never played. Where Bob has come to look at three sub-claims only, a step
lowers Alice's scores of lies about all three and leaves the others, round by round, until a lie elsewhere pays; but as
long as that is rare, its chance and so the cross entropy hardly changes, and a network fitted by that alone forgets the
steps. So it is with a response of Bob's that he once took for hopeless. The scores themselves are therefore fitted too,
as in neural replicator dynamics (Hennes et al., arXiv 1906.00190), down to a floor: below it nothing is to be learned,
and from it a move that begins to pay is soon back.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

LOWEST = -14.0  # the floor: of the score of a lie, and of a logarithm of a chance


def mirror_step(old: Tensor, gain: Tensor, magnet: Tensor, pull: float) -> Tensor:
    """Where a policy moves that maximises  <pi', Q> - alpha KL(pi', magnet) - KL(pi', pi) / eta,

    which is  log pi' = (log pi + eta Q + eta alpha log magnet) / (1 + eta alpha)  up to a constant (Sokota et al., "A
    unified approach to reinforcement learning, quantal response equilibria, and two-player zero-sum games",
    arXiv 2206.05825). It holds for log-probabilities, and for the scores of any exponential family whose sufficient
    statistic Q is linear in.

    Args:
        old, magnet: Log-probabilities or scores. gain: eta Q. pull: eta alpha.
    """
    return (old + gain + pull * magnet) / (1 + pull)


def score_error(scores: Tensor, target: Tensor, floor: Tensor | float = LOWEST) -> Tensor:
    """How far scores are from where they should be, of one shape, on average; nothing where both are below the floor.

    Args:
        floor: A number, or one a row.
    """
    floor = torch.as_tensor(floor, dtype=scores.dtype)
    apart = (scores > floor) | (target > floor)
    error = nn.functional.smooth_l1_loss(scores, torch.maximum(target, floor), reduction="none")
    return (error * apart).mean()
