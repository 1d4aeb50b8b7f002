"""Tables of measurements on pages, from the files in which they were recorded.

A page says where: ``<!-- evidence: coco_slice -->`` becomes the tables of
``reproduction/coco_slice.csv``, which has the columns that ``hilltop compare`` writes.
"""

from __future__ import annotations

import csv
import re
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "reproduction"
PLACE = re.compile(r"<!-- evidence: (\w+) -->")
LEVELS = {"complete": "All labels", "0.75": "75% of the labels left", "0.4": "40% left"}
LEVELS |= {"single": "A single label for each image"}
Row = dict[str, str]


def read_rows(path: Path) -> list[Row]:
    """Rows of the last epoch, one for each level and method, whichever of the two files it is."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["epoch_rule"] == "last"]
    return rows if rows and "seeds" in rows[0] else summarise(rows)


def summarise(runs: list[Row]) -> list[Row]:
    """Mean and deviation over seeds of runs that finished."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for run in runs:
        if run["mAP"]:
            groups[run["level"], run["method"]].append(run)
    rows = []
    for (level, method), members in groups.items():
        row = {"level": level, "method": method, "seeds": str(len(members))}
        for metric in ("mAP", "CF1", "OF1"):
            values = [float(member[metric]) for member in members]
            row[metric] = str(statistics.fmean(values))
            row[f"{metric}_std"] = str(statistics.stdev(values)) if len(values) > 1 else ""
        rows.append(row)
    return rows


def tables(rows: list[Row]) -> str:
    """One table for each level, best method first."""
    levels = list(dict.fromkeys(row["level"] for row in rows))
    return "\n\n".join(table(level, [row for row in rows if row["level"] == level])
                       for level in levels)  # fmt: skip


def table(level: str, rows: list[Row]) -> str:
    """The methods of one level, by mAP."""
    lines = [f"**{LEVELS.get(level, level)}**", ""]
    lines += ["| method | seeds | mAP | CF1 | OF1 |", "|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: -float(row["mAP"] or 0)):
        values = " | ".join(number(row, metric) for metric in ("mAP", "CF1", "OF1"))
        lines.append(f"| `{row['method']}` | {row['seeds']} | {values} |")
    return "\n".join(lines)


def number(row: Row, metric: str) -> str:
    """A share in percent, with its spread over seeds."""
    if not row[metric]:
        return ""
    spread = row.get(f"{metric}_std")
    text = f"{100 * float(row[metric]):.1f}"
    return f"{text} ± {100 * float(spread):.1f}" if spread else text


def fill(text: str, folder: Path = FOLDER) -> str:
    """Replace every mark by its tables, or by the word that they are not there yet."""

    def found(mark: re.Match[str]) -> str:
        path = folder / f"{mark[1]}.csv"
        return tables(read_rows(path)) if path.is_file() else "*Not measured yet.*"

    return PLACE.sub(found, text)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill the tables of a page."""
    return fill(markdown)
