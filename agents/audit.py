"""Where is an argument fragile, and how many answers would check it?

The audit of a claim tree takes every claimed bit as committed: Bob sees them all before he samples, and a liar chooses
only which leaves are false. A claim is *too sensitive* if the fractional block sensitivity of its aggregator, at the
bits claimed below it, exceeds rho: Bob would win by challenging it.

Two ways to sample a leaf, judged by their worst case over the lies that make the root claim false:

- *local*: at each claim the maximum-entropy optimum of its own cover program. It catches with probability C, where
  C = 1 at a leaf and  C = min over sensitive B of sum_{i in B} p_i C_i  above.
- *tree-optimal*: i in proportion to R_i t_i, where R = 1 at a leaf and  R = min over covers t of sum_i R_i t_i  above.
  It catches with probability 1 / R at the root, and no way of sampling leaves does better.

For example, `majority` of three majorities of three that claim 110, 111 and 000: C = 1/4 and 1/R = 2/7.

A claim whose bit is not what its aggregator makes of the bits claimed below it is *inconsistent*: Alice loses there on
arrival. Nothing below it need be asked, so it counts as a leaf, C = R = 1; its own sensitivity is still that of its
aggregator at the bits below it. A claim that no lie below it can falsify, such as a constant one, has R = 0 and C
infinite.
"""

from __future__ import annotations

import math
import textwrap
from fractions import Fraction
from typing import Any

import numpy as np
from tqdm import tqdm

from envs.claim_tree import ClaimTree
from envs.document import ProblemError
from fbs.committed_tree import TreeSensitivity, tree_sensitivity
from fbs.max_entropy import max_entropy_sampling
from fbs.sensitivity import sensitivity
from fbs.stability import check_rho, stable
from fbs.visible import visible


class AuditError(ValueError):
    """An audit that cannot be made as asked."""


def audit(tree: ClaimTree, rho: float, confidence: float = 0.95, progress: bool = False) -> dict[str, Any]:
    """Sensitivity of every claim, of the whole tree, and the answers that a debate needs.

    Args:
        tree: The argument.
        rho: The sensitivity that a claim may have.
        confidence: With which probability a false root claim is to be caught, in (0, 1).
        progress: Show a bar on standard error.

    Returns:
        Plain Python, as it is written to JSON: `source`, `rho`; `claims` above level 0 in pre-order, each with path
        ("" for the root, "2/0" for child 0 of its child 2), claim, aggregator as written, level, sub_claims, claimed,
        answer, fbs, fbs_exact (a fraction as text, or None), stable, consistent, tree_sensitivity (R of the subtree);
        `stable`, `total`, `inconsistent`: numbers of claims; `tree_sensitivity`: R of the root, and
        `tree_sensitivity_exact`; `worst_case_catch: {local, tree_optimal}`, None if no lie can falsify the root;
        `answers_needed: {confidence, debate, every_leaf}`: `debate` answers, each about a leaf sampled anew by the
        tree-optimal Bob, catch a false root claim with that confidence.

    Raises:
        RhoError: rho below 1. AuditError: confidence outside (0, 1). ProblemError: an aggregator whose weights are
            too large to solve for; the message says which.
    """
    rho = check_rho(rho)
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise AuditError(f"confidence must lie between 0 and 1, not {confidence!r}; 0.95 is usual")
    values = _sensitivities(tree, progress)
    aggregators = [tree.aggregators[number] if number >= 0 else None for number in tree.aggregator.tolist()]
    whole = tree_sensitivity(tree.first_child, tree.width, aggregators, tree.claimed)
    catch = _local_catch(tree, whole, progress)
    claims = [_claim(tree, node, rho, values[node], whole) for node in tree.preorder().tolist() if tree.width[node]]
    root = whole.values[0]
    return {
        "source": tree.source,
        "rho": rho,
        "claims": claims,
        "stable": sum(claim["stable"] for claim in claims),
        "total": len(claims),
        "inconsistent": sum(not claim["consistent"] for claim in claims),
        "tree_sensitivity": float(root),
        "tree_sensitivity_exact": _exact(root),
        "worst_case_catch": {
            "local": catch if root else None,
            "tree_optimal": 1 / float(root) if root else None,
        },
        "answers_needed": {
            "confidence": confidence,
            "debate": answers_needed(float(root), confidence),
            "every_leaf": tree.leaves,
        },
    }


def answers_needed(sensitivity_of_tree: float, confidence: float) -> int:
    """The fewest samples that catch with that confidence when each catches with probability 1 / R.

    ceil(ln(1 - confidence) / ln(1 - 1/R)), which is 1 for R = 1; 0 for R = 0, where there is nothing to catch.
    """
    if sensitivity_of_tree <= 1:
        return math.ceil(sensitivity_of_tree)
    samples = math.log1p(-confidence) / math.log1p(-1 / sensitivity_of_tree)
    return math.ceil(samples * (1 - 1e-12))  # a whole number that floating point has put a hair above itself


def _inner(tree: ClaimTree, task: str, progress: bool) -> Any:
    """The claims above level 0, children before their parents, with a progress bar."""
    return tqdm(np.flatnonzero(tree.width)[::-1].tolist(), desc=task, unit="claim", disable=not progress)


def _sensitivities(tree: ClaimTree, progress: bool) -> dict[int, Any]:
    """The sensitivity of each claim above level 0 at the bits claimed below it."""
    values = {}
    for node in _inner(tree, "each claim", progress):
        try:
            values[node] = sensitivity(tree.aggregators[tree.aggregator[node]], tree.claimed[tree.children(node)]).value
        except (ValueError, ArithmeticError) as error:  # weights too large or too many for any of the programs
            raise ProblemError(tree.source, f"cannot be audited: {error}", tree.place(node)) from error
    return values


def _local_catch(tree: ClaimTree, whole: TreeSensitivity, progress: bool) -> float:
    """How surely local sampling catches the worst lie about the root: C in the text above."""
    catches = np.ones(len(tree.width))
    samplings: dict[tuple[int, bytes], np.ndarray] = {}
    for node in _inner(tree, "local sampling", progress):
        if whole.certificates[node] is None:  # inconsistent
            continue
        if not whole.values[node]:
            catches[node] = math.inf
            continue
        aggregator, z = tree.aggregators[tree.aggregator[node]], tree.claimed[tree.children(node)]
        key = (int(tree.aggregator[node]), z.tobytes())
        if key not in samplings:
            samplings[key] = max_entropy_sampling(aggregator, z)
        below = catches[tree.children(node)]
        possible = np.isfinite(below)  # an infinite mass keeps what cannot be a lie out of every block
        masses = np.where(possible, samplings[key] * np.where(possible, below, 0), np.inf)
        catches[node] = aggregator.lightest_block(z, masses)[0]
    return float(catches[0])


def _exact(value: Any) -> str | None:
    return str(value) if isinstance(value, Fraction) else None


def _claim(tree: ClaimTree, node: int, rho: float, value: Any, whole: TreeSensitivity) -> dict[str, Any]:
    return {
        "path": tree.path(node),
        "claim": tree.text[node],
        "aggregator": tree.written[node],
        "level": int(tree.level[node]),
        "sub_claims": int(tree.width[node]),
        "claimed": int(tree.claimed[node]),
        "answer": int(tree.answer[node]),
        "fbs": float(value),
        "fbs_exact": _exact(value),
        "stable": bool(stable(value, rho)),
        "consistent": whole.certificates[node] is not None,
        "tree_sensitivity": float(whole.values[node]),
    }


LINE = 110  # columns of running text
CHALLENGED = (
    "Bob wins by challenging any of these. Sturdier is an aggregator that leaves room for a few errors, or more "
    "sub-claims."
)
CONTRADICTED = "Alice loses on reaching any of these: the bits claimed below it give the other answer."


def format_audit(report: dict[str, Any], limit: int = 20) -> str:
    """An audit as a person reads it: what is too sensitive, what contradicts itself, the rest, and what to ask.

    Args:
        report: What `audit` returned.
        limit: The most claims listed in each part, the most sensitive first.
    """
    claims = sorted(report["claims"], key=lambda claim: -claim["fbs"])
    root, rho, total = report["claims"][0], f"{report['rho']:g}", report["total"]
    sensitive = [claim for claim in claims if not claim["stable"]]
    inconsistent = [claim for claim in claims if not claim["consistent"]]
    leaves = _count(report["answers_needed"]["every_leaf"], "human answer")
    lines = [
        f"{_one_line(report['source'], 80)}: {_count(total, 'claim')} resting on {leaves}",
        *textwrap.wrap(f"Root claim: {_one_line(root['claim'], 400)}", LINE, subsequent_indent="  "),
        f"Alice claims {root['claimed']}; the answers give {root['answer']}.",
        *_part(f"Too sensitive at rho {rho}: {len(sensitive)} of {total}", sensitive, limit, CHALLENGED),
    ]
    if inconsistent:
        lines += _part(f"Inconsistent: {len(inconsistent)} of {total}", inconsistent, limit, CONTRADICTED)
    lines += _part(f"Stable at rho {rho}: {report['stable']} of {total}", [c for c in claims if c["stable"]], limit)
    return "\n".join([*lines, "", *textwrap.wrap(_advice(report), LINE)])


def _part(title: str, claims: list[dict[str, Any]], limit: int, meaning: str = "") -> list[str]:
    """A headed table; the columns are as wide as they need to be."""
    if not claims:
        return ["", title]
    rows = [("place", "sensitivity", "aggregator", "claimed", "claim")]
    for claim in claims[:limit]:
        exact, number = claim["fbs_exact"], f"{claim['fbs']:.4g}"
        number = f"{exact} = {number}" if exact and "/" in exact and len(exact) <= 12 else number
        place, aggregator = _one_line(claim["path"] or "root", 24), _one_line(claim["aggregator"], 30)
        rows.append((place, number, aggregator, str(claim["claimed"]), _one_line(claim["claim"], 60)))
    place, sensitive, aggregator, claimed = (max(len(row[i]) for row in rows) for i in range(4))
    lines = [f"  {a:<{place}}  {b:>{sensitive}}  {c:<{aggregator}}  {d:>{claimed}}  {e}" for a, b, c, d, e in rows]
    more = [f"  ... and {len(claims) - limit} more"] if len(claims) > limit else []
    return ["", title, *lines, *more, *textwrap.wrap(meaning, LINE)]


def _advice(report: dict[str, Any]) -> str:
    """What to ask, in plain words."""
    needed, catch = report["answers_needed"], report["worst_case_catch"]
    if not report["claims"][0]["consistent"]:
        return "The root claim contradicts the bits claimed below it: Alice loses before anybody is asked."
    if catch["tree_optimal"] is None:
        return "No lie below it can make the root claim false: nobody need be asked."
    sampled = (
        f"If the root claim is false, one human answer shows it with probability {catch['tree_optimal']:.3g} or more "
        f"when the leaf is sampled with the whole tree in view (R = {report['tree_sensitivity']:.4g}), and "
        f"{catch['local']:.3g} or more when sampled claim by claim."
    )
    sure = f"To be {100 * needed['confidence']:.6g}% sure to catch it"
    if needed["debate"] < needed["every_leaf"]:
        debate = _count(needed["debate"], "human answer")
        return f"{sampled} {sure}, ask for {debate} instead of all {needed['every_leaf']:,}."
    return (
        f"{sampled} {sure} takes {_count(needed['debate'], 'sample')}, so ask for all of the "
        f"{_count(needed['every_leaf'], 'human answer')}: sampling saves nothing here."
    )


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _one_line(text: str, most: int) -> str:
    """A text on one line, its control characters written out, cut to what a column holds."""
    plain = " ".join(visible(text.strip()).split())
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."
