"""A second opinion on the exact numbers: the same games, solved and measured by OpenSpiel (extra `interop`).

    python -m benchmarks.second_opinion [--only NAME ...] [--iterations 60] [--json PATH]

Each game is exported (`envs.open_spiel_game`) and OpenSpiel walks it state by state: it shares the rules with us, and
nothing of the mathematics. Two tables come out. *Values*: ours, by linear programs over sub-claims (`agents.exact`),
beside that of the sequence-form linear program of the whole game, as OpenSpiel lays it out and HiGHS solves it, and
beside what OpenSpiel's best responses leave of its two strategies: the value lies between. *Exploitability*: ours
(`agents.measures`) beside what OpenSpiel's best responses gain, for a pair that plays uniformly and for one that the
default learner has trained.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from agents.alices import RandomAlice
from agents.bobs import RandomBob
from agents.exact import game_value
from agents.learner_config import LearnerConfig
from agents.measures import exploitability
from benchmarks.runs import choice, markdown, options, parsed, train
from envs.config import EnvConfig, ProblemConfig
from envs.engine import Player
from envs.game import Game
from fbs.command import give


def _game(rho: float, depth: int, *aggregators: str, menu: int = 1) -> tuple[EnvConfig, ProblemConfig]:
    return EnvConfig(rho=rho, depth=depth), ProblemConfig(aggregators=list(aggregators), menu=menu)


GAMES = {
    "and of 3": _game(3.0, 1, "and 3"),
    "majority of 3, some unstable": _game(1.5, 1, "majority 3"),
    "threshold of 3": _game(2.0, 1, "threshold 2,1,1 >= 2"),
    "threshold of 4": _game(2.5, 1, "threshold 3,2,1,1 >= 4"),
    "threshold of 5": _game(3.0, 1, "threshold 3,2,2,1,1 >= 5"),
    "threshold of 5, some unstable": _game(2.0, 1, "threshold 3,2,2,1,1 >= 5"),
    "library of three, menus of two": _game(2.0, 1, "majority 3", "and 2", "table 11110110", menu=2),
    "majority of 3, depth 2": _game(2.0, 2, "majority 3"),
    "threshold of 3, depth 2": _game(2.0, 2, "threshold 2,1,1 >= 2"),
    "uneven table of 3, depth 2": _game(3.0, 2, "table 11110110"),
}


def expected_reward(game: Game) -> float:
    """Alice's between perfect players: she loses what is caught of the false claims, and each of them from +1 to -1.

    For an assigned root claim, the adversarial oracle, no noise and no query cost.
    """
    return 1 - 2 * game.p_false * game_value(game)


class Equilibrium(NamedTuple):
    """An exported game, solved by OpenSpiel.

    Attributes:
        value: Alice's expected reward, from the sequence-form linear program.
        low, high: What OpenSpiel's best responses leave Alice's strategy, and the most they get of Bob's.
        policy: Both strategies, a `TabularPolicy`.
    """

    value: float
    low: float
    high: float
    policy: Any


def solve(game: Any) -> Equilibrium:
    """Koller, Megiddo and von Stengel's program over realization plans x of Alice, with Bob's y as its dual:

        max q_0   s.t.   F^T q <= A^T x,   E x = e,   x >= 0.

    A, E and F are laid out by OpenSpiel's `sequence_form_utils`; its own `sequence_form_lp` wants the solver ECOS.
    """
    from open_spiel.python.algorithms import sequence_form_utils as sequence_form
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack

    _, sequences, actions, parents, payoffs, _ = sequence_form.construct_vars(game)
    constraints = sequence_form.construct_constraint_vars(parents, sequences, actions)
    (e, e_right), (f, f_right) = constraints[0], constraints[1]
    at_most = hstack([csr_array(-payoffs[0].T), csr_array(f.T)])
    equal = hstack([csr_array(e), csr_array((len(e), len(f)))])
    bounds = [(0, None)] * e.shape[1] + [(None, None)] * len(f)
    found = linprog(
        -np.concatenate([np.zeros(e.shape[1]), f_right]), at_most, np.zeros(f.shape[1]), equal, e_right, bounds, "highs"
    )
    if found.status != 0:
        raise RuntimeError(f"HiGHS did not solve the sequence form: {found.message}")
    plans = [found.x[: e.shape[1]], -found.ineqlin.marginals]
    policy = sequence_form.sequence_to_policy(plans, game, sequences, actions)
    best_alice, best_bob = best_responses(game, policy)
    return Equilibrium(-found.fun, -best_bob, best_alice, policy)


def best_responses(game: Any, policy: Any) -> tuple[float, float]:
    """What Alice's best response to the policy's Bob earns, and Bob's to its Alice: OpenSpiel's, in expected reward."""
    from open_spiel.python.algorithms.best_response import BestResponsePolicy

    root = game.new_initial_state()
    alice, bob = (float(BestResponsePolicy(game, player, policy, root).value(root)) for player in (0, 1))
    return alice, bob


def size(game: Any) -> dict[str, int]:
    """Nodes of the exported tree, and information states of each player."""
    from open_spiel.python.algorithms.get_all_states import get_all_states

    nodes = get_all_states(game, -1, True, True, to_string=lambda state: state.history_str()).values()
    known = [{n.information_state_string() for n in nodes if n.current_player() == player} for player in (0, 1)]
    return {"nodes": len(nodes), "alice": len(known[0]), "bob": len(known[1])}


def learned_pair(name: str, iterations: int) -> tuple[Player, Player]:
    """The averaged pair of a short run of the default learner."""
    players = train(*GAMES[name], LearnerConfig(iterations=iterations), seed=0).players
    return players["alice"], players["bob"]


def compare(name: str, iterations: int) -> dict[str, Any]:
    """All numbers of one game, ours and OpenSpiel's."""
    from open_spiel.python.algorithms.exploitability import exploitability as half_of_nash_conv

    from agents.open_spiel import PairPolicy
    from envs.open_spiel_game import export

    exported = export(*GAMES[name])
    game = exported.tree.game
    equilibrium, ours = solve(exported), expected_reward(game)
    found = {
        "name": name, "rho": game.env.rho, "depth": game.depth, "size": size(exported),
        "value": ours, "open_spiel_value": equilibrium.value, "bracket": [equilibrium.low, equilibrium.high],
        "difference": abs(ours - equilibrium.value), "pairs": {},
    }  # fmt: skip
    pairs = {"uniform": (RandomAlice(), RandomBob()), "learned": learned_pair(name, iterations)}
    for kind, pair in pairs.items():
        mine = exploitability(game, *pair)
        policy = PairPolicy(exported, *pair).to_tabular()
        alice, bob = best_responses(exported, policy)
        theirs = {"alice": bob + equilibrium.value, "bob": alice - equilibrium.value}
        halved = float(half_of_nash_conv(exported, policy))
        found["pairs"][kind] = {
            "exploitability": mine["exploitability"], "nash_conv": mine["nash_conv"], "open_spiel": theirs,
            "open_spiel_exploitability": halved,
            "difference": max(
                *(abs(mine["exploitability"][who] - theirs[who]) for who in theirs), abs(mine["nash_conv"] - 2 * halved)
            ),
        }  # fmt: skip
    return found


def printed(rows: list[dict[str, Any]], iterations: int) -> str:
    """The two tables, in Markdown."""
    values = markdown(
        [
            "game", "rho", "depth", "nodes", "information states (Alice, Bob)", "value, ours", "OpenSpiel",
            "difference", "OpenSpiel's best responses: between",
        ],
        [
            [
                row["name"], f"{row['rho']:g}", row["depth"], f"{row['size']['nodes']:,}",
                f"{row['size']['alice']:,}, {row['size']['bob']:,}", f"{row['value']:.9f}",
                f"{row['open_spiel_value']:.9f}", f"{row['difference']:.0e}",
                ", ".join(f"{end:.9f}" for end in row["bracket"]),
            ]
            for row in rows
        ],
    )  # fmt: skip
    pairs = markdown(
        [
            "game", "pair", "exploitability, ours (Alice, Bob)", "OpenSpiel (Alice, Bob)", "NashConv, ours",
            "OpenSpiel's `exploitability`, twice", "largest difference",
        ],
        [
            [
                row["name"], kind, *(", ".join(f"{found[side]:.6f}" for side in ("alice", "bob"))
                                     for found in (pair["exploitability"], pair["open_spiel"])),
                f"{pair['nash_conv']:.6f}", f"{2 * pair['open_spiel_exploitability']:.6f}", f"{pair['difference']:.0e}",
            ]
            for row in rows
            for kind, pair in row["pairs"].items()
        ],
    )  # fmt: skip
    return f"{values}\n\n`learned`: {iterations} iterations of the default learner, its averaged pair.\n\n{pairs}"


def main() -> int:
    parser = options(__doc__, seeds=False)
    choice(parser, "--only", GAMES)
    parser.add_argument("--iterations", type=int, default=60, help="of the learner behind the learned pair")
    given = parsed(parser)
    rows = [compare(name, given.iterations) for name in tqdm(given.only, unit="game")]
    give(rows, printed(rows, given.iterations), given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
