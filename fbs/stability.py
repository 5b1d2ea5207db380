"""When is an assignment stable?  The one place that compares a sensitivity with rho.

A claim may be debated only while the fractional block sensitivity of its aggregator, at the assignment that Alice
gave, is at most rho. An exact tie is stable (the majority of six with four ones has sensitivity exactly 4, stable at
rho 4), and sensitivities from floating point arithmetic may land a hair above the tie, hence a relative tolerance.
"""

from __future__ import annotations

import math
from typing import Any

STABILITY_TOLERANCE = 1e-9  # relative to rho


class RhoError(ValueError):
    """The sensitivity limit rho is not a finite number of at least 1."""


def check_rho(rho: float) -> float:
    """Return rho as a float, or raise `RhoError`.

    Below 1 no assignment of a function that takes both values could be stable: flipping everything that must be flipped
    is one sensitive block, so every such sensitivity is at least 1.
    """
    try:
        number = float(rho)
    except (TypeError, ValueError):
        raise RhoError(f"rho must be a number of at least 1, not {rho!r}") from None
    if not math.isfinite(number) or number < 1:
        raise RhoError(f"rho must be a finite number of at least 1, not {rho!r}: no claim is less sensitive than 1")
    return number


def stable(value: Any, rho: Any) -> Any:
    """True where a sensitivity is at most rho.

    `value` is a number, a Fraction or an array of either library; the answer is a bool or a bool array of its shape.
    `rho` was checked by `check_rho` before.
    """
    return value <= rho * (1 + STABILITY_TOLERANCE)
