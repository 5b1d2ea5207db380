"""Cover programs whose blocks are too many to list: blocks are generated when a cover leaves them too light.

Solve the program with the blocks known so far, ask the aggregator for the lightest block under that cover, add it,
repeat (Kelley's cutting planes). Three things make the rounds few. Interchangeable sub-claims share one variable: some
optimum gives them equal weight, and a block then is a count for each group. Blocks are also sought between the present
cover and the best feasible one (in-out separation, Ben-Ameur and Neto 2007), which gives two a round, better ones. And
the first round has blocks already: those lightest under covers near one in proportion to the aggregator's weights,
which for a threshold is not far from optimal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fbs.aggregator import Aggregator
from fbs.interchange import interchange_classes
from fbs.linear_program import LinearProgram, LinearSolution

TOLERANCE = 1e-10  # a block this much below 1 is heavy enough
MAX_ROUNDS = 10_000
_TOWARDS_FEASIBLE = (0.0, 0.6)  # where blocks are sought between the present cover and the best feasible one
_MAX_FIRST = 64  # blocks of the first round; one for every two groups, if that is fewer


class GenerationError(ArithmeticError):
    """The rounds did not end."""


@dataclass(frozen=True)
class GeneratedCover:
    """An optimal cover of groups of sub-claims, and the blocks that prove it.

    Attributes:
        counts: int64 (number of blocks, number of groups): how many sub-claims of each group a block flips.
        solution: of min totals . t s.t. counts t >= 1, where totals are the summed capacities of the groups.
    """

    counts: np.ndarray
    solution: LinearSolution


def group_labels(aggregator: Aggregator, *properties: np.ndarray) -> np.ndarray:
    """Groups of interchangeable sub-claims that also agree in every property (q,): int64 (q,), numbered from 0."""
    rows = np.stack([interchange_classes(aggregator), *properties]).astype(np.float64)
    return np.unique(rows, axis=1, return_inverse=True)[1].reshape(-1)


def group_counts(blocks: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Blocks as counts for each group, without repetition: bool (n, q), (q,) -> int64 (at most n, number of groups)."""
    members = labels[:, None] == np.arange(labels.max() + 1)
    return np.unique(blocks.astype(np.int64) @ members, axis=0)


def generate_cover(
    aggregator: Aggregator, assignment: np.ndarray, capacities: np.ndarray, labels: np.ndarray
) -> GeneratedCover:
    """Solve the cover program by generating blocks.

    Args:
        assignment: 0/1 (q,).
        capacities: finite float64 (q,), equal within each group.
        labels: groups of interchangeable sub-claims, int64 (q,).

    Raises:
        GenerationError: no convergence, which exact arithmetic excludes.
    """
    totals = np.bincount(labels, weights=capacities)
    known = _first_blocks(aggregator, assignment, labels)
    if not known:
        counts = np.zeros((0, len(totals)), dtype=np.int64)
        return GeneratedCover(counts, LinearProgram(totals, counts).solve())
    feasible = np.ones(len(totals))  # any block weighs at least 1 under ones
    program = LinearProgram(totals, known)
    for _ in range(MAX_ROUNDS):
        solution = program.solve()
        found = {}
        for share in _TOWARDS_FEASIBLE:
            cover = (1 - share) * solution.x + share * feasible
            mass, count = _lightest(aggregator, assignment, cover[labels], labels)
            if share == 0 and mass >= 1 - TOLERANCE:
                return GeneratedCover(np.array(known), solution)
            if mass > 0 and totals @ cover / mass < totals @ feasible:
                feasible = cover / mass
            if count @ solution.x < 1 - TOLERANCE:
                found[count.tobytes()] = count
        known.extend(found.values())
        program.add_rows(list(found.values()))
    raise GenerationError(f"{aggregator.written[:60]}: still generating blocks after {MAX_ROUNDS} rounds")


def _first_blocks(aggregator: Aggregator, assignment: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Counts of some blocks that an optimum is likely to make tight; none if no block is sensitive."""
    draws = np.random.default_rng(0)  # any will do, but always the same, so that answers repeat
    weights, found = np.abs(aggregator.weights), {}
    for _ in range(min(1 + int(labels.max()) // 2, _MAX_FIRST)):
        lightest = _lightest(aggregator, assignment, weights * draws.uniform(0.8, 1.2, len(weights)), labels)
        if lightest is None:
            return []
        found[lightest[1].tobytes()] = lightest[1]
    return list(found.values())


def _lightest(
    aggregator: Aggregator, assignment: np.ndarray, masses: np.ndarray, labels: np.ndarray
) -> tuple[float, np.ndarray] | None:
    found = aggregator.lightest_block(assignment, masses)
    return found and (found[0], np.bincount(labels[found[1]], minlength=labels.max() + 1))
