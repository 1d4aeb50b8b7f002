"""JSON in which every object of an image has a list of values, one for each class: WIDER Attribute.

Names of the classes stand beside the images, as an object from numbers to names. A class that one
object has is present; what is said of others is -1 where no object has it, 0 where nobody could
tell: the options say what that means.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from hilltop.data.data_errors import data_error
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.cell_values import BLANK, MINUS_ONE, ONE, ZERO, Kinds
from hilltop.data.formats.text.known_names import is_image_name
from hilltop.data.formats.text.label_vectors import table_from_vectors
from hilltop.data.label_table import LabelTable
from hilltop.errors import DataError

_RANK = {1: ONE, 0: ZERO, -1: MINUS_ONE}
_ORDER = (ONE, ZERO, MINUS_ONE, BLANK)
"""What one object says counts for the image before what those behind it say."""


class _Objects:
    """The images of a document, with the values of all their objects."""

    def __init__(self, source: LabelSource) -> None:
        content = source.json
        self.path, self.notes = (
            source.path,
            ["a class is present if one object of an image has it."],
        )
        self.classes = _names(content)
        images = content.get("images") if isinstance(content, dict) else None
        self.records = (
            [one for one in images or [] if isinstance(one, dict)] if self.classes else []
        )
        self.names = [_image(one) for one in self.records]
        self.values = [_values(one, len(self.classes)) for one in self.records]

    def line_of(self, row: int) -> int:
        """Number of an image, counted from 1."""
        return row + 1

    @property
    def is_whole(self) -> bool:
        """Whether all images have a name, and some objects values."""
        return bool(self.names) and all(self.names) and any(self.values)


def fits(source: LabelSource) -> bool:
    """Whether there are names by number, and images with objects that have as many values."""
    if (
        source.is_folder
        or not source.head.lstrip().startswith("{")
        or '"images"' not in source.head
    ):
        return False
    try:
        return _Objects(source).is_whole
    except DataError:
        return False


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read what the objects of every image say together."""
    found = _Objects(source)
    if not found.is_whole:
        raise data_error(source.path, "expected images with objects, and values for each class.")
    kinds: Kinds = np.array(
        [_together(one, len(found.classes)) for one in found.values], dtype=np.int8
    )
    images = pa.array(found.names, pa.string()).dictionary_encode()
    return table_from_vectors(
        found, images, kinds, options, format="object_values", classes=found.classes
    )


def _names(content: Any) -> list[str]:
    """The names of classes: of objects from 0, 1, 2, ... to names, that of attributes or most."""
    if not isinstance(content, dict):
        return []
    found = {
        key: list(value.values())
        for key, value in content.items()
        if isinstance(value, dict)
        and list(value) == [str(at) for at in range(len(value))]
        and all(isinstance(name, str) and name for name in value.values())
    }
    called = [
        names for key, names in found.items() if "attr" in key.lower() or "class" in key.lower()
    ]
    names = max(called or found.values(), key=len, default=[])
    return names if len(set(names)) == len(names) > 1 else []


def _image(record: dict[str, Any]) -> str:
    named = [
        value for key, value in record.items() if is_image_name(key) and isinstance(value, str)
    ]
    return named[0] if named else ""


def _values(record: dict[str, Any], width: int) -> list[list[int]]:
    """The lists of values of all objects of an image."""
    objects = [one for value in record.values() if isinstance(value, list) for one in value]
    lists = [
        value
        for one in objects
        if isinstance(one, dict)
        for value in one.values()
        if isinstance(value, list) and len(value) == width
    ]
    return [one for one in lists if all(type(value) is int and value in _RANK for value in one)]


def _together(values: list[list[int]], width: int) -> list[int]:
    said = [{_RANK[value] for value in column} for column in zip(*values, strict=True)]
    return [next(kind for kind in _ORDER if kind in one) for one in said] or [BLANK] * width


FORMAT = Format(
    name="object_values",
    summary="JSON with a value for each class in every object of an image, as WIDER Attribute.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=ReadOnly("Such files hold the places of objects"),
)
