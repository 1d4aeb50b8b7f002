"""Rows below a table that are no images: the sums of its columns, and remarks."""

from __future__ import annotations

import numpy as np

from hilltop.checks import pluralize
from hilltop.data.formats.text.cell_values import ONE, OTHER, cell_kinds, cell_number
from hilltop.data.formats.text.dialect import looks_like_file
from hilltop.data.formats.text.table_file import TableFile

_WORDS = frozenset(
    (
        *("", "total", "totals", "grand total", "sum", "sums", "count", "counts", "n"),
        *("summe", "gesamt", "anzahl", "somme", "suma", "totale", "totaal"),
    )
)
_MOST_REMARKS = 10
_LOOKED_AT = 200
_REMARK = 3
"""Words that make a remark where no image has a blank in its name."""


def drop_footer(table: TableFile, image: str) -> None:
    """Leave out what stands below the images: remarks, then the sums of the columns."""
    if image not in table.names:
        return
    _drop_remarks(table, image)
    _drop_totals(table, image)
    _drop_remarks(table, image)


def _drop_remarks(table: TableFile, image: str) -> None:
    """Leave out last rows that hold nothing but a text which is no name like those above."""
    count = 0
    while count < min(_MOST_REMARKS, len(table) - 1) and _is_remark(table, image, count + 1):
        count += 1
    if count:
        rows = pluralize(count, "row", "rows")
        shown = str(table.column(image)[len(table) - count].as_py())[:40]
        table.content = table.content.slice(0, len(table) - count)
        table.notes.append(f"{rows} below the images hold a remark and are left out: {shown!r}.")


def _is_remark(table: TableFile, image: str, from_end: int) -> bool:
    last = len(table) - from_end
    cells = {name: str(table.column(name)[last].as_py() or "").strip() for name in table.names}
    text = cells.pop(image)
    if any(cells.values()) or not text:
        return False
    above = [str(one or "") for one in table.column(image)[: min(last, _LOOKED_AT)].to_pylist()]
    if looks_like_file(text):
        return False
    if all(map(looks_like_file, above)):
        return True
    return len(text.split()) >= _REMARK and not any(" " in one for one in above)


def _drop_totals(table: TableFile, image: str) -> None:
    """Leave out the last row if it is called a total and counts the ones above it."""
    last = len(table) - 1
    if last < 1:
        return
    if str(table.column(image)[last].as_py() or "").strip(" :").lower() not in _WORDS:
        return
    counted = 0
    for name in table.names:
        column = table.column(name)
        kinds = cell_kinds(column[:last])
        cell = column[last].as_py()
        number = cell_number(str(cell)) if cell is not None else None
        if name == image or number is None or OTHER in kinds:
            continue
        if number != np.count_nonzero(kinds == ONE):
            return
        counted += 1
    if counted:
        table.content = table.content.slice(0, last)
        table.notes.append("the last row holds the sums of the columns, and is left out.")
