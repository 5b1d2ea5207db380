"""Many small cover programs at once: against HiGHS, by duality, and where pivots tie."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fbs.cover_simplex
from fbs.aggregator import Table, Threshold
from fbs.cover_simplex import solve_cover, solve_covers
from fbs.linear_program import LinearProgram, exact_basic_solution, over_common_denominator
from fbs.table import SensitivityTable

WIDTH, BLOCKS = 5, 9


@st.composite
def programs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A few programs with blocks in common or none at all, and capacities with ties and zeros."""
    block = st.lists(st.booleans(), min_size=WIDTH, max_size=WIDTH)
    count = draw(st.integers(1, 4))
    blocks = np.zeros((count, BLOCKS, WIDTH), dtype=bool)
    for program in blocks:
        listed = draw(st.lists(block, max_size=BLOCKS))
        program[: len(listed)] = np.array(listed, dtype=bool).reshape(-1, WIDTH)
    capacity = st.sampled_from([0.0, 1.0, 1.0, 2.0]) | st.floats(0.01, 1000)
    row = st.lists(capacity, min_size=WIDTH, max_size=WIDTH)
    return blocks, np.array(draw(st.lists(row, min_size=count, max_size=count)))


def check(blocks: np.ndarray, capacities: np.ndarray) -> None:
    """Cover and packing are feasible and of equal value, which proves both optimal; HiGHS finds that value as well."""
    solved = solve_covers(blocks, capacities)
    real = blocks.any(axis=2)
    assert (np.einsum("nmq,nq->nm", blocks, solved.cover)[real] >= 1 - 1e-9).all()
    assert (solved.cover >= 0).all() and (solved.weights >= 0).all() and not solved.weights[~real].any()
    loads = np.einsum("nmq,nm->nq", blocks, solved.weights)
    assert (loads <= capacities + 1e-9 * (1 + capacities)).all()
    value = (capacities * solved.cover).sum(axis=1)
    np.testing.assert_allclose(solved.weights.sum(axis=1), value, rtol=1e-9, atol=1e-9)
    for program, costs, found in zip(blocks, capacities, value, strict=True):
        expected = LinearProgram(costs, program[program.any(axis=1)]).solve().value
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-7)


@settings(max_examples=150, deadline=None)
@given(programs())
def test_optimal_by_duality_and_by_highs(case: tuple[np.ndarray, np.ndarray]) -> None:
    check(*case)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_the_rule_that_cannot_cycle(case: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fbs.cover_simplex, "_GREEDY", 0)
        check(*case)


def test_no_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fbs.cover_simplex, "_MAX_PIVOTS", 1)
    with pytest.raises(ArithmeticError, match="1 cover programs of 3 sub-claims: no optimum"):
        solve_covers(np.eye(3, dtype=bool)[None], np.ones((1, 3)))


def test_the_basis_gives_the_solution_in_fractions() -> None:
    """The threshold 3,2,2,1,1 >= 5 at 11111 has value 9/5 (DESIGN section 3)."""
    table = SensitivityTable(Threshold((3, 2, 2, 1, 1), 5))
    blocks = table.blocks(0b11111)
    found = exact_basic_solution(blocks, [Fraction(1)] * 5, solve_cover(blocks, np.ones(5)))
    assert found is not None
    assert sum(found[0]) == sum(found[1]) == Fraction(9, 5)


def test_packings_of_a_table_prove_its_values() -> None:
    """At every assignment of a random table: blocks flip f, load nothing above 1, and weigh as much as the cover."""
    f = Table(tuple(np.random.default_rng(0).integers(0, 2, 2**6).tolist()))
    table, values = SensitivityTable(f), f.table()
    for code in range(2**6):
        packing, loads = table.packing(code), np.zeros(6)
        for block, weight in packing:
            assert values[code ^ sum(1 << (5 - i) for i in block)] != values[code]
            loads[list(block)] += weight
        assert (loads <= 1 + 1e-12).all()
        assert sum(weight for _, weight in packing) == pytest.approx(table.value[code], abs=1e-12)


def test_fractions_over_a_common_denominator() -> None:
    numerators, denominator = over_common_denominator([Fraction(1, 6), Fraction(3, 4), Fraction(0)])
    assert (numerators.tolist(), denominator) == ([2, 9, 0], 12)
