"""Tables of the paper: its printed numbers with measured ones; a cell without a run is empty."""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hilltop.data import LabelTable
from hilltop.data.summary import statistics_row
from hilltop.report.page import percent
from hilltop.report.tables import Sheet
from hilltop.studies.compare import BASELINE, COMPLETE, Results, Spread
from hilltop.studies.compare.table import Rule
from hilltop.studies.reproduce.recipe import (
    USUAL,
    Column,
    PaperValue,
    PaperValues,
    Recipe,
    Row,
    Setting,
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
    """Results on one data set, by how their runs were trained, and its facts."""

    results: Mapping[Setting, Results] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


Measurements = Mapping[str, Measured]
"""What was measured, by data set; ``EVERY`` stands for any."""


def paper_sheet(recipe: Recipe, paper: PaperValues, measured: Measurements, *, name: str) -> Sheet:
    """A table of the paper, in its groups and order, with what was measured.

    Args:
        recipe: The table.
        paper: What is printed.
        measured: What was measured.
        name: What to call the data that it was measured on.
    """
    cells = _Cells(recipe, paper, measured)
    title = f"{recipe.title}; measured on {name}"
    return _beside(cells, title) if recipe.form == "beside" else _below(cells, title)


_Cell = tuple[str, bool]  # a text, and whether it stands out
_BLANK: _Cell = ("", False)


class _Cells:
    """What stands in the cells of a table, with letters for the notes on printed numbers."""

    def __init__(self, recipe: Recipe, paper: PaperValues, measured: Measurements) -> None:
        self.recipe, self.measured = recipe, measured
        self.values = {
            (row.paper, column.paper): paper.get(recipe.name, row.paper, column.paper)
            for row in recipe.rows
            for column in recipe.columns
        }
        printed = [value for value in self.values.values() if value]
        self.letters = _letters(printed)
        self.digits = max(len(value.text.partition(".")[2]) for value in printed)

    def printed(self, row: Row, column: Column) -> _Cell:
        return _marked(self.values[row.paper, column.paper], self.letters), False

    def here(self, column: Column, rule: Rule) -> dict[str, _Cell]:
        """What was measured in every row of a column.

        The highest means stand out; what was trained on complete labels does not compete.
        """
        spreads = {row.paper: _spread(row, column, self.measured, rule) for row in self.recipe.rows}
        complete = {row.paper for row in self.recipe.rows if row.complete}
        means = [found.mean for name, found in spreads.items() if name not in complete]
        highest = max((mean for mean in means if not math.isnan(mean)), default=math.inf)
        texts = {}
        for name, found in spreads.items():
            shown = found if column.metric == "mAP" else found.alone
            best = name not in complete and found.mean == highest
            texts[name] = (shown.text(self.digits), best)
        return texts

    def gap(self, row: Row, column: Column) -> _Cell:
        """How much of the way from BCE on reduced to BCE on complete labels a row comes."""
        found = of_data(column.data, self.measured)
        results = None if found is None else found.results.get(USUAL)
        if found is None or results is None:
            return _BLANK
        if row.complete:
            return ("100%" if results.runs(COMPLETE.name, BASELINE) else ""), False
        share = results.gap_closed(column.level, column.spec(row, found.facts).method)
        return ("" if share is None else percent(share)), False

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
    columns: dict[str, dict[str, _Cell]] = {}

    def add(name: str, cell: Callable[[Row, Column], _Cell], column: Column) -> None:
        columns[name] = {row.paper: cell(row, column) for row in recipe.rows}

    units = [(column.data, column.model, column.metric) for column in recipe.columns]
    several = len({unit[:2] for unit in units}) > 1
    usual = all(column.model is None for column in recipe.columns)
    for unit in dict.fromkeys(units):
        same = [c for c, found in zip(recipe.columns, units, strict=True) if found == unit]
        name = same[0].paper if several else unit[2]
        for column in same:
            add(f"{column.paper}, paper", cells.printed, column)
        for rule in RULES if unit[2] == "mAP" else RULES[:1]:
            columns[f"{name}, {rule}"] = cells.here(same[0], rule)
        if usual and unit == [other for other in units if other[0] == unit[0]][-1]:
            add(f"{name}, gap closed" if several else "gap closed", cells.gap, same[0])
    lines = list[list[_Cell]]()
    for row in recipe.rows:
        lines += _heading(row)
        lines.append([(row.paper, False), *(column[row.paper] for column in columns.values())])
    return cells.sheet(title, ["", *columns], lines, gap=usual, texts=1)


def _below(cells: _Cells, title: str) -> Sheet:
    """Below each printed line what was measured: a line is a row of the paper, or a column."""
    rows, columns = cells.recipe.rows, cells.recipe.columns
    turned = cells.recipe.form == "transposed"
    here = {(c.paper, rule): cells.here(c, rule) for c in columns for rule in RULES}
    grid = [[(row, column) for column in columns] for row in rows]
    if turned:
        grid = [[(row, column) for row in rows] for column in columns]
    lines = list[list[_Cell]]()
    for line in grid:
        row, column = line[0]
        lines += [] if turned else _heading(row)
        name = column.paper if turned else row.paper
        lines.append([(name, False), ("paper", False), *(cells.printed(r, c) for r, c in line)])
        for rule in RULES:
            measured = [
                here[c.paper, rule][r.paper]
                # On complete labels only where the paper prints a number.
                if turned or not r.complete or cells.values[r.paper, c.paper]
                else _BLANK
                for r, c in line
            ]
            lines.append([_BLANK, (rule, False), *measured])
    head = ["", "", *(one.paper for one in (rows if turned else columns))]
    return cells.sheet(title, head, lines, gap=False, texts=2)


def _heading(row: Row) -> list[list[_Cell]]:
    return [[(f"{row.group}:", False)]] if row.group else []


def _spread(row: Row, column: Column, measured: Measurements, rule: Rule) -> Spread:
    """What was measured for a cell of a table; empty if it was not run."""
    found = of_data(column.data, measured)
    results = None if found is None else found.results.get(Setting(column.model))
    if found is None or results is None:
        return Spread.of([])
    spec = column.spec(row, found.facts)
    return results.spread(spec.level, spec.method, column.metric, rule)


def csv_rows(recipe: Recipe, paper: PaperValues, measured: Measurements) -> list[dict[str, Any]]:
    """Every cell of a table in a row of its own, with the printed and the measured numbers."""
    rows = []
    for row, column in itertools.product(recipe.rows, recipe.columns):
        value = paper.get(recipe.name, row.paper, column.paper)
        on = of_data(column.data, measured)
        known = on is not None or row.complete
        found: dict[str, Any] = {
            "table": recipe.name, "row": row.paper, "column": column.paper,
            "level": COMPLETE.name if row.complete else column.level,
            # Where nothing was measured, facts of the data set are not known.
            "method": str(column.spec(row, on.facts if on else {}).method) if known
            else row.written(column.level, {}),
            "metric": column.metric,
            "paper": None if value is None else value.text,
            "note": "" if value is None else value.note,
        }  # fmt: skip
        for rule in RULES:
            spread = _spread(row, column, measured, rule)
            found["seeds"] = spread.count or None
            found[rule] = _number(spread.mean)
            found[f"{rule}_std"] = _number(spread.deviation)
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
