"""Certificates prove themselves, and forged ones are refused, each way of forging."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fbs.aggregator import Aggregator, majority
from fbs.certificate import Certificate, CertificateError, ConstantError
from fbs.notation import assignment, parse
from fbs.sensitivity import sensitivity
from tests.strategies import aggregators, assignments, fractions, quick

HALF = Fraction(1, 2)
F = parse("threshold 3,2,2,1,1 >= 5")
Z = assignment(
    "11100"
)  # minimal blocks 01, 02, 12: cover 1/2 each, packing 1/2 each would be 3/2, but 0 alone flips too


def honest() -> Certificate:
    """By hand: at 11100 the sum is 7, so losing 3 flips: {0} and {1, 2}. Cover 1 on 0 and 1 on 2, packing both, value
    2."""
    blocks = (((0,), Fraction(1)), ((1, 2), Fraction(1)))
    ones = (Fraction(1),) * 5
    cover = (Fraction(1), HALF, HALF, Fraction(0), Fraction(0))
    return Certificate(F, (1, 1, 1, 0, 0), ones, Fraction(2), cover, blocks, exact=True)


def test_a_proof_by_hand_is_accepted() -> None:
    honest().verify()
    assert honest().sampling.tolist() == [0.5, 0.25, 0.25, 0, 0]


FORGERIES: dict[str, Callable[[Certificate], Certificate]] = {
    "leaves block": lambda c: replace(c, cover=(Fraction(1), Fraction(1, 3), HALF, Fraction(1, 6), Fraction(0))),
    "cover must be finite and nonnegative": lambda c: replace(c, cover=(1, 2, -1, 0, 0)),
    "cover must have 5 entries": lambda c: replace(c, cover=c.cover[:4]),
    "capacities must have 5 entries": lambda c: replace(c, capacities=c.capacities[:4]),
    "assignment must have 5 entries": lambda c: replace(c, assignment=c.assignment + (1,)),
    "assignment must consist of 0 and 1": lambda c: replace(c, assignment=(1, 1, 2, 0, 0)),
    "capacities must be finite and nonnegative": lambda c: replace(c, capacities=(1, 1, 1, 1, -1)),
    "packing must be finite and nonnegative": lambda c: replace(
        c, packing_source=(*c.packing, ((0,), -HALF), ((0,), HALF))
    ),
    "does not flip f": lambda c: replace(c, packing_source=(((0,), Fraction(1)), ((1,), Fraction(1)))),
    "must list increasing": lambda c: replace(c, packing_source=(((0,), Fraction(1)), ((2, 1), Fraction(1)))),
    "(1, 1, 2) must list": lambda c: replace(c, packing_source=(((0,), Fraction(1)), ((1, 1, 2), Fraction(1)))),
    "(-5,) must list": lambda c: replace(c, packing_source=(((-5,), Fraction(1)), ((1, 2), Fraction(1)))),
    "(0, 5) must list": lambda c: replace(c, packing_source=(((0, 5), Fraction(1)), ((1, 2), Fraction(1)))),
    "() must list": lambda c: replace(c, packing_source=(*c.packing, ((), Fraction(1)))),
    "puts 2 on sub-claim 0": lambda c: replace(c, packing_source=(((0,), Fraction(2)),)),
    "cover costs 2, not the value 3/2": lambda c: replace(c, value=Fraction(3, 2)),
    "cover costs 3, not the value 2": lambda c: replace(c, cover=(1, 1, 1, 0, 0)),
    "packing weighs 3/2, not the value 2": lambda c: replace(c, packing_source=(((0,), HALF), ((1, 2), Fraction(1)))),
    "capacity is 1/2": lambda c: replace(c, capacities=(HALF,) * 5),
    "cover must be fractions": lambda c: replace(c, cover=(1.0, 0.5, 0.5, 0.0, 0.0)),
    "packing must be fractions": lambda c: replace(c, packing_source=(((0,), 1.0), ((1, 2), Fraction(1)))),
    "value must be fractions": lambda c: replace(c, value=2.0),
}


@pytest.mark.parametrize("message", FORGERIES)
def test_a_forged_proof_is_refused(message: str) -> None:
    with pytest.raises(CertificateError) as refusal:
        FORGERIES[message](honest()).verify()
    assert message in str(refusal.value)
    assert str(refusal.value).startswith("threshold 3,2,2,1,1 >= 5 at 11")


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -2.0])
def test_a_value_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(CertificateError, match="value must be finite"):
        replace(honest(), value=value, exact=False).verify()


def test_an_exact_proof_gets_no_tolerance() -> None:
    hair = Fraction(1, 10**12)
    forged = replace(honest(), cover=(1 - hair, HALF, HALF, hair, Fraction(0)))
    with pytest.raises(CertificateError, match="leaves block"):
        forged.verify(tolerance=1e-3)
    rounded = replace(forged, cover=tuple(map(float, forged.cover)), value=2.0, exact=False)
    rounded.verify()
    with pytest.raises(CertificateError, match="leaves block"):
        rounded.verify(tolerance=1e-13)


def test_tolerance_is_relative_to_the_value() -> None:
    """With capacities of a billionth, an absolute tolerance of 1e-8 would let everything pass."""
    small = sensitivity(F, Z, [1e-9] * 5)
    small.verify()
    with pytest.raises(CertificateError, match="not the value"):
        replace(small, value=small.value * 1.5).verify()


@quick
@given(st.data())
def test_every_answer_verifies(data: st.DataObject) -> None:
    f: Aggregator = data.draw(aggregators(7))
    z, capacities = data.draw(assignments(f.width)), data.draw(fractions(f.width))
    for given_capacities in (None, capacities, [float(c) for c in capacities]):
        certificate = sensitivity(f, z, given_capacities)
        certificate.verify()
        assert certificate.exact is not (given_capacities is not None and given_capacities is not capacities)


def test_a_constant_aggregator_has_value_0_and_nothing_to_sample() -> None:
    for text in ("at_least 0 3", "threshold 1,1,1 >= 9", "table 11111111", "at_least 4(or 1, or 1, or 1)"):
        certificate = sensitivity(parse(text), [1, 0, 1])
        certificate.verify()
        assert certificate.value == 0 and certificate.packing == ()
        with pytest.raises(ConstantError, match="no block is sensitive"):
            _ = certificate.sampling


def test_a_packing_is_listed_only_when_asked_for() -> None:
    """7 ones of 9 lose a majority by 3: 7/3, and 7 blocks of 3 by systematic sampling."""
    certificate = sensitivity(majority(9), [1] * 7 + [0] * 2)
    assert callable(certificate.packing_source)
    assert len(certificate.packing) == 7 and {len(block) for block, _ in certificate.packing} == {3}
    copy = pickle.loads(pickle.dumps(certificate))
    assert copy == certificate and copy.packing == certificate.packing


def test_sampling_follows_the_capacities() -> None:
    """p_i in proportion to c_i t_i: AND at all ones has t = 1, so p is in proportion to c."""
    certificate = sensitivity(parse("and 3"), [1, 1, 1], [1, 2, 5])
    assert certificate.value == 8
    np.testing.assert_allclose(certificate.sampling, [1 / 8, 2 / 8, 5 / 8], rtol=1e-15)
