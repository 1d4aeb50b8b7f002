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
from hilltop.data.formats.text.table_file import column_names, is_parquet

_ROWS = 200
IMAGE_NAMES = frozenset(
    ["image", "image_id", "imageid", "image_name", "file_name", "filename", "file", "id", "path"]
)
"""Names, in lower case, by which a column of image ids is known."""
LABEL_NAMES = frozenset(["labels", "tags", "classes", "label", "categories"])
"""Names, in lower case, by which a column with all labels of an image is known."""


def is_image_name(name: str) -> bool:
    """Whether a column of this name is known to hold image ids."""
    return name.strip().lower() in IMAGE_NAMES


def is_label_name(name: str) -> bool:
    """Whether a column of this name is known to hold all labels of an image."""
    return name.strip().lower() in LABEL_NAMES


def is_json_lines(source: LabelSource) -> bool:
    """Whether a file is meant to have a JSON object on every line."""
    if source.is_folder or is_parquet(source):
        return False
    return source.suffix in (".jsonl", ".ndjson") or source.head.lstrip().startswith("{")


def peek_names(source: LabelSource) -> list[str]:
    """Names of the columns of a CSV or Parquet file, or of the first record of JSON lines."""
    if not is_json_lines(source):
        return column_names(source)
    try:
        first = json.loads(source.head.strip().partition("\n")[0])
    except (ValueError, RecursionError):
        return []
    return list(first) if isinstance(first, dict) else []


def peek_columns(source: LabelSource) -> dict[str, list[Any]]:
    """The first cells of every column of a CSV or Parquet file; none if it has no such thing."""
    if source.is_folder or is_json_lines(source):
        return {}
    return _peek_parquet(source) if is_parquet(source) else _peek_csv(source)


def _peek_parquet(source: LabelSource) -> dict[str, list[Any]]:
    try:
        for batch in pq.ParquetFile(source.path).iter_batches(batch_size=_ROWS):
            return dict(batch.to_pydict())
    except (pa.ArrowException, OSError, ValueError, ImportError):
        pass
    return {}


def _peek_csv(source: LabelSource) -> dict[str, list[Any]]:
    rows: list[list[str]] = []
    try:
        reader = csv.reader(io.StringIO(source.head, newline=""))
        rows.extend(itertools.islice((cells for cells in reader if cells), _ROWS + 1))
    except csv.Error:
        return {}
    if len(rows) <= _ROWS and len(rows) > 2:
        rows.pop()  # The first look may have cut it off.
    names = [cell.strip() for cell in rows[0]] if rows else []
    if len(set(names)) < len(names) or any(len(cells) != len(names) for cells in rows):
        return {}
    return {name: [cells[at] for cells in rows[1:]] for at, name in enumerate(names)}
