"""Text lists with an image on each line: the paper's, multi-hot ones, and CelebA's attributes.

A line of the paper's lists is ``a.jpg,0 52``: class numbers. They list what is present, and the
paper thins them on purpose, so other pairs are unknown unless the user says otherwise.

A line of a multi-hot list is ``a.jpg 0 1 0``: a value for each class. The zeros are bare: nothing
says whether a person looked. CelebA's file has the number of images and the names of the classes on
two lines above such lines, and -1 is absent there, since every image was judged for every class.

The names of the classes come from ``--classes``, or from a file ``<list>.classes.txt`` beside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hilltop.data.content import Source, read_class_file
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.files import atomic_write, check_no_folder
from hilltop.data.format import (
    FilePatch,
    Format,
    Patched,
    check_lossless,
    check_names,
    check_present_only,
    plain_layout,
)
from hilltop.data.label_table import LabelTable, State, Step, duplicate_ids
from hilltop.data.layout import Ambiguous, Layout, ReadOptions
from hilltop.data.tables.cells import codes_of
from hilltop.data.tables.infer import detect_as
from hilltop.data.tables.patch import patch_table
from hilltop.data.tables.read import read_table
from hilltop.data.tables.words import image_candidates, names_a_column

BESIDE = ".classes.txt"
"""What is added to the name of a list for the file with the names of its classes."""
_LINE = re.compile(r"([^,]+),\s*((?:[0-9]{1,9}(?:\s+[0-9]{1,9})*)?)\s*", re.ASCII)
_MOST_CLASSES = 100_000
_VALUES = {"1": 1, "0": 0, "-1": -1}
_FEWEST_VALUES = 2
_CELEBA_HEADER = 2


# Names of classes


def class_names(path: Path, layout: Layout) -> tuple[Sequence[str] | None, list[str]]:
    """The names of the classes, if there are any, and what to note about them."""
    beside = path.with_name(f"{path.name}{BESIDE}")
    if layout.classes is not None or not beside.is_file():
        return layout.classes, []
    return read_class_file(beside)[0], [f"the class names are those of {beside.name}."]


def numbered_names(count: int) -> list[str]:
    """Names of classes that have none: their numbers."""
    return [str(number) for number in range(count)]


def _write_class_names(path: Path, classes: Sequence[str], *, used: int) -> None:
    """Write the names, unless they are just the numbers of the ``used`` classes that are shown."""
    check_no_folder(path)
    beside = path.with_name(f"{path.name}{BESIDE}")
    # An old file of names must not rename the classes of a new list.
    if list(classes) != numbered_names(used) or beside.exists():
        check_names(path, "class", classes, without="")
        atomic_write(beside, "".join(f"{name}\n" for name in classes))


def _with_names(source: Source, found: Patched) -> Patched:
    """The file of class names goes along, because the reader looks for it there."""
    beside = source.path.with_name(f"{source.path.name}{BESIDE}")
    names = {BESIDE: beside.read_bytes()} if beside.is_file() else {}
    return replace(found, files={**found.files, **names})


# Class numbers


def matches_numbers(source: Source) -> bool:
    """Whether the first line is a name, a comma and class numbers, and no header.

    Where each line has but a 0 or a 1, these may be values of one class as well.
    """
    first = _LINE.fullmatch(source.head.partition("\n")[0].rstrip("\r"))
    if first is None or not first[2] or names_a_column(first[1]):
        return False
    if source.suffix in (".xlsx", ".xls", ".ods", ".parquet"):
        return False
    named = source.path.with_name(f"{source.path.name}{BESIDE}").is_file()
    return named or any(
        line.rpartition(",")[2].strip() not in ("0", "1") for _, line in source.lines
    )


def read_numbers(source: Source, layout: Layout) -> LabelTable:
    """Read a list; classes are named by the class list, by the file beside it, or numbered.

    Without names, classes are "0" to "K-1", where K - 1 is the highest number in the file.
    """
    names, notes = class_names(source.path, layout)
    images, labels = _parse_numbers(source, _MOST_CLASSES if names is None else len(names))
    columns = np.array([number for numbers in labels for number in numbers], dtype=np.int64)
    if names is None:
        names = numbered_names(int(columns.max(initial=-1)) + 1)
    lines = np.repeat(np.arange(len(labels)), [len(numbers) for numbers in labels])
    ids = pa.array(images, pa.string()).dictionary_encode()
    rows = codes_of(ids)
    return LabelTable.from_coo(
        ids.dictionary,
        names,
        rows[lines],
        columns,
        State.PRESENT,
        unlisted=layout.unlisted,
        source=source.path,
        step=Step("read", {"file": str(source.path), "format": layout.format}),
        notes=[*notes, *duplicate_ids(ids.dictionary, rows, lines, columns, State.PRESENT)],
    )


def _parse_numbers(source: Source, classes: int) -> tuple[list[str], list[list[int]]]:
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


def write_numbers(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write a line an image; names of classes that are no numbers go to the file beside."""
    check_lossless(table, path, lossy, states=(State.PRESENT,), unlisted=(State.UNKNOWN,))
    check_names(path, "image", table.images.to_pylist(), without=",")
    _write_class_names(path, table.classes, used=int(table.columns.max(initial=-1)) + 1)
    present = table.states == State.PRESENT
    bounds = np.concatenate([[0], np.cumsum(present)])[table.indptr].tolist()
    words = [str(number) for number in table.columns[present].tolist()]
    parts = zip(table.images.to_pylist(), bounds, bounds[1:], strict=False)
    text = "".join(f"{image},{' '.join(words[start:end])}\n" for image, start, end in parts)
    atomic_write(path, text)
    return Layout("paper_list", unlisted=table.unlisted, classes=table.classes)


def patch_numbers(asked: FilePatch) -> Patched:
    """Add class numbers to the lines of the images, and take wrong ones out."""
    said = asked.without_absents()
    number = {change.class_name: change.column for change in said.changes}
    lines, seen = said.text.split("\n"), set[str]()
    for at, line in enumerate(lines):
        name, comma, rest = line.lstrip("\ufeff").partition(",")
        wanted = said.of(name)
        if comma and wanted:
            end = rest[len(rest.rstrip()) :]
            before = [int(word) for word in rest.split()]
            gone = {number[one] for one in wanted.struck}
            numbers = [one for one in before if one not in gone]
            if name not in seen:  # of an image on several lines, the first gets them
                numbers += [number[one] for one in wanted.added]
            seen.add(name)
            shown = " ".join(map(str, sorted(numbers) if before == sorted(before) else numbers))
            space = rest[: len(rest) - len(rest.lstrip())] if rest.strip() else ""
            lines[at] = f"{line[: line.index(',')]},{space}{shown}{end}"
    return _with_names(said.source, said.patched("\n".join(lines)))


# Values


def matches_multi_hot(source: Source) -> bool:
    """Whether the first line is an image and two values or more, separated by spaces."""
    words = source.head.lstrip().partition("\n")[0].split()
    return (
        len(words) > _FEWEST_VALUES
        and "," not in words[0]
        and words[0] not in _VALUES
        and not names_a_column(words[0])
        and all(word in _VALUES for word in words[1:])
    )


def matches_celeba(source: Source) -> bool:
    """Whether a number, names, and an image with a value for each name stand on three lines."""
    lines = source.head.splitlines()
    if len(lines) <= _CELEBA_HEADER or not _is_count(lines[0]):
        return False
    names, words = lines[1].split(), lines[2].split()
    return (
        bool(names)
        and (len(words) == len(names) + 1 or (_is_heading(names) and len(words) > 2))
        and all(word in _VALUES for word in words[1:])
        and not all(name in _VALUES for name in names)
    )


def _is_heading(names: Sequence[str]) -> bool:
    """Whether the second line names the columns of images and values, and not the classes."""
    return len(names) == 2 and bool(image_candidates(names[:1]))


def _is_count(line: str) -> bool:
    return line.strip().isascii() and line.strip().isdigit() and len(line.strip()) < 10


def detect_multi_hot(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find out which values occur, and what the classes are called."""
    names = class_names(source.path, plain_layout("multi_hot", options, classes))[0]
    return _detect_values("multi_hot", source, options, names, skip_rows=options.skip_rows)


def detect_celeba(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """The same below the line of names; -1 is absent unless the user says otherwise."""
    lines = source.lines
    if len(lines) < _CELEBA_HEADER or not _is_count(lines[0][1]) or not lines[1][1].strip():
        raise data_error(
            source.path,
            "expected the number of images on the first line and the names of the classes on the"
            " second, separated by spaces.",
            line=1,
        )
    closed = plain_layout("celeba", options, classes).classes
    return _detect_values(
        "celeba",
        source,
        options,
        closed or _celeba_names(source),
        skip_rows=f"1-{_CELEBA_HEADER}",
        minus_one=options.minus_one or "absent",
    )


def _celeba_names(source: Source) -> Sequence[str] | None:
    """The names on the second line; None where it names the columns of images and values."""
    names = source.lines[1][1].split()
    if _is_heading(names):
        return class_names(source.path, Layout("celeba"))[0]
    return names


def _detect_values(
    name: str,
    source: Source,
    options: ReadOptions,
    names: Sequence[str] | None,
    **known: Any,
) -> Layout | Ambiguous | None:
    found = detect_as(
        name,
        source,
        options,
        "wide",
        classes=names,
        separator="space",
        header_row="none",
        image_column="0",
        class_columns="1:",
        **known,
    )
    if isinstance(found, Layout) and found.classes is None:
        found = replace(found, classes=tuple(numbered_names(len(found.label_columns))))
    return found


def read_values(source: Source, layout: Layout) -> LabelTable:
    """Read a list of values; what its first line and the file beside it say is noted."""
    names = _celeba_names(source) if layout.format == "celeba" else None
    table = read_table(source, layout if names is None else replace(layout, classes=tuple(names)))
    if names is not None and layout.classes is not None:
        table = table.with_classes(layout.classes)
    notes = class_names(source.path, Layout(layout.format))[1]
    said = source.lines[0][1].strip()
    if layout.format == "celeba" and said.isdigit() and int(said) != len(table):
        notes = [f"the first line says {int(said):,} images, but the file has {len(table):,}."]
    return replace(table, notes=(*notes, *table.notes))


def write_multi_hot(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write 1 for present and 0 for the rest; names other than numbers go to a file beside it."""
    check_present_only(table, path, lossy)
    images = table.images.to_pylist()
    check_names(path, "image", images, without=" ,")
    if len(table.classes) < _FEWEST_VALUES or not images:
        raise data_error(
            path, "this format cannot express a table without images or with fewer than 2 classes."
        )
    if any(image in _VALUES or names_a_column(image) for image in images):
        raise data_error(path, "this format cannot express images that are called like a column.")
    _write_class_names(path, table.classes, used=len(table.classes))
    lines = []
    for row, image in enumerate(images):
        present = (table.dense([row])[0] == State.PRESENT).astype(int)
        lines.append(f"{image} {' '.join(map(str, present))}\n")
    atomic_write(path, "".join(lines))
    return Layout(
        "multi_hot",
        table="wide",
        unlisted=table.unlisted,
        classes=table.classes,
        image_column="column 0",
        label_columns=tuple(f"column {at}" for at in range(1, len(table.classes) + 1)),
        values=(("1", "present"), ("0", table.unlisted.name.lower())),
        separator=" ",
    )


def patch_values(asked: FilePatch) -> Patched:
    """Change the values of the pairs; the file of class names goes along."""
    return _with_names(asked.source, patch_table(asked))


PAPER_LIST = Format(
    name="paper_list",
    summary="The lists released with the paper: an image, a comma, class numbers.",
    matches=matches_numbers,
    unlisted=State.UNKNOWN,
    general=True,
    read=read_numbers,
    write=write_numbers,
    patch=patch_numbers,
    suffixes=(".txt",),
)
MULTI_HOT = Format(
    name="multi_hot",
    summary="A text with an image and 0 or 1 for each class on every line, separated by spaces.",
    matches=matches_multi_hot,
    detect=detect_multi_hot,
    read=read_values,
    write=write_multi_hot,
    patch=patch_values,
)
CELEBA = Format(
    name="celeba",
    summary="CelebA attributes: a count, the class names, then an image and 1 or -1 for each.",
    matches=matches_celeba,
    detect=detect_celeba,
    read=read_values,
    patch=patch_values,
)
