"""Tables from what a program holds: lists of labels, and DataFrames of pandas or polars."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hilltop.data.assemble import Collector
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.registry import read_labels
from hilltop.data.formats.text.folder_files import write_lines
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import ArgumentError, ArgumentTypeError, DataError, OptionNeeded

_FRAME = "the DataFrame"


def table_from_lists(
    images: Iterable[str],
    labels: Iterable[Iterable[str | int]],
    classes: Sequence[str] | None,
    *,
    unlisted: State,
) -> LabelTable:
    """Build a table from image ids and, for each, a list of its labels.

    Example:
        >>> LabelTable.from_lists(["a.jpg", "b.jpg"], [["cat"], []], ["cat", "dog"])
        LabelTable(2 images, 2 classes, 1 present, 0 absent, 3 unknown)
    """
    ids, lists = [str(image) for image in images], list(labels)
    if len(ids) != len(lists):
        raise ArgumentError(
            f"labels must have a list for each of {len(ids)} images, not {len(lists)}."
        )
    if len(set(ids)) < len(ids):
        raise ArgumentError("images must all differ, but some stand more than once.")
    collector = Collector(Path("labels"), classes)
    for image, names in zip(ids, lists, strict=True):
        if isinstance(names, str):
            raise ArgumentTypeError(
                f"labels of image {image!r} must be a list, but are the text {names!r}."
                f" Write [{names!r}]."
            )
        row = collector.image(image)
        for name in names:
            collector.label(row, _name(name, classes), State.PRESENT)
    table = collector.table(unlisted=unlisted, sort_classes=True)
    return replace(table, history=(Step("from_lists", {"images": len(ids)}),))


def table_from_dataframe(
    frame: Any, classes: Sequence[str] | None, *, format: str | None, options: ReadOptions
) -> LabelTable:
    """Read a DataFrame as a Parquet file with the same columns would be.

    Args:
        frame: Anything with ``columns`` and, for each, ``frame[name].to_list()``.
        classes: The closed list of classes.
        format: Name of the format; None recognises it from the columns.
        options: What the columns leave open, as the flags of the command line say it:
            ``ReadOptions(unlisted="unknown", label_column="tags")``.
    """
    try:
        columns = {str(name): frame[name].to_list() for name in frame.columns}
    except (AttributeError, TypeError) as error:
        raise ArgumentTypeError(
            f"Expected a DataFrame of pandas or polars, but got {type(frame).__name__}."
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        path, names = Path(folder) / "frame.parquet", Path(folder) / "classes.txt"
        if classes is not None:
            write_lines(names, classes)
            options = replace(options, classes=names)
        try:
            pq.write_table(
                pa.table({name: _column(cells) for name, cells in columns.items()}), path
            )
            table = read_labels(path, format=format, options=options)
        except pa.ArrowException as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise DataError(f"{_FRAME} holds a column of mixed types: {reason}.") from None
        except OptionNeeded as error:
            raise OptionNeeded(str(error).replace(str(path), _FRAME)) from None
        except DataError as error:
            raise DataError(str(error).replace(str(path), _FRAME)) from None
    step = Step("from_dataframe", {"rows": len(frame), "columns": len(columns)})
    return replace(table, history=(step, *table.history[1:]))


def _column(cells: list[Any]) -> pa.Array:
    """A column; NaN is how pandas writes a blank."""
    return pa.array(None if isinstance(cell, float) and isnan(cell) else cell for cell in cells)


def _name(label: str | int, classes: Sequence[str] | None) -> str:
    if isinstance(label, str):
        return label
    if classes is None:
        raise ArgumentError(f"labels hold the number {label!r}; pass classes to name the numbers.")
    if not 0 <= int(label) < len(classes):
        raise ArgumentError(f"labels hold {label!r}, which is no number of {len(classes)} classes.")
    return classes[int(label)]
