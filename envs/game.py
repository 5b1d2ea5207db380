"""A configured game: the rules' constants and arrays, on one array library."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from envs.claim_tree import ClaimTree
from envs.config import EnvConfig, ProblemConfig
from envs.library import Library
from envs.problem import load_problem
from envs.procedural import deck, procedural_library

Array = Any  # numpy.ndarray or torch.Tensor


class TreeArrays(NamedTuple):
    """The claim tree's columns that the rules read, int64 and int8 (nodes,)."""

    aggregator: Array
    first_child: Array
    level: Array
    answer: Array


class Game:
    """What `envs.rules` needs besides a state.

    Args:
        env: The rules' configuration.
        problem: A `ProblemConfig`, or a claim tree already loaded.
        xp: `numpy` or `torch`.
        device: Where torch arrays live.

    Attributes:
        env: The configuration in force: a claim tree brings its own depth and always has the random oracle.
        source: The `ClaimTree`, or None for a procedural problem.
        library: The aggregators. width: Q, the widest of them. menu: K.
        draws: How many uniform numbers a call of the rules takes for each debate, at most.
        menus_vary: False where a claim's menu needs no draws.
        beyond: bool (A, Q), True past the width of an aggregator.
        responses: bool (A, 2 + Q), Bob's legal responses.

    Raises:
        ConfigError: the configuration cannot be played. ProblemError: the file is malformed.
    """

    def __init__(
        self, env: EnvConfig, problem: ProblemConfig | ClaimTree, xp: Any = np, device: str | None = None
    ) -> None:
        self.source = _tree(problem)
        if self.source is None:
            aggregators, self.menu = procedural_library(problem), problem.menu
        else:
            aggregators, self.menu = self.source.aggregators, 1
            env = EnvConfig(**{**vars(env), "depth": self.source.depth, "oracle": "random"})
        self.env, self.problem = env, problem
        self.xp = xp
        self.library = Library(aggregators, env.rho, xp, device)
        self.width = self.library.width
        self.depth = env.depth
        self.adversarial = env.oracle == "adversarial"
        self.free_root = env.root_claim == "free"
        self.sees_truth = env.bob_sees == "truth"
        self.p_false, self.noise, self.query_cost = env.p_false, env.noise, env.query_cost
        self.tremble = env.tremble if self.library.tabulated else 0.0
        self.draws = 3 + self.menu
        array = self.library.array
        self._sub_claims = array(np.arange(self.width), "int64")
        self.beyond = self.library.by_sub_claim(self._sub_claims >= self.library.widths[:, None])
        places = array(np.arange(2 + self.width), "int64")  # accept and challenge come first
        self.responses = places < self.library.widths[:, None] + 2
        self.tree, self.menus_vary = None, False
        if self.source is None:
            self._take_deck(array)
        else:
            tree = self.source
            self.tree = TreeArrays(
                array(tree.aggregator, "int64"), array(tree.first_child, "int64"), array(tree.level, "int64"),
                array(tree.answer, "int8"),
            )  # fmt: skip

    def evaluation(self, **changes: Any) -> Game:
        """The same game with no trembles, and with the given `EnvConfig` fields changed."""
        env = EnvConfig(**{**vars(self.env), "tremble": 0.0, **changes})
        return Game(env, self.source or self.problem, self.xp, self.library.device)

    def on(self, xp: Any, device: str | None = None) -> Game:
        """The same game on another array library."""
        return Game(self.env, self.source or self.problem, xp, device)

    def rows(self, like: Array) -> Array:
        """int64 (N,): the debates' numbers, for indexing."""
        if self.xp is np:
            return np.arange(like.shape[0])
        return self.xp.arange(like.shape[0], device=like.device)

    def _take_deck(self, array: Any) -> None:
        self.deck = deck(self.library, self.env, self.menu)
        self.menus_vary = len(self.deck.aggregator) > 2 or not self.adversarial
        self._deck_aggregator = array(self.deck.aggregator, "int64")
        self._deck_code = array(self.deck.code, "int64")
        self._cumulative = array(self.deck.cumulative, "float64")
        self._first, self._last = array(self.deck.first, "int64"), array(self.deck.last, "int64")
        self._stable_mass = array(self.deck.stable_mass, "float64")
        self._first_stable = array(self.deck.first_stable, "float64")
        self._places = array(np.arange(self.menu), "int64")

    def deal_menu(self, bit: Array, u: Array) -> tuple[Array, Array | None]:
        """Menus (N, K), and with the random oracle their sub-claims' answers (N, K, Q), from draws u (N, 1 + K).

        `bit` (N,) is what the deck is keyed by: the claimed bit (adversarial oracle) or the true one (random).
        """
        xp, bit = self.xp, self.library.array(bit, "int64")
        if not self.menus_vary:
            return self.library.zeros((len(bit), self.menu), "int64"), None
        mass = self._stable_mass[bit][:, None]
        first_stable = (u[:, :1] >= self._first_stable[bit]).sum(-1)[:, None]
        inside = u[:, 1:]
        unstable, stable = mass + inside * (1 - mass), inside * mass
        point = xp.where(self._places < first_stable, unstable, xp.where(self._places == first_stable, stable, inside))
        entry = xp.searchsorted(self._cumulative, point + bit[:, None], side="right")
        entry = xp.minimum(xp.maximum(entry, self._first[bit][:, None]), self._last[bit][:, None])
        menu = self._deck_aggregator[entry]
        return menu, None if self.adversarial else self.library.bits[self._deck_code[entry]]

    def tree_menu(self, node: Array) -> tuple[Array, Array]:
        """The menu (N, 1) at claim tree nodes (N,), and the answers (N, 1, Q) of their children."""
        children = self.tree.first_child[node][:, None] + self._sub_claims
        aggregator = self.tree.aggregator[node]
        last = self.tree.answer.shape[0] - 1
        beyond = self.beyond[self.xp.where(aggregator < 0, 0, aggregator)] | (aggregator < 0)[:, None]
        answers = self.tree.answer[self.xp.where(beyond, 0, self.xp.where(children > last, last, children))]
        return aggregator[:, None], self.xp.where(beyond, 0, answers)[:, None, :]


def _tree(problem: ProblemConfig | ClaimTree) -> ClaimTree | None:
    if isinstance(problem, ClaimTree):
        return problem
    return load_problem(problem.path) if problem.path else None
