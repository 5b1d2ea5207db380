"""Scripted Bobs: who judges the claims by rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from agents.exact import adversarial_twin, solve
from agents.optimal_sampling import optimal_sampling
from agents.positions import ExactError
from agents.scripted import PlayerError, groups, sample
from envs.game import Game
from envs.rules import ACCEPT, CHALLENGE, SAMPLE
from envs.view import View
from fbs.committed_tree import tree_sensitivity


class ScriptedBob(ABC):
    """A Bob who knows when to challenge and how to sample. Moves of debates that are over are accepted, unseen.

    Attributes:
        challenges: Whether he challenges what is unstable, rather than sampling everywhere.
    """

    needs_state = False
    challenges = True

    def act(self, seen: View, u: np.ndarray) -> np.ndarray:
        return sample(self.probabilities(seen), u[:, 0])

    def probabilities(self, seen: View) -> np.ndarray:
        """float64 (N, 2 + Q)."""
        policy = np.zeros((len(seen.active), SAMPLE + seen.game.width))
        policy[~seen.active, ACCEPT] = 1
        rows = np.flatnonzero(seen.active)
        if self.challenges:
            stable = np.asarray(seen.game.library.stable(seen.aggregator[rows], seen.assignment[rows]))
            policy[rows[~stable], CHALLENGE] = 1
            rows = rows[stable]
        if len(rows):
            policy[rows, SAMPLE:] = self._sampling(seen, rows)
        return policy

    @abstractmethod
    def _sampling(self, seen: View, rows: np.ndarray) -> np.ndarray:
        """float64 (n, Q): sampling distributions over the sub-claims at some rows of the view."""


class LPBob(ScriptedBob):
    """Challenges what is unstable, else samples by the maximum-entropy optimum of the cover program (the dual LP).

    Where no block is sensitive, f being constant, every sub-claim is as good: he samples uniformly.
    """

    def _sampling(self, seen: View, rows: np.ndarray) -> np.ndarray:
        return optimal_sampling(seen.game.library, seen.aggregator[rows], seen.assignment[rows])


class GameOptimalBob(ScriptedBob):
    """The same with the cover program weighted by 1 / V_{k-1}(z_i): optimal in the whole game, adversarial oracle.

    Raises:
        PlayerError: no game value is known.
    """

    def __init__(self, game: Game) -> None:
        if game.tree is not None:
            raise PlayerError("Bob `game_optimal` needs a procedural problem; here play `tree_optimal` or `lp`")
        try:
            costs = 1 / solve(adversarial_twin(game)).values
        except ExactError as error:
            raise PlayerError(f"Bob `game_optimal` is not known here: {error}; play `lp`") from None
        ratio = costs / costs.min(-1, keepdims=True)
        self._costs = [tuple(pair) for pair in np.where(ratio < 1 + 1e-12, 1.0, ratio).tolist()]  # of the level below

    def _sampling(self, seen: View, rows: np.ndarray) -> np.ndarray:
        sampling = np.zeros((len(rows), seen.game.width))
        for level, some in groups(np.asarray(seen.level)[rows]):
            at = rows[some]
            sampling[some] = optimal_sampling(
                seen.game.library, seen.aggregator[at], seen.assignment[at], self._costs[level - 1]
            )
        return sampling


class TreeOptimalBob(ScriptedBob):
    """Samples in proportion to R_i t_i of the whole tree as it was claimed (DESIGN section 3, whole trees).

    Where Alice's answers at a node are not the ones claimed in the tree, R of what is below is not known and he samples
    like LP Bob. He challenges what is unstable.

    Raises:
        PlayerError: the problem is no claim tree.
    """

    needs_state = True

    def __init__(self, game: Game) -> None:
        if game.source is None:
            raise PlayerError("Bob `tree_optimal` needs a claim tree or crowd labels (problem.path); here play `lp`")
        self._game = game
        self._kept: dict[int, np.ndarray] = {}

    @cached_property
    def _solution(self):
        tree = self._game.source
        aggregators = [tree.aggregators[a] if a >= 0 else None for a in tree.aggregator]
        return tree_sensitivity(tree.first_child, tree.width, aggregators, tree.claimed)

    def _sampling(self, seen: View, rows: np.ndarray) -> np.ndarray:
        game, tree = seen.game, self._game.source
        a, z, nodes = seen.aggregator[rows], seen.assignment[rows], seen.state.node[rows]
        sampling = optimal_sampling(game.library, a, z)
        children = np.minimum(tree.first_child[nodes, None] + np.arange(game.width), len(tree.claimed) - 1)
        as_claimed = ((tree.claimed[children] == z) | game.beyond[a]).all(-1)
        for node, some in groups(np.where(as_claimed, nodes, len(tree.claimed))):
            if node < len(tree.claimed) and self._at(node) is not None:
                sampling[some, : tree.width[node]] = self._at(node)
        return sampling

    def _at(self, node: int) -> np.ndarray | None:
        if node not in self._kept:
            certificate = self._solution.certificates[node]
            self._kept[node] = self._solution.sampling(node) if certificate and certificate.value else None
        return self._kept[node]


class UniformBob(ScriptedBob):
    """Samples every sub-claim alike and never challenges."""

    challenges = False

    def _sampling(self, seen: View, rows: np.ndarray) -> np.ndarray:
        inside = ~seen.game.beyond[seen.aggregator[rows]]
        return inside / inside.sum(-1, keepdims=True)


class InformedBob(ScriptedBob):
    """Knows the truths: samples a false sub-claim, each alike, any sub-claim if none is false; never challenges."""

    needs_state = True
    challenges = False

    def _sampling(self, seen: View, rows: np.ndarray) -> np.ndarray:
        inside = ~seen.game.beyond[seen.aggregator[rows]]
        false = inside & (seen.state.truths[rows] != seen.assignment[rows])
        worth = np.where(false.any(-1, keepdims=True), false, inside)
        return worth / worth.sum(-1, keepdims=True)


class RandomBob(ScriptedBob):
    """Uniform over all legal responses: accept, challenge and each sub-claim."""

    challenges = False

    def probabilities(self, seen: View) -> np.ndarray:
        legal = np.ones((len(seen.active), SAMPLE + seen.game.width))
        legal[:, SAMPLE:] = ~seen.game.beyond[seen.aggregator]
        return legal / legal.sum(-1, keepdims=True)

    def _sampling(self, seen: View, rows: np.ndarray) -> np.ndarray:
        return self.probabilities(seen)[rows, SAMPLE:]
