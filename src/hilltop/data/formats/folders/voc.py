"""PASCAL VOC's image sets: ``ImageSets/Main/<class>_<split>.txt`` with 1, -1 or 0 for each image.

By VOC's own definition 1 is present, -1 is absent (every image was searched for every class) and 0
says that only "difficult" instances are there; what those count as is an option, unknown unless
said. All pairs are listed, so the table's unlisted state is absent. The XML files are read by
``voc_xml.py``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hilltop.checks import pluralize
from hilltop.data.assemble import assemble
from hilltop.data.data_errors import ErrorCollector, data_error, unknown_class
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.folders.voc_layout import SETS, class_files, find_sets
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource, read_lines, read_names
from hilltop.data.formats.text.express import check_expressible, check_file_words, check_names
from hilltop.data.formats.text.folder_files import (
    choose_split,
    files_in,
    need_folder,
    new_folder,
    write_lines,
)
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import DataError

_SPLIT = "train"
_JPEG = ".jpg"
_VALUES = {State.PRESENT: "1", State.ABSENT: "-1", State.UNKNOWN: "0"}


def fits(source: LabelSource) -> bool:
    """Whether there are image sets with a file for each class and split."""
    if not source.is_folder:
        return _is_class_file(source)
    try:
        by_split = class_files(files_in(find_sets(source.path)))
    except DataError:
        # Several data sets lie side by side: the reader says so.
        return True
    return any(_has_values(path) for files in by_split.values() for path in files.values())


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read one split; -1 is absent unless ``options.minus_one`` says otherwise."""
    if _is_class_file(source):
        name, _, part = source.path.stem.rpartition("_")
        folder, files = source.path.parent, {}
        by_split = {part: {name: source.path}}
    else:
        need_folder(source)
        folder = find_sets(source.path)
        files = files_in(folder)
        by_split = class_files(files)
    if not by_split:
        raise data_error(
            folder, "there are no files such as cat_train.txt for a class and a split."
        )
    split = choose_split(folder, by_split, options.split)
    chosen = by_split[split]
    classes = _class_order(folder, list(chosen), options)
    images = read_names(files[f"{split}.txt"], "image") if f"{split}.txt" in files else None
    found: list[str] = []
    notes: list[str] = []
    columns: list[list[int]] = []
    for name in classes:
        listed, values = _read_class_file(chosen[name], found, options.difficult)
        if not columns:
            images, notes = _with_values(images, listed)
        if not found:
            _check_same_images(chosen[name], images or [], listed, found)
        columns.append(values)
    ErrorCollector(folder, found).check()
    absent = State.parse(options.minus_one or "absent")
    states = np.array(columns, dtype=np.int8).reshape(len(classes), -1).T
    states = np.where(states < 0, absent, states)
    rows, numbers = np.indices(states.shape)
    return assemble(
        images or [],
        classes,
        rows.ravel(),
        numbers.ravel(),
        states.ravel(),
        unlisted=absent,
        source=folder,
        step=Step("read", {"file": str(source.path), "format": "voc", "split": split}),
        notes=notes,
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write the image sets of one split, ``train``, into a new folder.

    Images are listed without the ending .jpg, as in VOC. An unknown pair is written as 0, "only
    difficult instances", which is read as unknown again. With ``lossy`` this also holds for a table
    whose unlisted pairs are unknown.
    """
    check_expressible(table, path, lossy, unlisted=(State.ABSENT,))
    check_names(path, "image", table.images.to_pylist(), without="")
    check_file_words(path, table.classes)
    if not table.classes:
        raise data_error(path, "this format cannot express a table without classes.")
    with new_folder(path) as root:
        _write_sets(table, root / SETS)


def _write_sets(table: LabelTable, folder: Path) -> None:
    folder.mkdir(parents=True)
    images = _without_endings(table.images.to_pylist())
    dense = table.dense()
    write_lines(folder / f"{_SPLIT}.txt", images)
    for column, name in enumerate(table.classes):
        values = [_VALUES[State(state)] for state in dense[:, column].tolist()]
        lines = [f"{image} {value:>2}" for image, value in zip(images, values, strict=True)]
        write_lines(folder / f"{name}_{_SPLIT}.txt", lines)


def _without_endings(images: list[str]) -> list[str]:
    """Ids as VOC lists them: its tools append the ending .jpg themselves."""
    bare = [name[: -len(_JPEG)] if name.lower().endswith(_JPEG) else name for name in images]
    return bare if all(bare) and len(set(bare)) == len(bare) else images


def _is_class_file(source: LabelSource) -> bool:
    """Whether this is the file of one class: ``cat_train.txt`` with images and 1, 0 or -1."""
    if source.is_folder or source.suffix != ".txt" or "_" not in source.path.stem.strip("_"):
        return False
    lines = source.head.split("\n")[:50]
    rows = [line.split() for line in (lines[:-1] if source.is_cut else lines) if line.strip()]
    values = {row[-1] for row in rows if row}
    pairs = len(rows) > 1 and all(len(row) == 2 for row in rows)
    return pairs and "-1" in values and values <= set(_VALUES.values())


def _has_values(path: Path) -> bool:
    """Whether the first line of a file is an image and 1, 0 or -1."""
    words = LabelSource(path).head.partition("\n")[0].split()
    return len(words) >= 2 and words[-1] in _VALUES.values()


def _class_order(folder: Path, found: list[str], options: ReadOptions) -> list[str]:
    closed = options.class_list()
    if closed is None:
        return sorted(found)
    errors = ErrorCollector(folder)
    for name in found:
        if name not in closed:
            errors.add(unknown_class(name, closed))
    for name in closed:
        if name not in found:
            errors.add(f"there is no file for class {name!r} of the class list.")
    errors.check()
    return closed


def _read_class_file(path: Path, found: list[str], difficult: str) -> tuple[list[str], list[int]]:
    """Images of one class file and their states, with -1 left as it is."""
    errors = ErrorCollector(path, found)
    meaning = {"1": int(State.PRESENT), "0": int(State.parse(difficult)), "-1": -1}
    images, values = [], []
    for line, text in read_lines(path):
        words = text.rsplit(None, 1)
        if len(words) == 2 and words[1] in meaning:
            images.append(words[0].strip())
            values.append(meaning[words[1]])
        else:
            errors.add(
                f"expected an image and 1, 0 or -1, such as '2008_00008 -1', but got {text!r:.50}.",
                line=line,
            )
    return images, values


def _with_values(images: list[str] | None, listed: list[str]) -> tuple[list[str], list[str]]:
    """The images of a split that the files of classes list, and what to say of others."""
    if images is None:
        return listed, []
    known = set(listed)
    left = [name for name in images if name not in known]
    if not left or len(left) >= len(listed) or [one for one in images if one in known] != listed:
        return images, []
    have = pluralize(len(left), "image has", "images have")
    return listed, [
        f"{have} no line in the files of classes and is left out: {left[0]!r} is first."
    ]


def _check_same_images(path: Path, images: list[str], listed: list[str], found: list[str]) -> None:
    """Every class of a split must list the same images in the same order."""
    rule = "All files of a split must list the same images in the same order."
    errors = ErrorCollector(path, found)
    for line, (wanted, given) in enumerate(zip(images, listed, strict=False), 1):
        if wanted != given:
            errors.add(f"expected image {wanted!r}, but got {given!r}. {rule}", line=line)
            return
    if len(images) != len(listed):
        wanted = pluralize(len(images), "image", "images")
        errors.add(f"expected {wanted}, but got {len(listed)}. {rule}")


FORMAT = Format(
    name="voc",
    summary="PASCAL VOC image sets: a folder with ImageSets/Main/<class>_<split>.txt.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=write,
    folders=True,
)
