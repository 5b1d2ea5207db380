"""The tie is stable, and rho is checked."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from fbs.stability import RhoError, check_rho, stable


def test_a_tie_is_stable_however_it_was_computed() -> None:
    assert stable(Fraction(4), 4)  # majority of six with four ones, DESIGN 3.6
    assert stable(np.nextafter(3.0, 4.0), 3)
    assert stable(1e6 * (1 + 1e-12), 1e6)  # the tolerance is relative
    assert not stable(4 + 1e-6, 4)
    assert not stable(Fraction(66, 17), 3.8)


def test_arrays_of_both_libraries() -> None:
    values = [1.0, 3.0, 3.1]
    assert stable(np.array(values), 3).tolist() == [True, True, False]
    assert stable(torch.tensor(values, dtype=torch.float64), 3).tolist() == [True, True, False]


@pytest.mark.parametrize("rho", [0, 0.999, -1, float("nan"), float("inf"), "many", None])
def test_rho_below_one_or_no_number_is_refused(rho: object) -> None:
    with pytest.raises(RhoError, match="at least 1"):
        check_rho(rho)


@pytest.mark.parametrize("rho", [1, 2.5, Fraction(7, 2)])
def test_rho_is_returned_as_a_float(rho: object) -> None:
    assert check_rho(rho) == rho
    assert isinstance(check_rho(rho), float)
