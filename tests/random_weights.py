"""Policies that are not uniform, for tests of what weights do."""

from __future__ import annotations

from typing import TypeVar

import torch

from agents.policy import AlicePolicy, BobPolicy

Policy = TypeVar("Policy", AlicePolicy, BobPolicy)


def random_weights(policy: Policy, seed: int) -> Policy:
    """The policy itself, its outputs' weights drawn at random: they start at 0 else, and play is uniform."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for head in (policy.network.whole[-1], policy.network.each):
            head.reset_parameters()
        if isinstance(policy, AlicePolicy):
            policy.joint.score.reset_parameters()
    return policy
