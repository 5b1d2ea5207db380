"""The maximum-entropy optimum of the cover program: the one sampling distribution that LP Bob plays.

The optimal covers form a face of a polyhedron, often a point, sometimes not, and solvers disagree about which vertex of
it they return. Entropy, being strictly concave, picks one point, and the same one for interchangeable sub-claims. With
W the value, p_i = c_i t_i / W is to

    maximise  -sum_i p_i ln p_i  over the face  {p >= 0 : sum_{i in B} p_i W / c_i >= 1 for every sensitive B, sum_i p_i
    = 1}.

Interchangeable sub-claims of equal answer and capacity share one variable P_g, the mass of group g with n_g members,
which makes the objective -sum_g P_g ln(P_g / n_g). A read-once composition has the same form: part j, of mass P_j and
conditional entropy at most H_j, contributes -P_j ln(P_j / e^H_j), so that its optimum is that of the outer function
times those of the parts. Below these weights n_g, e^H_j are called multiplicities, and their logarithms are passed
around.

    >>> from fbs.notation import assignment, parse
    >>> max_entropy_sampling(parse("and 4"), assignment("1001")).tolist()
    [0.0, 0.5, 0.5, 0.0]
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from fbs.aggregator import Aggregator, Composition, Symmetric, Table
from fbs.certificate import ConstantError
from fbs.entropy_face import maximum_entropy_masses
from fbs.generation import GenerationError, generate_cover, group_counts, group_labels
from fbs.sensitivity import LISTED_WIDTH, checked_assignment, checked_capacities, solve
from fbs.table import minimal_blocks_at

FEASIBILITY = 1e-10  # how far below 1 a block may weigh under the cover that is returned
MAX_ROUNDS = 1000


def max_entropy_sampling(aggregator: Aggregator, assignment: Any, capacities: Any = None) -> np.ndarray:
    """The optimal sampling distribution of largest entropy: float64 (q,), read-only, feasible and optimal to 1e-8.

    Args:
        aggregator, assignment, capacities: as in `fbs.sensitivity.sensitivity`; p_i is in proportion to c_i t_i.

    Raises:
        SensitivityError: an argument that does not fit.
        ConstantError: no block is sensitive, or covering them all costs nothing.
    """
    z = checked_assignment(aggregator, assignment)
    costs = tuple(float(c) for c in checked_capacities(aggregator, capacities))
    return _kept_optimum(aggregator, z, costs, (0.0,) * aggregator.width)


def listed_optimum(aggregator: Aggregator, z: np.ndarray, blocks: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """The optimum from all minimal blocks bool (n, q); costs float64 (q,) may be infinite, which keeps p_i at 0.

    Returns:
        float64 (q,), nan where the value of the program is 0 or infinite.
    """
    payable = np.isfinite(costs)
    optimum = np.zeros(len(costs))
    blocks = blocks[:, payable]
    labels = group_labels(aggregator, z, np.where(payable, costs, -1))[payable]
    labels = np.unique(labels, return_inverse=True)[1]
    if not len(blocks) or not blocks.any(axis=1).all():
        return np.full(len(costs), np.nan)
    masses = _grouped_optimum(group_counts(blocks, labels), labels, costs[payable], np.zeros(len(labels)))
    if masses is None:
        return np.full(len(costs), np.nan)
    optimum[payable] = masses
    return optimum


@lru_cache(maxsize=16384)
def _kept_optimum(
    aggregator: Aggregator, z: tuple[int, ...], costs: tuple[float, ...], log_multiplicities: tuple[float, ...]
) -> np.ndarray:
    answers, capacities, weights = np.array(z), np.array(costs), np.array(log_multiplicities)
    if isinstance(aggregator, Composition):
        optimum = _composition_optimum(aggregator, z, costs, log_multiplicities)
    elif isinstance(aggregator, Symmetric) and all(len(set(capacities[answers == bit])) <= 1 for bit in (0, 1)):
        optimum = _symmetric_optimum(aggregator, answers, capacities, weights)
    elif aggregator.width <= LISTED_WIDTH or isinstance(aggregator, Table):
        labels = group_labels(aggregator, answers, capacities, weights)
        counts = group_counts(minimal_blocks_at(aggregator, z), labels)
        optimum = _grouped_optimum(counts, labels, capacities, weights)
    else:
        optimum = _generated_optimum(aggregator, answers, capacities, weights)
    if optimum is None:
        raise ConstantError(f"{aggregator.written[:60]}: no block is sensitive, so no sub-claim is worth sampling")
    optimum.flags.writeable = False
    return optimum


def _symmetric_optimum(
    aggregator: Symmetric, z: np.ndarray, capacities: np.ndarray, log_multiplicities: np.ndarray
) -> np.ndarray | None:
    """Closed form, where all ones cost the same and all zeros do.

    If a < m of the m ones must be flipped, equal weights are the only optimum: exchanging members of two a-subsets
    shows that all weigh the same. If a = m they are one block, on which any distribution is optimal.
    """
    optimum = np.zeros(len(z))
    for bit, fewest in zip((1, 0), aggregator.least_flips(int(z.sum())), strict=True):
        if fewest is None:
            continue
        items = np.flatnonzero(z == bit)
        multiplicities = np.exp(log_multiplicities[items] - log_multiplicities[items].max())
        share = multiplicities / multiplicities.sum() if fewest == len(items) else 1 / len(items)
        optimum[items] = capacities[items] * (len(items) / fewest) * share
    return optimum / optimum.sum() if optimum.any() else None


def _composition_optimum(
    aggregator: Composition, z: tuple[int, ...], costs: tuple[float, ...], log_multiplicities: tuple[float, ...]
) -> np.ndarray | None:
    optimum, values, entropies = np.zeros(aggregator.width), [], []
    for part, place in zip(aggregator.parts, aggregator.slices, strict=True):
        values.append(float(solve(part, z[place], costs[place]).value))
        entropy = 0.0
        if values[-1] > 0:
            optimum[place] = _kept_optimum(part, z[place], costs[place], log_multiplicities[place])
            entropy = _entropy(optimum[place], np.array(log_multiplicities[place]))
        entropies.append(entropy)
    if not any(values):
        return None
    answers = tuple(aggregator.part_values(z).tolist())
    outer = _kept_optimum(aggregator.outer, answers, tuple(values), tuple(entropies))
    for mass, place in zip(outer, aggregator.slices, strict=True):
        optimum[place] *= mass
    return optimum


def _entropy(p: np.ndarray, log_multiplicities: np.ndarray) -> float:
    positive = p > 0
    return float(-(p[positive] * (np.log(p[positive]) - log_multiplicities[positive])).sum())


def _grouped_optimum(
    counts: np.ndarray, labels: np.ndarray, capacities: np.ndarray, log_multiplicities: np.ndarray
) -> np.ndarray | None:
    """Solve over groups, then share each group's mass evenly among its members."""
    sizes = np.bincount(labels)
    first = np.unique(labels, return_index=True)[1]
    masses = maximum_entropy_masses(counts, sizes * capacities[first], np.log(sizes) + log_multiplicities[first])
    return None if masses is None else (masses / sizes)[labels]


def _generated_optimum(
    aggregator: Aggregator, z: np.ndarray, capacities: np.ndarray, log_multiplicities: np.ndarray
) -> np.ndarray | None:
    """Over the blocks generated so far, until the lightest block weighs 1.

    Sub-claims that cost nothing weigh as much as one likes: blocks that contain one are no constraint.
    """
    labels = group_labels(aggregator, z, capacities, log_multiplicities)
    generated = generate_cover(aggregator, z, capacities, labels)
    counts, value = generated.counts, generated.solution.value
    for _ in range(MAX_ROUNDS):
        optimum = _grouped_optimum(counts, labels, capacities, log_multiplicities)
        if optimum is None:
            return None
        cover = np.divide(value * optimum, capacities, out=np.full(len(z), np.inf), where=capacities > 0)
        mass, block = aggregator.lightest_block(z, cover)
        if mass >= 1 - FEASIBILITY:
            return optimum
        counts = np.concatenate([counts, group_counts(block[None], labels)])
    raise GenerationError(f"{aggregator.written[:60]}: still generating blocks after {MAX_ROUNDS} rounds")
