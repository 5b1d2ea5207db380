"""Our players as policies of OpenSpiel (extra `interop`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from open_spiel.python import policy

from agents.scripted import PlayerError
from envs.engine import Player
from envs.open_spiel_game import DebateGame


class PairPolicy(policy.Policy):
    """A pair of players as the joint policy of an exported game; `to_tabular()` makes the table of it.

    Args:
        game: What `envs.open_spiel_game.export` gives.
        alice, bob: Players without memory, who then play alike in all information states that show them the same.

    Raises:
        PlayerError: a player looks at what his information state does not tell.
    """

    def __init__(self, game: DebateGame, alice: Player, bob: Player) -> None:
        for name, player in (("Alice", alice), ("Bob", bob)):
            if player.needs_state:
                raise PlayerError(
                    f"this {name} ({type(player).__name__}) looks at the whole state of the debate, and a policy of "
                    "OpenSpiel is a function of an information state; take a player that does not need the state"
                )
        super().__init__(game, [0, 1])
        self._players = (alice, bob)
        self._known: dict[str, dict[int, float]] = {}

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """The chance of each legal move of the player to move.

        Raises:
            PlayerError: the player makes illegal moves, which the exported game does not have.
        """
        information = state.information_state_string()
        if information not in self._known:
            player = self._players[state.current_player()]
            legal = state.legal_actions()
            chances = np.asarray(player.probabilities(state.node.seen), np.float64)[0, legal]
            if abs(chances.sum() - 1) > 1e-9:
                raise PlayerError(
                    f"{type(player).__name__} makes illegal moves with probability {1 - chances.sum():.3g}; "
                    "an exported game has legal moves only"
                )
            self._known[information] = dict(zip(legal, chances.tolist(), strict=True))
        return self._known[information]
