"""Tables with the paper's numbers beside what was measured; a run not made is a blank cell."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hilltop.data import LabelTable
from hilltop.data.summary import statistics_row
from hilltop.report.page import percent
from hilltop.report.tables import Sheet
from hilltop.studies.compare import BASELINE, COMPLETE, Method, Results, Spread
from hilltop.studies.compare.table import Rule
from hilltop.studies.reproduce.paper_values import PaperValues
from hilltop.studies.reproduce.recipe import Column, Recipe, Row

Measured = Mapping[str | None, Results]
"""Results by backbone; None is the usual one."""

EPOCH_NOTE = (
    "Paper: as printed, of the best epoch on the test set. Best and last: measured here, in %, mean"
    " ± standard deviation over seeds (in the CSV file for all metrics), of the epoch with the"
    " highest mAP on the validation labels and of the last one. A blank cell was not printed or not"
    " run."
)
GAP_NOTE = (
    "Gap closed: by mAP of the last epoch, from BCE on the reduced labels (0%) to BCE on the"
    " complete ones (100%)."
)
COMMON_NOTES = (EPOCH_NOTE, GAP_NOTE)
"""What stands below every table of runs."""


@dataclass
class _Footnotes:
    """Notes on printed numbers, each with a letter."""

    letters: dict[str, str] = field(default_factory=dict)

    def mark(self, text: str, note: str) -> str:
        if not note:
            return text
        letter = self.letters.setdefault(note, chr(ord("a") + len(self.letters)))
        return f"{text} [{letter}]"

    def sentences(self) -> list[str]:
        return [f"[{letter}] In the paper: {note}." for note, letter in self.letters.items()]


def paper_sheets(
    recipe: Recipe, paper: PaperValues, measured: Measured, *, name: str
) -> list[Sheet]:
    """The tables of a recipe, one for each level of missing labels.

    Args:
        recipe: The table.
        paper: What is printed.
        measured: What was measured.
        name: What to call the data set that it was measured on.
    """
    levels = list(dict.fromkeys(column.level for column in recipe.columns))
    sheets = []
    for level in levels:
        sheet = _level_sheet(recipe, level, paper, measured)
        place = f": {_level_title(recipe, level)}" if len(levels) > 1 else ""
        title = f"{recipe.title}{place}; measured on {name}"
        sheets.append(dataclasses.replace(sheet, title=title))
    return sheets


def _level_sheet(recipe: Recipe, level: str, paper: PaperValues, measured: Measured) -> Sheet:
    columns = [column for column in recipe.columns if column.level == level]
    units = list(dict.fromkeys((column.model, column.metric) for column in columns))
    digits = _digits(recipe, columns, paper)
    notes = _Footnotes()
    head, lines = [""], [[row.paper] for row in recipe.rows]
    ranked: list[tuple[int, list[float]]] = []
    for unit in units:
        same = [column for column in columns if (column.model, column.metric) == unit]
        for column in same:
            head.append(f"{_short(column.paper)}, paper")
            for line, row in zip(lines, recipe.rows, strict=True):
                value = paper.get(recipe.name, row.paper, column.paper)
                line.append("" if value is None else notes.mark(value.text, value.note))
        rules: tuple[Rule, ...] = ("best", "last") if unit[1] == "mAP" else ("best",)
        for rule in rules:
            ranked.append((len(head), _means(recipe, same[0], measured, rule)))
            name = _short(same[0].paper) if unit[0] else unit[1]
            head.append(f"{name}, {rule}")
            for line, row in zip(lines, recipe.rows, strict=True):
                spread = measured_spread(row, same[0], measured, rule)
                line.append(spread.text(digits) if unit[1] == "mAP" else spread.alone.text(digits))
    if {model for model, _ in units} == {None}:
        head.append("gap closed")
        for line, row in zip(lines, recipe.rows, strict=True):
            line.append(_gap(row, level, measured))
    strong = {(at, column) for column, means in ranked for at in _highest(means, recipe)}
    sentences = [EPOCH_NOTE, *([GAP_NOTE] if head[-1] == "gap closed" else []), *recipe.notes]
    return Sheet(
        recipe.title,
        tuple(head),
        tuple(tuple(line) for line in lines),
        (*sentences, *notes.sentences()),
        strong,
    )


def measured_spread(row: Row, column: Column, measured: Measured, rule: Rule) -> Spread:
    """What was measured for a cell of a table; empty if it was not run."""
    results = measured.get(column.model)
    if results is None:
        return Spread.of([])
    level, method = place(row, column.level)
    return results.spread(level, method, column.metric, rule)


def place(row: Row, level: str) -> tuple[str, Method]:
    """Level and method of a row."""
    return (COMPLETE.name, BASELINE) if row.complete else (level, row.method_at(level))


def csv_rows(recipe: Recipe, paper: PaperValues, measured: Measured) -> list[dict[str, Any]]:
    """Every cell of a table in a row of its own, with the printed and the measured numbers."""
    rows = []
    for row in recipe.rows:
        for column in recipe.columns:
            value = paper.get(recipe.name, row.paper, column.paper)
            level, method = place(row, column.level)
            found: dict[str, Any] = {
                "table": recipe.name, "row": row.paper, "column": column.paper,
                "level": level, "method": str(method), "metric": column.metric,
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


def statistics_sheet(
    recipe: Recipe, paper: PaperValues, name: str, tables: Mapping[str, LabelTable]
) -> tuple[Sheet, list[dict[str, Any]]]:
    """Statistics of the paper's data sets, and below them of this one at every level."""
    columns = paper.columns(recipe.name)
    notes, lines, rows = _Footnotes(), [], []
    for row in paper.rows(recipe.name):
        printed = {column: paper.get(recipe.name, row, column) for column in columns}
        texts = [
            "" if value is None else notes.mark(_grouped(value.text), value.note)
            for value in printed.values()
        ]
        lines.append((f"paper: {row}", *texts))
        rows.append(_statistics("paper", row, {c: v and v.text for c, v in printed.items()}))
    for level, table in tables.items():
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


def _short(name: str) -> str:
    """The metric in a name such as "75% labels left: mAP"."""
    return name.rpartition(": ")[2]


def _level_title(recipe: Recipe, level: str) -> str:
    first = next(column for column in recipe.columns if column.level == level)
    return first.paper.rpartition(": ")[0] or level


def _means(recipe: Recipe, column: Column, measured: Measured, rule: Rule) -> list[float]:
    return [measured_spread(row, column, measured, rule).mean for row in recipe.rows]


def _highest(means: list[float], recipe: Recipe) -> list[int]:
    """Rows with the highest mean; what was trained on complete labels does not compete."""
    open_rows = [at for at, row in enumerate(recipe.rows) if not row.complete]
    finite = [means[at] for at in open_rows if not math.isnan(means[at])]
    return [at for at in open_rows if finite and means[at] == max(finite)]


def _gap(row: Row, level: str, measured: Measured) -> str:
    results = measured.get(None)
    if results is None:
        return ""
    if row.complete:
        return "100%" if results.runs(COMPLETE.name, BASELINE) else ""
    share = results.gap_closed(level, row.method_at(level))
    return "" if share is None else percent(share)


def _digits(recipe: Recipe, columns: Sequence[Column], paper: PaperValues) -> int:
    """How many digits the paper prints behind the point."""
    printed = [
        paper.get(recipe.name, row.paper, column.paper) for row in recipe.rows for column in columns
    ]
    return max(len(value.text.partition(".")[2]) for value in printed if value is not None)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * value, 4)
