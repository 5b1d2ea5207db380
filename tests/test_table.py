"""All assignments at once, against subsets listed one by one and against single programs."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fbs.aggregator import Aggregator, Table, majority
from fbs.bits import all_assignments
from fbs.interchange import interchange_classes
from fbs.notation import parse
from fbs.sensitivity import sensitivity
from fbs.table import SensitivityTable, TableWidthError
from tests.strategies import aggregators, quick


def minimal_blocks_one_by_one(f: Aggregator, z: np.ndarray) -> set[tuple[int, ...]]:
    """Subsets by size; one that contains a block found before is not minimal."""
    found: list[set[int]] = []
    for size in range(1, f.width + 1):
        for subset in combinations(range(f.width), size):
            flipped = z.copy()
            flipped[list(subset)] ^= 1
            if f(flipped) != f(z) and not any(block <= set(subset) for block in found):
                found.append(set(subset))
    return {tuple(sorted(block)) for block in found}


@settings(max_examples=25, deadline=None)
@given(aggregators(5))
def test_minimal_blocks(f: Aggregator) -> None:
    table = SensitivityTable(f)
    for code, z in enumerate(all_assignments(f.width)):
        blocks = {tuple(np.flatnonzero(block).tolist()) for block in table.blocks(code)}
        assert blocks == minimal_blocks_one_by_one(f, z)


@settings(max_examples=25, deadline=None)
@given(aggregators(5))
def test_values_covers_and_exact_certificates(f: Aggregator) -> None:
    """The values against certificates that prove themselves; the rows of covers are the certificates' own covers."""
    table = SensitivityTable(f)
    for code, z in enumerate(all_assignments(f.width)):
        certificate = table.exact(code)
        certificate.verify()
        assert certificate.exact and certificate.assignment == tuple(z.tolist())
        assert table.value[code] == pytest.approx(float(certificate.value), abs=1e-12)
        np.testing.assert_allclose(table.cover[code], [float(t) for t in certificate.cover], atol=1e-12)
        assert certificate.value == sensitivity(f, z).value


COSTS = [(1.0, 1.0), (1.0, 2.5), (4.0, 0.25), (3.0, 3.0), (0.0, 1.0), (2.0, 0.0), (0.0, 0.0)]


@settings(max_examples=25, deadline=None)
@given(aggregators(5), st.sampled_from(COSTS))
def test_weighted_programs(f: Aggregator, costs: tuple[float, float]) -> None:
    table = SensitivityTable(f)
    values, covers = table.weighted_cover(*costs)
    for code, z in enumerate(all_assignments(f.width)):
        capacities = np.where(z == 1, costs[1], costs[0])
        certificate = sensitivity(f, z, capacities)
        certificate.verify()
        assert values[code] == pytest.approx(certificate.value, abs=1e-9)
        assert capacities @ covers[code] == pytest.approx(values[code], abs=1e-9)
        lightest = f.lightest_block(z, covers[code])
        assert lightest is None or lightest[0] >= 1 - 1e-9
    np.testing.assert_array_equal(table.weighted(*costs), values)


def test_the_second_level_of_the_default_game() -> None:
    """With a false 0 caught with V(0) = 1/2 and a false 1 with V(1) = 1/3, capacities are 2 and 3. `and 2`: at 11 both
    must be covered, 3 + 3; at 00 the block of both is covered by either, 2; at 01 only the 0 flips it, 2."""
    assert SensitivityTable(parse("and 2")).weighted(2, 3).tolist() == [2, 2, 2, 6]


def test_infinite_costs() -> None:
    """`and 2` with zeros that cannot be covered: 0 at 00 would need one of them, so inf; 11 has no zeros: 1 + 1."""
    values, covers = SensitivityTable(parse("and 2")).weighted_cover(np.inf, 1)
    assert values.tolist() == [np.inf, np.inf, np.inf, 2] and np.isnan(covers[0]).all() and covers[3].tolist() == [1, 1]
    p = SensitivityTable(parse("majority 3")).max_entropy(np.inf, 1)
    np.testing.assert_allclose(p[0b110], [1 / 2, 1 / 2, 0])
    assert np.isnan(p[0b000]).all()
    assert (SensitivityTable(parse("table 1111")).weighted(np.inf, 1) == 0).all()


def test_sub_claims_that_can_swap() -> None:
    """By hand: a multiplexer of one address bit has none; x0 and (x1 or x2) can swap the last two, as can a
    composition's parts inside, but not across, since a table does not see that whole parts swap."""
    assert interchange_classes(Table((0, 0, 1, 1, 0, 1, 0, 1))).tolist() == [0, 1, 2]
    assert interchange_classes(Table((0, 0, 0, 0, 0, 1, 1, 1))).tolist() == [0, 1, 1]
    assert interchange_classes(parse("or(and 2, and 2)")).tolist() == [0, 0, 2, 2]
    assert interchange_classes(parse("threshold 2,-1,2,0 >= 1")).tolist() == [2, 0, 2, 1]
    assert interchange_classes(majority(50)).tolist() == [0] * 50


@quick
@given(aggregators(6), st.randoms(use_true_random=False))
def test_interchange_is_invariance(f: Aggregator, random) -> None:
    classes = interchange_classes(f)
    order = np.arange(f.width)
    for label in set(classes.tolist()):
        members = np.flatnonzero(classes == label).tolist()
        order[members] = random.sample(members, len(members))
    z = all_assignments(f.width)
    assert (f(z[:, order]) == f(z)).all()


def test_ten_sub_claims_and_no_more() -> None:
    """majority of 10 at m ones, closed form: m >= 6: m / (m - 5), below: (10 - m) / (6 - m)."""
    table = SensitivityTable(majority(10))
    ones = all_assignments(10).sum(1)
    expected = [Fraction(int(m), int(m - 5)) if m >= 6 else Fraction(int(10 - m), int(6 - m)) for m in ones]
    np.testing.assert_allclose(table.value, [float(value) for value in expected], rtol=1e-12)
    with pytest.raises(TableWidthError, match="11 sub-claims are too many"):
        SensitivityTable(majority(11))
