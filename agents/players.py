"""Scripted players by name."""

from __future__ import annotations

from agents.alices import HonestAlice, MinimaxAlice, RandomAlice
from agents.bobs import GameOptimalBob, InformedBob, LPBob, RandomBob, TreeOptimalBob, UniformBob
from agents.exact import best_response_alice
from agents.exact_trees import best_response_on_tree
from agents.scripted import PlayerError
from envs.engine import Player
from envs.game import Game

ALICES = ("honest", "worst_case", "random", "best_response")
BOBS = ("lp", "game_optimal", "tree_optimal", "uniform", "informed", "random")


def alice(name: str, game: Game, opponent: Player | None = None) -> Player:
    """The scripted Alice of that name.

    Args:
        name: One of `ALICES`. `worst_case` is minimax with the adversarial oracle, else the best response to LP Bob.
        game: The game she plays, on NumPy.
        opponent: The Bob that `best_response` answers.

    Raises:
        PlayerError: no such player, or she cannot play this game. ExactError: no exact best response is to be had.
    """
    if name == "honest":
        return HonestAlice(game)
    if name == "random":
        return RandomAlice()
    if name == "worst_case":
        return MinimaxAlice(game) if game.adversarial else best_response(game, LPBob())
    if name == "best_response":
        if opponent is None:
            raise PlayerError("Alice `best_response` needs to know the Bob she answers; no opponent was given")
        return best_response(game, opponent)
    raise PlayerError(f"no Alice is called {name!r}; there are {', '.join(ALICES)} and the folders of runs")


def bob(name: str, game: Game) -> Player:
    """The scripted Bob of that name, one of `BOBS`, for a game on NumPy.

    Raises:
        PlayerError: no such player, or he cannot play this game.
    """
    if name == "best_response":
        raise PlayerError(
            "Bob's best response is known by its value alone (exploitability of Alice, in `eval.py run`); "
            f"play one of {', '.join(BOBS)}"
        )
    if name not in BOBS:
        raise PlayerError(f"no Bob is called {name!r}; there are {', '.join(BOBS)} and the folders of runs")
    if name in ("game_optimal", "tree_optimal"):
        return (GameOptimalBob if name == "game_optimal" else TreeOptimalBob)(game)
    return {"lp": LPBob, "uniform": UniformBob, "informed": InformedBob, "random": RandomBob}[name]()


def best_response(game: Game, opponent: Player) -> Player:
    """Alice's exact best response to a Bob, on any problem.

    Raises:
        ExactError: none is to be had.
    """
    return best_response_alice(game, opponent) if game.tree is None else best_response_on_tree(game, opponent)
