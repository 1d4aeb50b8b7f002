"""Prodigy's JSON lines: options that were accepted, or one label that was accepted or rejected.

An answer "ignore" says nothing, and a rejected choice of several options does not say which of them
is wrong; both leave the pairs of the example unknown.
"""

from __future__ import annotations

from typing import Any

from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.json_lines import read_json_objects
from hilltop.data.formats.text.record_rows import (
    ABSENT,
    IMAGE,
    LABELS,
    table_from_records,
)
from hilltop.data.formats.text.sample import first_records, is_json_lines, is_one_document
from hilltop.data.label_table import LabelTable

_ANSWERS = ("accept", "reject", "ignore")
_IDS = ("image", "id", "path", "text")


def fits(source: LabelSource) -> bool:
    """Whether every object has an answer, and either accepted options or one label."""
    if source.is_folder or not is_json_lines(source) or is_one_document(source):
        return False
    records = first_records(source)
    return bool(records) and all(map(_is_answered, records))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read accepted labels as present and a rejected single label as absent."""
    records, ignored, rejected = [], 0, 0
    for number, (_, record) in enumerate(read_json_objects(source.path)):
        found: dict[str, Any] = {IMAGE: _id(record, options, number), LABELS: [], ABSENT: []}
        answer, accepted = record.get("answer"), record.get("accept")
        ignored += answer == "ignore"
        rejected += answer == "reject" and isinstance(accepted, list)
        if answer == "accept":
            found[LABELS] = accepted if isinstance(accepted, list) else [record.get("label")]
        elif answer == "reject" and not isinstance(accepted, list):
            found[ABSENT] = [record.get("label")]
        records.append(found)
    notes = []
    if ignored or rejected:
        notes.append(
            f"{ignored} examples were ignored and {rejected} choices rejected: nothing is said"
            " of their pairs."
        )
    return table_from_records(source.path, records, options, format="prodigy", notes=notes)


def _is_answered(record: dict[str, Any]) -> bool:
    label = isinstance(record.get("accept"), list) or isinstance(record.get("label"), str)
    return record.get("answer") in _ANSWERS and label


def _id(record: dict[str, Any], options: ReadOptions, number: int) -> str:
    """The image, its file or the text; the number of the line where there is none of them."""
    meta = record.get("meta") if isinstance(record.get("meta"), dict) else {}
    keys = [options.image_column] if options.image_column else _IDS
    values = (one.get(key) for key in keys for one in (record, meta or {}))
    found = next((one for one in values if isinstance(one, str) and one), str(number))
    return str(number) if found.startswith("data:") else " ".join(found.split()) or str(number)


FORMAT = Format(
    name="prodigy",
    summary="Prodigy's JSON lines: accepted options, or one label accepted or rejected.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=ReadOnly("Such files hold the texts or images and how they were answered"),
)
