"""Multi-label LIBSVM and extreme-classification files: ``3,7 12:0.5 40:1``, labels then features.

The files of the extreme-classification repository begin with a line ``rows features labels``. Rows
have no names: their ids are their numbers, from 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hilltop.checks import pluralize
from hilltop.data.assemble import Collector
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.base import Format, InFile, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, of_state
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.feature_matrix import feature_matrix
from hilltop.data.formats.text.names_beside import (
    keep_names_beside,
    names_of_classes,
    numbered_names,
)
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_HEADER = re.compile(r"\s*([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})\s*", re.ASCII)
_LABELS = re.compile(r"[0-9]{1,9}(?:\s*,\s*[0-9]{1,9})*", re.ASCII)
_LINE = re.compile(r"(?:[0-9]+(?:,[0-9]+)*)?(?:\s*[0-9]+:[^\s:]+)+\s*(?:#.*)?", re.ASCII)
_MOST_CLASSES = 4_000_000
_FIT = 0.8
"""Share of lines that must have the form, so that a few damaged ones are reported by the reader."""


@dataclass(frozen=True)
class _Row:
    line: int
    labels: list[int]
    features: list[tuple[int, float]]


def fits(source: LabelSource) -> bool:
    """Whether nearly all lines, perhaps behind a header, are numbers and ``number:value``."""
    lines = source.head.split("\n")
    lines = lines[:-1] or lines
    body = lines[1:] if _HEADER.fullmatch(lines[0]) else lines
    good = [_LINE.fullmatch(line.strip()) is not None for line in body]
    return bool(good) and good[0] and sum(good) >= _FIT * len(good)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the labels; classes are named by ``options.classes``, a file beside it, or numbered."""
    header, rows = _parse(source.path)
    names, notes = names_of_classes(source.path, options)
    highest = max((number for row in rows for number in row.labels), default=-1)
    count = header[2] if header else highest + 1
    if max(count, highest + 1) > _MOST_CLASSES:
        raise data_error(
            source.path, f"there are more than {_MOST_CLASSES:,} classes; is the file damaged?"
        )
    classes = numbered_names(count) if names is None else names
    collector = Collector(source.path, classes)
    for number, row in enumerate(rows):
        image = collector.image(str(number))
        for label in row.labels:
            if label < len(classes):
                collector.label(image, classes[label], State.PRESENT, line=row.line)
            else:
                collector.errors.add(
                    f"label number {label} is too high: labels are counted from 0 and there are"
                    f" {len(classes)}.",
                    line=row.line,
                )
    return collector.table(
        unlisted=options.need_unlisted(source.path), notes=notes, format="libsvm"
    )


def features(source: LabelSource) -> InFile:
    """The features as a dense matrix; numbers count from 0 if the file has a 0, else from 1.

    With a header, they count from 0 unless the highest number is the count of features itself.
    """
    header, rows = _parse(source.path)
    numbers = [number for row in rows for number, _ in row.features]
    lowest, highest = min(numbers, default=1), max(numbers, default=0)
    first = 1 if lowest > 0 and (not header or highest == header[1]) else 0
    width = header[1] if header else highest + 1 - first
    if highest - first >= width:
        raise data_error(
            source.path, f"feature number {highest} is too high: the header says {width}."
        )
    matrix = feature_matrix(source.path, len(rows), width)
    for row, parsed in enumerate(rows):
        for number, value in parsed.features:
            matrix[row, number - first] = value
    return InFile([str(number) for number in range(len(rows))], matrix)


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Add label numbers to the rows; only "present" can be said."""
    _, rows = _parse(original.path)
    lines = original.path.read_bytes().decode("utf-8").split("\n")
    for change in of_state(changes, State.PRESENT):
        at = rows[int(change.image)].line - 1
        bare = lines[at].lstrip("\ufeff ")
        start = _LABELS.match(bare)
        if start is None or bare[start.end() : start.end() + 1] == ":":
            lines[at] = f"{change.column} {bare}"
        else:
            lines[at] = f"{start[0]},{change.column}{bare[start.end() :]}"
    beside = keep_names_beside(original)
    yield Patched("\n".join(lines).encode(), original.options, absents=False, beside=beside)


def _parse(path: Path) -> tuple[tuple[int, int, int] | None, list[_Row]]:
    """The header, if there is one, and all rows."""
    errors = ErrorCollector(path)
    lines = read_lines(path)
    match = _HEADER.fullmatch(lines[0][1]) if lines else None
    header = None if match is None else (int(match[1]), int(match[2]), int(match[3]))
    rows = [_row(line, text, errors) for line, text in (lines[1:] if header else lines)]
    errors.check()
    if header and header[0] != len(rows):
        said = pluralize(header[0], "row", "rows")
        raise data_error(
            path, f"the header says {said}, but there are {len(rows)}. Was it cut off?", line=1
        )
    if not rows:
        raise data_error(path, "the file is empty. Expected labels and features on every line.")
    return header, rows


def _row(line: int, text: str, errors: ErrorCollector) -> _Row:
    body = text.partition("#")[0].strip()
    start = _LABELS.match(body)
    labelled = start is not None and body[start.end() : start.end() + 1] != ":"
    labels = [int(word) for word in start[0].split(",")] if start and labelled else []
    features = []
    for word in body[start.end() if start and labelled else 0 :].split():
        number, _, value = word.partition(":")
        if not (number.isascii() and number.isdigit() and len(number) < 10 and _is_finite(value)):
            errors.add(
                f"expected labels and features such as '3,7 12:0.5', but got {word!r:.40}.",
                line=line,
            )
            break
        features.append((int(number), float(value)))
    return _Row(line, labels, features)


def _is_finite(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


FORMAT = Format(
    name="libsvm",
    summary="Multi-label LIBSVM or extreme classification: label numbers, then number:value.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=ReadOnly("This format holds features as well"),
    patch=patch,
    features=features,
)
