"""Datumaro's own JSON, which CVAT exports too: categories, and items with annotations."""

from __future__ import annotations

from typing import Any

from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.record_rows import (
    IMAGE,
    LABELS,
    table_from_records,
)
from hilltop.data.label_table import LabelTable
from hilltop.errors import DataError


def fits(source: LabelSource) -> bool:
    """Whether there are items and categories of labels."""
    if source.is_folder or not source.head.lstrip().startswith("{"):
        return False
    if '"categories"' not in source.head:
        return False
    try:
        content = source.json
    except DataError:
        return False
    return isinstance(content.get("items"), list) and isinstance(content.get("categories"), dict)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the classes of all annotations; any kind of them makes its class present."""
    content = source.json
    if not isinstance(content, dict) or not isinstance(content.get("items"), list):
        raise data_error(source.path, "expected a JSON object with a list 'items'.")
    names = _names(source, content)
    errors = ErrorCollector(source.path)
    records = []
    for number, item in enumerate(content["items"], 1):
        image = item.get("id") if isinstance(item, dict) else None
        annotations = item.get("annotations", []) if isinstance(item, dict) else None
        if not isinstance(image, str) or not image or not isinstance(annotations, list):
            errors.add(f"item {number} must be an object with an id and annotations.")
            continue
        found: dict[str, None] = {}
        for one in annotations:
            at = one.get("label_id") if isinstance(one, dict) else None
            if isinstance(at, int) and 0 <= at < len(names):
                found[names[at]] = None
            elif at is not None:
                errors.add(f"item {number}: label_id {at!r:.40} is none of {len(names)} labels.")
        records.append({IMAGE: image, LABELS: list(found)})
    errors.check()
    return table_from_records(source.path, records, options, format="datumaro")


def _names(source: LabelSource, content: dict[str, Any]) -> list[str]:
    group = content.get("categories")
    part = group.get("label") if isinstance(group, dict) else None
    labels = part.get("labels") if isinstance(part, dict) else None
    names = [
        one.get("name") if isinstance(one, dict) else None
        for one in (labels if isinstance(labels, list) else [])
    ]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise data_error(source.path, "expected the names of labels under 'categories'.")
    return [str(name) for name in names]


FORMAT = Format(
    name="datumaro",
    summary="Datumaro's JSON, an export of CVAT too: any annotation is a label.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=ReadOnly("Datumaro's files hold shapes and sizes"),
    boxes=True,
)
