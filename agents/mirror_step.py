"""The step of magnetic mirror descent, in scores."""

from __future__ import annotations

from torch import Tensor


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
