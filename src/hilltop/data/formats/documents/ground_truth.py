"""Output manifests of SageMaker Ground Truth and Rekognition: a JSON object on every line.

A job's labels are numbers under its name (``"tags": [0, 3]``), boxes with class numbers, or one
number for each class; ``tags-metadata`` has the names.
"""

from __future__ import annotations

from typing import Any

from hilltop.data.data_errors import ErrorCollector
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.json_lines import read_json_objects
from hilltop.data.formats.text.record_rows import (
    IMAGE,
    LABELS,
    table_from_records,
)
from hilltop.data.formats.text.sample import first_records, is_json_lines
from hilltop.data.label_table import LabelTable
from hilltop.errors import OptionNeeded

_META = "-metadata"
_SOURCES = ("source-ref", "source")


def fits(source: LabelSource) -> bool:
    """Whether the first object has a source and the metadata of a job."""
    if not is_json_lines(source):
        return False
    records = first_records(source, 5)
    return bool(records) and any(key in records[0] for key in _SOURCES) and any(map(_jobs, records))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the labels of one job, or of all jobs that stand for one class each."""
    lines = read_json_objects(source.path)
    jobs = list(dict.fromkeys(job for _, record in lines for job in _jobs(record)))
    single = [job for job in jobs if all(_is_one_class(record, job) for _, record in lines)]
    chosen = jobs if set(single) == set(jobs) else [job for job in jobs if job not in single]
    if options.label_column is not None:
        chosen = [options.label_column]
    if len(chosen) != 1 and chosen != jobs:
        command = ready_command(source.path, options, label_column=chosen[0])
        raise OptionNeeded(
            f"{source.path}: which job holds the labels? Pass --label-column with one of"
            f" {', '.join(chosen)}, for example: {command}"
        )
    errors = ErrorCollector(source.path)
    records = []
    for line, record in lines:
        name = next((record[key] for key in _SOURCES if key in record), None)
        if not isinstance(name, str) or not name:
            errors.add("there is no 'source-ref'.", line=line)
            continue
        found: dict[str, None] = {}
        for job in chosen:
            names = _names(record, job)
            if names is None:
                errors.add(f"{job!r} holds no class numbers with names in its metadata.", line=line)
            found.update(dict.fromkeys(names or ()))
        records.append({IMAGE: name, LABELS: list(found)})
    errors.check()
    return table_from_records(source.path, records, options, format="ground_truth")


def _jobs(record: dict[str, Any]) -> list[str]:
    """Names of the jobs whose metadata stand in an object."""
    metas = [
        key for key, value in record.items() if key.endswith(_META) and isinstance(value, dict)
    ]
    return [key.removesuffix(_META) for key in metas]


def _meta(record: dict[str, Any], job: str) -> dict[str, Any]:
    meta = record.get(f"{job}{_META}")
    return meta if isinstance(meta, dict) else {}


def _is_one_class(record: dict[str, Any], job: str) -> bool:
    """Whether a job says yes or no to one class, as Rekognition's do."""
    meta = _meta(record, job)
    return not meta or (isinstance(meta.get("class-name"), str) and "class-map" not in meta)


def _names(record: dict[str, Any], job: str) -> list[str] | None:
    """The classes that a job found; None if they cannot be told."""
    value, meta = _value(record, job), _meta(record, job)
    if value is None:
        return []
    if isinstance(meta.get("class-name"), str) and isinstance(value, int):
        return [meta["class-name"]]
    names = meta.get("class-map")
    if isinstance(value, dict):
        boxes = value.get("annotations")
        if not isinstance(boxes, list) or not all(isinstance(box, dict) for box in boxes):
            return None
        value = [box.get("class_id") for box in boxes]
    numbers = value if isinstance(value, list) else [value]
    if not isinstance(names, dict):
        return [] if not numbers else None
    found = [names.get(str(number)) for number in numbers]
    return [name for name in found if name] if all(isinstance(one, str) for one in found) else None


def _value(record: dict[str, Any], job: str) -> Any:
    """What a job says; Rekognition calls it ``sunny`` or ``sunny-1`` beside ``sunny-metadata``."""
    return record.get(job, record.get(f"{job}-1"))


FORMAT = Format(
    name="ground_truth",
    summary="Output manifest of SageMaker Ground Truth or Rekognition: JSON lines.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=ReadOnly("A manifest says which job and worker made a label"),
)
