"""Tables from what a program holds: lists of labels, matrices, and DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.checks import pluralize
from hilltop.data.assemble import Collector, assemble
from hilltop.data.content import Source
from hilltop.data.formats import detect, named_table, read
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.layout import Ambiguous, ReadOptions, read_options
from hilltop.data.state import State
from hilltop.errors import ArgumentError, ArgumentTypeError, DataError


def table_from_lists(
    images: Iterable[str],
    labels: Iterable[Iterable[str | int]],
    classes: Sequence[str] | None,
    *,
    unlisted: State,
) -> LabelTable:
    """Build a table from image ids and, for each, a list of its labels."""
    ids = _ids(images)
    _check_classes(classes)
    if isinstance(labels, np.ndarray) and labels.ndim == 2:
        raise ArgumentTypeError(
            f"labels must hold a list for each image, but are a matrix {labels.shape}. Use"
            " LabelTable.from_matrix for 0 and 1."
        )
    lists = list(labels)
    if len(ids) != len(lists):
        raise ArgumentError(
            f"labels must have a list for each of {len(ids)} images, not {len(lists)}."
        )
    if classes is not None and _looks_multi_hot(lists, len(classes)):
        raise ArgumentError(
            f"labels hold a 0 or 1 for each of {len(classes)} classes, but a list of labels names"
            " the classes that are present. Use LabelTable.from_matrix."
        )
    collector = Collector(Path("labels"), classes)
    for image, names in zip(ids, lists, strict=True):
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ArgumentTypeError(
                f"labels of image {image!r} must be a list, but are {names!r}. Write [{names!r}]."
            )
        row = collector.image(image)
        for name in names:
            collector.label(row, _name(name, classes), State.PRESENT)
    table = collector.table(unlisted=unlisted, sort_classes=True)
    return replace(table, history=(Step("from_lists", {"images": len(ids)}),))


def table_from_matrix(
    images: Iterable[str],
    matrix: npt.ArrayLike,
    classes: Sequence[str],
    *,
    zero: State,
) -> LabelTable:
    """Build a table from a matrix of 1, 0 and NaN."""
    ids = _ids(images)
    _check_classes(classes)
    values = np.asarray(matrix)
    if values.shape != (len(ids), len(classes)):
        raise ArgumentError(
            f"matrix must have the shape ({len(ids)}, {len(classes)}) of images and classes, but"
            f" has {values.shape}."
        )
    if values.dtype != bool and not np.issubdtype(values.dtype, np.number):
        raise ArgumentTypeError(f"matrix must hold numbers, but holds {values.dtype}.")
    numbers = values.astype(np.float64)
    known = np.isnan(numbers) | (numbers == 0) | (numbers == 1)
    if not known.all():
        raise ArgumentError(
            f"matrix must hold 1 (present), 0 and NaN (unknown), but got {numbers[~known][0]!r}."
            " If -1 means absent, write 0 and pass zero='absent'; if unknown, write NaN."
        )
    states = np.where(numbers == 1, State.PRESENT, zero).astype(np.int8)
    states[np.isnan(numbers)] = State.UNKNOWN
    rows, columns = np.nonzero(states != zero)
    step = Step("from_matrix", {"images": len(ids)})
    return assemble(
        pa.array(ids, pa.string()),
        list(classes),
        rows,
        columns,
        states[rows, columns],
        unlisted=zero,
        step=step,
    )


def table_from_dataframe(
    frame: Any,
    *,
    image: str | None,
    label: str | Sequence[str] | None,
    classes: Sequence[str] | None,
    delimiter: str | None,
    format: str | None,
    options: ReadOptions | None,
    **keywords: Any,
) -> LabelTable:
    """Read a DataFrame as any other table; nothing is inferred that was given."""
    said = read_options(keywords, options)
    if not hasattr(frame, "columns"):
        raise ArgumentTypeError(
            f"Expected a DataFrame of pandas or polars, but got {type(frame).__name__}."
        )
    names = [str(name) for name in frame.columns]
    if image is not None:
        said = replace(said, image_column=str(image))
    if label is not None:
        columns = [label] if isinstance(label, str) else [str(one) for one in label]
        said = replace(said, label_columns=columns[0] if len(columns) == 1 else _quoted(columns))
    if delimiter is not None:
        said = replace(said, delimiter=delimiter)
    closed = None if classes is None else [str(name) for name in classes]
    _check_classes(closed)
    if closed is not None and label is None and set(closed) <= set(names) and format is None:
        said = replace(said, class_columns=_quoted(closed))
    source = Source(Path("the DataFrame"), frame=frame)
    try:
        found = detect(source, said, format=format, classes=closed)
        if isinstance(found, Ambiguous):
            raise found.error()
        table = named_table(read(source, found), source.path, said)
    except pa.ArrowException as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise DataError(f"the DataFrame holds a column that is no text: {reason}.") from None
    step = Step("from_dataframe", {"rows": len(frame), "columns": len(names)})
    return replace(table, history=(step, *table.history[1:]))


def _quoted(names: Sequence[str]) -> str:
    """Names of columns as the options take them."""
    return ",".join('"' + name.replace('"', '""') + '"' for name in names)


def _ids(images: Iterable[str]) -> list[str]:
    ids = list(images)
    wrong = next((one for one in ids if one is None or (isinstance(one, float) and one != one)), "")
    if wrong != "":
        raise ArgumentError(f"images must all have a name, but got {wrong!r}.")
    names = [str(one) for one in ids]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(f"images must all differ, but {twice!r} is there more than once.")
    return names


def _check_classes(classes: Sequence[str] | None) -> None:
    if classes is None:
        return
    if isinstance(classes, str):
        raise ArgumentTypeError(f"classes must be a list of names, but are the text {classes!r}.")
    names = list(classes)
    if not all(isinstance(name, str) and name for name in names):
        wrong = next(name for name in names if not isinstance(name, str) or not name)
        raise ArgumentTypeError(f"classes must be names, but got {wrong!r}.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(f"classes must all differ, but {twice!r} is there more than once.")


def _looks_multi_hot(lists: Sequence[Any], classes: int) -> bool:
    """Whether every list is as long as there are classes and repeats 0 or 1."""
    rows = [list(one) for one in lists if isinstance(one, Iterable) and not isinstance(one, str)]
    if len(rows) < len(lists) or not rows or any(len(row) != classes for row in rows):
        return False
    numbers = all(
        isinstance(one, int | float | np.generic) and one in (0, 1) for row in rows for one in row
    )
    return numbers and any(len(set(row)) < len(row) for row in rows)


def _name(label: Any, classes: Sequence[str] | None) -> str:
    if isinstance(label, str):
        return label
    if isinstance(label, bool) or not isinstance(label, int | np.integer):
        raise ArgumentTypeError(f"labels must be names or class numbers, but hold {label!r}.")
    if classes is None:
        raise ArgumentError(f"labels hold the number {label!r}; pass classes to name the numbers.")
    if not 0 <= int(label) < len(classes):
        known = pluralize(len(classes), "class", "classes")
        raise ArgumentError(f"labels hold {label!r}, which is no number of {known}.")
    return classes[int(label)]
