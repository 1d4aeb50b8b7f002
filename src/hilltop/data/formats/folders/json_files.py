"""A JSON file for each image: LabelMe, Supervisely, BigEarthNet and many a script's own.

Labels are under a key such as ``labels`` or ``tags``, or the names of ``shapes`` or ``objects``.
Image-level ``flags`` of LabelMe are labels where they are true.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.dialect import looks_like_file
from hilltop.data.formats.text.folder_files import files_in, folders_in, need_folder
from hilltop.data.formats.text.json_shapes import flat, is_label_key, is_label_list
from hilltop.data.formats.text.known_names import LABEL_NAMES
from hilltop.data.formats.text.record_rows import (
    IMAGE,
    LABELS,
    table_from_records,
)
from hilltop.data.label_table import LabelTable
from hilltop.errors import DataError, OptionNeeded

_IMAGE_KEYS = ("imagePath", "file_name", "filename", "image", "image_name", "asset.name")
_NO_LABELS = ("meta.json", "key_id_map.json", "dataset_meta.json", "package.json")
_FEWEST = 2
_ENDINGS = ("_labels_metadata", ".metadata", "_labels", "_metadata")


def fits(source: LabelSource) -> bool:
    """Whether the first JSON file describes one image and its labels; under a key, as said."""
    if not source.is_folder:
        return False
    files = _files(source.path)
    if len(files) < _FEWEST:
        return False
    try:
        record = _record(files[0])
    except DataError:
        return False
    if record is not None and source.options is not None and source.options.label_column:
        return source.options.label_column in record
    return record is not None and bool(_keys(record) or _flags(record))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the labels of every file; the image is named in it, or by the name of the file."""
    need_folder(source)
    files = _files(source.path)
    if not files:
        raise data_error(source.path, "there are no JSON files here.")
    errors = ErrorCollector(source.path)
    found: list[tuple[Path, dict[str, Any]]] = []
    for path in files:
        record = _record(path)
        if record is None:
            ErrorCollector(path, errors.found).add(
                "expected a JSON object that describes an image."
            )
        else:
            found.append((path, record))
    errors.check()
    label = _label_key(source.path, [record for _, record in found], options)
    records = []
    for path, record in found:
        value = record.get(label, []) if label else _flags(record)
        if not is_label_list(value) and not isinstance(value, str | int | None):
            ErrorCollector(path, errors.found).add(f"{label!r} must be a list of names.")
        records.append({IMAGE: _image(path, record), LABELS: value})
    errors.check()
    return table_from_records(source.path, records, options, format="json_files")


def _label_key(path: Path, records: list[dict[str, Any]], options: ReadOptions) -> str | None:
    """The key of the labels; None for LabelMe's flags."""
    keys = dict.fromkeys(key for record in records for key in _keys(record))
    if options.label_column is not None:
        return options.label_column
    exact = [key for key in keys if key.lower() in LABEL_NAMES]
    filled = [key for key in keys if any(record.get(key) for record in records)]
    named = [key for key in exact if key in filled]
    chosen = named if len(named) == 1 else filled or list(keys)[:1]
    if len(chosen) == 1 and (filled or not any(_flags(record) for record in records)):
        return chosen[0]
    if not filled:
        return None
    command = ready_command(path, options, label_column=chosen[0])
    raise OptionNeeded(
        f"{path}: which key holds the labels of an image? Pass --label-column with one of"
        f" {', '.join(chosen)}, for example: {command}"
    )


def _keys(record: dict[str, Any]) -> list[str]:
    return [
        key
        for key, value in record.items()
        if is_label_key(key, value) and (is_label_list(value) or isinstance(value, str))
    ]


def _flags(record: dict[str, Any]) -> list[str]:
    marks = {key[6:]: value for key, value in record.items() if key.startswith("flags.")}
    return [name for name, value in marks.items() if value is True]


def _image(path: Path, record: dict[str, Any]) -> str:
    for key in _IMAGE_KEYS:
        name = record.get(key)
        if isinstance(name, str) and name:
            return name.replace("\\", "/").rpartition("/")[2] or name
    stem = path.name.rpartition(".")[0]
    if looks_like_file(stem):
        return stem  # Supervisely: a.jpg.json
    for ending in _ENDINGS:
        stem = stem.removesuffix(ending)
    return stem


def _record(path: Path) -> dict[str, Any] | None:
    content = LabelSource(path).json
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        raise data_error(path, "a name holds half a character (a lone surrogate).") from None
    if not isinstance(content, dict) or isinstance(content.get("images"), list):
        return None
    return flat(content)


def _files(root: Path) -> list[Path]:
    """JSON files in the folder; in those within it where it has none itself."""
    for places in ([root], list(folders_in(root).values())):
        inside = [path for folder in places for path in files_in(folder).values()]
        found = [path for path in inside if path.suffix.lower() == ".json"]
        found = [path for path in found if path.name not in _NO_LABELS]
        if found:
            return found
    return []


FORMAT = Format(
    name="json_files",
    summary="A JSON file for each image, as of LabelMe or Supervisely.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=ReadOnly("Such files describe sizes and shapes"),
    folders=True,
)
