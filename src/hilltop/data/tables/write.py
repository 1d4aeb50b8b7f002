"""Writes labels as a table: wide, long, or one row per image with a list of labels."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.data.format import check_cells, check_lossless
from hilltop.data.label_table import LabelTable, State
from hilltop.data.layout import JSON_LISTS, Layout
from hilltop.data.tables.cells import PARQUET_SUFFIXES, SHEET_SUFFIXES
from hilltop.data.tables.words import (
    EMPTY,
    NO_NAMES,
    PRESENT,
    SPREADSHEET_ERRORS,
    ZERO,
    canonical,
    image_candidates,
)
from hilltop.errors import MissingExtra

IMAGE, CLASS, STATE, LABELS = "image", "class", "state", "labels"
_FURTHER = {State.ABSENT: "absent", State.UNKNOWN: "unknown"}
_JSON_SUFFIXES = (".jsonl", ".ndjson")
_ROWS_AT_ONCE = 1 << 14
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_UNCLEAR = re.compile(r"[;|,\n\r\t]|^[\[({<]")
_SAID = (State.UNKNOWN, State.ABSENT)


def write_wide(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write a column for each class: 1 for present, and the rest so that it is not mistaken.

    If unlisted pairs are unknown, unknown is empty and absent is -1: read it back with ``--unlisted
    unknown --minus-one absent``. If they are absent, absent is 0 and unknown is -1: read it back
    with ``--unlisted absent --minus-one unknown``.
    """
    check_lossless(table, path, lossy, unlisted=_SAID)
    check_cells(table, path)
    if not table.classes:
        raise data_error(path, "this format cannot express a table without classes.")
    image = _image_name(table.classes)
    empty = table.unlisted != State.ABSENT
    value_of = np.array([-1, 1, 0] if empty else [0, 1, -1], dtype=np.int8)
    schema = pa.schema([(image, pa.string()), *((name, pa.int8()) for name in table.classes)])

    def batches() -> Iterator[pa.Table]:
        for start in range(0, max(1, len(table)), _ROWS_AT_ONCE):
            rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(table)))
            states = np.asfortranarray(table.dense(rows))
            cells = [
                pa.array(value_of[column], mask=(column == State.UNKNOWN) if empty else None)
                for column in states.T
            ]
            yield pa.table([table.images.slice(start, len(rows)), *cells], schema)

    layout = _write(table, batches(), schema, path, "wide", len(table))
    marks = {"": "unknown", "-1": "absent"} if empty else {"0": "absent", "-1": "unknown"}
    return replace(
        layout,
        image_column=image,
        label_columns=table.classes,
        values=(("1", "present"), *marks.items()),
        unlisted=table.unlisted,
    )


def _image_name(classes: tuple[str, ...]) -> str:
    """A name for the column of images that no class has, and of which there is only one."""
    taken = image_candidates(classes)
    names = ("image", "image_id", "filename", "file", "path", "id")
    return next((name for name in names if name not in taken), "image of the row")


def write_long(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write one row per entry; images without any entry cannot be expressed."""
    check_lossless(table, path, lossy, images_without_entries=False, unused_classes=False)
    check_cells(table, path)
    words = pa.array([state.name.lower() for state in sorted(State)], pa.string())
    content = pa.table(
        {
            IMAGE: table.images.take(pa.array(table.rows)),
            CLASS: pa.array(table.classes, pa.string()).take(pa.array(table.columns)),
            STATE: words.take(pa.array(table.states)),
        }
    )
    layout = _write(table, iter([content]), content.schema, path, "long", len(content))
    return replace(
        layout,
        image_column=IMAGE,
        label_columns=(CLASS,),
        state_column=STATE,
        values=tuple((word, word) for word in words.to_pylist()),
        unlisted=table.unlisted,
        classes=table.classes,
    )


def write_lists(table: LabelTable, path: Path, lossy: bool, *, image_column: str = IMAGE) -> Layout:
    """Write one row per image with a list of its labels.

    Cells of a text have ``;`` between names, or are JSON lists where names make that unclear.
    Columns ``absent`` and ``unknown`` are written if the table has such entries.
    """
    check_lossless(table, path, lossy, unused_classes=False, unlisted=_SAID)
    check_cells(table, path)
    suffix = path.suffix.lower()
    lists = {LABELS: table.lists(State.PRESENT)}
    for state, name in _FURTHER.items():
        if state != table.unlisted and (table.states == state).any():
            lists[name] = table.lists(state)
    delimiter = JSON_LISTS
    cells = lists
    if suffix not in (*PARQUET_SUFFIXES, *_JSON_SUFFIXES):
        joined = not any(map(_is_unclear, table.classes))
        delimiter = ";" if joined else JSON_LISTS
        as_text = _delimited if joined else _json_text
        cells = {name: as_text(column) for name, column in lists.items()}
    content = pa.table({image_column: table.images, **cells})
    layout = _write(table, iter([content]), content.schema, path, "list_column", len(content))
    return replace(
        layout,
        image_column=image_column,
        label_columns=(LABELS,),
        absent_column="absent" if "absent" in lists else None,
        unknown_column="unknown" if "unknown" in lists else None,
        delimiter=delimiter,
        unlisted=table.unlisted,
        classes=table.classes,
    )


def _is_unclear(name: str) -> bool:
    """Whether a name, joined to others, could be read as something else."""
    word = canonical(name)
    return bool(
        _UNCLEAR.search(name)
        or word in EMPTY | SPREADSHEET_ERRORS | NO_NAMES | PRESENT | ZERO
        or word == "-1"
    )


def _delimited(lists: pa.ListArray) -> pa.Array:
    return pc.binary_join(lists, ";")


def _json_text(lists: pa.ListArray) -> pa.Array:
    cells = (json.dumps(names, ensure_ascii=False) if names else "" for names in lists.to_pylist())
    return pa.array(cells, pa.string())


def _write(
    table: LabelTable,
    batches: Iterator[pa.Table],
    schema: pa.Schema,
    path: Path,
    format: str,
    rows: int,
) -> Layout:
    """Write a table as the ending of the file says, and return how its cells are stored."""
    suffix = path.suffix.lower()
    if suffix in _JSON_SUFFIXES and not rows:
        raise data_error(path, "lines of JSON cannot express a table without rows.")
    if suffix in SHEET_SUFFIXES:
        check_sheet([*table.images.to_pylist(), *table.classes], path, rows, len(schema))
    with replacing(path) as temporary:
        if suffix in PARQUET_SUFFIXES:
            with pq.ParquetWriter(temporary, schema) as file:
                for batch in batches:
                    file.write_table(batch)
            return Layout(format)
        if suffix in _JSON_SUFFIXES:
            with temporary.open("w", encoding="utf-8", newline="\n") as lines:
                for batch in batches:
                    _write_json_lines(batch, lines)
            return Layout(format)
        if suffix in SHEET_SUFFIXES:
            temporary.write_bytes(workbook(batches, schema))
            return Layout(format, header_row=1, sheet="labels")
        separator = "\t" if suffix in (".tsv", ".tab") else ","
        style = pa.csv.WriteOptions(quoting_style="needed", delimiter=separator)
        with pa.csv.CSVWriter(temporary, schema, write_options=style) as file:
            for batch in batches:
                file.write_table(batch)
        return Layout(format, header_row=1, separator=separator)


def _write_json_lines(content: pa.Table, file: Any) -> None:
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for batch in content.to_batches(max_chunksize=_ROWS_AT_ONCE):
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        records = (dict(zip(content.column_names, cells, strict=True)) for cells in rows)
        file.writelines(f"{encode(record)}\n" for record in records)


def check_sheet(names: Iterable[str], path: Path, rows: int, columns: int) -> None:
    """Raise if so many rows and columns, with these names in cells, cannot be a sheet."""
    if path.suffix.lower() not in (".xlsx", ".xlsm"):
        raise data_error(path, "such files are read, but not written. Write .xlsx instead.")
    if rows >= _MOST_ROWS or columns > _MOST_COLUMNS:
        raise data_error(
            path,
            f"a sheet holds at most {_MOST_ROWS:,} rows and {_MOST_COLUMNS:,} columns. Write a .csv"
            " or .parquet file.",
        )
    control = "[\x00-\x08\x0b-\x1f\ufffe\uffff]|_x[0-9A-Fa-f]{4}_"
    for name in names:
        if re.search(control, name):
            raise data_error(
                path,
                f"a spreadsheet cannot hold the control character in the name {name!r}. Write a"
                " .csv file.",
            )


def workbook(batches: Iterable[pa.Table], schema: pa.Schema) -> bytes:
    """Return a workbook of one sheet: the names of the columns, and the rows of tables."""
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
    except ImportError as error:
        raise MissingExtra("Writing a spreadsheet", error.name, "xlsx") from None
    book = Workbook(write_only=True)
    sheet = book.create_sheet("labels")

    def cell(value: Any) -> Any:
        written = WriteOnlyCell(sheet, value=value)
        if isinstance(value, str):
            written.data_type = "s"  # a name that begins with = is no formula
        return written

    sheet.append([cell(name) for name in schema.names])
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            sheet.append([cell(value) for value in row])
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()
