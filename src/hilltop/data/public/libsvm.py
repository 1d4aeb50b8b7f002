"""Multi-label LIBSVM and extreme-classification files: ``3,7 12:0.5 40:1``, labels then features.

The files of the extreme-classification repository begin with a line ``rows features labels``. Rows
have no names: their ids are their numbers, from 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hilltop.checks import pluralize
from hilltop.data.content import Source
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.format import Change, Format, InFile, Original, Patched, without_absents
from hilltop.data.label_table import Collector, LabelTable, State
from hilltop.data.layout import Layout
from hilltop.data.public.class_file import class_names, kept_class_names, numbered_names
from hilltop.data.public.feature_matrix import feature_matrix

_HEADER = re.compile(r"\s*([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})\s*", re.ASCII)
_LABELS = re.compile(r"[0-9]{1,9}(?:\s*,\s*[0-9]{1,9})*", re.ASCII)
_LINE = re.compile(r"(?:[0-9]+(?:,[0-9]+)*)?(?:\s*[0-9]+:[^\s:]+)+\s*(?:#.*)?", re.ASCII)
_MOST_CLASSES = 4_000_000


@dataclass(frozen=True)
class _Row:
    line: int
    labels: list[int]
    features: list[tuple[int, float]]


def matches(source: Source) -> bool:
    """Whether the first line, perhaps behind a header, is numbers and ``number:value``."""
    lines = [line.strip() for line in source.head.split("\n")[:3]]
    body = lines[1:] if _HEADER.fullmatch(lines[0]) else lines
    return source.is_file and bool(body) and _LINE.fullmatch(body[0]) is not None


def read(source: Source, layout: Layout) -> LabelTable:
    """Read the labels; classes are named by the class list, a file beside it, or numbered."""
    header, rows = _parse(source)
    names, notes = class_names(source.path, layout)
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
    return collector.table(unlisted=layout.unlisted, notes=notes, format="libsvm")


def features(source: Source, layout: Layout) -> InFile:
    """The features as a dense matrix; numbers count from 0 if the file has a 0, else from 1.

    With a header, they count from 0 unless the highest number is the count of features itself.
    """
    header, rows = _parse(source)
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


def patch(original: Original, changes: Sequence[Change]) -> Patched:
    """Add label numbers to the rows, and take wrong ones out; features stay."""
    source = original.source
    _, rows = _parse(source)
    said = without_absents(changes, original.layout.unlisted)
    lines = source.text.split("\n")
    labels = {row: list(rows[row].labels) for row in {int(change.image) for change in said}}
    for change in said:
        row = labels[int(change.image)]
        labels[int(change.image)] = [number for number in row if number != change.column]
        if change.state == State.PRESENT:
            labels[int(change.image)].append(change.column)
    for number, new in labels.items():
        at = rows[number].line - 1
        bare = lines[at].lstrip("\ufeff ")
        start = _LABELS.match(bare)
        labelled = start is not None and bare[start.end() : start.end() + 1] != ":"
        rest = bare[start.end() :] if start is not None and labelled else f" {bare}"
        shown = ",".join(map(str, new))
        lines[at] = f"{shown}{rest}" if shown else rest
    files = {"": "\n".join(lines).encode(source.encoding), **kept_class_names(original)}
    return Patched(files, original.layout, said)


def _parse(source: Source) -> tuple[tuple[int, int, int] | None, list[_Row]]:
    """The header, if there is one, and all rows."""
    path, lines = source.path, source.lines
    errors = ErrorCollector(path)
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
    matches=matches,
    read=read,
    patch=patch,
    features=features,
)
