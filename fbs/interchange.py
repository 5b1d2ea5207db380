"""Which sub-claims can swap places without changing the aggregator, and assignments equal up to such swaps."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fbs.aggregator import Aggregator, Symmetric, Threshold
from fbs.bits import all_assignments, encode

MAX_SEARCHED_WIDTH = 10  # of functions whose swaps are tried on the truth table


@lru_cache(maxsize=1024)
def interchange_classes(aggregator: Aggregator) -> np.ndarray:
    """int64 (width,), read-only: sub-claims of equal class may be permuted without changing f.

    Symmetric: all alike. Threshold: by weight. Other functions: by trying on the truth table up to MAX_SEARCHED_WIDTH,
    beyond that each sub-claim is its own class, which is correct if not complete.
    """
    if isinstance(aggregator, Symmetric):
        classes = np.zeros(aggregator.width, dtype=np.int64)
    elif isinstance(aggregator, Threshold):
        classes = np.unique(aggregator.weights, return_inverse=True)[1].astype(np.int64)
    elif aggregator.width <= MAX_SEARCHED_WIDTH:
        classes = _classes_of_table(aggregator.table().reshape((2,) * aggregator.width))
    else:
        classes = np.arange(aggregator.width)
    classes.flags.writeable = False
    return classes


def _classes_of_table(values: np.ndarray) -> np.ndarray:
    """Swapping is an equivalence: enough to compare each sub-claim with the first of every class."""
    classes = np.arange(values.ndim)
    for i in range(values.ndim):
        for first in np.unique(classes[:i]).tolist():
            if np.array_equal(values, values.swapaxes(first, i)):
                classes[i] = first
                break
    return classes


def representatives(aggregator: Aggregator) -> tuple[np.ndarray, np.ndarray]:
    """One assignment for each orbit under the swaps: the one with the ones of each class first.

    Returns:
        codes: int64 (2**width,), the code of the representative of each assignment.
        order: int64 (2**width, width): what holds of the representative's sub-claim k holds of sub-claim order[code,
            k].
    """
    classes, assignments = interchange_classes(aggregator), all_assignments(aggregator.width)
    order = np.empty(assignments.shape, dtype=np.int64)
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        order[:, members] = members[np.argsort(-assignments[:, members], axis=1, kind="stable")]
    return encode(np.take_along_axis(assignments, order, axis=1).astype(np.int64)), order
