"""The same programs by cvxpy: slower, narrower, independent. The fast routes are tested against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fbs.aggregator import Aggregator
from fbs.sensitivity import checked_assignment, checked_capacities, sensitivity
from fbs.table import minimal_blocks_at

SOLVER = "CLARABEL"  # an interior point method: shares no code with HiGHS, and knows the entropy cone
MAX_RESIDUAL = 1e-7


class ReferenceSolverError(ArithmeticError):
    """The reference solver's answer cannot be trusted.

    Attributes:
        aggregator, assignment: f and z of the program.
        status: what the solver reported.
        residual: by how much the worst constraint is violated; infinite without an answer.
    """

    def __init__(self, aggregator: Aggregator, assignment: tuple[int, ...], status: str, residual: float):
        z = "".join(map(str, assignment))
        super().__init__(
            f"{SOLVER} on {aggregator} at {z}: status {status!r}, residual {residual:.1e}; only 'optimal' with a "
            f"residual of at most {MAX_RESIDUAL:.0e} is accepted"
        )
        self.aggregator, self.assignment, self.status, self.residual = aggregator, assignment, status, residual


@dataclass(frozen=True)
class ReferenceSolution:
    """An optimum of min sum_i c_i t_i over the covers t: its value, cover float64 (q,), and which program it solves."""

    aggregator: Aggregator
    assignment: tuple[int, ...]
    value: float
    cover: np.ndarray


def reference_sensitivity(aggregator: Aggregator, assignment: Any, capacities: Any = None) -> ReferenceSolution:
    """The cover program of section 3.3 of the paper, all minimal blocks listed; width at most 16.

    Raises:
        ReferenceSolverError: the solver's status is not `optimal`, or its residual exceeds MAX_RESIDUAL.
    """
    import cvxpy

    z = checked_assignment(aggregator, assignment)
    costs = np.array(checked_capacities(aggregator, capacities), dtype=np.float64)
    blocks = minimal_blocks_at(aggregator, z).astype(np.float64)
    if not len(blocks):
        return ReferenceSolution(aggregator, z, 0.0, np.zeros(aggregator.width))
    cover = cvxpy.Variable(aggregator.width)
    problem = cvxpy.Problem(cvxpy.Minimize(costs @ cover), [blocks @ cover >= 1, cover >= 0])
    _solve(problem, aggregator, z)
    return ReferenceSolution(aggregator, z, float(costs @ cover.value), np.maximum(cover.value, 0))


def reference_max_entropy(aggregator: Aggregator, assignment: Any, capacities: Any = None) -> np.ndarray:
    """The maximum-entropy optimal sampling distribution float64 (q,); positive capacities, width at most 16.

    The value of the program is taken from its certificate, which proves itself. Entropy is flat at its maximum, and the
    face has no interior: expect four digits, not eight.

    Raises:
        ReferenceSolverError: as above.
    """
    import cvxpy

    z = checked_assignment(aggregator, assignment)
    costs = np.array(checked_capacities(aggregator, capacities), dtype=np.float64)
    rows = minimal_blocks_at(aggregator, z) * (float(sensitivity(aggregator, z, capacities).value) / costs)
    p = cvxpy.Variable(aggregator.width)
    on_face = [rows @ p >= 1, cvxpy.sum(p) == 1, p >= 0]
    _solve(cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.entr(p))), on_face), aggregator, z)
    return np.maximum(p.value, 0)


def _solve(problem: Any, aggregator: Aggregator, assignment: tuple[int, ...]) -> None:
    import cvxpy

    try:
        problem.solve(solver=SOLVER)
    except cvxpy.SolverError as error:
        raise ReferenceSolverError(aggregator, assignment, str(error), float("inf")) from error
    residual = float("inf")
    if problem.status == "optimal":
        residual = max(float(np.max(constraint.violation())) for constraint in problem.constraints)
    if not residual <= MAX_RESIDUAL:
        raise ReferenceSolverError(aggregator, assignment, problem.status, residual)
