"""JSON objects with a value for each class: ``{"text": ..., "cats": {"sport": 1.0, "art": 0.0}}``.

spaCy keeps text categories so. Objects stand on a line each, or in a list.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hilltop.data.assemble import assemble
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.cell_values import BLANK, KINDS, OTHER, cell_kind
from hilltop.data.formats.text.column_roles import find_image_column
from hilltop.data.formats.text.json_lines import JsonRecords, read_json_objects
from hilltop.data.formats.text.json_shapes import MISSING, is_number
from hilltop.data.formats.text.known_names import is_label_name
from hilltop.data.formats.text.sample import first_records, is_json_lines, is_one_document
from hilltop.data.formats.text.wide_cells import cell_states
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.errors import DataError

_KEYS = ("cats", "labels", "tags", "classes", "targets", "attributes", "flags")


def fits(source: LabelSource) -> bool:
    """Whether the first objects have a key of labels with 0 or 1 for each class."""
    records = _peek(source)
    return bool(records) and _key(records, source.options or ReadOptions()) is not None


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read 1 and true as present; what 0, -1 and null mean is said by the options."""
    if is_json_lines(source) and not is_one_document(source):
        numbered: list[tuple[int | None, dict[str, Any]]] = [*read_json_objects(source.path)]
    else:
        numbered = [(None, record) for record in _documents(source)]
    records = [record for _, record in numbered]
    errors = ErrorCollector(source.path)
    key = _key(records, options)
    if key is None:
        errors.add("expected objects with 0 or 1 for each class under 'cats' or 'labels'.")
        errors.check()
    rows = JsonRecords(source.path, [_without(record, str(key)) for record in records])
    images = rows.text(find_image_column(source.path, rows.sample(), options)).dictionary_encode()
    values = [_values(record, str(key)) for record in records]
    classes = options.class_list() or list(dict.fromkeys(name for one in values for name in one))
    place = {name: at for at, name in enumerate(classes)}
    kinds = np.full((len(records), len(classes)), BLANK, dtype=np.int8)
    for row, one in enumerate(values):
        for name, value in one.items():
            kind = cell_kind(value) if value is None or isinstance(value, int | float) else OTHER
            if name not in place or kind == OTHER or not name:
                errors.add(
                    f"class {name!r} has {str(value)[:40]!r}: expected a known class and 1, 0, -1"
                    " or null.",
                    line=numbered[row][0],
                )
            else:
                kinds[row, place[name]] = kind
    errors.check()
    counts = np.bincount(kinds.ravel(), minlength=KINDS)
    state_of, unlisted = cell_states(source.path, options, counts, False)
    number = images.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    states = state_of[kinds]
    repeated = np.bincount(number, minlength=len(images.dictionary))[number] > 1
    at, columns = np.nonzero((states != unlisted) | repeated[:, None])
    return assemble(
        images.dictionary,
        classes,
        number[at],
        columns,
        states[at, columns],
        unlisted=unlisted,
        source=source.path,
        step=Step("read", {"file": str(source.path), "format": "class_values"}),
    )


def _peek(source: LabelSource) -> list[dict[str, Any]]:
    if is_json_lines(source) and not is_one_document(source):
        return first_records(source)
    if source.is_folder or source.head.lstrip()[:1] not in ("[", "{"):
        return []
    try:
        return _documents(source)[:50]
    except DataError:
        return []


def _documents(source: LabelSource) -> list[dict[str, Any]]:
    """The objects of a list, or those that an object from images to their values stands for."""
    content = source.json
    if isinstance(content, dict) and content and all(map(_is_filled, content.values())):
        return [{"image": name, "labels": values} for name, values in content.items()]
    content = content if isinstance(content, list) else [content]
    return [record for record in content if isinstance(record, dict)]


def _key(records: list[dict[str, Any]], options: ReadOptions) -> str | None:
    named = options.label_column
    first = records[0] if records else {}
    keys = [key for key in first if named in (None, key) and (named or _is_key(key))]
    fitting = (key for key in keys if any(map(_is_filled, (one.get(key) for one in records))))
    return next((key for key in fitting if all(_is_values(one.get(key)) for one in records)), None)


def _is_key(key: str) -> bool:
    return key in _KEYS or is_label_name(key)


def _is_filled(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def _is_values(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and all(isinstance(one, bool | int | float) or one is None for one in value.values())
        and (not value or any(one in (0, 1) for one in value.values()))
    )


def _values(record: dict[str, Any], key: str) -> dict[str, Any]:
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def _without(record: dict[str, Any], key: str) -> dict[str, Any]:
    """The object without its labels, and with scalars alone."""
    return {
        name: value
        for name, value in record.items()
        if name != key and value is not MISSING and (isinstance(value, str) or is_number(value))
    }


FORMAT = Format(
    name="class_values",
    summary="JSON objects with 0 or 1 for each class under one key, as spaCy's cats.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=ReadOnly("Such files hold the texts or images themselves"),
)
