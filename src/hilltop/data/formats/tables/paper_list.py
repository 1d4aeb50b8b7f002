"""The lists released with the paper: ``name,52`` or ``name, 0 52``, a line an image.

Only what is present is written, and the paper thins these lists on purpose, so unlisted pairs are
unknown by the meaning of the format unless the user says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.data.assemble import assemble
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.files import atomic_write
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.express import check_expressible, check_names
from hilltop.data.formats.text.names_beside import (
    keep_names_beside,
    names_of_classes,
    numbered_names,
    write_names_beside,
)
from hilltop.data.formats.text.repetitions import repetitions
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_LINE = re.compile(r"([^,]+),\s*((?:[0-9]{1,9}(?:\s+[0-9]{1,9})*)?)\s*", re.ASCII)
_MOST_CLASSES = 100_000
_FIT = 0.8
"""Share of lines that must have the form, so that a few damaged ones are reported by the reader."""


def fits(source: LabelSource) -> bool:
    """Whether the first line and nearly all others are a name, a comma and numbers."""
    lines = source.head.split("\n")
    # The last line may be cut off by the first look, or empty.
    found = [_LINE.fullmatch(line) for line in lines[:-1] or lines]
    good = [match for match in found if match]
    return (
        found[0] is not None and len(good) >= _FIT * len(found) and any(match[2] for match in good)
    )


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read a list; classes are named by ``options.classes``, by the file beside it, or numbered.

    Without names, classes are "0" to "K-1", where K - 1 is the highest number in the file.
    """
    names, notes = names_of_classes(source.path, options)
    images, labels = _parse(source.path, _MOST_CLASSES if names is None else len(names))
    columns = np.array([number for numbers in labels for number in numbers], dtype=np.int64)
    if names is None:
        names = numbered_names(int(columns.max(initial=-1)) + 1)
    row_of = {image: row for row, image in enumerate(dict.fromkeys(images))}
    rows = np.fromiter((row_of[image] for image in images), dtype=np.int64, count=len(images))
    ids = pa.array(row_of, pa.string())
    lines = np.repeat(np.arange(len(labels)), [len(numbers) for numbers in labels])
    return assemble(
        ids,
        names,
        rows[lines],
        columns,
        State.PRESENT,
        unlisted=State.parse(options.unlisted or "unknown"),
        source=source.path,
        step=Step("read", {"file": str(source.path), "format": "paper_list"}),
        notes=[*notes, *repetitions(ids, rows, lines, columns, State.PRESENT)],
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write a line an image.

    Where the classes are not just the numbers up to the highest one used, their names go to a file
    beside it, which ends in ``.classes.txt`` and is found again by the reader.
    """
    check_expressible(table, path, lossy, states=(State.PRESENT,), unlisted=(State.UNKNOWN,))
    check_names(path, "image", table.images.to_pylist(), without=",")
    write_names_beside(path, table.classes, used=int(table.columns.max(initial=-1)) + 1)
    atomic_write(path, "".join(_lines(table)))


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Add class numbers to the lines of the images; only "present" can be said."""
    raw = original.path.read_bytes()
    of_image = by_image(of_state(changes, State.PRESENT))
    lines = raw.decode("utf-8").split("\n")
    for at, line in enumerate(lines):
        name, comma, rest = line.lstrip("\ufeff").partition(",")
        wanted = of_image.pop(name, [])
        if comma and wanted:
            end = rest[len(rest.rstrip()) :]
            numbers = [int(word) for word in rest.split()]
            in_order = numbers == sorted(numbers)
            numbers += [change.column for change in wanted]
            shown = " ".join(map(str, sorted(numbers) if in_order else numbers))
            blank = rest[: len(rest) - len(rest.lstrip())] if rest.strip() else ""
            lines[at] = f"{line[: line.index(',')]},{blank}{shown}{end}"
    beside = keep_names_beside(original)
    yield Patched("\n".join(lines).encode(), original.options, absents=False, beside=beside)


def _parse(path: Path, classes: int) -> tuple[list[str], list[list[int]]]:
    """Names and class numbers of all lines."""
    errors = ErrorCollector(path)
    images, labels = [], []
    for line, text in read_lines(path):
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
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=write,
    patch=patch,
    suffixes=(".txt",),
)
