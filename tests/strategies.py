"""Hypothesis strategies: random aggregators of every kind, constant ones included, and what goes with them."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import settings
from hypothesis import strategies as st

from fbs.aggregator import (
    Aggregator,
    Composition,
    Table,
    Threshold,
    at_least,
    conjunction,
    disjunction,
    majority,
    parity,
    symmetric,
)

quick = settings(max_examples=150, deadline=None)  # a decorator

bits = st.integers(0, 1)


def symmetrics(width: int) -> st.SearchStrategy[Aggregator]:
    named = st.sampled_from([majority, conjunction, disjunction, parity]).map(lambda build: build(width))
    counted = st.integers(0, width + 1).map(lambda k: at_least(k, width))
    any_ = st.tuples(*[bits] * (width + 1)).map(symmetric)
    return named | counted | any_


def thresholds(width: int, largest: int = 6) -> st.SearchStrategy[Aggregator]:
    """Weights of both signs and zeros; the threshold may be out of reach on either side."""
    weights = st.tuples(*[st.integers(-largest, largest)] * width)
    return st.builds(Threshold, weights, st.integers(-largest * 2, largest * 3))


def tables(width: int) -> st.SearchStrategy[Aggregator]:
    return st.builds(Table, st.tuples(*[bits] * 2**width))


@st.composite
def compositions(draw: st.DrawFn, width: int, depth: int = 2) -> Composition:
    """Read-once, cut anywhere; parts and outer function are compositions themselves down to `depth`."""
    inner_cuts = draw(st.sets(st.integers(1, width - 1))) if width > 1 else set()
    ends = [*sorted(inner_cuts), width]
    widths = [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    outer = draw(of_width(len(widths), depth - 1))
    return Composition(outer, tuple(draw(of_width(part, depth - 1)) for part in widths))


def of_width(width: int, depth: int = 2) -> st.SearchStrategy[Aggregator]:
    """Any aggregator of so many sub-claims; the composition is last, since hypothesis shrinks towards the first."""
    simple = [symmetrics(width), thresholds(width), tables(width)]
    return st.one_of(*simple, *([compositions(width, depth)] if depth > 0 else []))


def aggregators(max_width: int = 6) -> st.SearchStrategy[Aggregator]:
    return st.integers(1, max_width).flatmap(of_width)


def assignments(width: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[bits] * width)


def fractions(width: int) -> st.SearchStrategy[tuple[Fraction, ...]]:
    """Nonnegative masses, many of them 0 or equal."""
    mass = st.sampled_from([Fraction(0), Fraction(1), Fraction(1, 3)]) | st.builds(
        Fraction, st.integers(0, 20), st.integers(1, 9)
    )
    return st.tuples(*[mass] * width)
