"""AudioSet's segments: ``YTID, start, end, "/m/x,/m/y"`` below comment lines.

This is a table whose header is a comment. ``--classes`` takes the names of the classes from
``class_labels_indices.csv``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hilltop.data.content import Source, read_class_file, read_lines
from hilltop.data.data_errors import data_error
from hilltop.data.format import Format
from hilltop.data.layout import Ambiguous, Layout, ReadOptions
from hilltop.data.tables.infer import detect_as
from hilltop.data.tables.patch import patch_table
from hilltop.data.tables.read import read_table

_HEADER = re.compile(
    r"^#?\s*YTID\s*,\s*start_seconds\s*,\s*end_seconds\s*,\s*positive_labels", re.MULTILINE
)
_INDEX = ["index", "mid", "display_name"]


def matches(source: Source) -> bool:
    """Whether AudioSet's header stands among the first lines."""
    return _HEADER.search(source.head) is not None


def detect(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find the names of the classes; ids of classes are codes."""
    header = _HEADER.search(source.head)
    if header is None:
        return None
    found = detect_as(
        "audioset",
        source,
        replace(options, classes=None),
        "list_column",
        classes=classes,
        separator=",",
        header_row=str(source.head.count("\n", 0, header.start()) + 1),
        image_column=options.image_column,
        label_columns="positive_labels",
        delimiter=",",
    )
    if options.classes is None or found is None:
        return found
    if isinstance(found, Ambiguous):
        return replace(found, options=options)
    names = _names(options.classes)
    codes = tuple((code, at) for at, code in enumerate(names))
    return replace(found, classes=tuple(names.values()), codes=codes)


def _names(path: Path) -> dict[str, str]:
    """Names by class id: those of AudioSet's index, or the ids of a plain list themselves."""
    if not path.is_file() or not Source(path).head.startswith(",".join(_INDEX)):
        return {name: name for name in read_class_file(path)[0]}
    try:
        rows = [row for row in csv.reader(line for _, line in read_lines(path)[1:]) if row]
    except csv.Error as error:
        raise data_error(path, f"this is not valid CSV: {error}.") from None
    if any(len(row) != len(_INDEX) or not row[1] or not row[2] for row in rows):
        raise data_error(path, f"expected {', '.join(_INDEX)} on every line.")
    names = {row[1]: row[2] for row in rows}
    if len(names) < len(rows) or len(set(names.values())) < len(names):
        raise data_error(path, "a class stands twice. Ids and names must differ.")
    return names


FORMAT = Format(
    name="audioset",
    summary="AudioSet segments: a video, start, end and its labels on every line.",
    matches=matches,
    detect=detect,
    read=read_table,
    patch=patch_table,
)
