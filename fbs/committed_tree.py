"""Sensitivity of a whole tree whose claimed answers are committed before anyone samples.

The liar then chooses only which leaves are false, and the tree is one read-once function of them. Let R_u be its
fractional block sensitivity below node u at the claimed answers: 1 at a leaf, and above, over the covers t of u's
aggregator,

    R_u = min sum_i R_i t_i,

sampling child i in proportion to R_i t_i. That catches a lie about the root with probability at least 1 / R_root, and a
liar who draws leaves from the packings with capacities R_i, from the root down, is caught with no more.

A node whose claimed bit is not what its aggregator makes of its children's bits is lost on arrival: it counts as a
leaf. So *terminal* nodes are leaves and these. Nodes are numbered so that children come after their parent and siblings
are neighbours (breadth first does both); the root is 0.

    >>> from fbs.notation import parse
    >>> majority = parse("majority 3")  # of three majorities of three that claim 110, 111 and 000
    >>> tree = tree_sensitivity([1, 4, 7, 10] + 9 * [0], 4 * [3] + 9 * [0], 4 * [majority] + 9 * [None],
    ...                         [1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0])
    >>> tree.values[0]
    Fraction(7, 2)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fbs.aggregator import Aggregator
from fbs.certificate import Certificate, CertificateError, ConstantError, Number, Packing
from fbs.packing import coupled_packing
from fbs.sensitivity import solve

MAX_DENOMINATOR = 2**32  # a common denominator of a node's capacities above this is given up for floats


class TreeError(ValueError):
    """Arrays that describe no tree."""


@dataclass(frozen=True)
class TreeSensitivity:
    """The sensitivity below every node of a committed tree, with its proof.

    Attributes:
        first_child, width: int64 (n,), the children of u are first_child[u] + 0..width[u]-1.
        values: R, (n,); fractions as long as they are short.
        certificates: (n,), of the program of each node with the R of its children as capacities; None at terminal
            nodes.
    """

    first_child: np.ndarray
    width: np.ndarray
    values: tuple[Number, ...]
    certificates: tuple[Certificate | None, ...]

    def sampling(self, node: int) -> np.ndarray:
        """Tree-optimal sampling distribution over the children of a node: float64 (width,).

        Raises:
            ConstantError: the node is terminal, or no lie below it can falsify it.
        """
        certificate = self.certificates[node]
        if certificate is None:
            raise ConstantError(f"node {node} is terminal: there is nothing below it to sample")
        return certificate.sampling

    def lies(self, generator: np.random.Generator) -> list[int]:
        """Terminal nodes whose falsehood falsifies the root, drawn so that none is false with more than 1 / R_root.

        Raises:
            ConstantError: no lie can falsify the root.
        """
        if not self.values[0]:
            raise ConstantError("no set of false leaves falsifies the root")
        false, pending = [], [0]
        while pending:
            node = pending.pop()
            certificate = self.certificates[node]
            if certificate is None:
                false.append(node)
                continue
            weights = np.array([float(weight) for _, weight in certificate.packing])
            block = certificate.packing[generator.choice(len(weights), p=weights / weights.sum())][0]
            pending.extend(int(self.first_child[node]) + i for i in block)
        return sorted(false)

    def packing(self) -> Packing:
        """Sets of false terminal nodes, of total weight R_root, that load no node above 1; for small trees."""
        below: dict[int, Packing] = {}
        for node in reversed(range(len(self.values))):
            certificate, first = self.certificates[node], int(self.first_child[node])
            if certificate is None:
                below[node] = (((node,), 1),)
                continue
            children = [below.pop(first + i) for i in range(self.width[node])]
            below[node] = tuple(
                (block, weight * share)
                for flipped, weight in certificate.packing
                if weight
                for block, share in coupled_packing([children[i] for i in flipped])
            )
        return below[0]

    def verify(self, tolerance: float = 1e-8) -> None:
        """Check every node's certificate, and that its capacities are the values below.

        Raises:
            CertificateError: with the first node that fails.
        """
        for node, (value, certificate) in enumerate(zip(self.values, self.certificates, strict=True)):
            expected: Number = 1
            if certificate is not None:
                certificate.verify(tolerance)
                expected, first = certificate.value, int(self.first_child[node])
                for i, capacity in enumerate(certificate.capacities):
                    _require_equal(capacity, self.values[first + i], tolerance, f"capacity {i} of node {node}")
            _require_equal(value, expected, tolerance, f"value of node {node}")


def tree_sensitivity(
    first_child: Sequence[int] | np.ndarray,
    width: Sequence[int] | np.ndarray,
    aggregators: Sequence[Aggregator | None],
    claimed: Sequence[int] | np.ndarray,
) -> TreeSensitivity:
    """Solve every node, children first: linear in the number of nodes n, at any depth. Equal programs are solved once.

    Args:
        first_child: int (n,), anything at leaves.
        width: int (n,), number of children, 0 at leaves.
        aggregators: (n,), None at leaves.
        claimed: 0/1 (n,), the answer claimed at each node.

    Raises:
        TreeError: lengths differ, a child does not come after its parent, or an aggregator has another width.
    """
    first_child, width, claimed = (np.asarray(array, dtype=np.int64) for array in (first_child, width, claimed))
    _check_tree(first_child, width, aggregators, claimed)
    values: list[Number] = [Fraction(1)] * len(width)
    certificates: list[Certificate | None] = [None] * len(width)
    for node in np.flatnonzero(width)[::-1].tolist():
        aggregator, first, last = aggregators[node], int(first_child[node]), int(first_child[node] + width[node])
        answers = claimed[first:last]
        if aggregator(answers) != claimed[node]:
            continue
        certificates[node] = certificate = solve(aggregator, tuple(answers.tolist()), _alike(values[first:last]))
        values[node] = certificate.value
    return TreeSensitivity(first_child, width, tuple(values), tuple(certificates))


def _alike(values: list[Number]) -> tuple[Number, ...]:
    """All fractions, if their common denominator is short, else all floats."""
    exact = all(isinstance(value, Fraction) for value in values)
    if exact and math.lcm(*{value.denominator for value in values}) <= MAX_DENOMINATOR:
        return tuple(values)
    return tuple(map(float, values))


def _check_tree(
    first_child: np.ndarray, width: np.ndarray, aggregators: Sequence[Aggregator | None], claimed: np.ndarray
) -> None:
    n = len(width)
    if not n or not len(first_child) == len(aggregators) == len(claimed) == n:
        raise TreeError(
            f"arrays of {len(first_child)}, {n}, {len(aggregators)} and {len(claimed)} nodes: all must agree"
        )
    if not ((claimed == 0) | (claimed == 1)).all():
        raise TreeError("claimed answers must be 0 or 1")
    for node in np.flatnonzero(width).tolist():
        if not node < first_child[node] <= n - width[node]:
            raise TreeError(f"node {node}: children must come after their parent and before the end")
        if aggregators[node] is None or aggregators[node].width != width[node]:
            raise TreeError(f"node {node} needs an aggregator of its {width[node]} children, not {aggregators[node]}")


def _require_equal(number: Number, expected: Number, tolerance: float, name: str) -> None:
    if not abs(number - expected) <= tolerance * max(1, expected):
        raise CertificateError(f"{name} is {number}, not {expected}")
