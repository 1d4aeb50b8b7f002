"""One JSON or YAML document: a list of objects, or an object from images to their labels."""

from __future__ import annotations

import json
from pathlib import Path

from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.column_roles import find_image_column
from hilltop.data.formats.text.express import check_expressible
from hilltop.data.formats.text.json_lines import JsonRecords
from hilltop.data.formats.text.json_shapes import flat, is_label_key, records_in
from hilltop.data.formats.text.label_lists import read_list_rows
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import DataError

_IMAGE, _LABELS, _ABSENT = "image", "labels", "absent"


def fits(source: LabelSource) -> bool:
    """Whether this is a list of objects with names and labels, or names with lists of labels."""
    if source.is_folder or source.is_spreadsheet:
        return False
    if source.head.lstrip()[:1] not in ("[", "{") and not source.is_yaml:
        return False
    try:
        content = source.document
    except DataError:
        return False
    records = records_in(content)
    if not records:
        return False
    options = source.options or ReadOptions()
    keys = flat(dict(records[0])) if isinstance(records[0], dict) else {}
    if options.label_column is not None:
        return options.label_column in keys
    return any(is_label_key(key, keys[key]) for key in keys)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the labels of every image.

    Labels are names, class numbers (``--classes`` has their names), or objects that have a name.
    What unlisted classes are is left open by the format: ``--unlisted`` says it.
    """
    records = records_in(source.document)
    if records is None:
        raise data_error(
            source.path,
            'expected a list of objects such as {"image": "a.jpg", "labels": ["cat"]}, or an object'
            " from images to their labels.",
        )
    rows = JsonRecords(source.path, records)
    image = find_image_column(rows.path, rows.sample(), options)
    return read_list_rows(rows, image, options, format="json_records")


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write a list of objects, one line each."""
    check_expressible(
        table, path, lossy, unused_classes=False, unlisted=(State.UNKNOWN, State.ABSENT)
    )
    says_absent = table.unlisted != State.ABSENT and bool((table.states == State.ABSENT).any())
    lines = []
    for row, name in enumerate(table.images.to_pylist()):
        record = {_IMAGE: name, _LABELS: table.labels_of(row)}
        if says_absent:
            record[_ABSENT] = table.labels_of(row, State.ABSENT)
        lines.append(json.dumps(record, ensure_ascii=False))
    with replacing(path) as temporary:
        temporary.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


FORMAT = Format(
    name="json_records",
    summary="JSON or YAML: objects with image and labels, or an object from images to labels.",
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=write,
)
