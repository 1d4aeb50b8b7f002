"""The lists released with the paper: ``name,52`` or ``name, 0 52``, a line an image.

Only what is present is written, and the paper thins these lists on purpose, so unlisted pairs are
unknown by the meaning of the format unless the user says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.data.content import Source
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.files import atomic_write
from hilltop.data.format import (
    Change,
    Format,
    Original,
    Patched,
    added,
    by_image,
    check_lossless,
    check_names,
    struck,
    without_absents,
)
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.data.layout import Layout
from hilltop.data.public.class_file import (
    class_names,
    kept_class_names,
    numbered_names,
    write_class_names,
)
from hilltop.data.tables.read import duplicate_ids
from hilltop.data.tables.words import names_a_column

_LINE = re.compile(r"([^,]+),\s*((?:[0-9]{1,9}(?:\s+[0-9]{1,9})*)?)\s*", re.ASCII)
_MOST_CLASSES = 100_000


def matches(source: Source) -> bool:
    """Whether the first line is a name, a comma and class numbers, and no header."""
    first = _LINE.fullmatch(source.head.partition("\n")[0].rstrip("\r"))
    if first is None or not first[2] or names_a_column(first[1]):
        return False
    return source.is_file and source.suffix not in (".xlsx", ".xls", ".ods", ".parquet")


def read(source: Source, layout: Layout) -> LabelTable:
    """Read a list; classes are named by the class list, by the file beside it, or numbered.

    Without names, classes are "0" to "K-1", where K - 1 is the highest number in the file.
    """
    names, notes = class_names(source.path, layout)
    images, labels = _parse(source, _MOST_CLASSES if names is None else len(names))
    columns = np.array([number for numbers in labels for number in numbers], dtype=np.int64)
    if names is None:
        names = numbered_names(int(columns.max(initial=-1)) + 1)
    row_of = {image: row for row, image in enumerate(dict.fromkeys(images))}
    rows = np.fromiter((row_of[image] for image in images), dtype=np.int64, count=len(images))
    ids = pa.array(row_of, pa.string())
    lines = np.repeat(np.arange(len(labels)), [len(numbers) for numbers in labels])
    return LabelTable.from_coo(
        ids,
        names,
        rows[lines],
        columns,
        State.PRESENT,
        unlisted=layout.unlisted,
        source=source.path,
        step=Step("read", {"file": str(source.path), "format": "paper_list"}),
        notes=[*notes, *duplicate_ids(ids, rows, lines, columns, State.PRESENT)],
    )


def write(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write a line an image.

    Where the classes are not just the numbers up to the highest one used, their names go to a file
    beside it, which ends in ``.classes.txt`` and is found again by the reader.
    """
    check_lossless(table, path, lossy, states=(State.PRESENT,), unlisted=(State.UNKNOWN,))
    check_names(path, "image", table.images.to_pylist(), without=",")
    write_class_names(path, table.classes, used=int(table.columns.max(initial=-1)) + 1)
    atomic_write(path, "".join(_lines(table)))
    return Layout("paper_list", unlisted=table.unlisted, classes=table.classes)


def patch(original: Original, changes: Sequence[Change]) -> Patched:
    """Add class numbers to the lines of the images, and take wrong ones out."""
    source = original.source
    said = without_absents(changes, original.table.unlisted)
    of_image = by_image(said)
    lines = source.text.split("\n")
    for at, line in enumerate(lines):
        name, comma, rest = line.lstrip("\ufeff").partition(",")
        wanted = of_image.get(name, [])
        if comma and wanted:
            end = rest[len(rest.rstrip()) :]
            before = [int(word) for word in rest.split()]
            in_order = before == sorted(before)
            gone = {change.column for change in struck(wanted)}
            numbers = [number for number in before if number not in gone]
            numbers += [change.column for change in added(wanted)]
            of_image[name] = struck(wanted)  # of an image on several lines, the first gets them
            shown = " ".join(map(str, sorted(numbers) if in_order else numbers))
            space = rest[: len(rest) - len(rest.lstrip())] if rest.strip() else ""
            lines[at] = f"{line[: line.index(',')]},{space}{shown}{end}"
    files = {"": "\n".join(lines).encode(source.encoding), **kept_class_names(original)}
    return Patched(files, original.layout, said)


def _parse(source: Source, classes: int) -> tuple[list[str], list[list[int]]]:
    """Names and class numbers of all lines."""
    errors = ErrorCollector(source.path)
    images, labels = [], []
    for line, text in source.lines:
        match = _LINE.fullmatch(text)
        if match is None:
            errors.add(
                "expected a name, one comma and class numbers such as 'a.jpg,0 52',"
                f" but got {text!r:.80}.",
                line=line,
            )
            continue
        numbers = [int(word) for word in match[2].split()]
        if numbers and max(numbers) >= classes:
            errors.add(
                f"class number {max(numbers)} is too high: classes are counted from 0 and there"
                f" are {classes:,} at most. Correct it, or name all classes with --classes.",
                line=line,
            )
        images.append(match[1])
        labels.append(numbers)
    errors.check()
    return images, labels


def _lines(table: LabelTable) -> list[str]:
    present = table.states == State.PRESENT
    ends: npt.NDArray[np.int64] = np.concatenate([[0], np.cumsum(present)])[table.indptr]
    words = [str(number) for number in table.columns[present].tolist()]
    bounds = ends.tolist()
    return [
        f"{image},{' '.join(words[start:end])}\n"
        for image, start, end in zip(table.images.to_pylist(), bounds, bounds[1:], strict=False)
    ]


FORMAT = Format(
    name="paper_list",
    summary="The lists released with the paper: an image, a comma, class numbers.",
    matches=matches,
    unlisted=State.UNKNOWN,
    general=True,
    read=read,
    write=write,
    patch=patch,
    suffixes=(".txt",),
)
