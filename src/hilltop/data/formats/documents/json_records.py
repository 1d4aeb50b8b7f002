"""One JSON document: a list of objects, or one object from image names to their labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hilltop.data.files import replacing
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.column_roles import find_image_column
from hilltop.data.formats.text.express import check_expressible
from hilltop.data.formats.text.json_lines import JsonRecords, is_label_list
from hilltop.data.formats.text.known_names import is_image_name, is_label_name
from hilltop.data.formats.text.label_lists import read_list_rows
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import DataError

_IMAGE, _LABELS, _ABSENT = "image", "labels", "absent"


def fits(source: LabelSource) -> bool:
    """Whether this is a list of objects with names and labels, or names with lists of labels."""
    if source.is_folder or source.is_spreadsheet or source.head.lstrip()[:1] not in ("[", "{"):
        return False
    try:
        content = source.json
    except DataError:
        return False
    if isinstance(content, dict):
        return _is_mapping(content)
    if not isinstance(content, list) or not content or not isinstance(content[0], dict):
        return False
    options, names = source.options or ReadOptions(), list(content[0])
    said = options.image_column is not None and options.label_column is not None
    return said or (any(map(is_image_name, names)) and any(map(is_label_name, names)))


def _is_mapping(content: dict[str, Any]) -> bool:
    """Whether every value is a list of labels, as no description of something else is."""
    return bool(content) and all(is_label_list(value) for value in content.values())


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the labels of every image.

    Labels are names, class numbers (``--classes`` has their names), or objects that have a name.
    What unlisted classes are is left open by the format: ``--unlisted`` says it.
    """
    content = source.json
    if isinstance(content, dict):
        content = [{_IMAGE: name, _LABELS: labels} for name, labels in content.items()]
    rows = JsonRecords(source.path, content)
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
    summary="JSON: a list of objects with image and labels, or an object from images to labels.",
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=write,
)
