"""Conditioned coin flips against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import chi2

import fbs
from agents.conditional_flips import AnswerFlips, ConditionalFlips
from envs.config import ConfigError

WRITTEN = [
    "majority 5",
    "parity 4",
    "at_least 2 6",
    "threshold 3,2,2,1,1 >= 5",
    "threshold 2,-3,1,0 >= 0",
    "table 01101001",
    "majority(and 2, or 2, parity 2)",
]


def enumerated(f, scores, bit):
    """P(z) of every z by listing all of them, in plain Python."""
    weights = {}
    for z in itertools.product((0, 1), repeat=f.width):
        if int(f(np.array(z))) == bit:
            weights[z] = float(np.exp(sum(s for s, one in zip(scores, z, strict=True) if one)))
    total = sum(weights.values())
    return {z: w / total for z, w in weights.items()}


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("bit", [0, 1])
def test_log_probability_is_that_of_enumeration(written, bit):
    f = fbs.parse(written)
    scores = np.random.default_rng(0).normal(size=f.width) * 2
    expected = enumerated(f, scores, bit)
    z = torch.tensor(list(expected))
    n = len(z)
    found = ConditionalFlips(f).log_probability(torch.tensor(scores).repeat(n, 1), torch.full((n,), bit), z)
    np.testing.assert_allclose(found.exp(), list(expected.values()), rtol=1e-9)


@pytest.mark.parametrize("written", WRITTEN)
def test_draws_follow_it(written):
    """20,000 draws against enumeration: chi-square below its 99.9% quantile, and never the other output."""
    f = fbs.parse(written)
    scores = np.random.default_rng(1).normal(size=f.width)
    expected = enumerated(f, scores, 1)
    n = 20_000
    u = torch.as_tensor(np.random.default_rng(2).random((n, f.width)))
    z = ConditionalFlips(f).draw(torch.tensor(scores).repeat(n, 1), torch.ones(n, dtype=torch.long), u)
    assert bool((f(z) == 1).all())
    counts = {}
    for row in map(tuple, z.tolist()):
        counts[row] = counts.get(row, 0) + 1
    statistic = sum((counts.get(row, 0) - n * p) ** 2 / (n * p) for row, p in expected.items() if n * p > 5)
    assert statistic < chi2.ppf(0.999, sum(n * p > 5 for p in expected.values()) - 1)


def test_rows_keep_their_own_aggregator():
    """A mixed batch answers row by row as each aggregator alone does."""
    library = (fbs.parse("majority 5"), fbs.parse("threshold 3,1,1 >= 3"))
    flips = AnswerFlips(library)
    aggregator = torch.tensor([1, 0, 1, 0])
    scores = torch.as_tensor(np.random.default_rng(0).normal(size=(4, 5)))
    bit = torch.tensor([1, 0, 0, 1])
    z = flips.draw(aggregator, scores, bit, torch.as_tensor(np.random.default_rng(1).random((4, 5))))
    together = flips.log_probability(aggregator, scores, bit, z)
    for row, a in enumerate(aggregator.tolist()):
        q = library[a].width
        assert int(library[a](z[row, :q])) == int(bit[row])
        assert not z[row, q:].any()
        alone = ConditionalFlips(library[a]).log_probability(scores[row : row + 1, :q], bit[row : row + 1], z[row, :q])
        assert together[row] == pytest.approx(float(alone))


def test_wide_and_unlikely_conditions_stay_finite():
    """Majority of 199 claimed true although every answer leans to 0 by log-odds -3."""
    flips = ConditionalFlips(fbs.parse("majority 199"))
    scores = torch.full((2, 199), -3.0)
    z = flips.draw(
        scores, torch.ones(2, dtype=torch.long), torch.rand((2, 199), generator=torch.Generator().manual_seed(0))
    )
    assert bool((z.sum(-1) >= 100).all())
    assert bool(torch.isfinite(flips.log_probability(scores, torch.ones(2, dtype=torch.long), z)).all())


def test_wide_aggregators_without_structure_are_refused():
    with pytest.raises(ConfigError, match="12 wide"):
        ConditionalFlips(fbs.parse("majority(and 4, or 4, parity 4)"))
