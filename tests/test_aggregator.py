"""Aggregators against their definitions, enumerated in plain Python, and against closed forms where they are wide."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from fractions import Fraction
from itertools import combinations, product
from math import comb, prod

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import aggregators, assignments, fractions, quick, thresholds

from fbs.aggregator import (
    MAX_WEIGHT,
    MAX_WIDTH,
    Aggregator,
    AggregatorError,
    Composition,
    Symmetric,
    Table,
    Threshold,
    WeightError,
    at_least,
    conjunction,
    disjunction,
    majority,
    parity,
    symmetric,
)
from fbs.bits import all_assignments, encode
from fbs.knapsack import cheapest

HUGE = 10**9  # weights like this are too large for a table of sums


def truth(f: Aggregator, z: tuple[int, ...]) -> int:
    """f(z) by its definition, sharing no code with the package."""
    if isinstance(f, Composition):
        values, rest = [], z
        for part in f.parts:
            values.append(truth(part, rest[: part.width]))
            rest = rest[part.width :]
        return truth(f.outer, tuple(values))
    if isinstance(f, Symmetric):
        return f.by_count[sum(z)]
    if isinstance(f, Threshold):
        return int(sum(w for w, bit in zip(f.weights, z, strict=True) if bit) >= f.threshold)
    return f.bits[int("".join(map(str, z)), 2)]


def every(width: int) -> list[tuple[int, ...]]:
    return list(product((0, 1), repeat=width))


def flip(z: tuple[int, ...], block: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a ^ b for a, b in zip(z, block, strict=True))


@quick
@given(aggregators())
def test_call_table_and_torch_agree_with_the_definition(f: Aggregator) -> None:
    expected = [truth(f, z) for z in every(f.width)]
    rows = all_assignments(f.width)
    assert rows.tolist() == [list(z) for z in every(f.width)]
    assert f(rows).dtype == np.int8
    assert f(rows).tolist() == f.table().tolist() == expected
    assert [int(f(z)) for z in every(f.width)] == expected
    for dtype in (torch.int8, torch.bool, torch.uint8, torch.float32, torch.int64):
        answer = f(torch.tensor(rows).to(dtype))
        assert answer.dtype == torch.int8
        assert answer.tolist() == expected
    for dtype in (bool, np.uint8, np.float32, np.uint64):
        assert f(rows.astype(dtype)).tolist() == expected


@quick
@given(aggregators(4), st.data())
def test_call_keeps_leading_axes_and_its_argument(f: Aggregator, data: st.DataObject) -> None:
    batch = np.array(data.draw(st.lists(assignments(f.width), min_size=6, max_size=6)), dtype=np.int8)
    batch = batch.reshape(2, 3, f.width)
    before = torch.tensor(batch)
    z = before.clone()
    assert f(batch).shape == (2, 3)
    assert f(z).tolist() == f(batch).tolist()
    assert torch.equal(z, before)


@quick
@given(aggregators())
def test_value_semantics(f: Aggregator) -> None:
    f.table()  # a cached value must change neither equality, nor hash, nor pickling
    copy = pickle.loads(pickle.dumps(f))
    assert copy == f
    assert hash(copy) == hash(f)
    assert {f: 1}[copy] == 1
    assert len(f.weights) == f.width


either = aggregators() | st.integers(1, 6).flatmap(thresholds)  # half of them thresholds, which have most of the code


@quick
@given(either, st.data())
def test_tally_is_the_sum_over_assignments(f: Aggregator, data: st.DataObject) -> None:
    mass = st.tuples(*[st.sampled_from([0, 1, 0.25, 0.5, 3])] * f.width)
    zero, one = (np.array(data.draw(st.tuples(mass, mass))) for _ in range(2))
    expected = np.zeros((2, 2))
    for z in every(f.width):
        for row in range(2):
            expected[truth(f, z), row] += prod(one[row, i] if bit else zero[row, i] for i, bit in enumerate(z))
    np.testing.assert_allclose(f.tally(zero, one), expected, rtol=1e-12, atol=0)


@quick
@given(either, st.data())
def test_reachable_says_where_the_tally_is_positive(f: Aggregator, data: st.DataObject) -> None:
    choice = st.sampled_from([(True, True), (True, False), (False, True)] * 5 + [(False, False)])
    zero, one = np.moveaxis(np.array(data.draw(st.tuples(*[st.tuples(*[choice] * f.width)] * 4))), -1, 0)
    expected = np.array(f.tally(zero, one)) > 0
    assert np.array_equal(f.reachable(zero, one), expected)
    by_torch = f.reachable(torch.tensor(zero), torch.tensor(one))
    assert np.array_equal([answer.numpy() for answer in by_torch], expected)


@quick
@given(either, st.data())
def test_lightest_block_is_lightest_and_minimal(f: Aggregator, data: st.DataObject) -> None:
    z, masses = data.draw(assignments(f.width)), data.draw(fractions(f.width))
    weigh = {
        block: sum(mass for mass, inside in zip(masses, block, strict=True) if inside)
        for block in every(f.width)
        if truth(f, flip(z, block)) != truth(f, z)
    }
    exact, floats = f.lightest_block(z, masses), f.lightest_block(np.array(z, np.uint8), list(map(float, masses)))
    if not weigh:
        assert exact is None
        assert floats is None
        return
    assert exact[0] == min(weigh.values())
    assert isinstance(exact[0], Fraction)
    assert floats[0] == pytest.approx(float(min(weigh.values())), rel=1e-12)
    for _, block in (exact, floats):
        assert block.dtype == bool
        inside = np.flatnonzero(block)
        assert tuple(block.astype(int).tolist()) in weigh
        for subset in (subset for size in range(len(inside)) for subset in combinations(inside, size)):
            assert truth(f, flip(z, tuple(int(i in subset) for i in range(f.width)))) == truth(f, z)


@quick
@given(aggregators(), st.data())
def test_infinite_mass_keeps_a_sub_claim_out(f: Aggregator, data: st.DataObject) -> None:
    z, barred = data.draw(assignments(f.width)), data.draw(assignments(f.width))
    can_flip = any(
        truth(f, flip(z, block)) != truth(f, z)
        for block in every(f.width)
        if not any(a & b for a, b in zip(block, barred, strict=True))
    )
    found = f.lightest_block(z, np.where(barred, np.inf, 1.0))
    assert (found is not None) == can_flip
    if found is not None:
        assert not (found[1] & np.array(barred, bool)).any()


@quick
@given(st.integers(1, 8).flatmap(thresholds), st.data())
def test_huge_weights_by_enumeration(f: Threshold, data: st.DataObject) -> None:
    # Scaled by a prime and moved by less than it, the weights have no common divisor left and the function is the same.
    weights = tuple(HUGE * w for w in f.weights)
    huge = Threshold(weights, HUGE * f.threshold - data.draw(st.integers(0, HUGE - 1)))
    z, masses = data.draw(assignments(f.width)), data.draw(fractions(f.width))
    assert huge.table().tolist() == f.table().tolist()
    ones = np.ones(f.width)
    np.testing.assert_array_equal(huge.tally(ones, ones), f.tally(ones, ones))
    expected, found = f.lightest_block(z, masses), huge.lightest_block(z, masses)
    assert (found is None) == (expected is None)
    assert found is None or found[0] == expected[0]


def test_huge_weights_without_a_common_divisor() -> None:
    narrow = Threshold(tuple(HUGE + i for i in range(5)), 3 * HUGE)  # at least 3 of 5, hidden
    assert narrow.tally(np.ones(5), np.ones(5)) == (16, 16)
    assert narrow.lightest_block([1, 1, 1, 0, 0], [5.0, 1, 2, 0, 0])[0] == 1
    wide = Threshold(tuple(HUGE + i for i in range(17)), 9 * HUGE)
    for refused in (lambda: wide.tally(np.ones(17), np.ones(17)), lambda: wide.lightest_block([1] * 17, np.ones(17))):
        with pytest.raises(WeightError, match="divide the weights"):
            refused()
    common = Threshold((HUGE,) * 999, 500 * HUGE)  # majority of 999, once divided
    assert common.tally(np.full(999, 0.5), np.full(999, 0.5)) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("width", [1, 2, 5, 6])
def test_named_functions(width: int) -> None:
    count = all_assignments(width).sum(-1)
    named = {
        majority: count > width / 2,
        conjunction: count == width,
        disjunction: count > 0,
        parity: count % 2 == 1,
    }
    for build, expected in named.items():
        assert build(width).table().tolist() == expected.astype(int).tolist()
    for k in range(width + 3):
        assert at_least(k, width).table().tolist() == (count >= k).astype(int).tolist()


def test_what_a_learner_may_see() -> None:
    seen = [(f.kind, f.weights, f.threshold) for f in (majority(6), conjunction(2), disjunction(2), at_least(0, 1))]
    one_each = ("symmetric", (1, 1))
    assert seen == [("symmetric", (1,) * 6, 4), (*one_each, 2), (*one_each, 1), ("symmetric", (1,), 0)]
    assert (parity(4).weights, parity(4).threshold) == ((1,) * 4, None)
    assert (at_least(9, 4).threshold, at_least(0, 4).threshold) == (5, 0)  # never and always
    assert (Threshold((3, -2), 1).weights, Threshold((3, -2), 1).threshold) == ((3, -2), 1)
    assert [f.kind for f in (Table((0, 1)), Composition(majority(1), (parity(2),)))] == ["table", "composition"]


def test_least_flips() -> None:
    # DESIGN 3.3: with 66 of 99 true, a majority changes by 17 fewer ones and by no number more.
    assert majority(99).least_flips(66) == (17, None)
    assert majority(99).least_flips(49) == (None, 1)
    assert parity(5).least_flips(5) == (1, None)
    assert symmetric((0, 0, 1, 0)).least_flips(2) == (1, 1)
    assert at_least(0, 3).least_flips(2) == (None, None)


def test_code_has_the_first_sub_claim_as_most_significant_bit() -> None:
    assert encode(np.array([[1, 0, 0], [0, 0, 1]], dtype=np.int8)).tolist() == [4, 1]
    assert Table((0, 1, 0, 0))([0, 1]) == 1  # code 1 is 01
    assert encode(torch.ones(20, dtype=torch.int8)).item() == 2**20 - 1  # does not wrap at 8 bits
    assert encode(np.ones(20, dtype=np.uint8)) == 2**20 - 1


def test_wide_tallies_have_closed_forms() -> None:
    half = np.full(999, 0.5)
    assert majority(999).tally(half, half) == pytest.approx((0.5, 0.5), rel=1e-12)  # by symmetry
    assert conjunction(999).tally(half, half)[1] == 2.0**-999
    assert disjunction(999).tally(np.ones(999), np.ones(999)) == pytest.approx((1, 2.0**999), rel=1e-12)
    assert Threshold((1,) * 40, 20).tally(np.ones(40), np.ones(40))[1] == sum(comb(40, m) for m in range(20, 41))
    ones = np.ones(1200)
    assert conjunction(1200).tally(ones, ones)[0] == np.inf  # 2^1200 - 1 is no float, and nothing becomes nan
    assert at_least(0, 1200).tally(ones, ones) == (0, np.inf)
    assert conjunction(1200).reachable(ones, ones) == (True, True)
    nested = Composition(majority(3), (majority(333), conjunction(333), disjunction(333)))
    # and is false, or is true, with certainty to 300 digits, so the first majority decides.
    assert nested.tally(half, half) == pytest.approx((0.5, 0.5))


def test_wide_threshold_is_fast_and_agrees_with_its_closed_form() -> None:
    rng = np.random.default_rng(0)
    f = Threshold(tuple(rng.integers(-50, 51, 99).tolist()), 40)
    started = time.process_time()
    mass, block = f.lightest_block(np.ones(99, np.int8), rng.random(99))
    f.tally(np.full(99, 0.5), np.full(99, 0.5))
    assert time.process_time() - started < 0.5  # 3 ms here
    assert f(np.ones(99) != block) != f(np.ones(99))
    equal = Threshold((7,) * 99, 7 * 50)  # majority of 99 in disguise: the lightest 17 ones of 66
    masses = rng.random(99)
    z = np.arange(99) < 66
    assert equal.lightest_block(z, masses)[0] == pytest.approx(np.sort(masses[:66])[:17].sum())


def test_exact_masses_that_fit_no_machine_integer() -> None:
    primes = [Fraction(1, p) for p in (10**9 + 7, 10**9 + 9, 10**9 + 21, 998244353)]
    mass, block = Threshold((1, 1, 1, 1), 3).lightest_block([1, 1, 1, 1], primes)
    assert mass == primes[1] + primes[2]
    assert block.tolist() == [False, True, True, False]


@pytest.mark.parametrize("seed", range(300))
def test_cheapest_against_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    gains, masses = rng.integers(1, 12, n), rng.integers(0, 30, n).astype(float)
    need = int(rng.integers(1, gains.sum() + 1))
    best = min(masses[subset].sum() for subset in all_assignments(n).astype(bool) if gains[subset].sum() >= need)
    chosen = cheapest(gains, need, masses)
    assert masses[chosen].sum() == best
    assert 0 <= gains[chosen].sum() - need < gains[chosen].min()  # enough, and nothing to spare


def test_cheapest_refuses_what_it_cannot_keep() -> None:
    with pytest.raises(WeightError, match="at most 1000000"):
        cheapest(np.array([10**9, 10**9 + 1]), 10**9 + 1, np.ones(2))
    assert cheapest(np.array([2, 3]), 6, np.ones(2)) is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: majority(0), "1 to 100000 sub-claims"),
        (lambda: parity(MAX_WIDTH + 1), "1 to 100000 sub-claims"),
        (lambda: majority(10**15), "1 to 100000 sub-claims"),
        (lambda: at_least(-1, 3), "0 or more"),
        (lambda: Symmetric("odd", 2, (0, 1)), "each of 0, 1, ..., 2 ones"),
        (lambda: Threshold((), 1), "1 to 100000 sub-claims"),
        (lambda: Threshold((1.5, 2), 1), "whole numbers"),
        (lambda: Threshold((MAX_WEIGHT, 1), 1), "at most 2\\*\\*62"),
        (lambda: Table((0, 1, 1)), "2, 4, 8"),
        (lambda: Table((0, 2)), "0 or 1"),
        (lambda: Table((0,)), "2, 4, 8"),
        (lambda: Table((0, 1) * 2**16), "2\\*\\*16"),
        (lambda: Composition(majority(3), (majority(2),)), "takes 3 parts, not 1"),
        (lambda: Composition(majority(2), (majority(MAX_WIDTH), majority(1))), "not 100001"),
        (lambda: majority(17).table(), "too wide for a truth table"),
        (lambda: majority(3)([1, 0]), "last axis of 3"),
        (lambda: majority(1)(1), "last axis of 1"),
        (lambda: majority(3).tally(np.ones(2), np.ones(2)), "last axis of 3"),
        (lambda: majority(3).lightest_block([1, 0, 1], [1.0]), "3 masses"),
    ],
)
def test_refusals(build: object, message: str) -> None:
    with pytest.raises(AggregatorError, match=message):
        build()


def test_import_needs_numpy_only() -> None:
    heavy = "{'scipy', 'cvxpy', 'highspy', 'torch', 'matplotlib'}"
    code = f"import sys, fbs; fbs.parse('majority 3'); assert not {heavy} & set(sys.modules), sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
