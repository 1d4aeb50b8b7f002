"""Cells of text taken apart into the names in them, by whatever separates these."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.data.data_errors import ErrorCollector
from hilltop.data.formats.text.list_text import names_in_text
from hilltop.data.formats.text.separators import ANGLES, HASHTAG, HASHTAGS, JSON_TEXT

Entries = tuple[npt.NDArray[np.int64], pa.Array]
"""Rows, and a name for each."""


class Rows(Protocol):
    """What messages need to know of the rows."""

    path: Path

    def line_of(self, row: int) -> int:
        """Line of a row."""


def split_cells(rows: Rows, name: str, cells: pa.Array, mark: str | None) -> Entries:
    """Row and name of every label in the cells of one column."""
    cells = pc.utf8_trim_whitespace(cells)
    at = np.flatnonzero(pc.not_equal(cells, "").to_numpy(zero_copy_only=False))
    filled = cells.take(pa.array(at))
    if mark is None:
        return at, filled
    if mark == JSON_TEXT:
        lists = _json_lists(rows, name, at, filled)
    elif mark == HASHTAGS:
        found = [HASHTAG.findall(cell) for cell in filled.to_pylist()]
        lists = pa.array(found, pa.list_(pa.string()))
    elif mark == ANGLES:
        lists = pc.split_pattern(pc.utf8_trim(filled, "<>"), mark)
    elif mark == " ":
        lists = pc.utf8_split_whitespace(filled)
    else:
        lists = pc.split_pattern(filled, mark)
    names = lists.flatten()
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    return np.repeat(at, lengths), names if mark == JSON_TEXT else pc.utf8_trim_whitespace(names)


def _json_lists(rows: Rows, name: str, at: npt.NDArray[np.int64], cells: pa.Array) -> pa.Array:
    errors = ErrorCollector(rows.path)
    lists: list[list[str]] = []
    for row, cell in zip(at, cells.to_pylist(), strict=True):
        names = names_in_text(cell)
        if names is None:
            errors.add(
                f'column {name!r} must hold JSON lists such as ["cat", "dog"], as in other rows,'
                f" but here it is {cell[:40]!r}.",
                line=rows.line_of(int(row)),
            )
        lists.append(names or [])
    errors.check()
    return pa.array(lists, pa.list_(pa.string()))
