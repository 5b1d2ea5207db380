"""What a debate is configured by: the game's rules and the problem it is played on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Literal

from fbs.stability import check_rho

NARROW = 10  # up to this width all 2^width assignments of an aggregator are tabulated


class ConfigError(ValueError):
    """A configuration that no game can be played by; the message names the key and the fix."""


@dataclass(frozen=True)
class EnvConfig:
    """The rules of one debate.

    Args:
        depth: Levels between the root claim and a leaf, at least 1. A problem read from a file brings its own depth.
        rho: The sensitivity bound: Bob may challenge an assignment whose fractional block sensitivity exceeds it. At
            least 1.
        oracle: `adversarial`: Alice also chooses which sub-claims are false. `random`: the problem draws the truths.
            A problem read from a file has its own answers, so there the truths are those.
        root_claim: `assigned`: the environment deals the root claim. `free`: Alice chooses it.
        p_false: Probability that an assigned root claim is false, in [0, 1].
        bob_sees: `claims`: Bob never sees a truth value. `truth`: he sees that of the claim and of each sub-claim.
        noise: Probability that the oracle answers wrongly, in [0, 0.5].
        query_cost: What Bob pays Alice when the oracle is asked, in [0, 1).
        tremble: Probability that Alice's assignment is replaced by a uniform one of the same output. For training;
            every evaluation sets it to 0. Widths above 10 do not tremble.
    """

    depth: int = 2
    rho: float = 3.0
    oracle: Literal["adversarial", "random"] = "adversarial"
    root_claim: Literal["assigned", "free"] = "assigned"
    p_false: float = 0.5
    bob_sees: Literal["claims", "truth"] = "claims"
    noise: float = 0.0
    query_cost: float = 0.0
    tremble: float = 0.2

    def __post_init__(self) -> None:
        plain_numbers(self)
        _require(
            _is_int(self.depth) and 1 <= self.depth <= 200, "env.depth", self.depth, "a whole number from 1 to 200"
        )
        for key in ("rho", "p_false", "noise", "query_cost", "tremble"):
            _require(_is_real(getattr(self, key)), f"env.{key}", getattr(self, key), "a number")
        try:
            check_rho(self.rho)
        except ValueError as error:
            raise ConfigError(f"env.rho: {error}") from None
        _require(self.oracle in ("adversarial", "random"), "env.oracle", self.oracle, "'adversarial' or 'random'")
        _require(self.root_claim in ("assigned", "free"), "env.root_claim", self.root_claim, "'assigned' or 'free'")
        _require(self.bob_sees in ("claims", "truth"), "env.bob_sees", self.bob_sees, "'claims' or 'truth'")
        _require(0 <= self.p_false <= 1, "env.p_false", self.p_false, "a probability")
        _require(0 <= self.noise <= 0.5, "env.noise", self.noise, "a probability of at most 0.5")
        _require(0 <= self.query_cost < 1, "env.query_cost", self.query_cost, "at least 0 and below 1, the prize")
        _require(0 <= self.tremble <= 1, "env.tremble", self.tremble, "a probability")


@dataclass(frozen=True)
class ProblemConfig:
    """What is debated.

    Args:
        path: A claim tree (.json, .yaml) or crowd labels (.csv). When given, the keys below are not used.
        aggregators: The library of aggregators in written form, such as `majority 5` or `threshold 3,2,2,1,1 >= 5`.
        family: Instead of `aggregators`: sample the library from `threshold` (weights 1 to `width`, any threshold
            that is met by some and not by all assignments) or `table` (uniform truth tables, not constant).
        size: How many aggregators a sampled library has.
        width: Sub-claims of a sampled aggregator.
        seed: Seed of a sampled library.
        menu: Candidate decompositions that Alice chooses from at each claim (K in the design).
    """

    path: str | None = None
    aggregators: list[str] = field(default_factory=lambda: ["threshold 3,2,2,1,1 >= 5"])
    family: Literal["threshold", "table"] | None = None
    size: int = 16
    width: int = 5
    seed: int = 0
    menu: int = 1

    def __post_init__(self) -> None:
        plain_numbers(self)
        _require(self.path is None or isinstance(self.path, str), "problem.path", self.path, "a file's path")
        _require(
            isinstance(self.aggregators, list | tuple) and all(isinstance(a, str) for a in self.aggregators),
            "problem.aggregators",
            self.aggregators,
            "a list of aggregators in written form",
        )
        object.__setattr__(self, "aggregators", [str(a) for a in self.aggregators])
        _require(self.family in (None, "threshold", "table"), "problem.family", self.family, "'threshold' or 'table'")
        for key, low, high in (("size", 1, 10_000), ("width", 1, NARROW), ("menu", 1, 64)):
            value = getattr(self, key)
            _require(
                _is_int(value) and low <= value <= high, f"problem.{key}", value, f"a whole number {low} to {high}"
            )
        _require(_is_int(self.seed) and self.seed >= 0, "problem.seed", self.seed, "a whole number of at least 0")
        _require(
            bool(self.aggregators) or self.family or self.path, "problem.aggregators", [], "at least one aggregator"
        )


def plain_numbers(config: Any) -> None:
    """Turn the numbers of a frozen configuration into Python's own: 3 and NumPy's 3.0 for a float into 3.0.

    So configurations that say the same are equal and are recorded alike. A bool is no number; what is none stays as it
    is, for the configuration to refuse.
    """
    for item in fields(config):
        value = getattr(config, item.name)
        if isinstance(value, bool):
            continue
        if item.type == "int" and isinstance(value, Integral):
            object.__setattr__(config, item.name, int(value))
        elif item.type == "float" and isinstance(value, Real):
            object.__setattr__(config, item.name, _as_float(value))


def _as_float(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _require(holds: object, key: str, value: object, expected: str) -> None:
    if not holds:
        raise ConfigError(f"{key} is {value!r}; expected {expected}")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return isinstance(value, float) and not math.isnan(value)
