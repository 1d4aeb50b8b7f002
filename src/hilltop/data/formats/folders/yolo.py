"""YOLO data sets: class names in YAML or a list, and for each image a text file of its objects.

A line is ``class x y width height``, perhaps with a confidence, or ``class x y x y ...`` around a
segment; the class counts once an image. An empty text file is an image on which nothing was found;
an image without a text file is not part of the table.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from hilltop.checks import pluralize
from hilltop.data.assemble import Collector
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.folders.yolo_layout import (
    IMAGES,
    LABELS,
    YoloFolder,
    find_yolo,
    names_classes,
)
from hilltop.data.formats.folders.yolo_patch import WHOLE_IMAGE, patch_yolo
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.express import check_expressible, check_file_words, check_names
from hilltop.data.formats.text.folder_files import choose_split, new_folder, write_lines
from hilltop.data.formats.text.names_beside import numbered_names
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_SPLIT = "train"
_LINE = re.compile(r"[0-9]{1,9}(\s+-?[0-9]*\.?[0-9]+(?:e-?[0-9]+)?){4,}\s*", re.IGNORECASE)
_PEEKED = 20
_MOST_CLASSES = 100_000
_NUMBERS_OF_A_BOX = 4


def fits(source: LabelSource) -> bool:
    """Whether this is a YAML file of class names, or a folder with text files of objects."""
    if not source.is_folder:
        return names_classes(source.path)
    found = find_yolo(source)
    files = [path for split in found.splits for path in found.label_files(split).values()]
    heads = (LabelSource(path).head.strip() for path in itertools.islice(files, _PEEKED))
    first = next((head for head in heads if head), None)
    if first is None:
        return bool(files) and found.names is not None and names_classes(found.names)
    return _LINE.fullmatch(first.partition("\n")[0]) is not None


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read one split of a data set, given its folder or its YAML file.

    Image ids are the names of the images where they are listed or lie beside the labels, else the
    names of the text files. Classes are named by ``options.classes``, by the data set, or numbered.
    """
    found = find_yolo(source)
    if not found.splits:
        raise data_error(source.path, "there are no text files of labels here or in 'labels'.")
    split = choose_split(source.path, found.splits, options.split)
    files, images = found.label_files(split), found.image_names(split)
    errors = ErrorCollector(source.path)
    objects = {name: _read_objects(path, errors.found) for name, path in files.items()}
    errors.check()
    names = _class_names(found, options, objects)
    collector = Collector(source.path, list(names.values()))
    in_order = [name for name in images if name in files]
    for name in [*in_order, *(name for name in files if name not in images)]:
        row = collector.image(images.get(name, name))
        for number, line in objects[name].items():
            if number in names:
                collector.label(row, names[number], State.PRESENT)
            else:
                ErrorCollector(files[name], collector.errors.found).add(
                    f"class number {number} has no name (there are {len(names)})."
                    " Correct it, or name all classes with --classes.",
                    line=line,
                )
    collector.errors.check()
    return collector.table(
        unlisted=options.need_unlisted(source.path),
        notes=_notes(len(set(images) - set(files))),
        format="yolo",
        split=split,
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write ``data.yaml``, ``train.txt`` with the images, and a text file for each of them.

    Boxes are not known to a table: every object has that of the whole image.
    """
    check_expressible(
        table,
        path,
        lossy,
        states=(State.PRESENT,),
        unlisted=(State.ABSENT, State.UNKNOWN),
    )
    images = table.images.to_pylist()
    check_file_words(path, tuple(images), kind="image")
    check_names(path, "class", table.classes, without="")
    stems = [name.rpartition(".")[0] or name for name in images]
    if len(set(stems)) < len(stems):
        raise data_error(path, "this format cannot express images that differ only in the ending.")
    if not images or not table.classes:
        raise data_error(path, "this format cannot express a table without images or classes.")
    with new_folder(path) as root:
        _write_folder(table, root, images, stems)


def patch_folder(original: Original, changes: Sequence[Change], out: Path) -> ReadOptions:
    """Write the data set anew with some labels changed; all other lines stay as they are."""
    return patch_yolo(original, changes, out, _names_of)


def _names_of(found: YoloFolder, split: str, options: ReadOptions) -> dict[int, str]:
    files = found.label_files(split)
    return _class_names(
        found, options, {name: _read_objects(path, []) for name, path in files.items()}
    )


def _write_folder(table: LabelTable, root: Path, images: list[str], stems: list[str]) -> None:
    folder = root / LABELS / _SPLIT
    folder.mkdir(parents=True)
    content = {"path": ".", "train": f"{_SPLIT}.txt", "names": dict(enumerate(table.classes))}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    (root / "data.yaml").write_text(text, encoding="utf-8")
    write_lines(root / f"{_SPLIT}.txt", (f"./{IMAGES}/{_SPLIT}/{name}" for name in images))
    number = {name: at for at, name in enumerate(table.classes)}
    for row, stem in enumerate(stems):
        lines = (f"{number[name]} {WHOLE_IMAGE}" for name in table.labels_of(row))
        write_lines(folder / f"{stem}.txt", lines)


def _class_names(
    found: YoloFolder, options: ReadOptions, objects: dict[str, dict[int, int]]
) -> dict[int, str]:
    closed = options.class_list()
    if closed is not None:
        return dict(enumerate(closed))
    named = found.class_names()
    if named is not None:
        return named
    highest = max((max(numbers, default=-1) for numbers in objects.values()), default=-1)
    return dict(enumerate(numbered_names(min(highest, _MOST_CLASSES - 1) + 1)))


def _read_objects(path: Path, found: list[str]) -> dict[int, int]:
    """Class numbers in one file, each with the line it first stands in."""
    errors = ErrorCollector(path, found)
    numbers: dict[int, int] = {}
    for line, text in read_lines(path):
        words = text.split()
        if not words:
            continue
        if len(words) > _NUMBERS_OF_A_BOX and _is_class(words[0]) and _are_numbers(words[1:]):
            numbers.setdefault(int(words[0]), line)
        else:
            errors.add(
                "expected a class number and a box or segment such as '0 0.5 0.5 0.2 0.3',"
                f" but got {text!r:.60}.",
                line=line,
            )
    return numbers


def _is_class(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10


def _are_numbers(words: list[str]) -> bool:
    try:
        return all(math.isfinite(float(word)) for word in words)
    except ValueError:
        return False


def _notes(without: int) -> list[str]:
    if not without:
        return []
    have = pluralize(without, "image has", "images have")
    return [f"{have} no text file of labels and {'is' if without == 1 else 'are'} left out."]


FORMAT = Format(
    name="yolo",
    summary="YOLO: names in a YAML file, and for each image a text file of boxes or segments.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write,
    patch_folder=patch_folder,
    folders=True,
    file_names=True,
)
