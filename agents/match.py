"""Two players debate many times, and we count (tremble 0)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tqdm import tqdm

from agents.alices import HonestAlice
from agents.exact import bound, game_value
from agents.exact_trees import honest_unstable, true_positions
from envs.engine import Player, debate, draws
from envs.game import Game
from envs.rules import State
from fbs.visible import visible

CONFIDENCE = 0.95
Seed = int | Sequence[int]


class Tally(NamedTuple):
    """What is counted over debates: all, Alice's wins, those whose root claim was false, Bob's wins among these, oracle
    queries."""

    debates: int = 0
    alice_wins: int = 0
    false: int = 0
    caught: int = 0
    queries: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def tally(state: State) -> Tally:
    """Counts over finished debates. Alice won where her reward is positive, whatever a query costs."""
    won, false = state.reward > 0, state.root_claimed != state.root_truth
    counts = (won.size, won.sum(), false.sum(), (false & ~won).sum(), (state.answer >= 0).sum())
    return Tally(*map(int, counts))


def interval(successes: int, trials: int) -> dict[str, float] | None:
    """Mean and 95% Wilson interval of a rate; None without trials."""
    if not trials:
        return None
    from scipy.stats import binomtest

    low, high = binomtest(successes, trials).proportion_ci(CONFIDENCE, method="wilson")
    mean = successes / trials
    return {"mean": mean, "low": min(float(low), mean), "high": max(float(high), mean)}


@lru_cache(maxsize=16)
def playing_field(game: Game, honest: bool) -> Game:
    """The game that is played: no trembles, and for honest Alice only true root claims, whatever `p_false`."""
    changes = {"p_false": 0.0} if honest and game.p_false > 0 else {}
    return game.evaluation(**changes) if changes or game.tremble > 0 else game


def play(
    game: Game, alice: Player, bob: Player, debates: int, seed: Seed, batch: int = 8192, progress: bool = False
) -> Tally:
    """Count over so many debates between two players; the arguments are those of `match`."""
    field, uniform, counts = playing_field(game, isinstance(alice, HonestAlice)), draws(seed), Tally()
    with tqdm(total=debates, unit="debate", disable=None if progress else True, leave=False) as bar:
        while counts.debates < debates:
            n = min(batch, debates - counts.debates)
            counts += tally(debate(field, alice, bob, n, uniform))
            bar.update(n)
    return counts


def match(
    game: Game, alice: Player, bob: Player, debates: int, seed: Seed = 0, batch: int = 8192, progress: bool = False
) -> dict[str, Any]:
    """Let two players debate.

    Args:
        game: Any NumPy game; trembles are left out.
        alice, bob: The players. `HonestAlice` is dealt only true root claims.
        debates: How many debates. seed: Of all draws. batch: Debates at a time. progress: Show a bar on a terminal.

    Returns:
        `debates`; `alice_win_rate` and `catch_rate` (Bob's wins among the debates whose root claim is false; None if
        there are none), each {mean, low, high} with a 95% Wilson interval; `game_value` (or None), what the catch rate
        is between perfect players; `bound`, rho^-d; `queries: {per_debate}`. On a claim tree also `claims`,
        `unstable_claims`, how many are unstable at the true answers, and `honest_unstable`, the exact probability that
        honest Alice meets one of them against this Bob.
    """
    batch = max(1, min(batch, (1 << 22) // game.width))
    counts = play(game, alice, bob, debates, seed, batch, progress)
    result = {
        "debates": debates,
        "alice_win_rate": interval(counts.alice_wins, counts.debates),
        "catch_rate": interval(counts.caught, counts.false),
        "game_value": game_value(game),
        "bound": bound(game),
        "queries": {"per_debate": counts.queries / counts.debates},
    }
    if game.tree is not None:
        _, stable = true_positions(game)
        result |= {
            "claims": len(stable),
            "unstable_claims": int((~stable).sum()),
            "honest_unstable": honest_unstable(game, bob),
        }
    return result


def format_match(result: dict[str, Any]) -> str:
    """A match as a person reads it; `result` of `match`, with the players' names under `alice` and `bob`."""
    names = visible(f"{result.get('alice', 'Alice')} (Alice) against {result.get('bob', 'Bob')} (Bob)")
    lines = [f"{names}, {result['debates']:,} debates", f"  Alice wins         {_rate(result['alice_win_rate'])}"]
    if result["catch_rate"] is None:
        lines.append("  false claims       none were made")
    else:
        lines.append(f"  false claims lost  {_rate(result['catch_rate'])}")
        value = result["game_value"]
        known = "no known game value" if value is None else f"game value {value:.4f}"
        lines.append(f"                     {known}; the guarantee rho^-d is {result['bound']:.4g}")
    lines.append(f"  oracle queries     {result['queries']['per_debate']:.3f} a debate")
    if "claims" in result:
        lines.append(f"  unstable claims    {result['unstable_claims']} of {result['claims']} at the true answers")
        lines.append(f"                     honest Alice meets one with probability {result['honest_unstable']:.4g}")
    return "\n".join(lines)


def _rate(rate: dict[str, float]) -> str:
    return f"{rate['mean']:.4f}  (95%: {rate['low']:.4f} to {rate['high']:.4f})"
