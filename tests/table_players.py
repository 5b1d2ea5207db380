"""Arbitrary players by table and menus by list: what plain recursions over small games are made of."""

from __future__ import annotations

import itertools

import numpy as np

import fbs
from envs.config import EnvConfig, ProblemConfig
from envs.game import Game
from envs.rules import ASSIGN, CLAIM, DECOMPOSE, LIE

UNEVEN = "table 11110110"  # V_1 = (1/3, 1/2) at rho 3: the value depends on the claimed bit
FEW = ["majority 3", "and 2", UNEVEN]

CONFIGURATIONS = [
    {"menu": 1, "rho": 2.0},
    {"menu": 2, "rho": 2.0, "noise": 0.1},
    {"menu": 1, "rho": 2.0, "oracle": "random"},
    {"menu": 2, "rho": 2.0, "oracle": "random", "query_cost": 0.3},
    {"menu": 1, "rho": 2.0, "bob_sees": "truth"},
    {"menu": 1, "rho": 2.0, "bob_sees": "truth", "oracle": "random", "noise": 0.2},
]


def game(aggregators=("threshold 3,2,2,1,1 >= 5",), menu: int = 1, **env) -> Game:
    return Game(EnvConfig(**{"tremble": 0.0, **env}), ProblemConfig(aggregators=list(aggregators), menu=menu))


def bits(width: int) -> list[tuple[int, ...]]:
    return list(itertools.product((0, 1), repeat=width))


def is_stable(g: Game, a: int, z: tuple[int, ...]) -> bool:
    return float(fbs.sensitivity(g.library.aggregators[a], z).value) <= g.env.rho + 1e-9


def candidates(g: Game, bit: int) -> list[tuple[float, tuple, bool]]:
    """What menus are drawn from for a bit: (probability, (aggregator, true answers or None), whether it is stable)."""
    found = []
    for a, f in enumerate(g.library.aggregators):
        preimage = [z for z in bits(f.width) if f(z) == bit]
        if g.adversarial:
            found.append((1 / len(g.library.aggregators), (a, None), any(is_stable(g, a, z) for z in preimage)))
        else:
            share = 1 / len(g.library.aggregators) / len(preimage)
            found += [(share, (a, z), is_stable(g, a, z)) for z in preimage]
    return found


def menus(g: Game, bit: int) -> list[tuple[float, tuple]]:
    """All menus with their probabilities; those without a stable candidate are redrawn."""
    found = [
        (float(np.prod([p for p, _, _ in menu])), tuple(candidate for _, candidate, _ in menu))
        for menu in itertools.product(candidates(g, bit), repeat=g.menu)
        if any(stable for _, _, stable in menu)
    ]
    total = sum(p for p, _ in found)
    return [(p / total, menu) for p, menu in found]


def code(g: Game, z: tuple[int, ...]) -> int:
    return sum(bit << (g.width - 1 - i) for i, bit in enumerate(z))


class TableBob:
    """Any responses at all, drawn once for each level, aggregator, assignment and, where he sees them, truths."""

    needs_state = False

    def __init__(self, g: Game, seed: int) -> None:
        self.g, size = g, 1 << g.width
        shape = (g.depth + 1, len(g.library.aggregators), size, size if g.sees_truth else 1)
        self.table = np.random.default_rng(seed).dirichlet(np.full(2 + g.width, 0.5), shape)

    def probabilities(self, seen) -> np.ndarray:
        truths = 0 if seen.truths is None else self.g.library.code(seen.truths)
        return self.table[seen.level, seen.aggregator, self.g.library.code(seen.assignment), truths]

    def act(self, seen, u) -> np.ndarray:
        return (self.probabilities(seen).cumsum(-1) < u[:, :1]).sum(-1)


class TableAlice:
    """Any moves at all, drawn once for each level, claimed bit, truth and what else she sees; some are illegal."""

    needs_state = False

    def __init__(self, g: Game, seed: int, concentration: float = 0.5) -> None:
        rng, size, count = np.random.default_rng(seed), 1 << g.width, len(g.library.aggregators)
        self.g = g
        self.claims = rng.dirichlet([1, 1], 2)
        self.liking = rng.random((g.depth + 1, 2, 2, count, size))
        weights = np.full(size, concentration)
        self.assignments = rng.dirichlet(weights, (g.depth + 1, 2, 2, count, 1 if g.adversarial else size))
        self.lies = rng.dirichlet(weights, (g.depth + 1, 2, 2, count, size))

    def probabilities(self, seen) -> np.ndarray:
        place = (seen.level, seen.claimed, seen.truth)
        if seen.phase == CLAIM:
            return self.claims[seen.truth]
        if seen.phase == DECOMPOSE:
            answers = 0 if seen.answers is None else self.g.library.code(seen.answers)
            liking = self.liking[tuple(x[:, None] for x in place) + (seen.menu, answers)]
            return liking / liking.sum(-1, keepdims=True)
        if seen.phase == ASSIGN:
            truths = 0 if seen.truths is None else self.g.library.code(seen.truths)
            return self.assignments[(*place, seen.aggregator, truths)]
        assert seen.phase == LIE
        return self.lies[(*place, seen.aggregator, self.g.library.code(seen.assignment))]
