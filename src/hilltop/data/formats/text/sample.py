"""A first look at the rows of a table, to recognise what it holds without reading it whole."""

from __future__ import annotations

import csv
import io
import itertools
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.arrow_structs import plain_columns
from hilltop.data.formats.text.file_rows import fold_rows
from hilltop.data.formats.text.json_shapes import flat
from hilltop.data.formats.text.known_names import IMAGE_NAMES, is_image_name, is_label_name
from hilltop.data.formats.text.table_file import column_names, is_parquet
from hilltop.data.parquet_files import check_parquet

__all__ = ["IMAGE_NAMES", "is_image_name", "is_json_lines", "is_label_name", "peek_columns"]
_ROWS = 200


def is_json_lines(source: LabelSource) -> bool:
    """Whether a file is meant to have a JSON object on every line."""
    if source.is_folder or is_parquet(source):
        return False
    return source.suffix in (".jsonl", ".ndjson") or source.head.lstrip().startswith("{")


def is_one_document(source: LabelSource) -> bool:
    """Whether a file that begins with an object holds one JSON document, on one line or many."""
    if source.suffix in (".jsonl", ".ndjson", ".manifest"):
        return False
    first, _, rest = source.head.strip().partition("\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return True
    return not rest.strip()


def peek_names(source: LabelSource) -> list[str]:
    """Names of the columns of a CSV or Parquet file, or of the first record of JSON lines."""
    if not is_json_lines(source):
        return column_names(source)
    first = first_records(source, 1)
    return list(flat(first[0])) if first else []


def first_records(source: LabelSource, most: int = 50) -> list[dict[str, Any]]:
    """The first objects of JSON lines; none if the first line holds none."""
    found: list[dict[str, Any]] = []
    for line in source.head.strip().split("\n")[:most]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            break
        if isinstance(record, dict):
            found.append(record)
    return found


def peek_columns(source: LabelSource) -> dict[str, list[Any]]:
    """The first cells of every column of a CSV or Parquet file; none if it has no such thing."""
    if source.is_folder or is_json_lines(source):
        return {}
    return _peek_parquet(source) if is_parquet(source) else _peek_text(source)


def _peek_parquet(source: LabelSource) -> dict[str, list[Any]]:
    try:
        check_parquet(source.path)
        for batch in pq.ParquetFile(source.path).iter_batches(batch_size=_ROWS):
            return dict(plain_columns(pa.Table.from_batches([batch])).to_pydict())
    except (pa.ArrowException, OSError, ValueError, ImportError):
        pass
    return {}


def _peek_text(source: LabelSource) -> dict[str, list[Any]]:
    rows = source.sheet[: _ROWS + 1] if source.is_spreadsheet else _first_rows(source)
    names = list(source.header)
    if source.is_spreadsheet or source.dialect.header:
        rows = rows[1:]
    named = [name for name in names if name]
    if len(set(named)) < len(named) or any(len(cells) != len(names) for cells in rows):
        return {}
    columns = {
        name or f"column {at + 1}": [cells[at] for cells in rows] for at, name in enumerate(names)
    }
    # What has no name and holds nothing, or counts the rows, is no column.
    return {
        name: cells
        for at, (name, cells) in enumerate(columns.items())
        if names[at] or not (_is_empty(cells) or (at == 0 and _counts(cells)))
    }


def _is_empty(cells: list[str]) -> bool:
    return not any(cell.strip() for cell in cells)


def _counts(cells: list[str]) -> bool:
    return cells == [str(number) for number in range(len(cells))]


def _first_rows(source: LabelSource) -> list[list[str]]:
    text = io.StringIO(source.head, newline="")
    for _ in range(source.dialect.comments):
        text.readline()
    rows: list[list[str]] = []
    try:
        reader = source.dialect.reader(text)
        filled = (cells for cells in reader if any(map(str.strip, cells)))
        rows.extend(itertools.islice(filled, _ROWS + 1))
    except csv.Error:
        return []
    if source.is_cut and 2 < len(rows) <= _ROWS:
        rows.pop()  # The first look has cut it off.
    width = len(source.header)
    rows = [rows[0], *fold_rows(source.header, rows[1:])] if rows else rows
    return [cells if any(cells[width:]) else cells[:width] for cells in rows]
