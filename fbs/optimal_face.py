"""How far a sampling distribution is from being optimal: its distance to the nearest optimum of the cover program.

Optima are often not unique, so the distance to any one of them would blame a sampler for the solver's choice.

    min over optimal p*  of  sum_i max(p_i - p*_i, 0)     (total variation, as both sum to 1)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fbs.aggregator import Aggregator, Symmetric
from fbs.certificate import Certificate, ConstantError
from fbs.generation import TOLERANCE, GenerationError
from fbs.linear_program import LinearProgram
from fbs.sensitivity import LISTED_WIDTH, SensitivityError, sensitivity
from fbs.table import minimal_blocks_at

MAX_ROUNDS = 10_000


def optimal_face_distance(aggregator: Aggregator, assignment: Any, p: Any, capacities: Any = None) -> float:
    """Total variation distance of p, renormalised, to the nearest optimal sampling distribution.

    Args:
        aggregator, assignment, capacities: as in `fbs.sensitivity.sensitivity`.
        p: nonnegative (q,), of total at most 1 if mass on other moves was left out.

    Returns:
        In [0, 1]; 1 if p has no mass.

    Raises:
        SensitivityError: an argument that does not fit.
        ConstantError: no block is sensitive, so no distribution is optimal.
    """
    p = np.asarray(p, dtype=np.float64)
    if p.shape != (aggregator.width,) or not (np.isfinite(p) & (p >= 0)).all():
        raise SensitivityError(f"p must be {aggregator.width} finite nonnegative numbers")
    certificate = sensitivity(aggregator, assignment, capacities)
    if not certificate.value > 0:
        raise ConstantError(f"{aggregator.written[:60]}: no block is sensitive, so no distribution is optimal")
    if not p.sum() > 0:
        return 1.0
    p = p / p.sum()
    if isinstance(aggregator, Symmetric) and len(set(certificate.capacities)) == 1:
        return _symmetric_distance(certificate, p)
    return _distance(certificate, p)


def _symmetric_distance(certificate: Certificate, p: np.ndarray) -> float:
    """Closed form for equal capacities.

    Where fewer than all ones (zeros) must be flipped, all get equal mass; where all must, any division of the side's
    mass will do.
    """
    z = np.array(certificate.assignment)
    value = float(certificate.value / certificate.capacities[0])
    short = 0.0  # mass that p lacks where the nearest optimum has it
    for bit, fewest in zip((1, 0), certificate.aggregator.least_flips(int(z.sum())), strict=True):
        side = p[z == bit]
        if fewest is not None and fewest < len(side):
            short += np.maximum(1 / (fewest * value) - side, 0).sum()
        elif fewest is not None:
            short += max(1 / value - side.sum(), 0)
    return float(short)


def _distance(certificate: Certificate, p: np.ndarray) -> float:
    """By linear program over (p*, excess): min sum excess s.t. p* + excess >= p, and p* optimal."""
    costs, value = np.array(certificate.capacities, dtype=np.float64), float(certificate.value)
    free = costs == 0  # a sub-claim that costs nothing satisfies its blocks
    scale = np.divide(value, costs, out=np.zeros_like(costs), where=~free)
    blocks = _first_blocks(certificate)
    width = len(p)
    rows = np.vstack([np.hstack([np.eye(width), np.eye(width)]), np.ones(2 * width)])
    rows[-1, width:] = 0
    upper = np.full(width + 1, np.inf)
    upper[-1] = 1
    highest = np.concatenate([np.where(free, 0.0, np.inf), np.full(width, np.inf)])
    program = LinearProgram(np.repeat([0.0, 1.0], width), rows, np.append(p, 1.0), upper, highest)
    program.add_rows(_block_rows(blocks[~(blocks & free).any(axis=1)], scale))
    for _ in range(MAX_ROUNDS):
        solution = program.solve()
        cover = np.where(free, np.inf, solution.x[:width] * scale)
        if width <= LISTED_WIDTH:
            break
        mass, block = certificate.aggregator.lightest_block(certificate.assignment, cover)
        if mass >= 1 - 10 * TOLERANCE:
            break
        program.add_rows(_block_rows(block[None], scale))
    else:
        raise GenerationError(
            f"{certificate.aggregator.written[:60]}: still generating blocks after {MAX_ROUNDS} rounds"
        )
    return float(min(max(solution.value, 0.0), 1.0))


def _first_blocks(certificate: Certificate) -> np.ndarray:
    """All minimal blocks where they can be listed, else those of the packing, which every optimum gives weight 1."""
    if certificate.aggregator.width <= LISTED_WIDTH:
        return minimal_blocks_at(certificate.aggregator, certificate.assignment)
    blocks = np.zeros((len(certificate.packing), certificate.aggregator.width), dtype=bool)
    for row, (block, _) in zip(blocks, certificate.packing, strict=True):
        row[list(block)] = True
    return blocks


def _block_rows(blocks: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.hstack([blocks * scale, np.zeros(blocks.shape)])
