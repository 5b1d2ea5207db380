"""Every route to the cover program against closed forms, exact fractions, cvxpy and each other."""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fbs.aggregator import Composition, Table, Threshold, at_least, conjunction, disjunction, majority, parity
from fbs.linear_program import LinearProgram, LinearProgramError, solve_exactly
from fbs.notation import assignment, parse
from fbs.packing import coupled_packing, systematic_packing
from fbs.reference import ReferenceSolverError, reference_sensitivity
from fbs.sensitivity import SensitivityError, sensitivity
from fbs.table import table_certificate
from fbs.threshold import threshold_certificate
from tests.strategies import aggregators, assignments, compositions, fractions, quick, symmetrics, thresholds

MULTIPLEXER = "table " + "".join(str(data >> (3 - address) & 1) for address in range(4) for data in range(16))
TRIBES = "or(and 3, and 3)"

# From the table of values in the design, which were found by LP, closed form and exact fractions.
KNOWN = [
    ("majority 99", "1" * 66 + "0" * 33, Fraction(66, 17)),
    ("majority 99", "1" * 50 + "0" * 49, Fraction(50)),
    ("and 7", "1111111", Fraction(7)),
    ("and 7", "1111110", Fraction(1)),
    ("and 7", "1010110", Fraction(1)),
    ("parity 6", "010110", Fraction(6)),
    ("parity 6", "000000", Fraction(6)),
    ("threshold 3,2,2,1,1 >= 5", "11111", Fraction(9, 5)),
    ("threshold 3,2,2,1,1 >= 5", "00000", Fraction(9, 5)),
    ("threshold 3,2,2,1,1 >= 5", "11100", Fraction(2)),
    ("threshold 3,2,2,1,1 >= 5", "01110", Fraction(3)),
    ("threshold 3,2,2,1,1 >= 5", "10000", Fraction(3)),
    ("threshold 3,2,2,1,1 >= 5", "10001", Fraction(3)),
    ("majority(majority 3, majority 3, majority 3)", "111111111", Fraction(9, 4)),
    ("majority(majority 3, majority 3, majority 3)", "111110000", Fraction(7, 2)),
    (MULTIPLEXER, "001111", Fraction(3)),
    (MULTIPLEXER, "001000", Fraction(3)),
    (MULTIPLEXER, "000000", Fraction(3)),
    (TRIBES, "111111", Fraction(3)),
    (TRIBES, "111000", Fraction(3)),
    (TRIBES, "000000", Fraction(2)),
    (TRIBES, "110110", Fraction(2)),
    ("majority 6", "111100", Fraction(4)),
]


@pytest.mark.parametrize(("text", "z", "value"), KNOWN)
def test_known_values(text: str, z: str, value: Fraction) -> None:
    certificate = sensitivity(parse(text), assignment(z))
    certificate.verify()
    assert certificate.exact and certificate.value == value
    if len(z) <= 9:
        listed = table_certificate(parse(text), certificate.assignment, certificate.capacities)
        listed.verify()
        assert listed.exact and listed.value == value


def test_the_paper_s_4_is_the_limit_of_large_width() -> None:
    """Two thirds ones: m / a with m = 2n, q = 3n and a = 2n - floor(3n / 2), towards 2 / (2 - 3/2) = 4."""
    values = [float(sensitivity(majority(3 * n), [1] * 2 * n + [0] * n).value) for n in (33, 333, 33_333)]
    assert values == sorted(values) and abs(values[-1] - 4) < 1e-3 < 4 - values[0]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_against_cvxpy(data: st.DataObject) -> None:
    f = data.draw(aggregators(6))
    z, capacities = data.draw(assignments(f.width)), data.draw(fractions(f.width))
    for given_capacities in (None, capacities):
        reference = reference_sensitivity(f, z, given_capacities)
        assert float(sensitivity(f, z, given_capacities).value) == pytest.approx(reference.value, abs=1e-6)


def test_the_reference_refuses_an_answer_that_is_not_optimal() -> None:
    import cvxpy

    f, z = parse("and 3"), [1, 1, 1]
    with mock.patch.object(cvxpy.Problem, "status", "optimal_inaccurate"), pytest.raises(ReferenceSolverError) as error:
        reference_sensitivity(f, z)
    assert error.value.aggregator == f and error.value.assignment == (1, 1, 1)
    assert "on and 3 at 111" in str(error.value) and "optimal_inaccurate" in str(error.value)
    crash = mock.patch.object(cvxpy.Problem, "solve", side_effect=cvxpy.SolverError("crashed"))
    with crash, pytest.raises(ReferenceSolverError, match="crashed"):
        reference_sensitivity(f, z)
    with mock.patch("fbs.reference.MAX_RESIDUAL", -1.0), pytest.raises(ReferenceSolverError, match="residual"):
        reference_sensitivity(f, z)


def listed(f, z, capacities) -> Fraction:
    """The value by listing all minimal blocks: the second route to the ones below."""
    certificate = table_certificate(f, tuple(z), tuple(capacities))
    assert certificate.exact
    return certificate.value


@quick
@given(st.data())
def test_the_symmetric_closed_form(data: st.DataObject) -> None:
    f = data.draw(symmetrics(data.draw(st.integers(1, 7))))
    z, capacities = data.draw(assignments(f.width)), data.draw(fractions(f.width))
    assert sensitivity(f, z, capacities).value == listed(f, z, capacities)


@quick
@given(st.data())
def test_composition_by_parts(data: st.DataObject) -> None:
    f = data.draw(compositions(data.draw(st.integers(1, 7))))
    z, capacities = data.draw(assignments(f.width)), data.draw(fractions(f.width))
    assert sensitivity(f, z, capacities).value == listed(f, z, capacities)


@quick
@given(st.data())
def test_generated_blocks(data: st.DataObject) -> None:
    f = data.draw(thresholds(data.draw(st.integers(1, 8)), largest=9))
    z, capacities = data.draw(assignments(f.width)), data.draw(fractions(f.width))
    generated = threshold_certificate(f, z, capacities)
    generated.verify()
    assert generated.value == listed(f, z, capacities)
    floats = tuple(map(float, capacities))
    in_floats = threshold_certificate(f, z, floats)
    in_floats.verify()
    assert in_floats.value == pytest.approx(float(generated.value), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(("width", "largest"), [(11, 50), (40, 9), (99, 4), (99, 300)])
def test_wide_thresholds_prove_themselves(width: int, largest: int) -> None:
    generator = np.random.default_rng(width + largest)
    f = Threshold(tuple(generator.integers(1, largest + 1, width).tolist()), width * largest // 4)
    for z in (np.ones(width, int), np.zeros(width, int), generator.integers(0, 2, width)):
        certificate = sensitivity(f, z)
        certificate.verify()
        assert certificate.exact and certificate.value >= 1


def test_a_wide_threshold_with_one_weight_is_a_majority() -> None:
    """Closed form: 40 ones of 50 lose `at least 26` by 15, 40/15; the 10 zeros cannot change it."""
    certificate = sensitivity(Threshold((7,) * 50, 7 * 26), [1] * 40 + [0] * 10)
    certificate.verify()
    assert certificate.value == Fraction(40, 15)


def test_capacities_that_only_fractions_tell_apart() -> None:
    """Equal weights, two capacities that differ by 1e-30: `at least 1` of 12 zeros, so the value is their sum."""
    capacities = [Fraction(1), 1 + Fraction(1, 10**30)] * 6
    certificate = sensitivity(Threshold((1,) * 12, 1), [0] * 12, capacities)
    certificate.verify()
    assert certificate.exact and certificate.value == sum(capacities)


def test_too_many_groups_for_fractions_still_verify() -> None:
    """Above the limit of groups the answer is a float one; lowering the limit shows that route at a small width."""
    f, z = Threshold(tuple(range(1, 31)), 100), [1, 0] * 15
    exact = sensitivity(f, z)
    with mock.patch("fbs.threshold.MAX_EXACT_GROUPS", 3):
        rounded = threshold_certificate(f, exact.assignment, exact.capacities)
    rounded.verify()
    assert exact.exact and not rounded.exact
    assert rounded.value == pytest.approx(float(exact.value), rel=1e-9)


@pytest.mark.parametrize("build", [majority, conjunction, disjunction, parity, lambda q: at_least(q // 3, q)])
def test_wide_symmetric_aggregators_prove_themselves(build) -> None:
    f = build(300)
    for ones in (0, 1, 149, 151, 299, 300):
        sensitivity(f, [1] * ones + [0] * (300 - ones)).verify()


def test_weights_by_hand() -> None:
    """At least 2 of three ones with capacities 1, 1, 4: flipping 2 of 3. j = 0: 6/2 = 3; j = 1: (1+1)/1 = 2, sparing
    the dear one: W = 2, cover 1 on the cheap ones."""
    certificate = sensitivity(at_least(2, 3), [1, 1, 1], [1, 1, 4])
    certificate.verify()
    assert certificate.value == 2 and certificate.cover == (1, 1, 0)


def test_a_part_that_cannot_change_costs_nothing() -> None:
    """AND of a constant 1 and one sub-claim is that sub-claim; OR with a constant 1 is constant."""
    always = parse("at_least 0 2")
    one = parse("or 1")
    certificate = sensitivity(Composition(conjunction(2), (always, one)), [0, 1, 1])
    certificate.verify()
    assert certificate.value == 1 and certificate.sampling.tolist() == [0, 0, 1]
    assert sensitivity(Composition(disjunction(2), (always, one)), [0, 1, 1]).value == 0


def test_answers_are_kept() -> None:
    f = Table((0, 1, 1, 0, 1, 0, 0, 1))
    assert sensitivity(f, [0, 1, 0]) is sensitivity(f, np.array([0, 1, 0], dtype=np.int8), [1, 1, 1])


BAD_ARGUMENTS = [
    (([1, 1], None), "needs an assignment of 3 answers"),
    (([1, 1, 2], None), "consists of 0 and 1"),
    (([[1, 1, 1]], None), "not shape"),
    (([1, 1, 1], [1, 1]), "needs 3 capacities, not 2"),
    (([1, 1, 1], [1, -1, 1]), "number 1 is -1"),
    (([1, 1, 1], [1, 1, float("nan")]), "number 2 is nan"),
    (([1, 1, 1], [float("inf"), 1, 1]), "number 0 is inf"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_ARGUMENTS)
def test_arguments_that_do_not_fit_are_refused(arguments, message: str) -> None:
    with pytest.raises(SensitivityError, match=message):
        sensitivity(parse("and 3"), *arguments)


loads_of_sizes = st.integers(1, 4).flatmap(
    lambda size: st.tuples(
        st.just(size),
        st.lists(st.builds(Fraction, st.integers(0, 12), st.integers(1, 5)), min_size=size, max_size=9),
    )
)


@quick
@given(loads_of_sizes, st.booleans())
def test_systematic_sampling_loads_as_asked(case: tuple[int, list[Fraction]], in_floats: bool) -> None:
    """Loads above sum / size are cut to a common height first, so that the loads are possible."""
    size, loads = case
    height = min(sum(sorted(loads)[: len(loads) - j]) / (size - j) for j in range(size))
    loads = [min(load, height) for load in loads]
    packing = systematic_packing([float(load) for load in loads] if in_floats else loads, size)
    found = [Fraction(0)] * len(loads)
    for chosen, weight in packing:
        assert len(set(chosen)) == size and weight > 0
        for i in chosen:
            found[i] += weight
    assert found == (pytest.approx(loads, abs=1e-9) if in_floats else loads)
    assert len(packing) <= max(len(loads), 1)


def test_coupling_keeps_shares_and_few_blocks() -> None:
    """By hand: quantiles cut at 1/2 and at 1/3, so three unions of weights 1/3, 1/6, 1/2."""
    first = (((0,), Fraction(1)), ((1,), Fraction(1)))
    second = (((2,), Fraction(1, 2)), ((3, 4), Fraction(1)))
    expected = (((0, 2), Fraction(1, 3)), ((0, 3, 4), Fraction(1, 6)), ((1, 3, 4), Fraction(1, 2)))
    assert coupled_packing([first, second]) == expected


def test_linear_programs() -> None:
    """min 2x + 3y, x + y >= 1, x <= 0.25: by hand x = 1/4, y = 3/4; then with y <= x + 1/4 it has no solution."""
    program = LinearProgram([2, 3], [[1, 1]], column_upper=[0.25, np.inf])
    solution = program.solve()
    assert solution.value == pytest.approx(2.75) and solution.x.tolist() == [0.25, 0.75]
    program.add_rows([[1, -1]], -0.25)
    with pytest.raises(LinearProgramError, match="Infeasible"):
        program.solve()


square_systems = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(st.integers(-3, 3), min_size=n, max_size=n), min_size=n, max_size=n),
        st.lists(st.builds(Fraction, st.integers(-9, 9), st.integers(1, 9)), min_size=n, max_size=n),
    )
)


@quick
@given(square_systems)
def test_exact_systems(case: tuple[list[list[int]], list[Fraction]]) -> None:
    """The solution, put back, gives the right-hand side; without one the determinant, in floats, is 0."""
    matrix, right = np.array(case[0]), case[1]
    x = solve_exactly(matrix, right)
    if x is None:
        assert abs(np.linalg.det(matrix)) < 1e-6
    else:
        assert [sum(a * y for a, y in zip(row, x, strict=True)) for row in matrix.tolist()] == right
