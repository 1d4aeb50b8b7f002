"""VGG Image Annotator 2: JSON (a project or its annotations) and CSV.

An attribute of a region or of the whole file holds the class: text, one of several, or several
ticked ones. Which attribute that is, is asked where there are several (``--label-column``).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilltop.data.assemble import Collector
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.express import check_expressible
from hilltop.data.formats.text.json_text import Edit, Span, first_value, members, replace_spans
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import DataError, OptionNeeded

_IMAGES, _ATTRIBUTES, _LABELS = "_via_img_metadata", "_via_attributes", "labels"
_COLUMNS = {"file_attributes", "region_attributes", "region_shape_attributes"}


@dataclass(frozen=True)
class _File:
    """What is said of one image: its name, and the attributes of it and its regions."""

    name: str
    attributes: list[dict[str, Any]]
    line: int | None = None


_LIKELY = ("class", "label", "name", "type", "category", "object")
"""What attributes of classes are mostly called."""


def fits(source: LabelSource) -> bool:
    """Whether this is VIA's CSV, or JSON with file and region attributes."""
    if source.is_folder:
        return False
    if _is_csv(source):
        return True
    if not source.head.lstrip().startswith("{") or '"file' not in source.head:
        return _IMAGES in source.head[:4096]
    try:
        return _entries(source.json) is not None
    except DataError:
        return False


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the attribute that holds the classes, of files and of their regions."""
    files = _csv_files(source.path) if _is_csv(source) else _json_files(source)
    chosen = _attribute(source.path, files, options)
    known = [] if _is_csv(source) else _options_of(source.json, chosen)
    collector = Collector(source.path, options.class_list())
    if options.classes is None and known:
        collector = Collector(source.path, known)
    for file in files:
        row = collector.image(file.name, line=file.line)
        for attributes in file.attributes:
            for name in _labels(attributes.get(chosen)):
                collector.label(row, name, State.PRESENT, line=file.line)
    collector.errors.check()
    return collector.table(unlisted=options.need_unlisted(source.path), format="via")


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write a project whose files have the attribute ``labels``, a list to tick."""
    said = (State.ABSENT, State.UNKNOWN)
    check_expressible(table, path, lossy, states=(State.PRESENT,), unlisted=said)
    ticks = {"type": "checkbox", "description": "", "options": dict.fromkeys(table.classes, "")}
    images = {
        f"{name}-1": {
            "filename": name,
            "size": -1,
            "regions": [],
            "file_attributes": {_LABELS: dict.fromkeys(table.labels_of(row), True)},
        }
        for row, name in enumerate(table.images.to_pylist())
    }
    content = {
        "_via_settings": {"project": {"name": path.stem}},
        _IMAGES: images,
        _ATTRIBUTES: {"region": {}, "file": {_LABELS: {**ticks, "default_options": {}}}},
    }
    atomic_write(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Tick labels for the files; regions and all else stay. Only "present" can be said."""
    source = LabelSource(original.path)
    if _is_csv(source):
        return
    chosen = _attribute(original.path, _json_files(source), original.options)
    text = original.path.read_bytes().decode("utf-8")
    of_image = by_image(of_state(changes, State.PRESENT))
    edits: list[Edit] = []
    for span in _image_spans(text):
        added = of_image.pop(span.value["filename"], [])
        place = dict(members(text, span.start)).get("file_attributes")
        if added and place is not None and isinstance(place.value, dict):
            before = dict.fromkeys(_labels(place.value.get(chosen)), True)
            ticked = {**before, **{one.class_name: True for one in added}}
            new = json.dumps({**place.value, chosen: ticked}, ensure_ascii=False)
            edits.append((place.start, place.end, new))
    yield Patched(replace_spans(text, edits).encode(), original.options, absents=False)


def _image_spans(text: str) -> list[Span]:
    outer = Span(None, first_value(text), len(text))
    inside = dict(members(text, outer.start)).get(_IMAGES)
    images = members(text, outer.start if inside is None else inside.start)
    return [span for _, span in images]


def _is_csv(source: LabelSource) -> bool:
    return set(source.header) >= _COLUMNS


def _entries(content: Any) -> dict[str, Any] | None:
    """The images of a project or of its annotations; None where it is neither."""
    if not isinstance(content, dict):
        return None
    inside = content.get(_IMAGES, content)
    if not isinstance(inside, dict) or (not inside and _IMAGES not in content):
        return None
    whole = all(isinstance(one, dict) and "filename" in one for one in inside.values())
    return inside if whole else None


def _json_files(source: LabelSource) -> list[_File]:
    entries = _entries(source.json)
    if entries is None:
        raise data_error(
            source.path, "expected VIA's images: objects with filename, regions, file_attributes."
        )
    found = []
    for key, entry in entries.items():
        regions = entry.get("regions") or []
        regions = list(regions.values()) if isinstance(regions, dict) else regions
        whole = isinstance(regions, list) and all(isinstance(one, dict) for one in regions)
        said = [entry.get("file_attributes")]
        said += [one.get("region_attributes") for one in regions] if whole else ["?"]
        name = entry["filename"]
        if not _is_text(name) or not all(one is None or isinstance(one, dict) for one in said):
            raise data_error(
                source.path, f"image {key!r:.60}: its regions or attributes are damaged."
            )
        found.append(_File(name, [one for one in said if one]))
    return found


def _csv_files(path: Path) -> list[_File]:
    lines = read_lines(path)
    reader = csv.reader((f"{line}\n" for _, line in lines), strict=True)
    try:
        header = [name.strip().lstrip("#") for name in next(reader)]
        found = [_csv_file(path, header, cells, reader.line_num) for cells in reader if cells]
    except (csv.Error, StopIteration) as error:
        raise data_error(path, f"this is not valid CSV: {error}.") from None
    return found


def _csv_file(path: Path, header: list[str], cells: list[str], line: int) -> _File:
    if len(cells) != len(header) or "filename" not in header:
        raise data_error(
            path, f"expected {len(header)} cells and a filename, but got {len(cells)}.", line=line
        )
    row = dict(zip(header, cells, strict=True))
    said = []
    for name in ("file_attributes", "region_attributes"):
        try:
            value = json.loads(row.get(name) or "{}")
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict) or not _is_text(json.dumps(value, ensure_ascii=False)):
            raise data_error(path, f"{name} must be a JSON object.", line=line)
        said.append(value)
    return _File(row["filename"], said, line)


def _attribute(path: Path, files: Sequence[_File], options: ReadOptions) -> str:
    """The attribute that holds the classes."""
    names = dict.fromkeys(name for file in files for one in file.attributes for name in one)
    if options.label_column is not None:
        if options.label_column not in names:
            raise data_error(
                path,
                f"there is no attribute {options.label_column!r}. There are {', '.join(names)}.",
            )
        return options.label_column
    if len(names) == 1:
        return next(iter(names))
    if not names:
        raise data_error(path, "no file or region has an attribute that could be a class.")
    likely = next((one for one in names if one.lower() in _LIKELY), next(iter(names)))
    raise OptionNeeded(
        f"{path}: which attribute holds the classes? Pass --label-column with one of"
        f" {', '.join(names)}, for example: {ready_command(path, options, label_column=likely)}"
    )


def _options_of(content: dict[str, Any], name: str) -> list[str]:
    """What may be ticked or chosen for an attribute, as the project says."""
    said = content.get(_ATTRIBUTES)
    found: dict[str, None] = {}
    for kind in ("file", "region"):
        group = said.get(kind) if isinstance(said, dict) else None
        attribute = group.get(name) if isinstance(group, dict) else None
        choices = attribute.get("options") if isinstance(attribute, dict) else None
        if isinstance(choices, dict):
            found.update(dict.fromkeys(one for one in choices if one and _is_text(one)))
    return list(found)


def _labels(value: Any) -> list[str]:
    """Classes in one attribute: text, or those that are ticked."""
    if isinstance(value, dict):
        return [name for name, ticked in value.items() if ticked is True]
    text = "" if value is None or isinstance(value, bool | list) else str(value).strip()
    return [text] if text and text != "undefined" else []


def _is_text(word: Any) -> bool:
    try:
        return isinstance(word, str) and word.encode() is not None
    except UnicodeEncodeError:
        return False


FORMAT = Format(
    name="via",
    summary="VGG Image Annotator: JSON or CSV with attributes of files and regions.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write,
    patch=patch,
    file_names=True,
)
