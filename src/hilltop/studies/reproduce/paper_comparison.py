"""The paper's numbers beside measured ones, cell by cell; a cell without a run is empty.

How the cells become a table is said in ``table_layouts.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hilltop.data import LabelTable
from hilltop.data.summary import statistics_row
from hilltop.report.page import percent
from hilltop.report.tables import Sheet
from hilltop.studies.compare import BASELINE, COMPLETE, Method, Results, Spread
from hilltop.studies.compare.table import Rule
from hilltop.studies.reproduce.paper_values import PaperValues
from hilltop.studies.reproduce.recipe import USUAL, Column, Recipe, Row, Setting
from hilltop.studies.reproduce.source import EVERY


@dataclass(frozen=True)
class Measured:
    """Results on one data set, by how their runs were trained, and its facts."""

    results: Mapping[Setting, Results] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


Measurements = Mapping[str, Measured]
"""What was measured, by data set; ``EVERY`` stands for any."""

EPOCH_NOTE = (
    "Paper: as printed, of the best epoch on the test set. Best and last: measured here, in %, mean"
    " ± standard deviation over seeds (in the CSV file for all metrics), of the epoch with the"
    " highest mAP on the validation labels and of the last one. An empty cell was not printed or"
    " not run."
)
GAP_NOTE = (
    "Gap closed: by mAP of the last epoch, from BCE on the reduced labels (0%) to BCE on the"
    " complete ones (100%)."
)
COMMON_NOTES = (EPOCH_NOTE, GAP_NOTE)
"""What stands below every table of runs."""


@dataclass
class Footnotes:
    """Notes on printed numbers, each with a letter."""

    letters: dict[str, str] = field(default_factory=dict)

    def mark(self, text: str, note: str) -> str:
        """The text with the letter of its note, if it has one."""
        if not note:
            return text
        letter = self.letters.setdefault(note, chr(ord("a") + len(self.letters)))
        return f"{text} [{letter}]"

    def sentences(self) -> list[str]:
        """What the letters mean."""
        return [f"[{letter}] In the paper: {note}." for note, letter in self.letters.items()]


def measured_on(data: str, measured: Measurements) -> Measured | None:
    """What was measured on a data set of the paper, or on what stands for it."""
    return measured.get(data) or measured.get(EVERY)


def measured_spread(row: Row, column: Column, measured: Measurements, rule: Rule) -> Spread:
    """What was measured for a cell of a table; empty if it was not run."""
    found = measured_on(column.data, measured)
    results = None if found is None else found.results.get(column.setting)
    if found is None or results is None:
        return Spread.of([])
    level, method = place(row.filled(found.facts), column.level)
    return results.spread(level, method, column.metric, rule)


def gap_closed(row: Row, column: Column, measured: Measurements) -> str:
    """How much of the way from BCE on reduced to BCE on complete labels a row comes."""
    found = measured_on(column.data, measured)
    results = None if found is None else found.results.get(USUAL)
    if found is None or results is None:
        return ""
    if row.complete:
        return "100%" if results.runs(COMPLETE.name, BASELINE) else ""
    share = results.gap_closed(column.level, row.filled(found.facts).method_at(column.level))
    return "" if share is None else percent(share)


def place(row: Row, level: str) -> tuple[str, Method]:
    """Level and method of a row."""
    return (COMPLETE.name, BASELINE) if row.complete else (level, row.method_at(level))


def csv_rows(recipe: Recipe, paper: PaperValues, measured: Measurements) -> list[dict[str, Any]]:
    """Every cell of a table in a row of its own, with the printed and the measured numbers."""
    rows = []
    for row in recipe.rows:
        for column in recipe.columns:
            value = paper.get(recipe.name, row.paper, column.paper)
            found: dict[str, Any] = {
                "table": recipe.name, "row": row.paper, "column": column.paper,
                "level": COMPLETE.name if row.complete else column.level,
                "method": _method(row, column, measured), "metric": column.metric,
                "paper": None if value is None else value.text,
                "note": "" if value is None else value.note,
            }  # fmt: skip
            for rule in ("best", "last"):
                spread = measured_spread(row, column, measured, rule)
                found["seeds"] = spread.count or None
                found[rule] = _number(spread.mean)
                found[f"{rule}_std"] = _number(spread.deviation)
            rows.append(found)
    return rows


def _method(row: Row, column: Column, measured: Measurements) -> str:
    """The method of a cell, as it is written; with facts of its data set where it was measured."""
    found = measured_on(column.data, measured)
    if found is not None:
        return str(place(row.filled(found.facts), column.level)[1])
    return str(BASELINE) if row.complete else row.at.get(column.level, row.method)


def statistics_sheet(
    recipe: Recipe, paper: PaperValues, tables: Mapping[str, Mapping[str, LabelTable]]
) -> tuple[Sheet, list[dict[str, Any]]]:
    """Statistics of the paper's data sets, and below them of those here at every level.

    Args:
        recipe: The table.
        paper: What is printed.
        tables: By the name of a data set, its labels by level.
    """
    columns = paper.columns(recipe.name)
    notes, lines, rows = Footnotes(), [], []
    for row in paper.rows(recipe.name):
        printed = {column: paper.get(recipe.name, row, column) for column in columns}
        texts = [
            "" if value is None else notes.mark(_grouped(value.text), value.note)
            for value in printed.values()
        ]
        lines.append((f"paper: {row}", *texts))
        rows.append(_statistics("paper", row, {c: v and v.text for c, v in printed.items()}))
    for name, by_level in tables.items():
        for level, table in by_level.items():
            counted = statistics_row(table)
            whole = [f"{counted[column]:,.0f}" for column in columns[:-1]]
            lines.append((f"{name}: {level}", *whole, f"{counted[columns[-1]]:.2f}"))
            rows.append(_statistics("measured", f"{name}: {level}", counted))
    sheet = Sheet(recipe.title, ("", *columns), tuple(lines), tuple(notes.sentences()))
    return sheet, rows


def _statistics(origin: str, row: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"origin": origin, "row": row, **values}


def _grouped(text: str) -> str:
    return f"{int(text):,}" if text.isdecimal() else text


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * value, 4)
