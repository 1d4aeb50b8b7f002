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
from hilltop.data.label_table import LabelTable, State
from hilltop.data.layout import Ambiguous, Layout, ReadOptions
from hilltop.data.tables.cells import Table
from hilltop.data.tables.infer import detect_as
from hilltop.data.tables.patch import patch_table
from hilltop.data.tables.read import open_table, read_table
from hilltop.data.tables.words import image_candidates, names_a_column

BESIDE = ".classes.txt"
"""What is added to the name of a list for the file with the names of its classes."""
_LINE = re.compile(r"([^,]+),\s*((?:[0-9]{1,9}(?:\s+[0-9]{1,9})*)?)\s*", re.ASCII)
_NUMBERS = re.compile(r"(?:[0-9]{1,9}(?: +[0-9]{1,9})*)?", re.ASCII)
_OTHER_NUMBER = re.compile(rb",[ \t]*(?![01][ \t\r]*$)[^ \t\r\n]", re.MULTILINE)
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


# Class numbers


def matches_numbers(source: Source) -> bool:
    """Whether the first lines are a name, a comma and class numbers, and no header.

    Where each line has but a 0 or a 1, these may be values of one class as well.
    """
    lines = [_LINE.fullmatch(line) for line in source.head.splitlines()[:2]]
    first = lines[0] if lines else None
    if first is None or not first[2] or names_a_column(first[1]) or None in lines:
        return False
    if source.suffix in (".xlsx", ".xls", ".ods", ".parquet"):
        return False
    named = source.path.with_name(f"{source.path.name}{BESIDE}").is_file()
    return named or _OTHER_NUMBER.search(source.raw) is not None


def detect_numbers(
    source: Source, options: ReadOptions, classes: Sequence[str] | None
) -> Layout | Ambiguous | None:
    """Find the classes: those of the class list or the file beside it, else all numbers.

    Without names, classes are "0" to "K-1", where K - 1 is the highest number in the file.
    """
    names = class_names(source.path, plain_layout("paper_list", options, classes))[0]
    found = detect_as(
        "paper_list",
        source,
        options,
        "list_column",
        classes=names,
        separator=",",
        header_row="none",
        image_column="0",
        label_columns="1",
        delimiter="space",
        unlisted=options.unlisted or "unknown",
    )
    if not isinstance(found, Layout):
        return found
    count = _check_numbers(source, open_table(source, found), names)
    codes = () if names is None else tuple((str(at), at) for at in range(count))
    return replace(found, classes=tuple(names or numbered_names(count)), codes=codes)


def _check_numbers(source: Source, table: Table, names: Sequence[str] | None) -> int:
    """The number of classes; raise if a cell holds anything but numbers of these."""
    errors = ErrorCollector(source.path)
    count = 0
    most = _MOST_CLASSES if names is None else len(names)
    for cell in table.distinct(1).dictionary.to_pylist():
        highest = max(map(int, cell.split()), default=-1) if _NUMBERS.fullmatch(cell) else None
        count = max(count, (highest or 0) + 1, 0 if cell else count)
        for line in table.rows_with(1, cell) if highest is None or highest >= most else ():
            if highest is None:
                errors.add(
                    f"expected class numbers such as '0 52', but got {cell!r:.60}.", line=line
                )
            else:
                errors.add(
                    f"class number {highest} is too high: classes are counted from 0 and there are"
                    f" {most:,} at most. Correct it, or name all classes with --classes.",
                    line=line,
                )
    errors.check()
    return count if names is None else len(names)


def write_numbers(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write a line an image; names of classes that are no numbers go to the file beside."""
    check_lossless(table, path, lossy, states=(State.PRESENT,), unlisted=(State.UNKNOWN,))
    check_list_names(path, table.images.to_pylist(), without=',"')
    _write_class_names(path, table.classes, used=int(table.columns.max(initial=-1)) + 1)
    present = table.states == State.PRESENT
    bounds = np.concatenate([[0], np.cumsum(present)])[table.indptr].tolist()
    words = [str(number) for number in table.columns[present].tolist()]
    parts = zip(table.images.to_pylist(), bounds, bounds[1:], strict=False)
    text = "".join(f"{image},{' '.join(words[start:end])}\n" for image, start, end in parts)
    atomic_write(path, text)
    return Layout(
        "paper_list",
        table="list_column",
        unlisted=table.unlisted,
        classes=table.classes,
        codes=tuple((str(at), at) for at in range(len(table.classes))),
        image_column="column 0",
        label_columns=("column 1",),
        delimiter=" ",
        separator=",",
    )


def check_list_names(path: Path, names: Sequence[str], without: str) -> None:
    """Raise if an image cannot stand at the start of a line."""
    check_names(path, "image", names, without=without)
    if not names:
        raise data_error(path, "this format cannot express a table without images.")
    if names[0].startswith(("#", "\ufeff")) or names_a_column(names[0]):
        raise data_error(
            path, f"the name {names[0]!r} on the first line would be taken for a comment or header."
        )


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
    lines = source.head.splitlines()
    if len(lines) < _CELEBA_HEADER or not _is_count(lines[0]) or not lines[1].strip():
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
    names = source.head.splitlines()[1].split()
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


def read_list(source: Source, layout: Layout) -> LabelTable:
    """Read a list; what its first line and the file beside it say is noted."""
    names = _celeba_names(source) if layout.format == "celeba" else None
    table = read_table(source, layout if names is None else replace(layout, classes=tuple(names)))
    if names is not None and layout.classes is not None:
        table = table.with_classes(layout.classes)
    notes = class_names(source.path, Layout(layout.format))[1]
    said = source.head.partition("\n")[0].strip()
    if layout.format == "celeba" and said.isdigit() and int(said) != len(table):
        notes = [f"the first line says {int(said):,} images, but the file has {len(table):,}."]
    return replace(table, notes=(*notes, *table.notes))


def write_multi_hot(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write 1 for present and 0 for the rest; names other than numbers go to a file beside it."""
    check_present_only(table, path, lossy)
    images = table.images.to_pylist()
    check_list_names(path, images, without=" ,")
    if len(table.classes) < _FEWEST_VALUES or not images:
        raise data_error(
            path, "this format cannot express a table without images or with fewer than 2 classes."
        )
    if images[0] in _VALUES:
        raise data_error(path, "this format cannot express a first image that is called 0 or 1.")
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


def patch_list(asked: FilePatch) -> Patched:
    """Change labels; the file of class names goes along, because the reader looks for it there."""
    found, path = patch_table(asked), asked.source.path
    beside = path.with_name(f"{path.name}{BESIDE}")
    names = {BESIDE: beside.read_bytes()} if beside.is_file() else {}
    return replace(found, files={**found.files, **names})


PAPER_LIST = Format(
    name="paper_list",
    summary="The lists released with the paper: an image, a comma, class numbers.",
    matches=matches_numbers,
    unlisted=State.UNKNOWN,
    general=True,
    detect=detect_numbers,
    read=read_list,
    write=write_numbers,
    patch=patch_list,
    suffixes=(".txt",),
)
MULTI_HOT = Format(
    name="multi_hot",
    summary="A text with an image and 0 or 1 for each class on every line, separated by spaces.",
    matches=matches_multi_hot,
    detect=detect_multi_hot,
    read=read_list,
    write=write_multi_hot,
    patch=patch_list,
)
CELEBA = Format(
    name="celeba",
    summary="CelebA attributes: a count, the class names, then an image and 1 or -1 for each.",
    matches=matches_celeba,
    detect=detect_celeba,
    read=read_list,
    patch=patch_list,
)
