"""Large claim trees: sensitivity of the whole tree, and the audit, in memory and as the command a user types.

A tree grows breadth first. One claim in five is decomposed, as long as there is room, into 3 to 99 sub-claims (truth
tables: 3 to 8): 45% by majority, 45% by at least k, 5% by a weighted threshold with weights up to 50, 5% by a truth
table. Answers are uniform, and what they give is claimed.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from agents.audit import audit
from benchmarks.mathematics import random_threshold
from benchmarks.measurement import Budget, Curve, Result, Row, Target, interleaved, seconds_of
from envs.claim_tree import ClaimTree
from fbs.aggregator import Aggregator, Table, at_least, majority
from fbs.committed_tree import TreeSensitivity, tree_sensitivity

ROOT = Path(__file__).resolve().parent.parent
NODES = 100_000
GROWTH = (12_500, 25_000, 50_000, 100_000)
DECOMPOSED = 0.2
RHO = 4.0


def measure(budget: Budget) -> Iterator[Result]:
    """A new tree for each repeat: kept answers of one must not help the next."""
    nodes = NODES // 10 if budget.quick else NODES
    trees = [random_tree(nodes, seed) for seed in range(budget.repeats)]
    solved = tuple(seconds_of(lambda tree=tree: whole(tree)) for tree in trees)
    inner = round(float(np.mean([(tree.width > 0).sum() for tree in trees])))
    yield Row(f"sensitivity of a tree of {nodes:,} claims", solved, "s", Target(at_most=5), f"{inner:,} decomposed")
    yield from growth(budget)
    trees = [random_tree(nodes, seed) for seed in range(100, 100 + budget.repeats)]
    audited = tuple(seconds_of(lambda tree=tree: shown_audit(tree)) for tree in trees)
    yield Row(f"audit of it, with a progress bar ({nodes:,} claims)", audited, "s", Target(at_most=8))
    commands = tuple(command(tree) for tree in trees)
    yield Row("python eval.py audit FILE of it, start-up and reading too", commands, "s", note="wall clock")


def growth(budget: Budget) -> Iterator[Result]:
    """Seconds by number of claims. A few hundred of 100,000 claims cost the most, so smaller trees are averaged over as
    many as make up the largest size."""
    sizes = tuple(n // 10 for n in GROWTH) if budget.quick else GROWTH
    seeds = iter(range(1000, 100_000))

    def cost(nodes: int) -> float:
        trees = [random_tree(nodes, next(seeds)) for _ in range(sizes[-1] // nodes)]
        return seconds_of(lambda: [whole(tree) for tree in trees]) / len(trees)

    costs = interleaved({str(n): lambda n=n: cost(n) for n in sizes}, budget.repeats)
    powers = tuple(
        float(np.polyfit(np.log(sizes), np.log(one), 1)[0]) for one in zip(*costs.values(), strict=True)
    )  # fmt: skip
    name = f"power of the claims that seconds grow with, {sizes[0]:,} to {sizes[-1]:,}"
    yield Row(name, powers, "", Target(at_most=1.15), "1 is linear")
    points = [(n, float(np.median(costs[str(n)]))) for n in sizes]
    yield Curve("Sensitivity of a whole tree", "claims", "seconds", {"whole tree": points})


def whole(tree: ClaimTree) -> TreeSensitivity:
    """The sensitivity below every claim."""
    aggregators = [tree.aggregators[a] if a >= 0 else None for a in tree.aggregator.tolist()]
    return tree_sensitivity(tree.first_child, tree.width, aggregators, tree.claimed)


def shown_audit(tree: ClaimTree) -> dict[str, Any]:
    """The audit, its progress bar drawn where nobody sees it."""
    with redirect_stderr(io.StringIO()):
        return audit(tree, RHO, progress=True)


def command(tree: ClaimTree) -> float:
    """Wall clock of the command on the tree as a file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tree.json"
        file.write_text(json.dumps(document(tree)))
        arguments = ["eval.py", "audit", str(file), "--rho", str(RHO), "--json", f"{folder}/audit.json"]
        work = partial(subprocess.run, [sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True)
        return seconds_of(work, time.perf_counter)


def random_tree(nodes: int, seed: int) -> ClaimTree:
    """A tree of exactly so many claims, at least 4; see above."""
    rng = np.random.default_rng(seed)
    numbers: dict[Aggregator, int] = {}
    chosen: list[int] = []
    count = 1
    while len(chosen) < count:
        room = nodes - count
        must = len(chosen) == count - 1  # nothing else could make the tree grow
        if room >= 3 and (must or rng.random() < DECOMPOSED):
            f = random_aggregator(rng, room)
            chosen.append(numbers.setdefault(f, len(numbers)))
            count += f.width
        else:
            chosen.append(-1)
    aggregators = list(numbers)
    return ClaimTree.from_breadth_first(
        f"a random tree of {count} claims", aggregators, chosen, rng.integers(0, 2, count).tolist(), [-1] * count,
        [f"claim {i}" for i in range(count)], [str(aggregators[a]) if a >= 0 else "" for a in chosen],
    )  # fmt: skip


def random_aggregator(rng: np.random.Generator, room: int) -> Aggregator:
    """Of at most `room` sub-claims, and so that none, or at least three, are left over."""
    kind = rng.random()
    most = min(8 if kind >= 0.95 else 99, room)
    width = int(rng.integers(3, most + 1))
    if 0 < room - width < 3:
        width = room if room <= most else width - 3 + (room - width)
    if kind < 0.45:
        return majority(width)
    if kind < 0.9:
        return at_least(int(rng.integers(1, width + 1)), width)
    if kind < 0.95:
        return random_threshold(rng, width)
    return Table(tuple(rng.integers(0, 2, 2**width).tolist()))


def document(tree: ClaimTree) -> dict[str, Any]:
    """The tree as it is written to JSON."""
    claims: list[dict[str, Any]] = [{"claim": text} for text in tree.text]
    for node in reversed(range(len(claims))):
        if tree.width[node]:
            claims[node] |= {"aggregator": tree.written[node], "children": claims[tree.children(node)]}
        else:
            claims[node]["answer"] = int(tree.answer[node])
    return claims[0]
