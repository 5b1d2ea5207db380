"""The maximum-entropy optimum: against a cubic, cvxpy, a duality gap, its symmetries; and the distance to the optimal
face."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fbs.aggregator import Aggregator, Threshold, at_least, majority
from fbs.bits import all_assignments, encode
from fbs.certificate import ConstantError
from fbs.interchange import interchange_classes
from fbs.linear_program import LinearProgram
from fbs.max_entropy import _generated_optimum, max_entropy_sampling
from fbs.notation import assignment, parse
from fbs.optimal_face import optimal_face_distance
from fbs.reference import reference_max_entropy
from fbs.sensitivity import SensitivityError, sensitivity
from fbs.table import SensitivityTable, minimal_blocks_at
from tests.strategies import aggregators, assignments, compositions, quick, symmetrics

CUBIC = parse("threshold 2,1,4,5,7,5 >= 13")


def test_an_irrational_optimum() -> None:
    """Minimal blocks at 101111 leave the face (1-2s, 0, s, s, 1-s, s); setting the entropy's derivative to 0 gives the
    cubic 5s^3 - 8s^2 + 5s - 1 = 0, whose real root is 0.36299."""
    s = next(root.real for root in np.roots([5, -8, 5, -1]) if abs(root.imag) < 1e-12)
    assert s == pytest.approx(0.36299, abs=1e-5)
    cover = np.array([1 - 2 * s, 0, s, s, 1 - s, s])
    p = max_entropy_sampling(CUBIC, assignment("101111"))
    np.testing.assert_allclose(p, cover / cover.sum(), atol=1e-10)
    np.testing.assert_allclose(SensitivityTable(CUBIC).max_entropy(codes=[0b101111])[0], p, atol=1e-12)


def test_an_optimum_on_a_bound_that_presses_with_no_force() -> None:
    """At 11011 the sum 16 must fall by 10 of the gains 9, 9, 1, 1: blocks 01, 02, 03, 12, 13. The face is t = (a, a,
    1-a, 1-a) with a >= 1/2, and entropy is largest at a = 1/2 with or without that bound. Path following alone stops
    1e-7 short."""
    p = max_entropy_sampling(parse("threshold 9,9,-1,1,-3 >= 7"), [1, 1, 0, 1, 1])
    np.testing.assert_allclose(p, [1 / 4, 1 / 4, 1 / 4, 1 / 4, 0], atol=1e-12)


def test_a_face_on_which_the_last_steps_are_ill_conditioned() -> None:
    """Path following used to go on until its matrix was singular. Two directions are left on this face; the optimum
    covers every block, and no small step along the face has more entropy."""
    f = parse("threshold 41,32,7,34,44,8,44,47,39,28,46,17,27,21,39,37,6,31,31,3,32,17,22 >= 563")
    z = assignment("01110011000100000100100")
    value, p = float(sensitivity(f, z).value), max_entropy_sampling(f, z)
    assert f.lightest_block(z, value * p)[0] >= 1 - 1e-8
    vertex = sensitivity(f, z).sampling
    for share in (1e-3, 1e-2, 0.1, 1.0):
        assert entropy((1 - share) * p + share * vertex) < entropy(p)


def entropy(p: np.ndarray) -> float:
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


def check(f: Aggregator, z: tuple[int, ...], capacities: np.ndarray, p: np.ndarray) -> None:
    """Second route, an upper bound by duality: entropy being concave, no x on the face has more than
    H(p) + max_x (gradient at p) . (x - p). The face is a polytope, the maximum a linear program; and p must have mass
    wherever
    some optimum does."""
    value = float(sensitivity(f, z, capacities).value)
    free = capacities == 0
    blocks = minimal_blocks_at(f, z)
    blocks = blocks[~(blocks & free).any(1)]
    rows = np.vstack([blocks * np.divide(value, capacities, out=np.zeros(f.width), where=~free), np.ones(f.width)])
    upper = np.append(np.full(len(blocks), np.inf), 1)
    bounds = np.where(free, 0.0, 1.0)
    assert p.sum() == pytest.approx(1, abs=1e-12) and (p >= 0).all() and (rows @ p >= 1 - 1e-8).all()
    slope = np.where(p > 0, np.log(np.where(p > 0, p, 1)), 0)
    assert slope @ p - LinearProgram(slope, rows, 1.0, upper, bounds).solve().value <= 1e-8
    assert LinearProgram(np.where(p > 0, 0, -1.0), rows, 1.0, upper, bounds).solve().value >= -1e-8


costs = st.sampled_from([1.0, 1.0, 2.0, 0.5, 0.0]) | st.floats(0.1, 10)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_optimum_has_more_entropy(data: st.DataObject) -> None:
    f = data.draw(aggregators(7))
    z = data.draw(assignments(f.width))
    capacities = np.array(data.draw(st.just([1.0] * f.width) | st.tuples(*[costs] * f.width)))
    if not sensitivity(f, z, capacities).value:
        with pytest.raises(ConstantError, match="no block is sensitive"):
            max_entropy_sampling(f, z, capacities)
    else:
        check(f, z, capacities, max_entropy_sampling(f, z, capacities))


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_against_cvxpy(data: st.DataObject) -> None:
    """Entropy is flat at its maximum, so the reference has about half its digits in p."""
    f = data.draw(aggregators(6))
    z = data.draw(assignments(f.width))
    if sensitivity(f, z).value:
        p, reference = max_entropy_sampling(f, z), reference_max_entropy(f, z)
        np.testing.assert_allclose(p, reference, atol=2e-4)
        assert entropy(p) >= entropy(reference) - 1e-6


@quick
@given(st.data())
def test_tables_agree_with_single_programs(data: st.DataObject) -> None:
    """Closed forms, products over parts and generated blocks against the listed blocks, cost by bit."""
    f = data.draw(st.one_of(symmetrics(6), compositions(6), aggregators(5)))
    cost0, cost1 = data.draw(st.sampled_from([(1.0, 1.0), (1.0, 3.0), (2.0, 0.5)]))
    codes = data.draw(st.lists(st.integers(0, 2**f.width - 1), min_size=1, max_size=6))
    rows = SensitivityTable(f).max_entropy(cost0, cost1, codes)
    for z, row in zip(all_assignments(f.width)[codes], rows, strict=True):
        capacities = np.where(z == 1, cost1, cost0)
        if np.isnan(row).any():
            assert sensitivity(f, z).value == 0
        else:
            np.testing.assert_allclose(max_entropy_sampling(f, z, capacities), row, atol=1e-8)
            generated = _generated_optimum(f, z, capacities, np.zeros(f.width))
            np.testing.assert_allclose(generated, row, atol=1e-8)


@quick
@given(st.data())
def test_interchangeable_sub_claims_swap_freely(data: st.DataObject) -> None:
    """A permutation of interchangeable sub-claims permutes p, to the last bit in a table."""
    f = data.draw(aggregators(6))
    z = np.array(data.draw(assignments(f.width)))
    order = np.arange(f.width)
    for label in set(interchange_classes(f).tolist()):
        members = np.flatnonzero(interchange_classes(f) == label).tolist()
        order[members] = data.draw(st.permutations(members))
    rows = SensitivityTable(f).max_entropy(codes=[encode(z), encode(z[order])])
    np.testing.assert_array_equal(rows[0][order], rows[1])
    if not np.isnan(rows).any():
        p = max_entropy_sampling(f, z)
        np.testing.assert_allclose(max_entropy_sampling(f, z[order]), p[order], atol=1e-10)
        first = {}
        for key, mass in zip(zip(interchange_classes(f).tolist(), z.tolist(), strict=True), rows[0], strict=True):
            assert first.setdefault(key, mass) == mass


def test_closed_forms() -> None:
    """`and 4` at 1001: flipping both zeros is the only block, spread evenly. `majority 5` at 11100: any one of three.
    `at_least 2` of 3 at 111 with one dear sub-claim spared."""
    assert max_entropy_sampling(parse("and 4"), [1, 0, 0, 1]).tolist() == [0, 0.5, 0.5, 0]
    np.testing.assert_allclose(max_entropy_sampling(majority(5), [1, 1, 1, 0, 0]), [1 / 3, 1 / 3, 1 / 3, 0, 0])
    np.testing.assert_allclose(max_entropy_sampling(at_least(2, 3), [1, 1, 1], [1, 1, 4]), [1 / 2, 1 / 2, 0])


def test_a_composition_weighs_its_parts_by_their_choices() -> None:
    """or(and 3, or 1) at 000 0: the outer blocks are single parts, each with R = 1; inside, all three zeros are one
    block, even. or(and 2, and 2, ...) as one block of the outer `and`: P_j in proportion to e^H_j. and(and 3, and 1)
    at 000 0: the outer block is both parts, so P = (3, 1)/4 and p is even over all four, as for `and 4`."""
    np.testing.assert_allclose(max_entropy_sampling(parse("or(and 3, or 1)"), [0] * 4), [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    np.testing.assert_allclose(max_entropy_sampling(parse("and(and 3, and 1)"), [0] * 4), [1 / 4] * 4)


def test_wide_programs() -> None:
    """Feasible and optimal at widths where nothing can be listed."""
    generator = np.random.default_rng(0)
    wide = Threshold(tuple(generator.integers(1, 40, 60).tolist()), 500)
    mixed = parse("majority(threshold 3,2,2,1,1 >= 5, majority 7, and 3, parity 2, or(majority 5, and 4), or 4, and 2)")
    for f, capacities in ((wide, None), (majority(40), generator.random(40) + 0.5), (mixed, None)):
        z = generator.integers(0, 2, f.width)
        certificate = sensitivity(f, z, capacities)
        p = max_entropy_sampling(f, z, capacities)
        mass, _ = f.lightest_block(z, p / np.array(certificate.capacities, float) * float(certificate.value))
        assert mass >= 1 - 1e-8 and p.sum() == pytest.approx(1, abs=1e-12)
        assert entropy(p) >= entropy(certificate.sampling) - 1e-9
        assert optimal_face_distance(f, z, p, capacities) <= 1e-8


def test_distance_to_the_optimal_face_by_hand() -> None:
    """`and 3` at 110: only the zero counts. At 100 any division of the zeros is optimal, so only the one's mass is
    wrong. At 111 the optimum is even. `majority 5` at 11100 and p on one of the three: 1 - 1/3."""
    f = parse("and 3")
    assert optimal_face_distance(f, [1, 1, 0], [0.2, 0.3, 0.5]) == pytest.approx(0.5)
    assert optimal_face_distance(f, [1, 0, 0], [0.1, 0.9, 0]) == pytest.approx(0.1)
    assert optimal_face_distance(f, [1, 1, 1], [0.5, 0.25, 0.25]) == pytest.approx(1 / 6)
    assert optimal_face_distance(majority(5), [1, 1, 1, 0, 0], [0, 0.2, 0, 0, 0]) == pytest.approx(2 / 3)
    assert optimal_face_distance(f, [1, 1, 1], [0, 0, 0]) == 1
    with pytest.raises(ConstantError):
        optimal_face_distance(parse("at_least 0 2"), [1, 1], [1, 0])
    for p in ([1, 0], [1, 0, -1], [1, 0, np.nan]):
        with pytest.raises(SensitivityError, match="nonnegative"):
            optimal_face_distance(f, [1, 1, 1], p)


@quick
@given(st.data())
def test_distance_is_0_at_every_optimum_and_bounds_the_loss(data: st.DataObject) -> None:
    """Two optima, and one between them, lie on the face. Moving mass eps costs at most eps of a block's mass at equal
    capacities, so a distribution that catches less than its share by x is at least x away; and no further than from
    any one optimum."""
    f = data.draw(aggregators(6))
    z = data.draw(assignments(f.width))
    certificate = sensitivity(f, z)
    if not certificate.value:
        return
    vertex, centre = certificate.sampling, max_entropy_sampling(f, z)
    for p in (vertex, centre, 0.3 * vertex + 0.7 * centre, 1e-3 * centre):
        assert optimal_face_distance(f, z, p) <= 1e-8
    p = np.array(data.draw(st.tuples(*[st.floats(0, 1)] * f.width))) + 1e-3
    p /= p.sum()
    distance = optimal_face_distance(f, z, p)
    assert distance >= 1 / float(certificate.value) - f.lightest_block(z, p)[0] - 1e-8
    assert distance <= min(np.abs(p - vertex).sum(), np.abs(p - centre).sum()) / 2 + 1e-8


@quick
@given(st.data())
def test_symmetric_distance_in_closed_form(data: st.DataObject) -> None:
    """Against the linear program, reached through the truth table of the same function."""
    f = data.draw(symmetrics(data.draw(st.integers(1, 6))))
    z = data.draw(assignments(f.width))
    p = np.array(data.draw(st.tuples(*[st.floats(0, 1)] * f.width)))
    if sensitivity(f, z).value:
        table = parse("table " + "".join(map(str, f.table())))
        assert optimal_face_distance(f, z, p) == pytest.approx(optimal_face_distance(table, z, p), abs=1e-8)
