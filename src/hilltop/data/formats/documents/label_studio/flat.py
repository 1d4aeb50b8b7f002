"""Label Studio's flat exports, JSON-MIN and CSV: one record an annotation.

The labels of a record are a bare string for one choice, an object ``{"choices": [...]}`` for
several, a list of these for choices made more than once, and missing for none. In a CSV, all but
the bare string stand as JSON text, so a choice whose name begins with ``{`` or ``[`` cannot be
told from that and is an error.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hilltop.checks import did_you_mean
from hilltop.data.assemble import Collector
from hilltop.data.data_errors import data_error
from hilltop.data.formats.documents.label_studio.records import (
    TaskChoices,
    image_key,
    is_label_studio_header,
    is_reference,
    one_of,
)
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.table_file import TableFile
from hilltop.data.label_table import LabelTable

SHAPES = frozenset(
    [
        *("rectanglelabels", "polygonlabels", "brushlabels", "keypointlabels", "ellipselabels"),
        *("labels", "hypertextlabels", "paragraphlabels", "timeserieslabels", "vectorlabels"),
        "videorectangle",
    ]
)
"""Kinds of results that name what was marked, which count where nothing was chosen."""

_TASK = "id"
_SYSTEM = frozenset(
    [
        *(_TASK, "annotation_id", "annotator", "created_at", "updated_at", "lead_time"),
        *("agreement", "project"),
    ]
)


def read_json(source: LabelSource, records: list[Any], options: ReadOptions) -> LabelTable:
    """Read JSON-MIN."""
    collector = Collector(source.path, options.class_list())
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict) or not is_label_studio_header(list(record)):
            collector.errors.add(
                f"record {number} is neither a task with 'data' and 'annotations' nor a flat record"
                " with 'annotation_id' and 'annotator'. Export it again."
            )
    collector.errors.check()
    return _read(source.path, records, None, options, collector)


def read_csv(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the CSV export."""
    table = TableFile(source)
    if not is_label_studio_header(table.names):
        raise data_error(
            source.path,
            "expected columns 'annotation_id' and 'annotator', as Label Studio exports them.",
            line=1,
        )
    columns = [
        [cell or None for cell in table.text(name, blank=True).to_pylist()] for name in table.names
    ]
    records = [dict(zip(table.names, cells, strict=True)) for cells in zip(*columns, strict=True)]
    collector = Collector(source.path, options.class_list())
    return _read(source.path, records, table, options, collector)


def names_in(value: Any, kind: str = "choices") -> list[str] | None:
    """Names in the labels of one record; None if they have another shape.

    Args:
        value: The labels.
        kind: Under which key an object holds them; those of shapes are read too.
    """
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        names = value.get(kind, next((value[key] for key in value if key in SHAPES), None))
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return names
        return None
    if not isinstance(value, list):
        return None
    parts = [names_in(part, kind) if isinstance(part, str | dict) else None for part in value]
    return None if None in parts else [name for part in parts for name in part or []]


def _read(
    path: Path,
    records: list[dict[str, Any]],
    table: TableFile | None,
    options: ReadOptions,
    collector: Collector,
) -> LabelTable:
    keys = dict.fromkeys(key for record in records for key in record)
    given = [key for key in keys if key not in _SYSTEM]
    image = image_key(
        path, [{key: record.get(key) for key in given} for record in records], options.image_column
    )
    label = _label_key(path, records, [key for key in given if key != image], table, options)
    answers = TaskChoices(collector)
    for row, record in enumerate(records):
        line = None if table is None else table.line_of(row)
        names = names_in(_value(record.get(label) if label else None, table))
        if names is None:
            where = "" if line else f"record {row + 1}: "
            collector.errors.add(
                f'{where}{label!r} must be a name or {{"choices": [...]}}, but is'
                f" {str(record.get(str(label)))[:40]!r}.",
                line=line,
            )
            continue
        task = record.get(_TASK)
        name = f"image {record.get(image)!r}" if task is None else f"task {task}"
        answers.add(name, record.get(image), names, place=f"record {row + 1}", line=line)
    return answers.table(options, [])


def _label_key(
    path: Path,
    records: list[dict[str, Any]],
    keys: list[str],
    table: TableFile | None,
    options: ReadOptions,
) -> str | None:
    """Key of the labels; None if there is no further key, since nothing was ever chosen."""
    if options.label_column is not None:
        if options.label_column not in keys:
            raise data_error(
                path,
                f"no record has {options.label_column!r}."
                f"{did_you_mean(options.label_column, keys)} There are {', '.join(keys)}.",
            )
        return options.label_column
    if not keys:
        return None
    fitting = [
        key for key in keys if _may_be_labels([record.get(key) for record in records], table)
    ]
    return one_of(path, fitting or keys, "--label-column", "key holds the choices")


def _may_be_labels(values: Sequence[Any], table: TableFile | None) -> bool:
    given = [value for value in values if value is not None]
    if is_reference(given):
        return False
    return not given or any(names_in(_value(value, table)) is not None for value in given)


def _value(value: Any, table: TableFile | None) -> Any:
    """The labels of a record; in a CSV, all but a bare string are JSON text."""
    if table is None or value is None or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return False  # No labels have this shape.
