"""Assignments listed one an orbit stand for all of them.

Expected numbers are counts of all assignments, and what looking ahead from every single assignment gives.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fbs
from agents.learner_config import LearnerConfig
from agents.lookahead import Menus, look_ahead
from agents.mirror_descent import MirrorDescent, Targets
from agents.orbits import Listing, interchangeable, listing
from agents.unique_rows import unique_rows
from envs.config import EnvConfig, ProblemConfig
from envs.game import Game


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("majority 15", [0] * 15),
        ("threshold 3,2,2,1,1 >= 5", [2, 1, 1, 0, 0]),
        ("and(or 2, parity 2)", [0, 0, 1, 1]),
        ("table 00101011", [0, 0, 1]),  # true at 010, 100, 110 and 111
        ("table 01011101", [0, 1, 2]),
    ],
)
def test_interchangeable_sub_claims(written, expected):
    found = interchangeable(fbs.parse(written))
    assert np.array_equal(found[:, None] == found, np.equal.outer(expected, expected))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 1), min_size=16, max_size=16).filter(lambda bits: 0 < sum(bits) < 16))
def test_swapping_within_a_class_changes_nothing(bits):
    """By the definition, on the whole table; and any swap that changes nothing is within a class."""
    f = fbs.parse("table " + "".join(map(str, bits)))
    table, found = f.table().reshape((2,) * 4), interchangeable(f)
    for i in range(4):
        for j in range(i):
            assert np.array_equal(table, table.swapaxes(i, j)) == (found[i] == found[j])


@pytest.mark.parametrize("written", ["majority 5", "threshold 3,2,2,1,1 >= 5", "or(and 3, and 3)", "majority 15"])
def test_orbits_have_as_many_members_as_there_are_assignments(written):
    game = Game(EnvConfig(rho=20), ProblemConfig(aggregators=[written]), torch)
    listed = listing(game)
    f = game.library.aggregators[0]
    z = (np.arange(1 << f.width)[:, None] >> np.arange(f.width)) & 1
    for bit in (0, 1):
        claim, row = listed.of(torch.tensor([0, 0]), torch.tensor([bit, bit]))
        assert claim.tolist() == sorted(claim.tolist()) and (f(listed.assignment[row].numpy()) == bit).all()
        members = listed.log_size[row].exp().sum() / 2
        assert float(members) == pytest.approx(int((f(z) == bit).sum()))


def test_too_many_are_not_listed():
    weights = ",".join(map(str, range(1, 31)))
    game = Game(EnvConfig(rho=20), ProblemConfig(aggregators=[f"threshold {weights} >= 200"]), torch)
    assert listing(game) is None


def every_assignment(game: Game) -> Listing:
    """Each assignment as an orbit of its own."""
    codes = [game.library.legal[a, bit].nonzero()[:, 0] for a in range(len(game.library.aggregators)) for bit in (0, 1)]
    count = torch.tensor([len(c) for c in codes])
    z = game.library.bits[torch.cat(codes)].long()
    return Listing(z, torch.zeros(len(z), dtype=torch.float64), count.cumsum(0) - count, count)


@pytest.mark.parametrize("written", ["threshold 3,2,2,1,1 >= 5", "majority(and 2, or 2, parity 2)"])
def test_looking_ahead_from_orbits_is_looking_ahead_from_all(written):
    """Claims' values, and how likely each orbit is played and aimed at, against the list of all assignments."""
    game = Game(EnvConfig(rho=3.5), ProblemConfig(aggregators=[written]), torch)
    learner = MirrorDescent(game, LearnerConfig(batch=256, hidden=16, iterations=5), seed=0)
    for _ in range(2):
        learner.step()
    menus: Menus = learner._self_play()
    found = []
    for tried in (learner.listing, every_assignment(game)):
        outlook = look_ahead(game, learner.values, learner.alice, learner.bob, menus.candidates, tried)
        found.append((outlook, Targets(learner, menus, outlook)))
    (few, by_orbit), (many, by_all) = found
    assert len(few.claim) < len(many.claim)
    torch.testing.assert_close(by_orbit.claim_value, by_all.claim_value, rtol=1e-4, atol=1e-6)
    part = interchangeable(game.library.aggregators[0])
    ones = [[_ones(z, part) for z in outlook.assignment.tolist()] for outlook in (few, many)]
    for claim, counts, aimed, reached in zip(few.claim, ones[0], by_orbit.answers, by_orbit.reached, strict=True):
        members = torch.tensor([c == counts for c in ones[1]]) & (many.claim == claim)
        assert float(by_all.answers[members].sum()) == pytest.approx(float(aimed), rel=1e-3)
        assert float(by_all.reached[members].sum()) == pytest.approx(float(reached), rel=1e-3)


def _ones(z, part):
    return [sum(bit for bit, c in zip(z, part, strict=True) if c == own) for own in np.unique(part)]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(-1, 2), min_size=3, max_size=3), min_size=1, max_size=30))
def test_unique_rows_make_up_the_matrix(rows):
    """Against Python's own set and count of tuples."""
    matrix = torch.tensor(rows)
    distinct, inverse, count = unique_rows(matrix)
    assert torch.equal(distinct[inverse], matrix)
    expected = {tuple(row): rows.count(row) for row in rows}
    assert {tuple(row): n for row, n in zip(distinct.tolist(), count.tolist(), strict=True)} == expected
