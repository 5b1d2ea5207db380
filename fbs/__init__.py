"""Fractional block sensitivity of Boolean functions, with certificates.

>>> import fbs
>>> f = fbs.parse("threshold 3,2,2,1,1 >= 5")
>>> certificate = fbs.sensitivity(f, "11111")
>>> certificate.value
Fraction(9, 5)
>>> certificate.sampling.round(4).tolist()
[0.3333, 0.2222, 0.2222, 0.1111, 0.1111]
>>> certificate.verify()  # of cover and packing, without a solver
"""

from __future__ import annotations

import os
import signal
import sys

# `python -m fbs` imports this before its own module is even found: while we import there is nothing to save.
if sys.argv[:1] == ["-m"] and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))

from fbs.aggregator import (
    MAX_TABLE_WIDTH,
    MAX_WIDTH,
    Aggregator,
    AggregatorError,
    Composition,
    Symmetric,
    Table,
    Threshold,
    at_least,
    conjunction,
    disjunction,
    majority,
    parity,
)
from fbs.certificate import Certificate, CertificateError, ConstantError
from fbs.committed_tree import TreeSensitivity, tree_sensitivity
from fbs.max_entropy import max_entropy_sampling
from fbs.notation import NotationError, assignment, parse
from fbs.sensitivity import SensitivityError, sensitivity
from fbs.stability import RhoError, check_rho, stable
from fbs.table import SensitivityTable

__all__ = [
    "MAX_TABLE_WIDTH",
    "MAX_WIDTH",
    "Aggregator",
    "AggregatorError",
    "Certificate",
    "CertificateError",
    "Composition",
    "ConstantError",
    "NotationError",
    "RhoError",
    "SensitivityError",
    "SensitivityTable",
    "Symmetric",
    "Table",
    "Threshold",
    "TreeSensitivity",
    "assignment",
    "at_least",
    "check_rho",
    "conjunction",
    "disjunction",
    "majority",
    "max_entropy_sampling",
    "parity",
    "parse",
    "sensitivity",
    "stable",
    "tree_sensitivity",
]
