"""Tables as Markdown writes them, as CSV: ``| image | labels |`` above a line of dashes."""

from __future__ import annotations

import csv
import io
import itertools
import re

_RULE = re.compile(r"\s*\|?(\s*:?-+:?\s*\|)+(\s*:?-+:?\s*)?\s*")
_CELL = re.compile(r"(?<!\\)\|")
_MOST_ABOVE = 50


def is_markdown_table(text: str) -> bool:
    r"""Whether a line of dashes and bars stands below one with as many bars.

    Example:
        >>> is_markdown_table("| image | labels |\n|---|:-:|\n| a.jpg | cat |\n")
        True
    """
    return _rule(text.split("\n")[:_MOST_ABOVE]) > 0


def markdown_as_csv(text: str) -> str:
    r"""The first table of a text, with its lines where they were, so that messages name them.

    Example:
        >>> markdown_as_csv("| image | labels |\n|---|---|\n| a.jpg | cat, dog |\n")
        '#\nimage,labels\na.jpg,"cat, dog"\n'
    """
    lines = text.split("\n")
    rule = _rule(lines)
    body = (at for at in range(rule + 1, len(lines)) if "|" not in lines[at])
    header = _cells(lines[rule - 1])
    rows = [header, *map(_cells, lines[rule + 1 : next(body, len(lines))])]
    rows = [[*row, *[""] * (len(header) - len(row))] for row in rows]  # blanks may be left out
    out = io.StringIO()
    out.write("#\n" * rule)
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _rule(lines: list[str]) -> int:
    """Number of the line of dashes; 0 if there is none."""
    for at, (above, line) in enumerate(itertools.pairwise(lines), start=1):
        if "-" in line and _RULE.fullmatch(line) and len(_cells(above)) == len(_cells(line)) > 1:
            return at
    return 0


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip().replace("\\|", "|").strip("`") for cell in _CELL.split(inner)]
