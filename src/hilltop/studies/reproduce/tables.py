"""Tables of the paper: its printed numbers with measured ones; a cell without a run is empty."""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hilltop.data import LabelTable
from hilltop.data.summary import statistics_row
from hilltop.report.page import percent
from hilltop.report.tables import Sheet
from hilltop.studies.compare import BASELINE, COMPLETE, Method, Result, Results, Spread
from hilltop.studies.compare.table import Rule
from hilltop.studies.reproduce.recipe import (
    USUAL,
    Column,
    PaperValue,
    PaperValues,
    Parse,
    Recipe,
    Row,
    Setting,
    Spec,
)
from hilltop.studies.reproduce.source import of_data

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
RULES: tuple[Rule, ...] = ("best", "last")


@dataclass(frozen=True)
class Measured:
    """Results on one data set, by how their runs were trained, and how it reads methods."""

    results: Mapping[Setting, Results] = field(default_factory=dict)
    parse: Parse = Method.parse

    def runs(self, spec: Spec) -> list[Result]:
        """Finished runs, one a seed."""
        results = self.results.get(spec.setting)
        return [] if results is None else results.runs(spec.level, spec.method)


Measurements = Mapping[str, Measured]
"""What was measured, by data set; ``EVERY`` stands for any."""


@dataclass(frozen=True)
class Entry:
    """A cell of a table.

    Attributes:
        printed: The number that the paper has.
        method: What was trained for it.
        best: What was measured in the epoch with the highest mAP on the validation labels.
        last: The same in the last epoch.
        gap: How much of the way from BCE on reduced to BCE on complete labels it comes.
    """

    printed: PaperValue | None
    method: str
    best: Spread
    last: Spread
    gap: float | None


Entries = Mapping[tuple[str, str], Entry]
"""Cells by the paper's names of their row and column."""


def table_entries(recipe: Recipe, paper: PaperValues, measured: Measurements) -> Entries:
    """Every cell of a table, with what is printed and what was measured."""
    return {
        (row.paper, column.paper): _entry(
            row, column, paper.get(recipe.name, row.paper, column.paper),
            of_data(column.data, measured),
        )
        for row, column in itertools.product(recipe.rows, recipe.columns)
    }  # fmt: skip


def _entry(
    row: Row, column: Column, printed: PaperValue | None, measured: Measured | None
) -> Entry:
    nothing = Spread.of([])
    if measured is None:
        method = BASELINE.loss if row.complete else row.written(column.level)
        return Entry(printed, method, nothing, nothing, None)
    spec, gap = column.spec(row, measured.parse), None
    results = measured.results.get(spec.setting, Results([]))
    if row.complete:
        gap = 1.0 if measured.runs(spec) else None
    elif spec.setting == USUAL:
        gap = results.gap_closed(column.level, spec.method)
    best, last = (results.spread(spec.level, spec.method, column.metric, rule) for rule in RULES)
    return Entry(printed, str(spec.method), best, last, gap)


def paper_sheet(recipe: Recipe, entries: Entries, *, name: str) -> Sheet:
    """A table of the paper, in its groups and order, with what was measured.

    Args:
        recipe: The table.
        entries: Its cells.
        name: What to call the data that it was measured on.
    """
    cells = _Cells(recipe, entries)
    title = f"{recipe.title}; measured on {name}"
    return _beside(cells, title) if recipe.form == "beside" else _below(cells, title)


_Cell = tuple[str, bool]  # a text, and whether it stands out
_BLANK: _Cell = ("", False)


class _Cells:
    """The texts of a table, with letters for the notes on printed numbers."""

    def __init__(self, recipe: Recipe, entries: Entries) -> None:
        self.recipe, self.entries = recipe, entries
        printed = [entry.printed for entry in entries.values() if entry.printed]
        self.letters = _letters(printed)
        self.digits = max(len(value.text.partition(".")[2]) for value in printed)
        # What was trained on complete labels does not compete.
        rivals = [row.paper for row in recipe.rows if not row.complete]
        self.highest: dict[tuple[str, str], float] = {}
        for column, rule in itertools.product(recipe.columns, RULES):
            means = [getattr(entries[row, column.paper], rule).mean for row in rivals]
            known = [mean for mean in means if not math.isnan(mean)]
            self.highest[column.paper, rule] = max(known, default=math.inf)

    def cell(self, row: Row, column: Column, what: str) -> _Cell:
        """A printed number ("paper"), one of our rules, or the share of the gap ("gap").

        The highest means of a column stand out.
        """
        entry = self.entries[row.paper, column.paper]
        if what == "paper":
            return _marked(entry.printed, self.letters), False
        if what == "gap":
            return ("" if entry.gap is None else percent(entry.gap)), False
        spread: Spread = getattr(entry, what)
        shown = spread if column.metric == "mAP" else spread.alone
        best = not row.complete and spread.mean == self.highest[column.paper, what]
        return shown.text(self.digits), best

    def sheet(
        self,
        title: str,
        head: Sequence[str],
        lines: Sequence[list[_Cell]],
        *,
        gap: bool,
        texts: int,
    ) -> Sheet:
        """A table; the line of a heading is short."""
        own = [EPOCH_NOTE, *([GAP_NOTE] if gap else []), *self.recipe.notes]
        full = [line + [_BLANK] * (len(head) - len(line)) for line in lines]
        strong = {(r, c) for r, line in enumerate(full) for c, cell in enumerate(line) if cell[1]}
        rows = tuple(tuple(text for text, _ in line) for line in full)
        notes = (*own, *_sentences(self.letters))
        return Sheet(title, tuple(head), rows, notes, strong, text_columns=texts)


def _beside(cells: _Cells, title: str) -> Sheet:
    """The measured columns of a metric behind its printed ones; headings of groups between rows."""
    recipe = cells.recipe
    heads = list[tuple[str, Column, str]]()
    units = [(column.data, column.model, column.metric) for column in recipe.columns]
    several = len({unit[:2] for unit in units}) > 1
    usual = all(column.model is None for column in recipe.columns)
    for unit in dict.fromkeys(units):
        same = [c for c, found in zip(recipe.columns, units, strict=True) if found == unit]
        name = same[0].paper if several else unit[2]
        heads += [(f"{column.paper}, paper", column, "paper") for column in same]
        rules = RULES if unit[2] == "mAP" else RULES[:1]
        heads += [(f"{name}, {rule}", same[0], rule) for rule in rules]
        if usual and unit == [other for other in units if other[0] == unit[0]][-1]:
            heads.append((f"{name}, gap closed" if several else "gap closed", same[0], "gap"))
    lines = list[list[_Cell]]()
    for row in recipe.rows:
        lines += _heading(row)
        lines.append([(row.paper, False), *(cells.cell(row, c, what) for _, c, what in heads)])
    return cells.sheet(title, ["", *(head for head, *_ in heads)], lines, gap=usual, texts=1)


def _below(cells: _Cells, title: str) -> Sheet:
    """Below each printed line what was measured: a line is a row of the paper, or a column."""
    rows, columns = cells.recipe.rows, cells.recipe.columns
    turned = cells.recipe.form == "transposed"
    grid = [[(row, column) for column in columns] for row in rows]
    if turned:
        grid = [[(row, column) for row in rows] for column in columns]
    lines = list[list[_Cell]]()
    for line in grid:
        row, column = line[0]
        lines += [] if turned else _heading(row)
        names = [column.paper if turned else row.paper, *("" for _ in RULES)]
        for name, what in zip(names, ("paper", *RULES), strict=True):
            found = [
                cells.cell(r, c, what)
                # On complete labels only where the paper prints a number.
                if turned or not r.complete or cells.entries[r.paper, c.paper].printed
                else _BLANK
                for r, c in line
            ]
            lines.append([(name, False), (what, False), *found])
    head = ["", "", *(one.paper for one in (rows if turned else columns))]
    return cells.sheet(title, head, lines, gap=False, texts=2)


def _heading(row: Row) -> list[list[_Cell]]:
    return [[(f"{row.group}:", False)]] if row.group else []


def csv_rows(recipe: Recipe, entries: Entries) -> list[dict[str, Any]]:
    """Every cell of a table in a row of its own, with the printed and the measured numbers."""
    rows = []
    for row, column in itertools.product(recipe.rows, recipe.columns):
        entry = entries[row.paper, column.paper]
        found: dict[str, Any] = {
            "table": recipe.name, "row": row.paper, "column": column.paper,
            "level": COMPLETE.name if row.complete else column.level,
            "method": entry.method, "metric": column.metric,
            "paper": entry.printed and entry.printed.text,
            "note": entry.printed.note if entry.printed else "",
            "seeds": entry.last.count or None,
        }  # fmt: skip
        for rule, spread in (("best", entry.best), ("last", entry.last)):
            found |= {rule: _number(spread.mean), f"{rule}_std": _number(spread.deviation)}
        rows.append(found)
    return rows


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
    printed = {
        row: {column: paper.get(recipe.name, row, column) for column in columns}
        for row in paper.rows(recipe.name)
    }
    letters = _letters(value for values in printed.values() for value in values.values() if value)
    lines, rows = [], list[dict[str, Any]]()
    for row, values in printed.items():
        lines.append((f"paper: {row}", *(_marked(value, letters) for value in values.values())))
        texts: dict[str, Any] = {column: value and value.text for column, value in values.items()}
        rows.append({"origin": "paper", "row": row, **texts})
    for name, by_level in tables.items():
        for level, table in by_level.items():
            counted = statistics_row(table)
            whole = [f"{counted[column]:,.0f}" for column in columns[:-1]]
            lines.append((f"{name}: {level}", *whole, f"{counted[columns[-1]]:.2f}"))
            rows.append({"origin": "measured", "row": f"{name}: {level}", **counted})
    return Sheet(recipe.title, ("", *columns), tuple(lines), tuple(_sentences(letters))), rows


def _letters(values: Iterable[PaperValue]) -> dict[str, str]:
    """A letter for every note on printed numbers."""
    notes = dict.fromkeys(value.note for value in values if value.note)
    return dict(zip(notes, string.ascii_lowercase, strict=False))


def _marked(value: PaperValue | None, letters: Mapping[str, str]) -> str:
    """A printed number, with the letter of its note if it has one."""
    if value is None:
        return ""
    text = f"{int(value.text):,}" if value.text.isdecimal() else value.text
    return f"{text} [{letters[value.note]}]" if value.note else text


def _sentences(letters: Mapping[str, str]) -> list[str]:
    return [f"[{letter}] In the paper: {note}." for note, letter in letters.items()]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * value, 4)
