"""Claims made up as the debate goes: each claim's menu is drawn from a library of aggregators when it is reached.

A menu without a stable candidate is redrawn whole (DESIGN section 4). Redrawing until one is stable is the same as
drawing from the conditional distribution, which needs no loop: the position of the first stable candidate is
geometric (cut at K), the candidates before it are unstable ones, those behind it unconditional.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import fbs
from envs.config import NARROW, ConfigError, EnvConfig, ProblemConfig
from envs.library import Library, check_procedural
from fbs.aggregator import Aggregator, Symmetric, Table, Threshold


@dataclass(frozen=True, eq=False)
class Deck:
    """What candidates are drawn from, for each bit: the claimed one (adversarial oracle) or the true one (random).

    Entries of bit 0 stand before those of bit 1, and in each the stable ones first.

    Attributes:
        aggregator: int64 (E,).
        code: int64 (E,), the true answers as a padded code; 0 with the adversarial oracle.
        cumulative: float64 (E,), the bit plus the cumulative probability within it, so one search serves both bits.
        first: int64 (2,), the first entry of each bit. last: int64 (2,), its last.
        stable_mass: float64 (2,), probability that a candidate is stable.
        first_stable: float64 (2, K), cumulative probability that the first stable candidate stands at or before k.
    """

    aggregator: np.ndarray
    code: np.ndarray
    probability: np.ndarray
    stable: np.ndarray
    bit: np.ndarray
    cumulative: np.ndarray
    first: np.ndarray
    last: np.ndarray
    stable_mass: np.ndarray
    first_stable: np.ndarray


def procedural_library(config: ProblemConfig) -> tuple[Aggregator, ...]:
    """The aggregators named or sampled by `config`.

    Raises:
        ConfigError: one cannot be read, or is constant.
    """
    if config.family is None:
        aggregators = []
        for text in config.aggregators:
            try:
                aggregators.append(fbs.parse(text))
            except ValueError as error:
                raise ConfigError(f"problem.aggregators: {error}") from None
    else:
        rng = np.random.default_rng(config.seed)
        draw = _random_threshold if config.family == "threshold" else _random_table
        aggregators = [draw(rng, config.width) for _ in range(config.size)]
    check_procedural(tuple(aggregators))
    return tuple(aggregators)


def _random_threshold(rng: np.random.Generator, width: int) -> Threshold:
    weights = rng.integers(1, width + 1, width)
    return Threshold(tuple(int(w) for w in weights), int(rng.integers(1, weights.sum() + 1)))


def _random_table(rng: np.random.Generator, width: int) -> Table:
    while True:
        bits = rng.integers(0, 2, 1 << width)
        if 0 < bits.sum() < len(bits):
            return Table(tuple(int(b) for b in bits))


def deck(library: Library, env: EnvConfig, menu: int) -> Deck:
    """The deck that menus of `menu` candidates are dealt from.

    Raises:
        ConfigError: a bit that can be claimed has no stable candidate.
    """
    entries = [_entries(library, env, bit) for bit in (0, 1)]
    first_stable = np.zeros((2, menu))
    for bit, (_, _, probability, stable) in enumerate(entries):
        mass = min(float(probability[stable].sum()), 1.0)
        if mass == 0:
            raise ConfigError(
                f"env.rho: no stable candidate: at rho {env.rho:g} no aggregator of the library has an assignment "
                f"with output {bit} whose sensitivity is at most rho; raise env.rho or change problem.aggregators"
            )
        first_stable[bit] = (1 - (1 - mass) ** np.arange(1, menu + 1)) / (1 - (1 - mass) ** menu)
    aggregator, code, probability, stable = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    sizes = np.array([len(entry[0]) for entry in entries])
    bit = np.repeat([0, 1], sizes)
    cumulative = np.concatenate([b + np.cumsum(entry[2]) for b, entry in enumerate(entries)])
    masses = np.array([min(float(e[2][e[3]].sum()), 1.0) for e in entries])
    last = np.cumsum(sizes) - 1
    return Deck(aggregator, code, probability, stable, bit, cumulative, last - sizes + 1, last, masses, first_stable)


def _entries(library: Library, env: EnvConfig, bit: int) -> tuple[np.ndarray, ...]:
    """Aggregator, code, probability and stability of the candidates for one bit, stable ones first."""
    count = len(library.aggregators)
    if env.oracle == "adversarial":
        stable = np.array([has_stable_assignment(f, bit, env.rho) for f in library.aggregators])
        aggregator, code, probability = np.arange(count), np.zeros(count, np.int64), np.full(count, 1 / count)
    else:
        if not library.tabulated:
            raise ConfigError(
                f"env.oracle: the random oracle draws truths for aggregators of width up to {NARROW} "
                "(and for at most 131072 assignments in all); use env.oracle adversarial or a smaller library"
            )
        sizes = library.on_host(library.preimage_size)[:, bit]
        preimage = library.on_host(library.preimage)[:, bit]
        aggregator = np.repeat(np.arange(count), sizes)
        code = np.concatenate([preimage[a, : sizes[a]] for a in range(count)])
        probability = 1 / (count * sizes[aggregator])
        stable = library.on_host(library.stabilities)[aggregator, code]
    order = np.argsort(~stable, kind="stable")
    return aggregator[order], code[order], probability[order], stable[order]


def has_stable_assignment(f: Aggregator, bit: int, rho: float) -> bool:
    """Whether some assignment with output `bit` has sensitivity at most rho.

    Wider than `NARROW` this needs structure: a symmetric aggregator is checked by its number of ones; a threshold at
    the assignment furthest on its side, which has the least sensitivity (every sensitive block there contains a
    sensitive block of any other assignment of that output, so a cover of the other covers it too).

    Raises:
        ConfigError: for a wide aggregator of another kind.
    """
    library = Library((f,), rho)
    if library.tabulated:
        outputs, stabilities = np.asarray(library.outputs[0]), np.asarray(library.stabilities[0])
        return bool(np.any(stabilities & (outputs == bit)))
    if isinstance(f, Symmetric):
        candidates = np.tri(f.width + 1, f.width, -1, dtype=np.int8)
    elif isinstance(f, Threshold):
        positive = (np.array(f.weights) > 0).astype(np.int8)
        candidates = np.stack([positive if bit else 1 - positive])
    else:
        raise ConfigError(
            f"problem.aggregators: '{f}' is {f.width} wide; wider than {NARROW} a procedural problem takes "
            "symmetric and threshold aggregators"
        )
    candidates = candidates[f(candidates) == bit]
    zeros = np.zeros(len(candidates), np.int64)
    return bool(np.any(library.stable(zeros, candidates)))
