"""The distinct aggregators of a problem, with what the rules look up about them.

Two ways in, chosen once. *Tabulated*: every aggregator is at most `NARROW` wide, and output and stability of all its
assignments are arrays that NumPy and torch index alike. *Lazy*: some aggregator is wider; symmetric ones are looked up
by their number of ones, the others are solved when first met and kept.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from envs.config import NARROW, ConfigError
from fbs.aggregator import Aggregator, Symmetric
from fbs.sensitivity import sensitivity
from fbs.stability import stable as is_stable
from fbs.table import SensitivityTable

Array = Any  # numpy.ndarray or torch.Tensor

MAX_TABULATED = 1 << 17  # assignments tabulated in all: a larger library is solved when met
MAX_LIES_TABULATED = 1 << 22  # bytes of the table of legal lies, whose rows are worked out when asked for beyond that


class Library:
    """Aggregators by number, on one array library.

    Args:
        aggregators: The distinct aggregators; `a` below indexes them.
        rho: The sensitivity bound that decides stability.
        xp: `numpy` or `torch`.
        device: Where torch arrays live.

    Attributes:
        width: Q, the widest aggregator; assignments are padded with zeros to it.
        widths: int64 (A,). ragged: True if they differ.
        tabulated: True where the code tables below exist.
        outputs: int8 (A, 2^Q), the output at each padded code (first sub-claim the most significant bit).
        stabilities: bool (A, 2^Q).
        preimage: int64 (A, 2, 2^Q), the codes with output 0 and 1, padded codes only; the tail repeats the first.
        preimage_size: int64 (A, 2), how many of them count.
        bits: int8 (2^Q, Q), the assignment behind each code.
    """

    def __init__(
        self, aggregators: tuple[Aggregator, ...], rho: float, xp: Any = np, device: str | None = None
    ) -> None:
        self.aggregators = tuple(aggregators)
        self.rho = rho
        self.xp = xp
        self.device = device
        self.width = max(f.width for f in self.aggregators)
        entries = sum(1 << min(f.width, NARROW) for f in self.aggregators)
        self.tabulated = self.width <= NARROW and entries <= MAX_TABULATED
        self.ragged = any(f.width < self.width for f in self.aggregators)
        self.widths = self.array([f.width for f in self.aggregators], "int64")
        self.producible = self.array([_producible(f) for f in self.aggregators], "bool")
        if self.tabulated:
            self._tabulate()

    def array(self, values: Any, dtype: str) -> Array:
        """`values` as an array of this library's kind and device."""
        if self.xp is np:
            return np.asarray(values, dtype)
        return self.xp.as_tensor(values, dtype=getattr(self.xp, dtype), device=self.device)

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Array:
        """Zeros of this library's kind and device."""
        if self.xp is np:
            return np.zeros(shape, dtype)
        return self.xp.zeros(shape, dtype=getattr(self.xp, dtype), device=self.device)

    def on_host(self, values: Array) -> np.ndarray:
        """An array of this library as a NumPy array, wherever it lives."""
        return np.asarray(values if self.xp is np else values.cpu())

    def _tabulate(self) -> None:
        size = 1 << self.width
        outputs = np.zeros((len(self.aggregators), size), np.int8)
        stabilities = np.zeros((len(self.aggregators), size), bool)
        preimage = np.zeros((len(self.aggregators), 2, size), np.int64)
        preimage_size = np.zeros((len(self.aggregators), 2), np.int64)
        for a, f in enumerate(self.aggregators):
            pad = self.width - f.width
            outputs[a] = np.repeat(f.table(), 1 << pad)
            stabilities[a] = np.repeat(is_stable(self.sensitivity_tables[a].value, self.rho), 1 << pad)
            for bit in (0, 1):
                codes = np.flatnonzero(f.table() == bit) << pad
                preimage[a, bit, : len(codes)] = codes
                preimage[a, bit, len(codes) :] = codes[0] if len(codes) else 0
                preimage_size[a, bit] = len(codes)
        self.outputs = self.array(outputs, "int8")
        self.stabilities = self.array(stabilities, "bool")
        self.preimage = self.array(preimage, "int64")
        self.preimage_size = self.array(preimage_size, "int64")
        shifts = np.arange(self.width - 1, -1, -1)
        self.bits = self.by_sub_claim(self.array(np.arange(size)[:, None] >> shifts & 1, "int8"))
        self._powers = self.array(1 << shifts, "float32")

    @cached_property
    def sensitivity_tables(self) -> tuple[Any, ...]:
        """A `fbs.SensitivityTable` for each aggregator (tabulated libraries)."""
        return tuple(_sensitivity_table(f) for f in self.aggregators)

    @cached_property
    def legal(self) -> Array:
        """bool (A, 2, 2^Q): which padded codes are an assignment of that output."""
        pads = self.width - np.array([f.width for f in self.aggregators])
        unpadded = np.arange(1 << self.width)[None, :] % (1 << pads)[:, None] == 0
        outputs = np.stack([np.repeat(f.table(), 1 << pad) for f, pad in zip(self.aggregators, pads, strict=True)])
        return self.array(np.stack([(outputs == bit) & unpadded for bit in (0, 1)], axis=1), "bool")

    @cached_property
    def _legal_lies(self) -> Array:
        """bool (A * 2 * 2^Q, 2^Q): `legal_lies` of every aggregator, output and code in this order."""
        size = 1 << self.width
        codes = np.arange(size)
        return self.array(self.on_host(self.legal)[..., codes[:, None] ^ codes].reshape(-1, size), "bool")

    def pick(self, table: Array, index: Array) -> Array:
        """table[index], rows of a table by int64 (N,): by what copies rows many times as fast as indexing does."""
        return table.take(index, axis=0) if self.xp is np else table.index_select(0, index)

    def spread(self, table: Array, index: Array) -> Array:
        """table[index] for a table (rows, Q) and int64 (N,), both stored `by_sub_claim`."""
        return table.T.take(index, axis=1).T if self.xp is np else table.index_select(0, index)

    def by_sub_claim(self, z: Array) -> Array:
        """The same (N, Q) stored column by column, where that makes sums and tests over the few sub-claims fast."""
        return np.asfortranarray(z) if self.xp is np else z

    def entry(self, z: Array, i: Array) -> Array:
        """z[n, i_n] for each n: entries (N,) of (N, Q) by int64 (N,)."""
        if self.xp is np:
            return z.T.reshape(-1).take(i * len(i) + np.arange(len(i)))
        return z.gather(1, i[:, None])[:, 0]

    def code(self, z: Array) -> Array:
        """int64 (...,): the code of assignments z (..., Q). In float32, which is exact here and has a fast product."""
        if self.xp is np:
            return (z.astype(np.float32) @ self._powers).astype(np.int64)
        return (z.float() @ self._powers).long()

    def draw(self, a: Array, output: Array, u: Array) -> Array:
        """int64 (N,): codes at which aggregator a (N,) gives `output` (N,), uniform if u (N,) is."""
        row = 2 * a + output
        rank = self.array(u * self.pick(self.preimage_size.reshape(-1), row), "int64")
        return self.pick(self.preimage.reshape(-1), (row << self.width) + rank)

    def output(self, a: Array, z: Array) -> Array:
        """int8 (N,): the output of aggregator a (N,) at assignment z (N, Q)."""
        if self.tabulated:
            return self.pick(self.outputs.reshape(-1), (a << self.width) + self.code(z))
        return self._by_aggregator(a, z, lambda f, rows: f(rows), "int8")

    def stable(self, a: Array, z: Array, asked: Array | None = None) -> Array:
        """bool (N,): whether the sensitivity of aggregator a (N,) at z (N, Q) is at most rho.

        Where `asked` (N,) is False the answer does not matter, and nothing is solved for it.
        """
        if self.tabulated:
            return self.pick(self.stabilities.reshape(-1), (a << self.width) + self.code(z))
        return self._by_aggregator(a, z, lambda f, rows: is_stable(self.sensitivity(f, rows), self.rho), "bool", asked)

    def legal_assignments(self, a: Array, output: Array) -> Array:
        """bool (N, 2^Q): the padded codes at which aggregator a (N,) gives `output` (N,)."""
        return self.pick(self.legal.reshape(-1, 1 << self.width), 2 * a + output)

    def legal_lies(self, a: Array, output: Array, z: Array) -> Array:
        """bool (N, 2^Q): codes of the lies that make of z (N, Q) an assignment at which aggregator a gives `output`."""
        row, code, size = 2 * a + output, self.code(z), 1 << self.width
        if self.legal.shape[0] * 2 * size * size <= MAX_LIES_TABULATED:
            return self.pick(self._legal_lies, (row << self.width) + code)
        flipped = code[:, None] ^ self.array(np.arange(size), "int64")
        return self.legal.reshape(-1)[(row << self.width)[:, None] + flipped]

    def sensitivity(self, f: Aggregator, rows: np.ndarray) -> np.ndarray:
        """float64 (n,): the fractional block sensitivity of f at each of n assignments (n, width)."""
        if isinstance(f, Symmetric):
            return _by_count(f)[rows.sum(-1)]
        return np.array([float(_solve(f, row.tobytes()).value) for row in np.ascontiguousarray(rows, np.int8)])

    def _by_aggregator(self, a: Array, z: Array, look_up: Any, dtype: str, asked: Array | None = None) -> Array:
        chosen, rows = self.on_host(a), self.on_host(z)
        result = np.zeros(len(chosen), dtype)
        order = np.argsort(chosen, kind="stable")
        if asked is not None:
            order = order[self.on_host(asked)[order]]
        starts = np.flatnonzero(np.diff(chosen[order], prepend=-1))
        for group in np.split(order, starts[1:]) if len(order) else ():
            f = self.aggregators[chosen[group[0]]]
            result[group] = look_up(f, rows[group, : f.width])
        return self.array(result, dtype)


def _producible(f: Aggregator) -> tuple[bool, bool]:
    half = np.full(f.width, 0.5)
    zero, one = f.tally(half, half)
    return bool(zero > 0), bool(one > 0)


_tables: dict[Aggregator, Any] = {}
_counts: dict[Aggregator, np.ndarray] = {}
_solved: dict[tuple[Aggregator, bytes], Any] = {}


def _sensitivity_table(f: Aggregator) -> Any:
    if f not in _tables:
        _tables[f] = SensitivityTable(f)
    return _tables[f]


def _by_count(f: Symmetric) -> np.ndarray:
    """float64 (width + 1,): the sensitivity of a symmetric f by the number of ones."""
    if f not in _counts:
        ladder = np.tri(f.width + 1, f.width, -1, dtype=np.int8)
        _counts[f] = np.array([float(sensitivity(f, ladder[ones]).value) for ones in range(f.width + 1)])
    return _counts[f]


def _solve(f: Aggregator, assignment: bytes) -> Any:
    key = (f, assignment)
    if key not in _solved:
        _solved[key] = sensitivity(f, np.frombuffer(assignment, np.int8))
    return _solved[key]


def check_procedural(aggregators: tuple[Aggregator, ...]) -> None:
    """Raise `ConfigError` for an aggregator that is constant: no claim can be decomposed by it either way."""
    for f in aggregators:
        if not all(_producible(f)):
            raise ConfigError(
                f"problem.aggregators: '{f}' is constant, so one of the two claims could never be defended; "
                "choose aggregators that take both values"
            )
