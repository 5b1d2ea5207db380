"""The debate as a game of OpenSpiel, for its solvers, best responses and learners (extra `interop`).

    from envs import open_spiel_game
    from envs.config import EnvConfig, ProblemConfig

    game = open_spiel_game.export(EnvConfig(depth=1), ProblemConfig())

or by name, once this module is imported: `pyspiel.load_game("python_fbs_debate", {"aggregators": "majority 3"})`.

Alice is player 0, Bob player 1, and rewards come at the end of the debate. `envs.game_tree` says what moves, chance and
information states are; a state's `node` is its place there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

try:
    import pyspiel
except ImportError as error:
    raise ImportError("this module needs OpenSpiel: pip install 'fbs-debate[interop]'") from error

from envs.config import EnvConfig, ProblemConfig
from envs.game import Game
from envs.game_tree import Moment, Tree

NAME = "python_fbs_debate"
SEPARATOR = ";"  # of aggregators, since a parameter of OpenSpiel is no list


def export(env: EnvConfig, problem: ProblemConfig, tremble: float = 0.0) -> DebateGame:
    """The configured debate as a game of OpenSpiel.

    Args:
        env, problem: As for `envs.game.Game`: any oracle, menu, claim tree, noise and cost.
        tremble: In place of `env.tremble`, since game values and measures are those without trembles.

    Raises:
        ConfigError: the game cannot be played, or its moves or menus are too many to list.
        ProblemError: the problem's file is malformed.
    """
    given = _parameters(env, problem) | {"tremble": tremble}
    return pyspiel.load_game(NAME, {key: type(DEFAULTS[key])(value) for key, value in given.items()})


def _parameters(env: EnvConfig, problem: ProblemConfig) -> dict[str, Any]:
    """The configuration as OpenSpiel's parameters: texts and numbers only."""
    settings = {**vars(env), **vars(problem), "aggregators": SEPARATOR.join(problem.aggregators)}
    return {key: "" if value is None else value for key, value in settings.items()}


DEFAULTS = _parameters(EnvConfig(tremble=0.0), ProblemConfig())


def _game(parameters: dict[str, Any]) -> Game:
    """The game that OpenSpiel's parameters stand for."""
    values = DEFAULTS | parameters
    values |= {"path": values["path"] or None, "family": values["family"] or None}
    values["aggregators"] = [text for text in values["aggregators"].split(SEPARATOR) if text.strip()]
    env, problem = ({item.name: values[item.name] for item in fields(kind)} for kind in (EnvConfig, ProblemConfig))
    return Game(EnvConfig(**env), ProblemConfig(**problem))


GAME_TYPE = pyspiel.GameType(
    short_name=NAME,
    long_name="FBS debate",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification=DEFAULTS,
)


class DebateGame(pyspiel.Game):
    """The game, as `export` makes it and OpenSpiel's `load_game`.

    Args:
        params: The keys of `EnvConfig` and `ProblemConfig`; `aggregators` in one text, with `;` between them.

    Attributes:
        tree: The game tree. Its `game` is the rules' `Game`.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        self.tree = Tree(_game(params or {}))
        most = 1 + self.tree.game.query_cost
        info = pyspiel.GameInfo(
            num_distinct_actions=self.tree.actions, max_chance_outcomes=self.tree.most_outcomes, num_players=2,
            min_utility=-most, max_utility=most, utility_sum=0.0, max_game_length=self.tree.length,
        )  # fmt: skip
        super().__init__(GAME_TYPE, info, params or {})

    def new_initial_state(self) -> DebateState:
        return DebateState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> DebateObserver:
        return DebateObserver(self.tree, iig_obs_type is not None and iig_obs_type.perfect_recall)

    def max_chance_nodes_in_history(self) -> int:
        return 1 + self.tree.length


class DebateState(pyspiel.State):
    """A debate under way, at a `node` of the game tree."""

    def __init__(self, game: DebateGame) -> None:
        super().__init__(game)
        self.node = game.tree.root

    def current_player(self) -> int:
        if self.node.over:
            return pyspiel.PlayerId.TERMINAL
        return pyspiel.PlayerId.CHANCE if self.node.player is None else self.node.player

    def _legal_actions(self, player: int) -> Sequence[int]:
        return self.node.legal

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(number, chance.probability) for number, chance in enumerate(self.node.chances)]

    def _apply_action(self, action: int) -> None:
        self.node = self.node.tree.child(self.node, action)

    def _action_to_string(self, player: int, action: int) -> str:
        node = self.node
        return f"chance {action}" if player < 0 else node.tree.said(node.state.phase, action)

    def is_terminal(self) -> bool:
        return self.node.over

    def returns(self) -> list[float]:
        return [self.node.reward, -self.node.reward]

    def __str__(self) -> str:
        return "; ".join(self.node.story)


class DebateObserver:
    """What a player knows (with perfect recall) or sees at present (without), as text and as numbers.

    Args:
        tree: The game tree.
        perfect_recall: Which of the two.

    Attributes:
        tensor: float32, the numbers, flat. dict: The same as `moments`, a row for each time a player had to move.
    """

    def __init__(self, tree: Tree, perfect_recall: bool) -> None:
        self._recall = perfect_recall
        shape = (tree.moments, tree.size) if perfect_recall else (1, tree.seen)
        self.tensor = np.zeros(shape[0] * shape[1], np.float32)
        self.dict = {"moments": self.tensor.reshape(shape)}

    def set_from(self, state: DebateState, player: int) -> None:
        self.tensor.fill(0)
        rows = self.dict["moments"]
        for row, moment in enumerate(self._moments(state, player)):
            rows[row] = moment.features[: rows.shape[1]]

    def string_from(self, state: DebateState, player: int) -> str:
        return " | ".join([("Alice", "Bob")[player], *(moment.text for moment in self._moments(state, player))])

    def _moments(self, state: DebateState, player: int) -> Sequence[Moment]:
        node = state.node
        if self._recall:
            return node.known(player)
        return (node.present,) if node.player == player else ()


pyspiel.register_game(GAME_TYPE, DebateGame)
