"""What two given players make of a false or a true claim, exactly.

With w(z) how likely Alice comes to assignment z of a claim (her candidate included), l_i(z) the part of it in which
sub-claim i is a lie, and p Bob's responses, Bob's share of the prize at level k is, for a claim of bit c,

    X_k(c) = sum over z of  w p_challenge unstable(z) + sum_i p_i [ l_i X'_{k-1}(z_i) + (w - l_i) X''_{k-1}(z_i) ]

X' being the share at a false sub-claim, X'' at a true one, and w, l those of a false or of a true claim.
"""

from __future__ import annotations

import numpy as np

from agents.exact import best_response_alice, leaf_share
from agents.exact_bob import Tables, level_tables
from agents.positions import policy, positions
from envs.engine import Player
from envs.game import Game
from envs.rules import CHALLENGE, SAMPLE

FALSE, TRUE = 0, 1


def bob_share(game: Game, alice: Player, bob: Player) -> np.ndarray:
    """float64 (2 claimed, 2): Bob's share of the prize at the root, of a false claim (FALSE) and of a true one (TRUE).

    Args:
        game: A narrow procedural NumPy game; trembles are left out.
        alice, bob: The players, without memory. Bob must not depend on truths, unless Alice never lies.
    """
    return shares(game, alice_tables(game, alice), policy(game, bob))


def alice_tables(game: Game, alice: Player) -> list[Tables]:
    """What Alice does at levels 1 to d."""
    return [level_tables(game, alice, level) for level in range(1, game.depth + 1)]


def shares(game: Game, tables: list[Tables], responses: np.ndarray) -> np.ndarray:
    """`bob_share` from what Alice does at levels 1 to d, and Bob's responses float64 (d, R, 2 + Q)."""
    rows, leaf = positions(game), leaf_share(game)
    below = np.array([[leaf[c, 1 - c], leaf[c, c]] for c in (0, 1)])
    for table, response in zip(tables, responses, strict=True):
        sampling, z = response[:, SAMPLE:], rows.assignment
        here = np.zeros((2, 2))
        for status in (FALSE, TRUE):
            weight, lies = table.weight[status], table.lies[status]
            worth = lies * below[z, FALSE] + (weight[:, None] - lies) * below[z, TRUE]
            share = response[:, CHALLENGE] * ~rows.stable * weight + (sampling * worth).sum(-1)
            here[:, status] = [share[rows.claimed == c].sum() for c in (0, 1)] + table.lost[:, status]
        below = here
    return below


def catch(game: Game, alice: Player, bob: Player) -> float:
    """The probability that Bob wins against a false root claim of Alice's, over both claimed bits."""
    return float(bob_share(game, alice, bob)[:, FALSE].mean())


def guarantee(game: Game, bob: Player) -> float:
    """What Bob catches of a false root claim by the Alice who best responds to him, over both claimed bits."""
    root = best_response_alice(game, bob).catch[-1]
    return float((root[0, 1] + root[1, 0]) / 2)
