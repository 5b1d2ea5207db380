"""python -m fbs AGGREGATOR ASSIGNMENT: the fractional block sensitivity, and the cover and packing that prove it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Any, NoReturn

from fbs.aggregator import AggregatorError, WeightError
from fbs.certificate import Certificate
from fbs.command import check_json, give, run_program
from fbs.notation import GRAMMAR, NotationError, assignment, parse
from fbs.sensitivity import sensitivity
from fbs.visible import visible
from fbs.whole_file import WriteError

DESCRIPTION = """\
Fractional block sensitivity of an aggregator f at an assignment z.

A block is a set of sub-claims whose flip changes f(z). Alice, who claims f(z) falsely, lies about one block at least;
Bob samples one sub-claim. The sensitivity is the best value of two linear programs: the largest packing of blocks, and
the smallest cover that puts weight 1 on every block. Bob, sampling in proportion to the cover, meets a lie with
probability 1/sensitivity or more, and the packing is how Alice holds him to it."""

EPILOG = f"""\
aggregators:
{GRAMMAR}

assignments:
  11100                            one 0 or 1 for each sub-claim; spaces are ignored

examples:
  python -m fbs "threshold 3,2,2,1,1 >= 5" 11100
  python -m fbs majority 1111000
  python -m fbs "majority(and 2, or 3, parity 2)" "11 100 10" --json -
  python -m fbs "at_least 3" 10110 --json answer.json"""

NARROW = 16  # sub-claims to list one by one
SHOWN_ROWS = 16  # of a table
LINE = 76  # characters of an aggregator or an assignment before it is cut

MAX_WIDTH = 2000  # a packing has up to width / 2 blocks of width / 2 sub-claims each


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, where argparse would print the usage as well."""
        hint = "; put what contains spaces in quotes" if message.startswith("unrecognized") else ""
        self.exit(2, f"python -m fbs: error: {visible(message)}{hint}; see --help\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = _argument_parser()
    options = parser.parse_args(arguments)
    try:
        check_json(options.json)
        z = assignment(options.assignment)
        if len(z) > MAX_WIDTH:
            parser.error(
                f"ASSIGNMENT has {len(z)} answers; the command lists packings up to width {MAX_WIDTH}, beyond which "
                "they fill the memory: use fbs.sensitivity in Python for the value and the cover alone"
            )
        certificate = sensitivity(parse(options.aggregator, width=len(z)), z)
        certificate.verify()
        give(as_json(certificate), report(certificate), options.json, indent=None)
    except (NotationError, AggregatorError, WeightError, WriteError) as error:
        parser.error(str(error))
    return 0


def _argument_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m fbs",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("aggregator", metavar="AGGREGATOR", help="f, as in 'threshold 3,2,2,1,1 >= 5'")
    parser.add_argument("assignment", metavar="ASSIGNMENT", help="z, as in 11100")
    parser.add_argument(
        "--json",
        metavar="PATH",
        help="also write the answer to a JSON file, whose folder is made if need be; - prints JSON and nothing else",
    )
    return parser


def as_json(certificate: Certificate) -> dict[str, Any]:
    """The answer as JSON numbers; `value.exact` is null when the value is not known as a fraction."""
    return {
        "aggregator": str(certificate.aggregator),
        "assignment": "".join(map(str, certificate.assignment)),
        "output": _output(certificate),
        "value": {"exact": str(certificate.value) if certificate.exact else None, "float": float(certificate.value)},
        "cover": [float(weight) for weight in certificate.cover],
        "sampling": certificate.sampling.tolist() if certificate.value else None,
        "packing": [{"block": list(block), "weight": float(weight)} for block, weight in certificate.packing],
        "verified": True,  # or `verify` had raised
    }


def report(certificate: Certificate) -> str:
    """The answer for a reader."""
    z = "".join(map(str, certificate.assignment))
    lines = [
        f"f     {_cut(str(certificate.aggregator))}",
        f"z     {_cut(z)}",
        f"f(z)  {_output(certificate)}",
        f"fbs   {_value(certificate)}",
        "",
    ]
    if certificate.value:
        lines += [*_sub_claim_lines(certificate), "", *_block_lines(certificate), ""]
        proof = "verified: the packing and the cover are feasible and weigh the same, so both are optimal"
    else:
        proof = "verified: f is constant, no block is sensitive and there is nothing to sample"
    return "\n".join([*lines, proof])


def _sub_claim_lines(certificate: Certificate) -> list[str]:
    """Answer, cover and sampling; of a wide assignment one line for all sub-claims that agree in them."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    sampling = certificate.sampling.tolist()
    for i, row in enumerate(zip(certificate.assignment, certificate.cover, sampling, strict=True)):
        groups.setdefault(row if len(sampling) > NARROW else (i, *row), []).append(i)
    rows = [("sub-claim (from 0)", "z", "cover", "sampled with")]
    for row, members in groups.items():
        answer, weight, probability = row[-3:]
        each = " each" if len(members) > 1 else ""
        rows.append((_cut(_ranges(members), 40), str(answer), _number(weight), f"{probability:.6g}{each}"))
    lines = _aligned(rows)
    if len(groups) > SHOWN_ROWS:
        lines[SHOWN_ROWS + 1 :] = [f"and {len(groups) - SHOWN_ROWS} lines more; --json lists every sub-claim"]
    return lines


def _block_lines(certificate: Certificate) -> list[str]:
    """The packing, heaviest blocks first; of a wide assignment only how many blocks have which weight and size."""
    packing = sorted(certificate.packing, key=lambda item: -item[1])
    if len(certificate.cover) > NARROW:
        counts = Counter((weight, len(block)) for block, weight in packing)
        rows = [(_number(weight), f"{count} x {size} sub-claims") for (weight, size), count in counts.items()]
    else:
        rows = [(_number(weight), _ranges(block)) for block, weight in packing]
    lines = _aligned([("packing weight", "block"), *rows])
    if len(rows) > SHOWN_ROWS:
        lines[SHOWN_ROWS + 1 :] = [f"and {len(rows) - SHOWN_ROWS} lines more; --json lists every block"]
    return lines


def _output(certificate: Certificate) -> int:
    return int(certificate.aggregator(certificate.assignment))


def _value(certificate: Certificate) -> str:
    decimal = f"{float(certificate.value):.10g}"
    if not certificate.exact:
        return f"{decimal} in floating point"
    if certificate.value.denominator == 1:
        return decimal
    return f"{_cut(str(certificate.value))} = {decimal}"


def _number(number: Any) -> str:
    """A fraction as long as it is short, else a decimal."""
    text = str(number)
    return text if len(text) <= 12 else f"{float(number):.6g}"


def _ranges(indices: Iterable[int]) -> str:
    """0-2, 5, 7, 8 of 0, 1, 2, 5, 7, 8."""
    ranges: list[list[int]] = []
    for i in indices:
        if ranges and ranges[-1][1] == i - 1:
            ranges[-1][1] = i
        else:
            ranges.append([i, i])
    parts = ([f"{first}-{last}"] if last > first + 1 else map(str, range(first, last + 1)) for first, last in ranges)
    return ", ".join(chain.from_iterable(parts))


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cut(text: str, length: int = LINE) -> str:
    return text if len(text) <= length else f"{text[:length]}... ({len(text)} characters)"


if __name__ == "__main__":
    run_program("python -m fbs", main)
