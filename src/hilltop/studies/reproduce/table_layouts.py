"""How a table is set: measured numbers beside the printed ones, below them, or transposed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from hilltop.report.tables import Sheet
from hilltop.studies.compare.table import Rule
from hilltop.studies.reproduce.paper_comparison import (
    EPOCH_NOTE,
    GAP_NOTE,
    Footnotes,
    Measurements,
    gap_closed,
    measured_spread,
)
from hilltop.studies.reproduce.paper_values import PaperValues
from hilltop.studies.reproduce.recipe import Column, Recipe, Row

RULES: tuple[Rule, ...] = ("best", "last")


def paper_sheet(recipe: Recipe, paper: PaperValues, measured: Measurements, *, name: str) -> Sheet:
    """A table of the paper, in its groups and order, with what was measured.

    Args:
        recipe: The table.
        paper: What is printed.
        measured: What was measured.
        name: What to call the data that it was measured on.
    """
    sheet = _FORMS[recipe.form](_Cells(recipe, paper, measured))
    return dataclasses.replace(sheet, title=f"{recipe.title}; measured on {name}")


class _Cells:
    """Texts of the cells of a table."""

    def __init__(self, recipe: Recipe, paper: PaperValues, measured: Measurements) -> None:
        self.recipe, self.paper, self.measured = recipe, paper, measured
        self.notes = Footnotes()
        self._best: dict[tuple[Column, Rule], list[Row]] = {}
        printed = [paper.get(recipe.name, r.paper, c.paper) for r in recipe.rows
                   for c in recipe.columns]  # fmt: skip
        self.digits = max(len(value.text.partition(".")[2]) for value in printed if value)

    def printed(self, row: Row, column: Column) -> str:
        value = self.paper.get(self.recipe.name, row.paper, column.paper)
        return "" if value is None else self.notes.mark(value.text, value.note)

    def here(self, row: Row, column: Column, rule: Rule) -> str:
        spread = measured_spread(row, column, self.measured, rule)
        return (spread if column.metric == "mAP" else spread.alone).text(self.digits)

    def once(self, row: Row, column: Column, rule: Rule) -> str:
        """The same, but numbers on complete labels only where the paper prints them."""
        return (
            "" if row.complete and not self.printed(row, column) else self.here(row, column, rule)
        )

    def gap(self, row: Row, column: Column) -> str:
        return gap_closed(row, column, self.measured)

    def highest(self, column: Column, rule: Rule) -> list[Row]:
        """Rows with the highest mean; what was trained on complete labels does not compete."""
        if (column, rule) not in self._best:
            open_rows = [row for row in self.recipe.rows if not row.complete]
            spreads = [measured_spread(row, column, self.measured, rule) for row in open_rows]
            highest = max((s.mean for s in spreads if not math.isnan(s.mean)), default=math.inf)
            self._best[column, rule] = [
                row
                for row, spread in zip(open_rows, spreads, strict=True)
                if spread.mean == highest
            ]
        return self._best[column, rule]

    def sentences(self, *, gap: bool) -> tuple[str, ...]:
        own = [EPOCH_NOTE, *([GAP_NOTE] if gap else []), *self.recipe.notes]
        return (*own, *self.notes.sentences())


def _beside(cells: _Cells) -> Sheet:
    """The measured columns of a metric behind its printed ones; headings of groups between rows."""
    recipe = cells.recipe
    head, columns = [""], list[tuple[Callable[[Row], str], list[Row]]]()
    units = [(column.data, column.model, column.metric) for column in recipe.columns]
    several = len({unit[:2] for unit in units}) > 1
    usual = all(column.model is None for column in recipe.columns)
    for unit in dict.fromkeys(units):
        same = [c for c, found in zip(recipe.columns, units, strict=True) if found == unit]
        name = same[0].paper if several else unit[2]
        for column in same:
            head.append(f"{column.paper}, paper")
            columns.append((lambda row, c=column: cells.printed(row, c), []))  # type: ignore[misc]
        for rule in RULES if unit[2] == "mAP" else RULES[:1]:
            head.append(f"{name}, {rule}")
            columns.append((
                lambda row, c=same[0], r=rule: cells.here(row, c, r),  # type: ignore[misc]
                cells.highest(same[0], rule),
            ))  # fmt: skip
        last_of_data = unit == [u for u in units if u[0] == unit[0]][-1]
        if usual and last_of_data:
            head.append(f"{name}, gap closed" if several else "gap closed")
            columns.append((lambda row, c=same[0]: cells.gap(row, c), []))  # type: ignore[misc]
    lines, strong = list[tuple[str, ...]](), set[tuple[int, int]]()
    for row in recipe.rows:
        if row.group:
            lines.append((f"{row.group}:", *[""] * (len(head) - 1)))
        strong |= {(len(lines), at) for at, (_, best) in enumerate(columns, 1) if row in best}
        lines.append((row.paper, *(text(row) for text, _ in columns)))
    return Sheet("", tuple(head), tuple(lines), cells.sentences(gap=usual), strong)


def _stacked(cells: _Cells) -> Sheet:
    """The columns of the paper; below each printed row what was measured."""
    recipe = cells.recipe
    head = ("", "", *(column.paper for column in recipe.columns))
    lines, strong = list[tuple[str, ...]](), set[tuple[int, int]]()
    for row in recipe.rows:
        if row.group:
            lines.append((f"{row.group}:", *[""] * (len(head) - 1)))
        lines.append((row.paper, "paper", *(cells.printed(row, c) for c in recipe.columns)))
        for rule in RULES:
            strong |= {
                (len(lines), at)
                for at, column in enumerate(recipe.columns, 2)
                if row in cells.highest(column, rule)
            }
            lines.append(("", rule, *(cells.once(row, c, rule) for c in recipe.columns)))
    return Sheet("", head, tuple(lines), cells.sentences(gap=False), strong, text_columns=2)


def _transposed(cells: _Cells) -> Sheet:
    """Methods side by side; below each printed line what was measured."""
    recipe = cells.recipe
    head = ("", "", *(row.paper for row in recipe.rows))
    lines, strong = list[tuple[str, ...]](), set[tuple[int, int]]()
    for column in recipe.columns:
        lines.append((column.paper, "paper", *(cells.printed(row, column) for row in recipe.rows)))
        for rule in RULES:
            best = cells.highest(column, rule)
            strong |= {(len(lines), at) for at, row in enumerate(recipe.rows, 2) if row in best}
            lines.append(("", rule, *(cells.here(row, column, rule) for row in recipe.rows)))
    return Sheet("", head, tuple(lines), cells.sentences(gap=False), strong, text_columns=2)


_FORMS: dict[str, Callable[[_Cells], Sheet]] = {
    "beside": _beside,
    "stacked": _stacked,
    "transposed": _transposed,
}
