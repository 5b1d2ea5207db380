"""Whole trees against the same trees flattened into one function, and against Bobs who sample claim by claim."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fbs.aggregator import Aggregator, Composition, conjunction, disjunction, majority
from fbs.certificate import CertificateError, ConstantError
from fbs.committed_tree import TreeError, TreeSensitivity, tree_sensitivity
from fbs.max_entropy import max_entropy_sampling
from fbs.notation import parse
from fbs.sensitivity import sensitivity
from tests.strategies import assignments, of_width

Arrays = tuple[list[int], list[int], list[Aggregator | None], list[int]]


def breadth_first(f: Aggregator, z: tuple[int, ...]) -> Arrays:
    """The tree of a nested composition at the leaf answers z, claims as the answers give them."""
    first, width, aggregators, claimed = [], [], [], []
    level = [(f, z)]
    total = 1
    while level:
        below = []
        for node, answers in level:
            inner = isinstance(node, Composition)
            children = node.parts if inner else node and [None] * node.width
            slices = node.slices if inner else [slice(i, i + 1) for i in range(len(answers))]
            first.append(total if node else 0)
            width.append(len(children) if node else 0)
            aggregators.append(node.outer if inner else node)
            claimed.append(int(node(answers)) if node else answers[0])
            if node:
                below += [(child, answers[place]) for child, place in zip(children, slices, strict=True)]
                total += len(children)
        level = below
    return first, width, aggregators, claimed


MAJORITIES = breadth_first(parse("majority(majority 3, majority 3, majority 3)"), (1, 1, 0, 1, 1, 1, 0, 0, 0))


def worst_case_catch(tree: TreeSensitivity, arrays: Arrays, samplings: list[np.ndarray | None]) -> float:
    """The least probability of ending on a false node, over lies that falsify the root: C = 1 at the end, above it
    C = min over sensitive blocks of sum p_i C_i."""
    first, width, aggregators, claimed = arrays
    catch = np.ones(len(width))
    for node in reversed(range(len(width))):
        if tree.certificates[node] is not None:
            children = slice(first[node], first[node] + width[node])
            below = catch[children]
            p = np.zeros(width[node]) if samplings[node] is None else samplings[node]
            masses = np.where(np.isinf(below), np.inf, p * np.where(np.isinf(below), 0, below))
            lightest = aggregators[node].lightest_block(claimed[children], masses)
            catch[node] = lightest[0] if lightest else np.inf
    return float(catch[0])


def tree_optimal(tree: TreeSensitivity) -> list[np.ndarray | None]:
    return [tree.sampling(u) if tree.certificates[u] and value else None for u, value in enumerate(tree.values)]


def test_three_majorities_of_three() -> None:
    """R = 2, 3/2, 3/2 below and 2 + 3/2 = 7/2 at the root, where either true child falls alone. The local Bob divides
    evenly: min(1/2 * 1/2, 1/2 * 2/3) = 1/4; the tree-optimal one catches 2/7."""
    tree = tree_sensitivity(*MAJORITIES)
    tree.verify()
    assert tree.values[:4] == (Fraction(7, 2), 2, Fraction(3, 2), Fraction(3, 2)) and set(tree.values[4:]) == {1}
    np.testing.assert_allclose(tree.sampling(0), [4 / 7, 3 / 7, 0], rtol=1e-15)
    assert worst_case_catch(tree, MAJORITIES, tree_optimal(tree)) == pytest.approx(2 / 7, abs=1e-12)
    first, width, aggregators, claimed = MAJORITIES
    local = [
        f and max_entropy_sampling(f, claimed[i : i + w]) for i, w, f in zip(first, width, aggregators, strict=True)
    ]
    assert worst_case_catch(tree, MAJORITIES, local) == pytest.approx(1 / 4, abs=1e-12)


@st.composite
def nested(draw: st.DrawFn, depth: int = 3) -> Aggregator:
    """A read-once tree of small aggregators, ragged."""
    if depth == 1 or draw(st.booleans()):
        return draw(of_width(draw(st.integers(1, 3)), depth=0))
    outer = draw(of_width(draw(st.integers(1, 3)), depth=0))
    return Composition(outer, tuple(draw(nested(depth - 1)) for _ in range(outer.width)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_tree_is_one_function_of_its_leaves(data: st.DataObject) -> None:
    """R_root is the sensitivity of the flattened function; the listed lies are a packing of it; sampling catches 1 /
    R_root; and R_root lies between the least and the largest product of local sensitivities along a path."""
    f = data.draw(nested())
    z = data.draw(assignments(f.width))
    arrays = breadth_first(f, z)
    tree = tree_sensitivity(*arrays)
    tree.verify()
    whole = sensitivity(f, z)
    assert tree.values[0] == whole.value
    leaves = leaves_in_order(arrays)
    packing = tuple((tuple(sorted(leaves[node] for node in block)), weight) for block, weight in tree.packing())
    replace(whole, packing_source=packing).verify()
    if whole.value:
        catch = worst_case_catch(tree, arrays, tree_optimal(tree))
        assert catch == pytest.approx(1 / float(whole.value), rel=1e-9)
        low, high = path_products(arrays)
        assert low - 1e-9 <= whole.value <= high + 1e-9


def leaves_in_order(arrays: Arrays) -> dict[int, int]:
    """Node number of each leaf -> its place from left to right, by depth-first search."""
    first, width, _, _ = arrays
    places: dict[int, int] = {}
    stack = [0]
    while stack:
        node = stack.pop()
        stack += reversed(range(first[node], first[node] + width[node]))
        if not width[node]:
            places[node] = len(places)
    return places


def path_products(arrays: Arrays) -> tuple[float, float]:
    """The least and the largest product of local sensitivities along a path; 0 through a node that cannot change."""
    first, width, aggregators, claimed = arrays
    low, high = np.ones(len(width)), np.ones(len(width))
    for node in np.flatnonzero(width)[::-1]:
        children = slice(first[node], first[node] + width[node])
        local = float(sensitivity(aggregators[node], claimed[children]).value)
        low[node], high[node] = local * low[children].min(), local * high[children].max()
    return low[0], high[0]


def test_drawn_lies_falsify_the_root_and_spread() -> None:
    """Each draw is a sensitive block of the flattened function; no leaf is false with more than 2/7. 4000 draws: four
    standard errors are below 0.03."""
    tree = tree_sensitivity(*MAJORITIES)
    generator = np.random.default_rng(0)
    f, z = parse("majority(majority 3, majority 3, majority 3)"), np.array(MAJORITIES[3][4:])
    counts = np.zeros(13)
    for _ in range(4000):
        lies = tree.lies(generator)
        flipped = z.copy()
        flipped[np.array(lies) - 4] ^= 1
        assert f(flipped) != f(z)
        counts[lies] += 1
    assert counts.max() / 4000 <= 2 / 7 + 0.03
    assert tree.lies(np.random.default_rng(5)) == tree.lies(np.random.default_rng(5))


def test_a_claim_lost_on_arrival_counts_as_a_leaf() -> None:
    """The second child claims 0 although its children's answers make it 1: R = 1 there, and `and` at 1, 0 falls with
    it alone."""
    tree = tree_sensitivity(
        [1, 3, 5, 0, 0, 0, 0], [2, 2, 2, 0, 0, 0, 0], [conjunction(2)] * 3 + [None] * 4, [0, 1, 0, 1, 1, 1, 1]
    )
    tree.verify()
    assert tree.values == (1, 2, 1, 1, 1, 1, 1) and tree.certificates[2] is None
    assert tree.lies(np.random.default_rng(0)) == [2] and tree.packing() == (((2,), 1),)
    with pytest.raises(ConstantError, match="node 2 is terminal"):
        tree.sampling(2)


def test_a_root_that_no_lie_can_falsify() -> None:
    tree = tree_sensitivity(
        [1, 3, 0, 0], [2, 1, 0, 0], [disjunction(2), parse("at_least 0 1"), None, None], [1, 1, 0, 0]
    )
    tree.verify()
    assert tree.values == (0, 0, 1, 1) and tree.packing() == ()
    with pytest.raises(ConstantError, match="falsifies the root"):
        tree.lies(np.random.default_rng(0))


def test_depth_and_width_without_recursion() -> None:
    """A chain of 5,000 majorities of 3 that claim 1, 1, 0, the first child again such: R = R_below + 1. With AND at
    all ones the same. A single leaf is a tree with R = 1."""
    n = 5_000
    first, width, claimed = np.zeros(3 * n + 1, int), np.zeros(3 * n + 1, int), np.ones(3 * n + 1, int)
    inner = np.concatenate([[0], 3 * np.arange(n - 1) + 1])
    first[inner], width[inner] = 3 * np.arange(n) + 1, 3
    claimed[3::3] = 0
    aggregators: list[Aggregator | None] = [None] * (3 * n + 1)
    for node in inner:
        aggregators[node] = majority(3)
    tree = tree_sensitivity(first, width, aggregators, claimed)
    assert tree.values[0] == n + 1
    assert len(tree.lies(np.random.default_rng(1))) == 1
    assert tree_sensitivity([0], [0], [None], [1]).values == (1,)


def test_long_fractions_become_floats() -> None:
    """Roots of AND over parts whose R have large coprime denominators; the sum of m / a in floats is the closed
    form."""
    sizes = [(101, 50 + prime) for prime in (11, 13, 17, 19, 23, 29, 31, 37, 41)]  # a = ones - 50
    first, width, aggregators, claimed = [1], [len(sizes)], [conjunction(len(sizes))], [1]
    position = 1 + len(sizes)
    for q, _ in sizes:
        first.append(position)
        width.append(q)
        aggregators.append(majority(q))
        claimed.append(1)
        position += q
    for q, ones in sizes:
        first += [0] * q
        width += [0] * q
        aggregators += [None] * q
        claimed += [1] * ones + [0] * (q - ones)
    tree = tree_sensitivity(first, width, aggregators, claimed)
    tree.verify()
    assert isinstance(tree.values[0], float) and isinstance(tree.values[1], Fraction)
    assert tree.values[0] == pytest.approx(sum(ones / (ones - 50) for _, ones in sizes), rel=1e-12)


def test_tampering_is_noticed() -> None:
    tree = tree_sensitivity(*MAJORITIES)
    for node, message in ((1, "capacity 0 of node 0"), (0, "value of node 0"), (5, "value of node 5|capacity")):
        values = list(tree.values)
        values[node] += 1
        with pytest.raises(CertificateError, match=message):
            replace(tree, values=tuple(values)).verify()


BAD_TREES = [
    (([], [], [], []), "must agree"),
    (([0], [0], [None], [1, 1]), "must agree"),
    (([1, 0, 0], [2, 0, 0], [majority(3), None, None], [1, 1, 1]), "aggregator of its 2 children"),
    (([1, 0, 0], [2, 0, 0], [None, None, None], [1, 1, 1]), "aggregator of its 2 children"),
    (([0, 0, 0], [2, 0, 0], [majority(2), None, None], [1, 1, 1]), "after their parent"),
    (([2, 0, 0], [2, 0, 0], [majority(2), None, None], [1, 1, 1]), "before the end"),
    (([1, 0, 0], [2, 0, 0], [majority(2), None, None], [1, 2, 1]), "0 or 1"),
]


@pytest.mark.parametrize(("arrays", "message"), BAD_TREES)
def test_arrays_that_are_no_tree(arrays: Arrays, message: str) -> None:
    with pytest.raises(TreeError, match=message):
        tree_sensitivity(*arrays)
