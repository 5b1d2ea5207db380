"""Assignments as 0/1 arrays and as integer codes; functions of few bits as arrays over all codes.

The first sub-claim is the most significant bit: code = sum_i z_i << (q - 1 - i), so that 0, 1, 2, ... reads like a
truth table in a textbook.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def all_assignments(width: int) -> np.ndarray:
    """int8 (2**width, width), read-only: row c is the assignment with code c."""
    shifts = np.arange(width - 1, -1, -1)
    rows = ((np.arange(2**width)[:, None] >> shifts) & 1).astype(np.int8)
    rows.flags.writeable = False
    return rows


def encode(z: Any) -> Any:
    """Codes (...,) of 0/1 arrays (..., width), NumPy or torch; width at most 62."""
    code = z[..., 0] * 1
    code = code.astype(np.int64) if isinstance(code, (np.ndarray, np.generic)) else code.long()
    for i in range(1, z.shape[-1]):
        code = code * 2 + z[..., i]
    return code


def subset_sums(masses: np.ndarray) -> np.ndarray:
    """Mass of every block: (2**width,) in the order of the codes, of the dtype of `masses` (width,)."""
    sums = np.zeros(1, dtype=masses.dtype)
    for mass in masses[::-1]:
        sums = np.concatenate([sums, sums + mass])
    return sums


def fold(values: np.ndarray, zero: np.ndarray, one: np.ndarray) -> np.ndarray:
    """sum_z values[z] * prod_i (one_i if z_i else zero_i), without listing the products.

    values: (2**width,); zero, one: float64 (..., width). Returns float64 (...,).
    """
    folded = np.asarray(values, dtype=np.float64)
    for i in reversed(range(zero.shape[-1])):
        folded = folded[..., 0::2] * zero[..., i : i + 1] + folded[..., 1::2] * one[..., i : i + 1]
    return folded[..., 0]


def fold_any(true: Any, zero: Any, one: Any) -> Any:
    """Does `true` (2**width,) hold somewhere that zero and one, bool (..., width), allow?  bool (...,), any library."""
    for i in reversed(range(zero.shape[-1])):
        true = (true[..., 0::2] & zero[..., i : i + 1]) | (true[..., 1::2] & one[..., i : i + 1])
    return true[..., 0]


def lightest_in_table(values: np.ndarray, z: np.ndarray, masses: np.ndarray) -> np.ndarray | None:
    """Of all blocks whose flip changes values[z] the lightest, of these the smallest: bool (width,); None without one.

    values: (2**width,); z: int64 (width,); masses: nonnegative (width,), an infinite one kept out of every block.
    """
    assignments = all_assignments(len(z))
    sensitive = values[np.arange(len(values)) ^ int(encode(z))] != values[int(encode(z))]
    block_masses = subset_sums(masses)
    usable = np.flatnonzero(sensitive & (block_masses != np.inf))
    if not len(usable):
        return None
    lightest = usable[block_masses[usable] == block_masses[usable].min()]
    return assignments[lightest[assignments[lightest].sum(-1).argmin()]].astype(bool)


def integers(z: Any) -> Any:
    """Signed integer arrays as they are, others as int64; lists as NumPy arrays."""
    if hasattr(z, "new_zeros"):  # a torch tensor, without importing torch
        return z.long() if z.is_floating_point() else z
    z = np.asarray(z)
    return z if z.dtype.kind == "i" else z.astype(np.int64)


def int8(values: Any) -> Any:
    """Any 0/1 or bool array as int8, in its own library."""
    return values.char() if hasattr(values, "new_zeros") else np.asarray(values).astype(np.int8)


def like(values: Any, z: Any) -> Any:
    """Integers as an int64 array of the library, and on the device, of z."""
    values = np.array(values, dtype=np.int64)
    return z.new_zeros(()).long().new_tensor(values) if hasattr(z, "new_zeros") else values
