"""Rows that hold the sums of the columns, as people write them under a table."""

from __future__ import annotations

import numpy as np

from hilltop.data.formats.text.cell_values import ONE, OTHER, cell_kinds, cell_number
from hilltop.data.formats.text.table_file import TableFile

_WORDS = frozenset(["", "total", "totals", "sum", "sums", "count", "counts", "summe", "gesamt"])


def drop_totals(table: TableFile, image: str) -> None:
    """Leave out the last row if it is called a total and counts the ones above it."""
    last = len(table) - 1
    if last < 1 or image not in table.names:
        return
    if str(table.column(image)[last].as_py() or "").strip().lower() not in _WORDS:
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
