"""COCO and LVIS JSON: images, categories, and annotations that join them.

COCO's files do not say whether a class without an annotation was looked for, so unlisted pairs are
open and the user settles them. LVIS judges a class only on some images: annotated classes are
present, those in ``neg_category_ids`` are absent, and all other pairs are unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.checks import pluralize
from hilltop.data.content import Source
from hilltop.data.data_errors import ErrorCollector, data_error, unknown_class
from hilltop.data.documents import (
    Edit,
    Span,
    edit_elements,
    elements,
    first_value,
    is_text,
    members,
    replace_spans,
)
from hilltop.data.files import atomic_write
from hilltop.data.format import (
    FilePatch,
    Format,
    Patched,
    check_lossless,
    check_present_only,
    with_listed_absents,
)
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.data.layout import Layout
from hilltop.errors import DataError

JsonObject = dict[str, Any]
PARTS = ("images", "annotations", "categories")
NEGATIVE = "neg_category_ids"
_PARTIAL = "not_exhaustive_category_ids"
_PART_BEGINS = re.compile(r'"(images|annotations)"\s*:\s*\[')


def read_coco(source: Source, layout: Layout) -> LabelTable:
    """Read a COCO file; any annotation of a class, crowd or not, makes it present.

    Image ids are the file names, or the numeric ids where there is no file name.
    """
    parsed = _parse_parts(source, layout, _coco_image_name)
    parsed.errors.check()
    skipped = sum(NEGATIVE in image for image in parsed.images)
    have = pluralize(skipped, "image has", "images have")
    notes = [f"{have} {NEGATIVE}, which only the format lvis reads."] if skipped else []
    return LabelTable.from_coo(
        parsed.names,
        parsed.classes,
        parsed.rows,
        parsed.columns,
        State.PRESENT,
        unlisted=layout.unlisted,
        source=source.path,
        step=Step("read", {"file": str(source.path), "format": "coco"}),
        notes=notes,
    )


def read_lvis(source: Source, layout: Layout) -> LabelTable:
    """Read an LVIS file; image ids are the file names, or the ends of ``coco_url``."""
    parsed = _parse_parts(source, layout, _lvis_image_name)
    rows, columns = _negatives(parsed)
    parsed.errors.check()
    states = [State.PRESENT] * len(parsed.rows) + [State.ABSENT] * len(rows)
    return LabelTable.from_coo(
        parsed.names,
        parsed.classes,
        parsed.rows + rows,
        parsed.columns + columns,
        np.array(states, dtype=np.int8),
        unlisted=layout.unlisted,
        source=source.path,
        step=Step("read", {"file": str(source.path), "format": "lvis"}),
    )


def write_coco(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write one annotation for each present pair.

    Sizes and boxes are not known to a table. They are written as zeros, because readers such as
    pycocotools and detectron2 look the keys up; an area of 0 and the mark of a crowd, which
    detectors leave out, say that there is no box.
    """
    check_present_only(table, path, lossy)
    images = [
        _image_record(number, name) for number, name in enumerate(table.images.to_pylist(), 1)
    ]
    categories = [
        {"id": number, "name": name, "supercategory": ""}
        for number, name in enumerate(table.classes, 1)
    ]
    _write_parts(path, images, _annotation_records(table), categories)
    return Layout("coco", unlisted=table.unlisted)


def write_lvis(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write present pairs as annotations without extent, and absent ones as negatives.

    Categories carry the counts and frequency groups that LVIS's evaluation looks up.
    """
    table = with_listed_absents(table)
    check_lossless(
        table, path, lossy, states=(State.PRESENT, State.ABSENT), unlisted=(State.UNKNOWN,)
    )
    images = []
    for row, name in enumerate(table.images.to_pylist()):
        entries = slice(table.indptr[row], table.indptr[row + 1])
        absent = table.columns[entries][table.states[entries] == State.ABSENT] + 1
        images.append({**_image_record(row + 1, name), NEGATIVE: absent.tolist(), _PARTIAL: []})
    counts = table.counts_by_class(State.PRESENT).tolist()
    categories = [
        _category(number, name, count)
        for number, (name, count) in enumerate(zip(table.classes, counts, strict=True), 1)
    ]
    _write_parts(path, images, _annotation_records(table), categories)
    return Layout("lvis")


def patch_coco(asked: FilePatch) -> Patched:
    """Add annotations without extent, and take out those of labels that were wrong."""
    said, text = asked.without_absents(), asked.text
    parts = dict(members(text, first_value(text)))
    return said.patched(replace_spans(text, _annotation_edits(said, parts, _coco_image_name)))


def patch_lvis(asked: FilePatch) -> Patched:
    """As in COCO; absents go to ``neg_category_ids``."""
    said = asked.without_absents() if asked.layout.unlisted == State.ABSENT else asked
    text = said.text
    parts = dict(members(text, first_value(text)))
    edits = _annotation_edits(said, parts, _lvis_image_name)
    category = _category_ids(parts)
    for image in elements(text, parts["images"].start):
        wanted = said.of(_lvis_image_name(image.value))
        if wanted:
            ids = {category[one.class_name]: one.state for one in wanted}
            negatives = dict(members(text, image.start))[NEGATIVE]
            listed = set(negatives.value)
            new = [key for key, state in ids.items() if state == State.ABSENT and key not in listed]
            wrong = [key for key, state in ids.items() if state != State.ABSENT]
            edits.append(edit_elements(text, negatives, new, wrong.__contains__))
    return said.patched(replace_spans(text, edits))


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


def has_parts(source: Source) -> bool:
    """Whether the file holds COCO's lists, or begins like it and then breaks off."""
    if source.start != "{":
        return False
    try:
        content = source.json
    except DataError:
        # A file that was cut off is still recognised, so that the reader can say where.
        return _PART_BEGINS.search(source.head) is not None
    if not all(isinstance(content.get(part), list) for part in PARTS):
        return False
    return bool(content["categories"]) or not content["annotations"]  # else captions


def _has_negatives(source: Source) -> bool:
    """Whether any image lists confirmed absents, as in LVIS."""
    try:
        images = source.json["images"]
    except DataError:
        return f'"{NEGATIVE}"' in source.head
    return any(isinstance(image, dict) and NEGATIVE in image for image in images)


def _parse_parts(
    source: Source, layout: Layout, image_name: Callable[[JsonObject], Any]
) -> CocoParts:
    """Read the lists and resolve ids; errors are collected, not raised, for the caller to add to.

    Args:
        source: The file.
        layout: Whose class list, if any, replaces the order of the categories.
        image_name: From the record of an image to its id in the table.
    """
    errors = ErrorCollector(source.path)
    parts = _parts(source)
    images = list(_records(parts["images"], "images", ("id",), errors))
    categories = list(_records(parts["categories"], "categories", ("id", "name"), errors))
    row_of, names = _number(images, "images", image_name, errors)
    column_of, classes = _number(categories, "categories", lambda record: record["name"], errors)
    closed = None if layout.classes is None else list(layout.classes)
    if closed is not None:
        column_of = _in_list(column_of, classes, closed, errors)
    errors.check()
    rows, columns = _join(parts["annotations"], row_of, column_of, errors)
    records = [record for _, record in images]
    chosen = classes if closed is None else closed
    return CocoParts(names, chosen, records, column_of, rows, columns, errors)


def _coco_image_name(image: JsonObject) -> Any:
    """The file name, or the id as text where there is none."""
    return image.get("file_name", str(image["id"]))


def _image_record(number: int, name: str) -> JsonObject:
    """The record of one image."""
    return {"id": number, "file_name": name, "width": 0, "height": 0}


def _annotation_records(table: LabelTable) -> list[JsonObject]:
    """One annotation without extent for each present pair."""
    chosen = table.states == State.PRESENT
    pairs = zip(table.rows[chosen].tolist(), table.columns[chosen].tolist(), strict=True)
    return [
        _annotation(number, row + 1, column + 1) for number, (row, column) in enumerate(pairs, 1)
    ]


def _write_parts(
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


def _parts(source: Source) -> dict[str, list[Any]]:
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
        if not _is_id(key):
            errors.add(f"record {number} of {kind!r}: id must be a number, but got {key!r:.60}.")
        elif key in places:
            errors.add(f"record {number} of {kind!r}: id {key!r} is used before. Ids must differ.")
        elif not is_text(word):
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
        if not _is_id(image) or image not in row_of:
            known = pluralize(len(row_of), "image", "images")
            errors.add(f"{place}: image_id {image!r:.60} is not among the {known}.")
        elif not _is_id(category) or category not in column_of:
            known = pluralize(len(column_of), "category", "categories")
            errors.add(f"{place}: category_id {category!r:.60} is not among the {known}.")
        elif "id" in record and (not _is_id(own) or own in ids):
            errors.add(f"{place}: id {own!r:.60} is not a number or is used before. Renumber it.")
        else:
            rows.append(row_of[image])
            columns.append(column_of[category])
            ids.add(own)
    return rows, columns


def _is_id(value: Any) -> bool:
    """Whether a value can be an id: a whole number, or text as some tools write it."""
    return isinstance(value, int | str) and not isinstance(value, bool)


def _annotation_edits(
    said: FilePatch, parts: dict[str, Span], image_name: Callable[[JsonObject], Any]
) -> list[Edit]:
    """The edit that adds annotations without extent, and takes out those of wrong labels."""
    category = _category_ids(parts)
    records = parts["annotations"].value
    if any("segments_info" in record and "category_id" not in record for record in records):
        raise said.refused("panoptic annotations are read, but not changed.")
    used = [record.get("id") for record in records]
    highest = max((number for number in used if isinstance(number, int)), default=0)
    wanted = [(image["id"], said.of(image_name(image))) for image in parts["images"].value]
    new = [(image, category[name]) for image, changes in wanted for name in changes.added]
    gone = {(image, category[name]) for image, changes in wanted for name in changes.struck}
    if not new and not gone:
        return []
    records = [_annotation(highest + number, *pair) for number, pair in enumerate(new, 1)]

    def is_gone(record: JsonObject) -> bool:
        return (record["image_id"], record["category_id"]) in gone

    return [edit_elements(said.text, parts["annotations"], records, is_gone)]


def _category_ids(parts: dict[str, Span]) -> dict[str, Any]:
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


def box_sizes(source: Source, table: LabelTable) -> npt.NDArray[np.float64] | None:
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


def _lvis_image_name(image: JsonObject) -> Any:
    """The id of an image in the table: its file name, or the end of its address."""
    url = image.get("coco_url")
    if "file_name" not in image and isinstance(url, str):
        return url.rpartition("/")[2]
    return _coco_image_name(image)


def _negatives(parsed: CocoParts) -> tuple[list[int], list[int]]:
    rows, columns = [], []
    for row, image in enumerate(parsed.images):
        for key in (NEGATIVE, _PARTIAL):
            listed = image.get(key, [] if key == _PARTIAL else None)
            place = f"record {row + 1} of 'images'"
            if not isinstance(listed, list):
                parsed.errors.add(
                    f"{place} must have a list {key!r}. Add it, if only an empty one."
                )
                continue
            for category in listed:
                if not _is_id(category) or category not in parsed.column_of:
                    known = pluralize(len(parsed.column_of), "category", "categories")
                    parsed.errors.add(
                        f"{place}: {category!r:.60} in {key!r} is not among the {known}."
                    )
                elif key == NEGATIVE:
                    rows.append(row)
                    columns.append(parsed.column_of[category])
    return rows, columns


def _category(number: int, name: str, count: int) -> JsonObject:
    # LVIS: rare is at most 10 images, common at most 100.
    group = "r" if count <= 10 else "c" if count <= 100 else "f"
    return {
        "id": number,
        "name": name,
        "synset": "",
        "synonyms": [name],
        "def": "",
        "image_count": count,
        "instance_count": count,
        "frequency": group,
    }


FORMAT = Format(
    name="coco",
    summary="COCO instances JSON: images, annotations and categories.",
    matches=lambda source: has_parts(source) and not _has_negatives(source),
    read=read_coco,
    write=write_coco,
    patch=patch_coco,
    begins="{",
    file_names=True,
    boxes=True,
)
LVIS = Format(
    name="lvis",
    summary="LVIS JSON: COCO's lists, and confirmed absents in neg_category_ids.",
    matches=lambda source: has_parts(source) and _has_negatives(source),
    read=read_lvis,
    unlisted=State.UNKNOWN,
    write=write_lvis,
    patch=patch_lvis,
    begins="{",
    file_names=True,
    boxes=True,
)
