"""The distinct rows of an integer matrix."""

from __future__ import annotations

import torch
from torch import Tensor


def unique_rows(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct rows of int64 (N, C), in no particular order, and how they make up the matrix.

    Rows are told apart by a random hash, and then compared, which is many times as fast as sorting them whole
    (`torch.unique(dim=0)`); only if two rows ever had the same hash would they be sorted.

    Returns:
        The distinct rows (U, C); the number of its own distinct row for each row, int64 (N,); how often each distinct
        row occurs, int64 (U,).
    """
    generator = torch.Generator().manual_seed(rows.shape[1])
    factors = torch.randint(-(2**62), 2**62, (rows.shape[1],), generator=generator, device="cpu").to(rows.device)
    _, inverse, count = torch.unique((rows * factors).sum(-1), return_inverse=True, return_counts=True)
    example = torch.zeros_like(count).scatter_(0, inverse, torch.arange(len(rows), device=rows.device))
    distinct = rows[example]
    if not torch.equal(distinct[inverse], rows):
        return torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    return distinct, inverse, count
