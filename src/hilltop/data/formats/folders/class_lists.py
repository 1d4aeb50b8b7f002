"""One text file for each class that lists its images, a line each, as MIRFlickr has it."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from hilltop.data.assemble import Collector
from hilltop.data.data_errors import data_error
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.express import check_expressible, check_file_words, check_names
from hilltop.data.formats.text.folder_files import files_in, need_folder, new_folder, write_lines
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_NO_CLASS = re.compile(
    r"(train|val|valid|validation|test|trainval|all|readme.*|license.*|classes|labels|names"
    r"|requirements)",
    re.IGNORECASE,
)
_ID = re.compile(r"[^\s,;|]+")
_FEWEST, _PEEKED = 2, 20


def fits(source: LabelSource) -> bool:
    """Whether there are several text files, every line of which is a single word."""
    if not source.is_folder:
        return False
    files = _files(source.path)
    if len(files) < _FEWEST:
        return False
    ids: list[set[str]] = []
    for path in itertools.islice(files.values(), _PEEKED):
        lines = LabelSource(path).head.split("\n")[:-1]
        words = [line.strip() for line in lines if line.strip()]
        if not all(_ID.fullmatch(word) for word in words):
            return False
        ids.append(set(words))
    beside = {path.stem for path in files_in(source.path).values() if path.suffix != ".txt"}
    shared = len(set().union(*ids)) < sum(map(len, ids))  # an image in several lists
    if set().union(*ids) <= {"0", "1", "-1"}:
        return False  # a value for each image, not their names
    return any(ids) and (shared or any(map(_are_files, ids))) and not beside & set(files)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the list of every class; a file's name is the class, its lines are image ids."""
    need_folder(source)
    files = _files(source.path)
    if not files:
        raise data_error(source.path, "there are no text files of images here.")
    collector = Collector(source.path, options.class_list() or list(files))
    for name, path in files.items():
        for _, line in read_lines(path):
            if line.strip():
                collector.label(collector.image(line.strip()), name, State.PRESENT)
    return collector.table(unlisted=options.need_unlisted(source.path), format="class_lists")


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write a text file for each class into a new folder; images without a label have no place."""
    check_expressible(
        table,
        path,
        lossy,
        states=(State.PRESENT,),
        images_without_entries=False,
        unlisted=(State.UNKNOWN, State.ABSENT),
    )
    check_file_words(path, table.classes)
    images = table.images.to_pylist()
    check_names(path, "image", images, without=" ,;|\t")
    if any(_NO_CLASS.fullmatch(name) for name in table.classes) or len(table.classes) < _FEWEST:
        raise data_error(path, "this format needs two classes or more, none called like a split.")
    with new_folder(path) as folder:
        for column, name in enumerate(table.classes):
            chosen = (table.columns == column) & (table.states == State.PRESENT)
            write_lines(folder / f"{name}.txt", (images[row] for row in table.rows[chosen]))


def _files(folder: Path) -> dict[str, Path]:
    return {
        name[:-4]: path
        for name, path in files_in(folder).items()
        if name.endswith(".txt") and not _NO_CLASS.fullmatch(name[:-4])
    }


def _are_files(words: set[str]) -> bool:
    return bool(words) and all(re.search(r"\.\w{3,4}$", word) for word in words)


FORMAT = Format(
    name="class_lists",
    summary="A text file for each class, with an image of this class on every line.",
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=write,
    folders=True,
)
