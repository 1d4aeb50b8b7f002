"""What COCO and LVIS share: lists of images, annotations and categories, joined by ids."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.checks import pluralize
from hilltop.data.data_errors import ErrorCollector, data_error, unknown_class
from hilltop.data.files import atomic_write
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, of_state
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.json_text import Edit, Span, append_elements
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import DataError

JsonObject = dict[str, Any]
PARTS = ("images", "annotations", "categories")
NEGATIVE = "neg_category_ids"
_PART_BEGINS = re.compile(r'"(images|annotations)"\s*:\s*\[')


@dataclass
class CocoParts:
    """What a COCO or LVIS file says, with ids resolved to rows and columns."""

    names: list[str]
    classes: list[str]
    images: list[JsonObject]
    column_of: dict[Any, int]
    rows: list[int]
    columns: list[int]
    errors: ErrorCollector


def has_parts(source: LabelSource) -> bool:
    """Whether the file holds COCO's lists, or begins like it and then breaks off."""
    if source.is_folder or not source.head.lstrip().startswith("{"):
        return False
    try:
        content = source.json
    except DataError:
        # A file that was cut off is still recognised, so that the reader can say where.
        return _PART_BEGINS.search(source.head) is not None
    if not all(isinstance(content.get(part), list) for part in PARTS):
        return False
    return bool(content["categories"]) or not content["annotations"]  # else captions


def has_negatives(source: LabelSource) -> bool:
    """Whether any image lists confirmed absents, as in LVIS."""
    try:
        images = source.json["images"]
    except DataError:
        return f'"{NEGATIVE}"' in source.head
    return any(isinstance(image, dict) and NEGATIVE in image for image in images)


def parse_parts(
    source: LabelSource, options: ReadOptions, image_name: Callable[[JsonObject], Any]
) -> CocoParts:
    """Read the lists and resolve ids; errors are collected, not raised, for the caller to add to.

    Args:
        source: The file.
        options: Whose class list, if any, replaces the order of the categories.
        image_name: From the record of an image to its id in the table.
    """
    errors = ErrorCollector(source.path)
    parts = _parts(source)
    images = list(_records(parts["images"], "images", ("id",), errors))
    categories = list(_records(parts["categories"], "categories", ("id", "name"), errors))
    row_of, names = _number(images, "images", image_name, errors)
    column_of, classes = _number(categories, "categories", lambda record: record["name"], errors)
    closed = options.class_list()
    if closed is not None:
        column_of = _in_list(column_of, classes, closed, errors)
    errors.check()
    rows, columns = _join(parts["annotations"], row_of, column_of, errors)
    records = [record for _, record in images]
    chosen = classes if closed is None else closed
    return CocoParts(names, chosen, records, column_of, rows, columns, errors)


def coco_image_name(image: JsonObject) -> Any:
    """The file name, or the id as text where there is none."""
    return image.get("file_name", str(image["id"]))


def image_record(number: int, name: str) -> JsonObject:
    """The record of one image."""
    return {"id": number, "file_name": name, "width": 0, "height": 0}


def annotation_records(table: LabelTable) -> list[JsonObject]:
    """One annotation without extent for each present pair."""
    chosen = table.states == State.PRESENT
    pairs = zip(table.rows[chosen].tolist(), table.columns[chosen].tolist(), strict=True)
    return [
        _annotation(number, row + 1, column + 1) for number, (row, column) in enumerate(pairs, 1)
    ]


def write_parts(
    path: Path,
    images: list[JsonObject],
    annotations: list[JsonObject],
    categories: list[JsonObject],
) -> None:
    """Write the lists with the keys that readers expect around them."""
    content = {
        "info": {"description": "Image-level labels without boxes."},
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": categories,
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    atomic_write(path, text)


def _parts(source: LabelSource) -> dict[str, list[Any]]:
    content = source.json
    if not isinstance(content, dict):
        raise data_error(source.path, f"expected a JSON object with the lists {', '.join(PARTS)}.")
    errors = ErrorCollector(source.path)
    for part in PARTS:
        if not isinstance(content.get(part), list):
            errors.add(f"there is no list {part!r}. Expected the lists {', '.join(PARTS)}.")
    errors.check()
    annotations = [one for record in content["annotations"] for one in _segments(record)]
    return {**{part: content[part] for part in PARTS}, "annotations": annotations}


def _segments(record: Any) -> list[Any]:
    """The segments of a panoptic annotation as annotations of their own; others as they are."""
    segments = record.get("segments_info") if isinstance(record, dict) else None
    if not isinstance(segments, list) or "category_id" in record:
        return [record]
    image = {"image_id": record["image_id"]} if "image_id" in record else {}
    return [{**one, **image} if isinstance(one, dict) else one for one in segments]


def _records(
    part: list[Any], kind: str, keys: tuple[str, ...], errors: ErrorCollector
) -> Iterator[tuple[int, JsonObject]]:
    """Yield the sound records of a list with their numbers, counted from 1."""
    for number, record in enumerate(part, 1):
        if not isinstance(record, dict):
            errors.add(f"record {number} of {kind!r} must be an object, but got {record!r:.60}.")
            continue
        missing = [key for key in keys if key not in record]
        for key in missing:
            errors.add(f"record {number} of {kind!r} has no key {key!r}. Add it.")
        if not missing:
            yield number, record


def _number(
    records: list[tuple[int, JsonObject]],
    kind: str,
    name: Callable[[JsonObject], Any],
    errors: ErrorCollector,
) -> tuple[dict[Any, int], list[str]]:
    """Number the records of a list: place by id, and names by place."""
    places: dict[Any, int] = {}
    names: dict[str, int] = {}
    for number, record in records:
        key, word = record["id"], name(record)
        if not is_id(key):
            errors.add(f"record {number} of {kind!r}: id must be a number, but got {key!r:.60}.")
        elif key in places:
            errors.add(f"record {number} of {kind!r}: id {key!r} is used before. Ids must differ.")
        elif not _is_text(word):
            errors.add(f"record {number} of {kind!r}: its name must be text, but got {word!r:.60}.")
        elif word in names:
            first = names[word]
            errors.add(
                f"record {number} of {kind!r}: the name {word!r} stands in record {first} already."
                " Names must differ."
            )
        else:
            places[key] = len(places)
            names[word] = number
    return places, list(names)


def _in_list(
    column_of: dict[Any, int], classes: list[str], closed: list[str], errors: ErrorCollector
) -> dict[Any, int]:
    """Columns in the order of the user's class list, which must name every category."""
    place = {name: number for number, name in enumerate(closed)}
    for name in classes:
        if name not in place:
            errors.add(unknown_class(name, closed))
    return {key: place.get(classes[column], -1) for key, column in column_of.items()}


def _join(
    annotations: list[Any],
    row_of: dict[Any, int],
    column_of: dict[Any, int],
    errors: ErrorCollector,
) -> tuple[list[int], list[int]]:
    rows, columns = [], []
    ids: set[Any] = set()
    for number, record in _records(annotations, "annotations", ("image_id", "category_id"), errors):
        image, category, own = record["image_id"], record["category_id"], record.get("id")
        place = f"record {number} of 'annotations'"
        if not is_id(image) or image not in row_of:
            known = pluralize(len(row_of), "image", "images")
            errors.add(f"{place}: image_id {image!r:.60} is not among the {known}.")
        elif not is_id(category) or category not in column_of:
            known = pluralize(len(column_of), "category", "categories")
            errors.add(f"{place}: category_id {category!r:.60} is not among the {known}.")
        elif "id" in record and (not is_id(own) or own in ids):
            errors.add(f"{place}: id {own!r:.60} is not a number or is used before. Renumber it.")
        else:
            rows.append(row_of[image])
            columns.append(column_of[category])
            ids.add(own)
    return rows, columns


def is_id(value: Any) -> bool:
    """Whether a value can be an id: a whole number, or text as some tools write it."""
    return isinstance(value, int | str) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    """Whether a value is text, not empty and valid Unicode."""
    try:
        return isinstance(value, str) and bool(value.encode())
    except UnicodeEncodeError:
        return False


def annotation_edits(
    text: str, parts: dict[str, Span], ids: dict[str, Any], changes: Sequence[Change]
) -> list[Edit]:
    """The edit that adds an annotation without extent for each change to present.

    Args:
        text: The file.
        parts: Its lists.
        ids: The id of each image of the table.
        changes: What is to be said.
    """
    category = category_ids(parts)
    used = [record.get("id") for record in parts["annotations"].value]
    highest = max((number for number in used if isinstance(number, int)), default=0)
    new = [
        _annotation(highest + number, ids[change.image], category[change.class_name])
        for number, change in enumerate(of_state(changes, State.PRESENT), 1)
    ]
    return [append_elements(text, parts["annotations"], new)] if new else []


def category_ids(parts: dict[str, Span]) -> dict[str, Any]:
    """The id of each category by its name."""
    return {record["name"]: record["id"] for record in parts["categories"].value}


def _annotation(number: int, image: Any, category: Any) -> JsonObject:
    """An annotation without extent.

    It is marked as a crowd: detectors leave those out of training, where a box without extent would
    stop them, and evaluation does not count them as objects that were missed.
    """
    return {
        "id": number,
        "image_id": image,
        "category_id": category,
        "iscrowd": 1,
        "area": 0,
        "bbox": [0, 0, 0, 0],
        "segmentation": [],
    }


def box_sizes(source: LabelSource, table: LabelTable) -> npt.NDArray[np.float64] | None:
    """Return the share of its picture that the largest box of each pair of a table fills.

    Args:
        source: The file that the table was read from.
        table: Its labels.

    Returns:
        ``(images, classes)``, 0 where there is no box; None if this is not such a file.
    """
    if not has_parts(source):
        return None
    content = source.json
    images = {image["id"]: image for image in content["images"]}
    classes = {one["id"]: one.get("name") for one in content["categories"]}
    rows = {name: row for row, name in enumerate(table.images.to_pylist())}
    columns = {name: column for column, name in enumerate(table.classes)}
    sizes = np.zeros((len(rows), len(columns)))
    for one in content["annotations"]:
        image = images.get(one.get("image_id"), {})
        row = rows.get(str(image.get("file_name")))
        column = columns.get(str(classes.get(one["category_id"])))
        box, area = one.get("bbox"), image.get("width", 0) * image.get("height", 0)
        if row is not None and column is not None and box and area:
            sizes[row, column] = max(sizes[row, column], box[2] * box[3] / area)
    return sizes
