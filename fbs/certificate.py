"""A sensitivity with its proof: a cover and a packing of equal value, and a check that calls no solver.

For an aggregator f at an assignment z, a block B of sub-claims is sensitive if flipping it changes f. With a capacity
c_i for each sub-claim (1 throughout for the plain fractional block sensitivity of section 3.3 of the paper),

    packing  max sum_B w_B      s.t.  sum_{B containing i} w_B <= c_i,  w >= 0   over sensitive blocks
    cover    min sum_i c_i t_i  s.t.  sum_{i in B} t_i >= 1,            t >= 0   for every sensitive block B

Any feasible packing weighs at most any feasible cover. So one of each with equal value proves that both are optimal,
whoever found them, and that sampling i in proportion to c_i t_i is optimal as well.

    >>> from fbs.notation import assignment, parse
    >>> from fbs.sensitivity import sensitivity
    >>> certificate = sensitivity(parse("threshold 3,2,2,1,1 >= 5"), assignment("11100"))
    >>> certificate.value
    Fraction(2, 1)
    >>> certificate.verify()
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from fbs.aggregator import Aggregator

Number = Fraction | float
Packing = tuple[tuple[tuple[int, ...], Number], ...]  # (block as increasing indices, weight)

_CELLS_AT_A_TIME = 2**24  # flipped assignments are checked in chunks of this many bytes


class CertificateError(ValueError):
    """A certificate that does not prove what it says."""


class ConstantError(ValueError):
    """No block is sensitive, so there is nothing to sample by."""


@dataclass(frozen=True)
class Certificate:
    """The value of the cover program with its proof.

    Attributes:
        aggregator, assignment: f and z, the latter 0/1 (q,).
        capacities: c, nonnegative (q,).
        value: what cover and packing both weigh; 0 if no block is sensitive. A Fraction if `exact`, else a float.
        cover: t, (q,).
        packing_source: the packing, or a function that lists it. Closed forms list it only when it is asked for: the
            packing of a majority of 999 is half a million indices.
        exact: all numbers are fractions, and the check leaves no tolerance.
    """

    aggregator: Aggregator
    assignment: tuple[int, ...]
    capacities: tuple[Number, ...]
    value: Number
    cover: tuple[Number, ...]
    packing_source: Packing | Callable[[], Packing] = field(repr=False, compare=False)
    exact: bool

    @cached_property
    def packing(self) -> Packing:
        """Sensitive blocks, as increasing indices, with their weights w."""
        return tuple(self.packing_source()) if callable(self.packing_source) else self.packing_source

    @cached_property
    def sampling(self) -> np.ndarray:
        """Optimal sampling distribution p of this cover: float64 (q,), read-only, p_i in proportion to c_i t_i.

        Raises:
            ConstantError: the value is 0.
        """
        spent = np.array([float(c * t) for c, t in zip(self.capacities, self.cover, strict=True)])
        if not spent.sum() > 0:
            raise ConstantError(f"{_at(self)}: no block is sensitive, so no sub-claim is worth sampling")
        p = spent / spent.sum()
        p.flags.writeable = False  # kept, and handed to whoever asks
        return p

    def verify(self, tolerance: float = 1e-8) -> None:
        """Check the proof; no solver is called.

        Args:
            tolerance: how much a block's weight may fall short of 1; of loads and totals, relative to the value. Exact
                certificates get none.

        Raises:
            CertificateError: with the first condition that fails.
        """
        if self.exact:
            tolerance = 0
        _check_numbers(self)
        _check_cover(self, tolerance)
        _check_blocks(self)
        _check_loads(self, tolerance * self.value)
        _check_totals(self, tolerance * self.value)


def _check_numbers(certificate: Certificate) -> None:
    width = certificate.aggregator.width
    weights = tuple(weight for _, weight in certificate.packing)
    for name in ("assignment", "capacities", "cover"):
        _require(len(getattr(certificate, name)) == width, certificate, f"{name} must have {width} entries")
    _require(set(certificate.assignment) <= {0, 1}, certificate, "assignment must consist of 0 and 1")
    for name, numbers in (
        ("value", (certificate.value,)),
        ("capacities", certificate.capacities),
        ("cover", certificate.cover),
        ("packing", weights),
    ):
        _require(
            all(math.isfinite(x) and x >= 0 for x in numbers), certificate, f"{name} must be finite and nonnegative"
        )
        if certificate.exact:
            exact = all(isinstance(x, (int, Fraction)) for x in numbers)
            _require(exact, certificate, f"{name} must be fractions in an exact certificate")


def _check_cover(certificate: Certificate, tolerance: float) -> None:
    masses = np.array(certificate.cover, dtype=object if certificate.exact else np.float64)
    lightest = certificate.aggregator.lightest_block(certificate.assignment, masses)
    if lightest is not None:
        mass, block = lightest
        where = np.flatnonzero(block).tolist()
        _require(mass >= 1 - tolerance, certificate, f"cover leaves block {where} with weight {mass}, below 1")


def _check_blocks(certificate: Certificate) -> None:
    """Every block of the packing flips f."""
    aggregator, blocks = certificate.aggregator, [block for block, _ in certificate.packing]
    z = np.array(certificate.assignment, dtype=np.int8)
    value = int(aggregator(z))
    rows = max(1, _CELLS_AT_A_TIME // aggregator.width)
    for start in range(0, len(blocks), rows):
        chunk = blocks[start : start + rows]
        flipped = np.repeat(z[None], len(chunk), axis=0)
        for row, block in zip(flipped, chunk, strict=True):
            indices = np.asarray(block)
            in_order = indices.dtype.kind == "i" and indices.ndim == 1 and (np.diff(indices) > 0).all()
            _require(
                in_order and indices[0] >= 0 and indices[-1] < aggregator.width,
                certificate,
                f"packing block {block} must list increasing indices of sub-claims",
            )
            row[indices] ^= 1
        idle = np.flatnonzero(aggregator(flipped) == value)
        _require(not len(idle), certificate, f"packing block {chunk[idle[0]] if len(idle) else ()} does not flip f")


def _check_loads(certificate: Certificate, slack: Number) -> None:
    loads = np.zeros(certificate.aggregator.width, dtype=object if certificate.exact else np.float64)
    for block, weight in certificate.packing:
        loads[list(block)] += weight if certificate.exact else float(weight)
    for i, (load, capacity) in enumerate(zip(loads.tolist(), certificate.capacities, strict=True)):
        _require(
            load <= capacity + slack, certificate, f"packing puts {load} on sub-claim {i}, whose capacity is {capacity}"
        )


def _check_totals(certificate: Certificate, slack: Number) -> None:
    spent = sum(c * t for c, t in zip(certificate.capacities, certificate.cover, strict=True))
    packed = sum(weight for _, weight in certificate.packing)
    for name, total in (("cover costs", spent), ("packing weighs", packed)):
        same = abs(total - certificate.value) <= slack
        _require(same, certificate, f"{name} {total}, not the value {certificate.value}")


def _require(condition: bool, certificate: Certificate, message: str) -> None:
    if not condition:
        raise CertificateError(f"{_at(certificate)}: {message}")


def _at(certificate: Certificate) -> str:
    z = "".join(map(str, certificate.assignment))
    f = str(certificate.aggregator)
    return f"{f if len(f) <= 80 else f[:77] + '...'} at {z if len(z) <= 80 else z[:77] + '...'}"
