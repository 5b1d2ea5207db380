"""The page: one file of HTML, figures inside, nothing loaded from elsewhere."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

from agents.theorems import figures
from agents.theorems.lab import Topic
from agents.theorems.rows import LEVEL, SYMBOLS, Row

TITLE = "Sensitive debate, measured: every claim of the paper as an experiment"

STYLE = """
body { font: 16px/1.5 Georgia, 'DejaVu Serif', serif; color: #1c1c1c; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2, th, .verdict, .summary td, .facts { font-family: 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif; }
h1 { font-size: 1.7rem; margin-bottom: .3rem; }
h2 { font-size: 1.25rem; margin: 2.8rem 0 .2rem; border-top: 1px solid #999; padding-top: 1rem; }
.source { color: #666; font-style: italic; margin: 0 0 .8rem; }
figure { margin: 1.2rem 0; } figure svg { width: 100%; height: auto; }
figcaption { font-size: .88rem; color: #444; }
.findings { border-left: 4px solid #1b7a9c; padding: .1rem 0 .1rem 1rem; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .84rem; margin: 1rem 0; }
th, td { text-align: left; padding: .22rem .6rem .22rem 0; border-bottom: 1px solid #e3e3e3; vertical-align: top; }
thead th { border-bottom: 2px solid #333; font-size: .78rem; } thead { display: table-header-group; }
.claim th { background: #f2f4f5; font-weight: 600; font-size: .82rem; padding: .4rem .5rem; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.setting { padding-left: .9rem; width: 52%; }
.verdict { white-space: nowrap; color: #1a6b35; } .verdict.fails { color: #6b4d00; }
.verdict.no { color: #fff; background: #b2182b; padding: .22rem .4rem; }
@media print { body { font-size: 10.5pt; max-width: none; margin: 0; } figure, tr { break-inside: avoid; }
  h2, .source, .claim { break-after: avoid; } table { font-size: 8pt; }
  .claim th, .no { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def render(topics: Sequence[Topic], result: dict[str, Any]) -> str:
    """The page.

    Args:
        topics: What was found. result: As in report.json.
    """
    sections = "\n".join(_section(place, topic, result["level"]) for place, topic in enumerate(topics, 1))
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{TITLE}</title>'
    body = f"<h1>{TITLE}</h1>\n{_introduction(topics, result)}\n{sections}"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n<body>{body}\n</body></html>\n'


def _introduction(topics: Sequence[Topic], result: dict[str, Any]) -> str:
    failing = result["total"] - result["hold"]
    verdict = "All rows hold." if not failing else f"<b>{failing} of them do not hold</b>; they are marked red."
    value, quick = result["learned_guarantee"], " --quick" if result["quick"] else ""
    paragraphs = [
        "<i>How to Have a Sensitive Debate: An Instance-Optimal Protocol for AI Debate</i> (Li, Xun, Chen, "
        "Brown-Cohen) proves what a debate between two AIs can guarantee to a judge who asks a human one small "
        "question. Alice claims something and splits it into sub-claims; Bob challenges what is too sensitive or "
        "picks a sub-claim; ρ bounds the fractional block sensitivity of a split, d is the depth. Here each claim of "
        "the paper is measured.",
        f"There are {result['total']} rows. {verdict} A number is exact where a recursion over the game gives it, and "
        f"is then compared as it is. The other {result['sampled']} are rates of debates that were played, with a 95% "
        f"interval; such a row fails only if a one-sided binomial test rejects its claim at level {LEVEL:g} / "
        f"{max(1, result['sampled'])}, the level {LEVEL:g} being shared over all sampled rows (Bonferroni). One "
        "interval in twenty may miss its bound by chance. Where the paper says that something breaks, the row holds "
        "when it breaks.",
        f"The learned pair was {text(result['learned'])}; its Bob guarantees {show(value)} on the default game, "
        f"whose value is {show(1 / 9)}. What is claimed of every judge and every liar must hold for it too, "
        f"however well it has learned. The crowd: {text(result['crowd'])}.",
    ]
    rows = "".join(_summary_row(place, topic, result["level"]) for place, topic in enumerate(topics, 1))
    heads = "".join(f'<th class="number">{head}</th>' for head in ("rows", "exact", "hold"))
    table = f'<table class="summary"><thead><tr><th>topic</th>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    command = f"python eval.py theorems{quick} --seed {result['seed']}"
    facts = f'<p class="facts">{command}: {result["seconds"]:.0f} seconds. The numbers are in report.json.</p>'
    return "\n".join([*(f"<p>{paragraph}</p>" for paragraph in paragraphs), table, facts])


def _summary_row(place: int, topic: Topic, level: float) -> str:
    rows = topic.rows
    counts = len(rows), sum(row.p_value is None for row in rows), sum(row.holds(level) for row in rows)
    cells = "".join(f'<td class="number">{count}</td>' for count in counts)
    return f'<tr><td><a href="#{_anchor(topic)}">{place}. {text(topic.name)}</a></td>{cells}</tr>'


def _section(place: int, topic: Topic, level: float) -> str:
    groups: dict[str, list[Row]] = {}
    for row in topic.rows:
        groups.setdefault(row.claim, []).append(row)
    body = "".join(
        f'<tr class="claim"><th colspan="5">{text(claim)}</th></tr>{"".join(_row(row, level) for row in rows)}'
        for claim, rows in groups.items()
    )
    heads = "".join(f'<th class="number">{head}</th>' for head in ("value", "95% interval", "claimed"))
    anchor = _anchor(topic)
    return "\n".join([
        f'<section id="{anchor}"><h2>{place}. {text(topic.name)}</h2><p class="source">{text(topic.source)}</p>',
        _paragraphs(topic.statement),
        f"<figure>{figures.svg(topic.figure, anchor)}<figcaption>{text(topic.caption)}</figcaption></figure>",
        f'<div class="findings">{_paragraphs(topic.findings)}</div>',
        f"<table><thead><tr><th>setting</th>{heads}<th></th></tr></thead><tbody>{body}</tbody></table></section>",
    ])  # fmt: skip


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{text(paragraph)}</p>" for paragraph in texts)


def _row(row: Row, level: float) -> str:
    holds = row.holds(level)
    interval = "exact" if row.p_value is None else f"{show(row.low)} to {show(row.high)}"
    kind, word = ("", "holds") if holds else (" no", "does not hold")
    if holds and row.fails:
        kind, word = " fails", "breaks, as the paper says"
    cells = "".join(f'<td class="number">{cell}</td>' for cell in (show(row.value), interval, claimed(row)))
    return f'<tr><td class="setting">{text(row.setting)}</td>{cells}<td class="verdict{kind}">{word}</td></tr>'


def _anchor(topic: Topic) -> str:
    return re.sub(r"\W+", "-", topic.name.lower())


def text(plain: str) -> str:
    """Text for the page, powers raised."""
    return re.sub(r"\^(-?\w+)", r"<sup>\1</sup>", html.escape(plain, quote=False))


def show(value: float) -> str:
    """A number with four digits that count, and counts whole."""
    digits = f"{value:.4g}"
    if abs(value) >= 1000 and float(value).is_integer():
        return f"{value:,.0f}"
    return "0" if float(digits) == 0 else digits


def claimed(row: Row) -> str:
    """What a row claims of its number, such as `≥ 0.1111`."""
    return f"{SYMBOLS[row.relation]} {show(row.bound)}"
