"""Labelbox exports: a JSON object on every line with a data row and the labels of its projects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hilltop.checks import pluralize
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.json_lines import read_json_objects
from hilltop.data.formats.text.record_rows import (
    IMAGE,
    LABELS,
    table_from_records,
)
from hilltop.data.formats.text.sample import first_records, is_json_lines
from hilltop.data.label_table import LabelTable

_ROW, _PROJECTS = "data_row", "projects"
_ANSWERS = ("checklist_answers", "radio_answer", "checklist_answer")


def fits(source: LabelSource) -> bool:
    """Whether the first object has a data row and projects."""
    if not is_json_lines(source):
        return False
    first = first_records(source, 1)
    return bool(first) and _ROW in first[0] and _PROJECTS in first[0]


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read answers of checklists and radio buttons and the names of objects as labels."""
    errors = ErrorCollector(source.path)
    records, silent = [], 0
    for line, record in read_json_objects(source.path):
        row = record.get(_ROW)
        row = row if isinstance(row, dict) else {}
        names = (row.get(key) for key in ("external_id", "global_key", "row_data", "id"))
        name = next((one for one in names if isinstance(one, str) and one), None)
        if name is None:
            errors.add("the data row has no external_id, global_key or id.", line=line)
            continue
        labels = list(_labels(record))
        silent += not labels
        if labels:
            found = dict.fromkeys(name for label in labels for name in _names(label))
            records.append({IMAGE: name, LABELS: list(found)})
    errors.check()
    left = pluralize(silent, "data row without a label is", "data rows without a label are")
    notes = [f"{left} left out."] if silent else []
    return table_from_records(source.path, records, options, format="labelbox", notes=notes)


def _labels(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    projects = record.get(_PROJECTS)
    for project in projects.values() if isinstance(projects, dict) else ():
        labels = project.get("labels") if isinstance(project, dict) else None
        for label in labels if isinstance(labels, list) else ():
            if isinstance(label, dict) and isinstance(label.get("annotations"), dict):
                yield label["annotations"]


def _names(part: dict[str, Any]) -> Iterator[str]:
    """Names of objects and answers, those within others too."""
    for item in _objects(part.get("objects")):
        if isinstance(item.get("name"), str):
            yield item["name"]
    for question in _objects(part.get("classifications")):
        for key in _ANSWERS:
            given = question.get(key)
            for answer in _objects([given] if isinstance(given, dict) else given):
                if isinstance(answer.get("name"), str):
                    yield answer["name"]
                yield from _names(answer)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


FORMAT = Format(
    name="labelbox",
    summary="Labelbox export (NDJSON): answers of classifications and names of objects.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=ReadOnly("Labelbox's exports name rows, projects and people of its own"),
)
