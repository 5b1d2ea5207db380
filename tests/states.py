"""States of learners, compared."""

from __future__ import annotations

import torch


def assert_identical(one, other, place="state"):
    """Nested dicts and lists of tensors and plain data are the same to the last bit; the message says where not."""
    if isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype, place
        assert torch.equal(one, other), place
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), place
        for key in one:
            assert_identical(one[key], other[key], f"{place}.{key}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), place
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_identical(a, b, f"{place}.{number}")
    else:
        assert one == other, place
