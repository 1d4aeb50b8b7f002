"""Which columns of a table hold one class a row, and a value that says whether it is there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hilltop.data.formats.text.cell_values import BLANK, OTHER, cell_kind, cell_number
from hilltop.data.formats.text.column_roles import Sample
from hilltop.data.formats.text.known_names import is_class_name, is_label_name
from hilltop.data.formats.text.separators import find_separator

_VALUE_NAMES = frozenset(
    (
        *("value", "values", "state", "present", "presence", "ispresent", "exists", "isthere"),
        *("confidence", "conf", "score", "scores", "prob", "probability", "relevance", "weight"),
        "answer",
    )
)


def value_columns(sample: Sample, image: str) -> tuple[str, str] | None:
    """Return the column of classes and that of values; None where there is no such pair.

    Of a column of classes, cells hold one class each. A column of values is known by its name, or
    is called like labels where another column of classes stands beside it, and holds numbers.
    """
    named = [name for name in sample if name != image and _is_class_column(name, sample[name])]
    if len(named) > 1:
        single = [name for name in named if is_class_name(name)]
        named = single if len(single) == 1 else named[:1]
    if not named:
        return None
    called = [name for name in sample if name not in (image, named[0])]
    values = [name for name in called if _plain(name) in _VALUE_NAMES]
    values = values or [name for name in called if is_label_name(name)]
    values = [name for name in values if _holds_values(sample[name])]
    return (named[0], values[0]) if len(values) == 1 else None


def _is_class_column(name: str, cells: Sequence[Any]) -> bool:
    words = [str(cell) for cell in cells if cell is not None and str(cell).strip()]
    if not words or not any(cell_kind(word) == OTHER for word in words):
        return False
    if is_class_name(name):
        return True
    found = find_separator(words)
    return is_label_name(name) and (found.mark is None or not found.certain)


def _holds_values(cells: Sequence[Any]) -> bool:
    kinds = [cell_kind(cell) for cell in cells]
    numbers = (
        cell_number(str(cell)) for cell, kind in zip(cells, kinds, strict=True) if kind == OTHER
    )
    return any(kind != BLANK for kind in kinds) and all(number is not None for number in numbers)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())
