"""Shapes that labels take in JSON: lists of names, of numbers, of objects, and where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from hilltop.data.formats.text.dialect import looks_like_file
from hilltop.data.formats.text.known_names import is_image_name, is_label_name

NAME_KEYS = (
    *("name", "names", "category", "categories", "label", "labels", "class", "class_name"),
    *("tag", "tags", "tagName", "title", "displayName", "display_name", "classTitle"),
    *("category_name", "categoryName", "concept", "labelName", "value"),
)
"""Keys of an object within a list of labels that hold its name, or a list of names."""
_OBJECTS = ("annotations", "objects", "shapes", "regions", "instances", "concepts")
"""Keys of lists of objects, each of which has a name."""
MISSING = object()
TEXT, NUMBER, EMPTY, BLANK, UNUSABLE = "text", "number", "[]", "", "?"
TEXTS, NUMBERS, FRACTIONS, MIXED = "list of text", "list of numbers", "list of 0.0", "mixed list"
LISTS = (TEXTS, NUMBERS, FRACTIONS, MIXED, EMPTY)
SEPARATORS = re.compile(r"[,;|]")
_MOST = 1 << 62
_TYPES = {
    **{TEXT: pa.string(), NUMBER: pa.int64()},
    **{NUMBERS: pa.list_(pa.int64()), FRACTIONS: pa.list_(pa.float64())},
}


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """The record with a key within a key as ``outer.inner``, and names in place of objects."""
    for name in [name for name, value in record.items() if isinstance(value, dict) and value]:
        record.update({f"{name}.{key}": value for key, value in record.pop(name).items()})
    for name, value in record.items():
        if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
            record[name] = object_names(value)
    return record


def object_names(parts: list[dict[str, Any]]) -> list[Any]:
    """The names of objects that say more than a name; the objects as they are if one has none."""
    for key in NAME_KEYS:
        if all(key in part and _can_name(key, part[key]) for part in parts):
            found = (part[key] for part in parts)
            named = [name for one in found for name in (one if isinstance(one, list) else [one])]
            return list(dict.fromkeys(name for name in named if name is not None))
    return parts


def _can_name(key: str, value: Any) -> bool:
    """Whether what stands under a key is a name; under ``value`` a number is a score."""
    return kind_of(value) != UNUSABLE and not (key == "value" and is_number(value))


def is_label_list(value: Any) -> bool:
    """Whether a value is a list of names, of numbers, or of objects with a name."""
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        value = object_names(value)
    return isinstance(value, list) and kind_of(value) != UNUSABLE


def records_in(content: Any) -> list[Any] | None:
    """The objects with images and labels in a document, wherever they stand; None without any.

    They are a list; the values of an object whose keys name the images; or one of these under
    some key, of which the first with images and labels is taken.
    """
    if isinstance(content, list) and content and all(map(_is_pair, content)):
        return [{"image": name, "labels": labels} for name, labels in content]
    if isinstance(content, list) and content and all(isinstance(one, list) for one in content):
        content = [record for one in content for record in one]
    if isinstance(content, list):
        return content if content and isinstance(content[0], dict) else None
    if not isinstance(content, dict) or not content:
        return None
    whole = _from_columns(content) or _from_one_image(content) or _from_names(content)
    if whole is not None:
        return whole
    if all(is_label_list(value) for value in content.values()) and not any(
        isinstance(part, dict) for value in content.values() for part in value
    ):
        return [{"image": name, "labels": labels} for name, labels in content.items()]
    for part in _parts(content):
        if has_labels(part[0]):
            return part
    if all(is_label_list(value) for value in content.values()):
        return [{"image": name, "labels": labels} for name, labels in content.items()]
    return [content] if has_labels(content) else None


def _is_pair(one: Any) -> bool:
    """Whether a list is a name and its labels: ``["a.jpg", ["cat"]]``."""
    return (
        isinstance(one, list)
        and len(one) == len(("image", "labels"))
        and isinstance(one[0], str)
        and isinstance(one[1], list)
        and kind_of(one[1]) != UNUSABLE
    )


def _from_columns(content: dict[str, Any]) -> list[Any] | None:
    """Records of a table that is written as names of columns and rows, as pandas can."""
    names, rows = content.get("columns"), content.get("data")
    if not isinstance(names, list) or not isinstance(rows, list) or not rows:
        return None
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return None
    return [dict(zip(map(str, names), row, strict=True)) for row in rows]


def _from_one_image(content: dict[str, Any]) -> list[Any] | None:
    """The document itself where it names one file and the objects in it."""
    objects = [key for key, value in content.items() if is_object_list(key) and value]
    files = [
        value
        for key, value in content.items()
        if isinstance(value, str) and is_image_name(key) and looks_like_file(value)
    ]
    named = all(is_label_list(content[key]) for key in objects)
    sized = any("width" in key.lower() for key in content) and not any(
        isinstance(value, list) for key, value in content.items() if key not in objects
    )
    return [content] if len(objects) == 1 and (files or sized) and named else None


def _from_names(content: dict[str, Any]) -> list[Any] | None:
    """Records of files with labels in one text each, or of classes with their files."""
    values = [*content.values()]
    if all(isinstance(value, str) for value in values) and all(map(looks_like_file, content)):
        return [{"image": name, "labels": text} for name, text in content.items()]
    if any(map(looks_like_file, content)) or not all(map(_are_file_names, values)):
        return None
    of_image: dict[str, list[str]] = {}
    for name, files in content.items():
        for file in files:
            of_image.setdefault(file, []).append(name)
    return [{"image": file, "labels": names} for file, names in of_image.items()] or None


def _are_file_names(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, str) and looks_like_file(one) for one in value
    )


def _parts(content: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Lists of objects: the document itself by its keys, what stands under each, and below it."""
    inner = [one for value in content.values() if isinstance(value, dict) for one in value.values()]
    for value in (content, *content.values(), *(one for one in inner if isinstance(one, list))):
        if isinstance(value, dict) and value and all(isinstance(x, dict) for x in value.values()):
            yield [{"key": key, **inner} for key, inner in value.items()]
        elif isinstance(value, list) and value and all(isinstance(x, dict) for x in value):
            yield value


def has_labels(record: Any) -> bool:
    """Whether an object names an image and its labels."""
    if not isinstance(record, dict):
        return False
    names = flat(dict(record))
    return any(map(is_image_name, names)) and any(is_label_key(key, names[key]) for key in names)


def is_label_key(name: str, value: Any) -> bool:
    """Whether a key holds labels: by its name, or as a list of objects that have names."""
    return is_label_name(name) or (is_object_list(name) and is_label_list(value))


def is_object_list(name: str) -> bool:
    """Whether a key of this name is known to hold objects, each of which has a name."""
    return name.rpartition(".")[2] in _OBJECTS


def is_number(value: Any) -> bool:
    """Whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def kind_of(value: Any) -> str:
    """What a cell of labels is."""
    if value is None or value is MISSING:
        return BLANK
    if isinstance(value, str):
        return TEXT
    if is_number(value):
        return NUMBER if abs(value) < _MOST else UNUSABLE
    if not isinstance(value, list):
        return UNUSABLE
    if all(isinstance(part, str) for part in value):
        return TEXTS if value else EMPTY
    if all(is_number(part) and abs(part) < _MOST for part in value):
        return NUMBERS
    if all(part in (0, 1, -1) for part in value if isinstance(part, float | int | bool)) and all(
        isinstance(part, float | int | bool) for part in value
    ):
        return FRACTIONS
    return MIXED if all(isinstance(part, str) or is_number(part) for part in value) else UNUSABLE


def as_array(values: Sequence[Any], kinds: Sequence[str]) -> pa.Array:
    """Values of usable kinds as one column."""
    given = {kind for kind in kinds if kind not in (BLANK, EMPTY)}
    lists = EMPTY in kinds or any(kind in LISTS for kind in given)
    cells = [None if value is MISSING else value for value in values]
    if lists:
        cells = [one if one is None or isinstance(one, list) else [one] for one in cells]
        given = {{TEXT: TEXTS, NUMBER: NUMBERS}.get(kind, kind) for kind in given}
    if given == {NUMBERS, FRACTIONS}:
        given = {FRACTIONS}
    if len(given) == 1 and MIXED not in given:
        usual = next(iter(given))
        return pa.array(cells, _TYPES.get(usual, pa.list_(pa.string())))
    if lists:
        names = [one if one is None else [str(part) for part in one] for one in cells]
        return pa.array(names, pa.list_(pa.string()))
    words = [one if one is None else str(one) for one in cells]
    return pa.array(words, pa.string() if given else pa.list_(pa.string()))
