"""One line of the report: a claim, a number, what it is compared with, and whether the claim holds.

A number is *exact* where a recursion gives it; the comparison is then plain, up to rounding. Where it is *sampled*, a
claim is given up only if the sample speaks against it: one-sided binomial test, at a level that all sampled rows share
(Bonferroni), so that a report whose claims are all true shows a failure with probability at most `LEVEL`. The 95%
intervals are for the eye: of a hundred right ones, five miss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agents.match import interval

LEVEL = 0.01
FEWEST = 100.0  # a rate is sampled only where at least so many catches are expected
ROUNDING = 1e-9  # relative; of exact numbers

Relation = Literal["=", "<=", ">=", "<", ">"]
SYMBOLS = {"=": "=", "<=": "≤", ">=": "≥", "<": "<", ">": ">"}


class RowError(ValueError):
    """A row that would prove nothing."""


@dataclass(frozen=True)
class Row:
    """A number beside its bound.

    Attributes:
        claim: What is claimed, in words. setting: Where it was measured, and what else was seen there.
        value, low, high: The number and its 95% interval; all the same where it is exact.
        relation, bound: What the number is claimed to be.
        p_value: Of the one-sided test against the claim; None where the number is exact.
        fails: The paper says that here the relation does not hold; the row holds when it does not.
    """

    claim: str
    setting: str
    value: float
    low: float
    high: float
    relation: Relation
    bound: float
    p_value: float | None = None
    fails: bool = False

    def holds(self, level: float) -> bool:
        """Whether the claim stands, `level` being that of a single sampled row."""
        if self.p_value is not None:
            return self.p_value >= level
        return _compare(self.value, self.relation, self.bound) != self.fails

    def record(self, level: float) -> dict[str, Any]:
        """The row as plain data for report.json."""
        return {
            "claim": self.claim, "setting": self.setting, "value": self.value, "low": self.low, "high": self.high,
            "bound": self.bound, "holds": self.holds(level), "relation": self.relation, "exact": self.p_value is None,
            "p_value": self.p_value, "fails_as_the_paper_says": self.fails,
        }  # fmt: skip


def exact(claim: str, setting: str, value: float, relation: Relation, bound: float, fails: bool = False) -> Row:
    """A row whose number comes from a recursion."""
    value = float(value)
    return Row(claim, setting, value, value, value, relation, float(bound), fails=fails)


def sampled(
    claim: str, setting: str, successes: int, trials: int, relation: Literal["<=", ">="], bound: float,
    expected: float | None = None,
) -> Row:  # fmt: skip
    """A row whose number is a rate.

    Args:
        expected: The catches that exact values promise over all debates, where catches are what is counted.

    Raises:
        RowError: fewer than `FEWEST` are expected.
    """
    from scipy.stats import binom

    if expected is not None and not enough(expected):
        raise RowError(f"{claim} ({setting}): only {expected:.3g} catches are expected, fewer than {FEWEST:g}")
    bound = float(bound)
    against = binom.cdf(successes, trials, bound) if relation == ">=" else binom.sf(successes - 1, trials, bound)
    rate = interval(successes, trials)
    return Row(claim, setting, rate["mean"], rate["low"], rate["high"], relation, bound, float(against))


def enough(expected: float) -> bool:
    """Whether so many expected catches are worth sampling."""
    return expected >= FEWEST


def shared_level(rows: Sequence[Row]) -> float:
    """The level of each sampled row's test."""
    return LEVEL / max(1, sum(row.p_value is not None for row in rows))


def _compare(value: float, relation: Relation, bound: float) -> bool:
    same = math.isclose(value, bound, rel_tol=ROUNDING, abs_tol=1e-12)
    if relation in ("<", ">"):
        return not same and (value < bound) == (relation == "<")
    return same or (relation != "=" and (value < bound) == (relation == "<="))
