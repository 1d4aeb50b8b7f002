"""COCO instances JSON: images, categories, and annotations that join them.

COCO's files do not say whether a class without an annotation was looked for, so unlisted pairs are
open and the user settles them. LVIS, which adds confirmed absents, lives in ``lvis.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilltop.checks import pluralize
from hilltop.data.assemble import assemble
from hilltop.data.data_errors import ErrorCollector, data_error, unknown_class
from hilltop.data.formats.base import Format, ReadOptions, Source
from hilltop.data.formats.express import check_expressible
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.errors import DataError

Record = dict[str, Any]
PARTS = ("images", "annotations", "categories")
NEGATIVE = "neg_category_ids"
_PART_BEGINS = re.compile(r'"(images|annotations)"\s*:\s*\[')


@dataclass
class Parsed:
    """What a COCO or LVIS file says, with ids resolved to rows and columns."""

    names: list[str]
    classes: list[str]
    images: list[Record]
    column_of: dict[Any, int]
    rows: list[int]
    columns: list[int]
    faults: ErrorCollector


def fits(source: Source) -> bool:
    """Whether this is JSON with COCO's three lists, and without LVIS's confirmed absents."""
    return has_parts(source) and not has_negatives(source)


def read(source: Source, options: ReadOptions) -> LabelTable:
    """Read a COCO file; any annotation of a class, crowd or not, makes it present.

    Image ids are the file names, or the numeric ids where there is no file name.
    """
    parsed = parse(source, options, name_of)
    parsed.faults.check()
    skipped = sum(NEGATIVE in image for image in parsed.images)
    return assemble(
        parsed.names,
        parsed.classes,
        parsed.rows,
        parsed.columns,
        State.PRESENT,
        unlisted=options.need_unlisted(source.path),
        source=source.path,
        step=Step("read", {"file": str(source.path), "format": "coco"}),
        notes=[
            f"{NEGATIVE} of {pluralize(skipped, 'image', 'images')} were not read; the format lvis"
            " reads them."
        ]
        if skipped
        else [],
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write one annotation for each present pair.

    Sizes and boxes are not known to a table. They are written as zeros, because readers such as
    pycocotools and detectron2 look the keys up; an area of 0 says that there is no box.
    """
    check_expressible(
        table, path, lossy, states=(State.PRESENT,), unlisted=(State.ABSENT, State.UNKNOWN)
    )
    images = [image_record(number, name) for number, name in enumerate(table.images.to_pylist(), 1)]
    categories = [
        {"id": number, "name": name, "supercategory": ""}
        for number, name in enumerate(table.classes, 1)
    ]
    write_parts(path, images, annotation_records(table), categories)


def has_parts(source: Source) -> bool:
    """Whether the file holds COCO's lists, or begins like it and then breaks off."""
    if source.is_folder or not source.head.lstrip().startswith("{"):
        return False
    try:
        content = source.json
    except DataError:
        # A file that was cut off is still recognised, so that the reader can say where.
        return _PART_BEGINS.search(source.head) is not None
    return all(isinstance(content.get(part), list) for part in PARTS)


def has_negatives(source: Source) -> bool:
    """Whether any image lists confirmed absents, as in LVIS."""
    try:
        images = source.json["images"]
    except DataError:
        return f'"{NEGATIVE}"' in source.head
    return any(isinstance(image, dict) and NEGATIVE in image for image in images)


def parse(source: Source, options: ReadOptions, image_name: Callable[[Record], Any]) -> Parsed:
    """Read the lists and resolve ids; faults are collected, not raised, for the caller to add to.

    Args:
        source: The file.
        options: Whose class list, if any, replaces the order of the categories.
        image_name: From the record of an image to its id in the table.
    """
    faults = ErrorCollector(source.path)
    parts = _parts(source)
    images = list(_records(parts["images"], "images", ("id",), faults))
    categories = list(_records(parts["categories"], "categories", ("id", "name"), faults))
    row_of, names = _number(images, "images", image_name, faults)
    column_of, classes = _number(categories, "categories", lambda record: record["name"], faults)
    closed = options.class_list()
    if closed is not None:
        column_of = _in_list(column_of, classes, closed, faults)
    faults.check()
    rows, columns = _join(parts["annotations"], row_of, column_of, faults)
    records = [record for _, record in images]
    chosen = classes if closed is None else closed
    return Parsed(names, chosen, records, column_of, rows, columns, faults)


def name_of(image: Record) -> Any:
    """The file name, or the id as text where there is none."""
    return image.get("file_name", str(image["id"]))


def image_record(number: int, name: str) -> Record:
    """The record of one image."""
    return {"id": number, "file_name": name, "width": 0, "height": 0}


def annotation_records(table: LabelTable) -> list[Record]:
    """One annotation without extent for each present pair."""
    chosen = table.states == State.PRESENT
    pairs = zip(table.rows[chosen].tolist(), table.columns[chosen].tolist(), strict=True)
    return [
        {
            "id": number,
            "image_id": row + 1,
            "category_id": column + 1,
            "iscrowd": 0,
            "area": 0,
            "bbox": [0, 0, 0, 0],
            "segmentation": [],
        }
        for number, (row, column) in enumerate(pairs, 1)
    ]


def write_parts(
    path: Path, images: list[Record], annotations: list[Record], categories: list[Record]
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
    path.write_text(text, encoding="utf-8")


def _parts(source: Source) -> dict[str, list[Any]]:
    content = source.json
    if not isinstance(content, dict):
        raise data_error(source.path, f"expected a JSON object with the lists {', '.join(PARTS)}.")
    faults = ErrorCollector(source.path)
    for part in PARTS:
        if not isinstance(content.get(part), list):
            faults.add(f"there is no list {part!r}. Expected the lists {', '.join(PARTS)}.")
    faults.check()
    return {part: content[part] for part in PARTS}


def _records(
    part: list[Any], kind: str, keys: tuple[str, ...], faults: ErrorCollector
) -> Iterator[tuple[int, Record]]:
    """Yield the sound records of a list with their numbers, counted from 1."""
    for number, record in enumerate(part, 1):
        if not isinstance(record, dict):
            faults.add(f"record {number} of {kind!r} must be an object, but got {record!r:.60}.")
            continue
        missing = [key for key in keys if key not in record]
        for key in missing:
            faults.add(f"record {number} of {kind!r} has no key {key!r}. Add it.")
        if not missing:
            yield number, record


def _number(
    records: list[tuple[int, Record]],
    kind: str,
    name: Callable[[Record], Any],
    faults: ErrorCollector,
) -> tuple[dict[Any, int], list[str]]:
    """Number the records of a list: place by id, and names by place."""
    places: dict[Any, int] = {}
    names: dict[str, int] = {}
    for number, record in records:
        key, word = record["id"], name(record)
        if not is_id(key):
            faults.add(f"record {number} of {kind!r}: id must be a number, but got {key!r:.60}.")
        elif key in places:
            faults.add(f"record {number} of {kind!r}: id {key!r} is used before. Ids must differ.")
        elif not _is_text(word):
            faults.add(f"record {number} of {kind!r}: its name must be text, but got {word!r:.60}.")
        elif word in names:
            first = names[word]
            faults.add(
                f"record {number} of {kind!r}: the name {word!r} stands in record {first} already."
                " Names must differ."
            )
        else:
            places[key] = len(places)
            names[word] = number
    return places, list(names)


def _in_list(
    column_of: dict[Any, int], classes: list[str], closed: list[str], faults: ErrorCollector
) -> dict[Any, int]:
    """Columns in the order of the user's class list, which must name every category."""
    place = {name: number for number, name in enumerate(closed)}
    for name in classes:
        if name not in place:
            faults.add(unknown_class(name, closed))
    return {key: place.get(classes[column], -1) for key, column in column_of.items()}


def _join(
    annotations: list[Any],
    row_of: dict[Any, int],
    column_of: dict[Any, int],
    faults: ErrorCollector,
) -> tuple[list[int], list[int]]:
    rows, columns = [], []
    ids: set[Any] = set()
    for number, record in _records(annotations, "annotations", ("image_id", "category_id"), faults):
        image, category, own = record["image_id"], record["category_id"], record.get("id")
        place = f"record {number} of 'annotations'"
        if not is_id(image) or image not in row_of:
            known = pluralize(len(row_of), "image", "images")
            faults.add(f"{place}: image_id {image!r:.60} is not among the {known}.")
        elif not is_id(category) or category not in column_of:
            known = pluralize(len(column_of), "category", "categories")
            faults.add(f"{place}: category_id {category!r:.60} is not among the {known}.")
        elif "id" in record and (not is_id(own) or own in ids):
            faults.add(f"{place}: id {own!r:.60} is not a number or is used before. Renumber it.")
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


FORMAT = Format(
    name="coco",
    summary="COCO instances JSON: images, annotations and categories.",
    fits=fits,
    read=read,
    write=write,
)
