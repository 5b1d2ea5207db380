"""The report: every topic run, judged and written, `report.html` to be read and `report.json` for scripts."""

from __future__ import annotations

import html
import re
import sys
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tqdm import tqdm

from agents.run_folder import write, write_json
from agents.theorems import (
    amplification,
    beyond_the_paper,
    completeness,
    composition,
    cost,
    figures,
    honesty,
    lower_bound,
    real_judgements,
    soundness,
)
from agents.theorems.crowds import find_crowd
from agents.theorems.lab import THRESHOLD, Lab, Topic, procedural
from agents.theorems.learned import load_pair, train_pair
from agents.theorems.rows import LEVEL, Row, shared_level

TOPICS = (
    completeness, soundness, amplification, honesty, lower_bound, composition, cost, beyond_the_paper, real_judgements,
)  # fmt: skip
PAGE, DATA = "report.html", "report.json"


class ReportError(ValueError):
    """A report that cannot be written."""


def report(
    out: str, quick: bool = False, seed: int = 0, learned: str | None = None, crowd: str | None = None,
    crowd_truth: str | None = None, progress: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run every topic and write the report.

    Args:
        out: The folder, made if it is not there.
        quick: Sample a tenth, train a little.
        seed: Of everything that is drawn.
        learned: A run folder whose pair is taken; by default one is trained.
        crowd, crowd_truth: CSV files of a crowd's answers and of the truth; by default a synthetic crowd.
        progress: Say on standard error how far it is: bars on a terminal, elsewhere a line a topic.

    Returns:
        What is in report.json: `claims`, each {topic, claim, setting, value, low, high, bound, holds, relation, exact,
        p_value, fails_as_the_paper_says}; `hold`, `total`, `sampled`: numbers of rows; `level`, of one sampled row's
        test; `seed`, `quick`, `seconds`, `learned`, `crowd`, `report`: the page's place.

    Raises:
        ReportError: the folder cannot be written to. RunError, ProblemError, CrowdError: a file that will not do.
    """
    started, folder = time.monotonic(), _folder(out)
    people = find_crowd(crowd, crowd_truth)
    pair = load_pair(learned) if learned else train_pair(quick, seed, progress)
    lab = Lab(quick, seed, pair, people, progress)
    topics = _study(lab)
    result = summary(topics, lab, time.monotonic() - started, folder)
    page = render(topics, result)
    try:
        write(folder / PAGE, lambda file: file.write(page.encode()))
    except OSError as error:
        raise ReportError(f"--out: cannot write to {folder}: {error.strerror}; give another folder") from None
    write_json(result, folder / DATA)
    return result


def _study(lab: Lab) -> list[Topic]:
    topics: list[Topic] = []
    with tqdm(TOPICS, unit="topic", disable=None if lab.progress else True, dynamic_ncols=True) as bar:
        for module in bar:
            name = module.__name__.rpartition(".")[2].replace("_", " ")
            bar.set_description(name)
            topics.append(module.study(lab))
            if lab.progress and bar.disable:
                print(f"{name}: {len(topics[-1].rows)} rows", file=sys.stderr, flush=True)
    return topics


def _folder(out: str) -> Path:
    """The folder, made and tried before any time is spent."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f"{DATA}.partial"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ReportError(f"--out: cannot write to {folder}: {error.strerror}; give another folder") from None
    return folder


def summary(topics: Sequence[Topic], lab: Lab, seconds: float, folder: Path) -> dict[str, Any]:
    """The rows, judged, and what the report was made from."""
    rows = [row for topic in topics for row in topic.rows]
    level = shared_level(rows)
    claims = [{"topic": topic.name, **row.record(level)} for topic in topics for row in topic.rows]
    return {
        "claims": claims,
        "hold": sum(claim["holds"] for claim in claims),
        "total": len(claims),
        "sampled": sum(not claim["exact"] for claim in claims),
        "level": level,
        "seed": lab.seed,
        "quick": lab.quick,
        "seconds": round(seconds, 1),
        "learned": lab.learned.about,
        "learned_guarantee": soundness.guarantee(procedural(THRESHOLD), lab.learned.bob(procedural(THRESHOLD))),
        "crowd": lab.crowd.about,
        "report": str(folder / PAGE),
    }


def format_report(result: dict[str, Any]) -> str:
    """The report in a few lines: each topic's rows, those that do not hold, and where the page is."""
    lines = []
    for topic, rows in groupby(result["claims"], key=lambda claim: claim["topic"]):
        verdicts = [row["holds"] for row in rows]
        lines.append(f"{topic:<19} {sum(verdicts):>3} of {len(verdicts):>3} rows hold")
    for claim in result["claims"]:
        if not claim["holds"]:
            lines += ["", f"DOES NOT HOLD ({claim['topic']}): {claim['claim']}", f"  {claim['setting']}",
                      f"  {_number(claim['value'])}, claimed {_relation(claim)}"]  # fmt: skip
    total = f"{result['hold']} of {result['total']} rows hold, {result['sampled']} of them sampled"
    return "\n".join([*lines, "", f"{total}; {result['seconds']:.0f} s", f"report: {result['report']}"])


SYMBOLS = {"=": "=", "<=": "≤", ">=": "≥", "<": "<", ">": ">"}


def _relation(claim: dict[str, Any]) -> str:
    """`≥ 0.1111`, and for a row that should fail `not ≥ 0.1111`."""
    negated = "not " if claim["fails_as_the_paper_says"] else ""
    return f"{negated}{SYMBOLS[claim['relation']]} {_number(claim['bound'])}"


def _number(value: float) -> str:
    text = f"{value:.4g}"
    return "0" if float(text) == 0 else text


# ------------------------------------------------------------------ the page

STYLE = """
body { font: 16px/1.5 Georgia, 'DejaVu Serif', serif; color: #1c1c1c; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
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
th.claim { background: #f2f4f5; font-weight: 600; font-size: .82rem; padding: .4rem .5rem; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.setting { padding-left: .9rem; }
.verdict { white-space: nowrap; color: #1a6b35; } .verdict.no { color: #fff; background: #b2182b; padding: .22rem .4rem; }
.verdict.fails { color: #6b4d00; }
@media print { body { font-size: 10.5pt; max-width: none; margin: 0; } figure, tr { break-inside: avoid; }
  h2 { break-after: avoid; } th.claim { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def render(topics: Sequence[Topic], result: dict[str, Any]) -> str:
    """The page: one file, figures inside, nothing loaded from elsewhere."""
    sections = "\n".join(_section(number, topic, result["level"]) for number, topic in enumerate(topics, 1))
    title = "Sensitive debate, measured: every claim of the paper as an experiment"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        f"{_introduction(topics, result)}\n{sections}\n</body></html>\n"
    )


def _introduction(topics: Sequence[Topic], result: dict[str, Any]) -> str:
    failing = result["total"] - result["hold"]
    verdict = "All rows hold." if not failing else f"<b>{failing} of them do not hold</b>; they are marked red."
    value, quick = result["learned_guarantee"], " --quick" if result["quick"] else ""
    paragraphs = [
        "<i>How to Have a Sensitive Debate: An Instance-Optimal Protocol for AI Debate</i> (Li, Xun, Chen, Brown-Cohen) "
        "proves what a debate between two AIs can guarantee to a judge who asks a human one small question. Alice claims "
        "something and splits it into sub-claims; Bob challenges what is too sensitive or picks a sub-claim; ρ bounds the "
        "fractional block sensitivity of a split, d is the depth. Here each claim of the paper is measured.",
        f"There are {result['total']} rows. {verdict} A number is exact where a recursion over the game gives it, and is then "
        f"compared as it is. The other {result['sampled']} are rates of debates that were played, with a 95% interval; such a "
        f"row fails only if a one-sided binomial test rejects its claim at level {LEVEL:g} / {max(1, result['sampled'])}, the "
        f"level {LEVEL:g} being shared over all sampled rows (Bonferroni). One interval in twenty may miss its bound by "
        "chance. Where the paper says that something breaks, the row holds when it breaks.",
        f"The learned pair was {_text(result['learned'])}; its Bob guarantees {_number(value)} on the default game, whose "
        f"value is {_number(1 / 9)}. What is claimed of every judge and every liar must hold for it too, however well it "
        f"has learned. The crowd: {_text(result['crowd'])}.",
    ]
    rows = "".join(
        f'<tr><td><a href="#{_anchor(topic)}">{number}. {_text(topic.name)}</a></td><td class="number">{len(topic.rows)}</td>'
        f'<td class="number">{sum(row.p_value is None for row in topic.rows)}</td>'
        f'<td class="number">{sum(row.holds(result["level"]) for row in topic.rows)}</td></tr>'
        for number, topic in enumerate(topics, 1)
    )
    table = (
        '<table class="summary"><thead><tr><th>topic</th><th class="number">rows</th><th class="number">exact</th>'
        f'<th class="number">hold</th></tr></thead><tbody>{rows}</tbody></table>'
    )
    facts = (
        f'<p class="facts">python eval.py theorems{quick} --seed {result["seed"]}, {result["seconds"]:.0f} seconds. The '
        "numbers are in report.json.</p>"
    )
    return "\n".join([*(f"<p>{paragraph}</p>" for paragraph in paragraphs), table, facts])


def _section(number: int, topic: Topic, level: float) -> str:
    statement = "".join(f"<p>{_text(paragraph)}</p>" for paragraph in topic.statement)
    findings = "".join(f"<p>{_text(finding)}</p>" for finding in topic.findings)
    groups = groupby(topic.rows, key=lambda row: row.claim)
    body = "".join(
        f'<tr><th class="claim" colspan="5">{_text(claim)}</th></tr>{"".join(_row(row, level) for row in rows)}'
        for claim, rows in groups
    )
    head = "".join(
        f"<th{kind}>{name}</th>"
        for name, kind in (("setting", ""), ("value", ' class="number"'), ("95% interval", ' class="number"'),
                           ("claimed", ' class="number"'), ("", ""))
    )  # fmt: skip
    return (
        f'<section id="{_anchor(topic)}"><h2>{number}. {_text(topic.name)}</h2><p class="source">{_text(topic.source)}</p>'
        f'{statement}<figure>{figures.svg(topic.figure, _anchor(topic))}<figcaption>{_text(topic.caption)}</figcaption>'
        f'</figure><div class="findings">{findings}</div>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></section>"
    )


def _row(row: Row, level: float) -> str:
    holds = row.holds(level)
    interval = "exact" if row.p_value is None else f"{_number(row.low)} to {_number(row.high)}"
    kind, word = ("", "holds") if holds else (" no", "does not hold")
    if holds and row.fails:
        kind, word = " fails", "breaks, as the paper says"
    claimed = f"{SYMBOLS[row.relation]} {_number(row.bound)}"
    return (
        f'<tr><td class="setting">{_text(row.setting)}</td><td class="number">{_number(row.value)}</td>'
        f'<td class="number">{interval}</td><td class="number">{claimed}</td><td class="verdict{kind}">{word}</td></tr>'
    )


def _anchor(topic: Topic) -> str:
    return re.sub(r"\W+", "-", topic.name.lower())


def _text(plain: str) -> str:
    """Text for the page, powers raised."""
    return re.sub(r"\^(\(?-?[\w./]+\)?)", r"<sup>\1</sup>", html.escape(plain, quote=False))
