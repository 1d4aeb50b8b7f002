"""A text file for each class with 1 or 0 on every line, an image a line: NUS-WIDE's AllLabels.

Names of images are taken from a list as long as the files, in the folder or above it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hilltop.data.assemble import assemble
from hilltop.data.data_errors import data_error
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.class_order import in_class_order
from hilltop.data.formats.text.folder_files import files_in, need_folder
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_VALUES = re.compile(rb"[01](\r?\n[01])*\s*")
_HEAD = 400
_MOST_FOLDERS = 50
_LABEL_FOLDERS = (".", "AllLabels", "Groundtruth/AllLabels")
_LISTS = re.compile(r"(all|image|file)?_?(list|names|ids|images)", re.IGNORECASE)


def fits(source: LabelSource) -> bool:
    """Whether a folder, or its ``Groundtruth/AllLabels``, has nothing but such files."""
    return source.is_folder and _folder(source.path) is not None


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read which images have each class; the class is what differs in the names of the files."""
    need_folder(source)
    folder = _folder(source.path)
    if folder is None:
        raise data_error(source.path, "there are no files with 1 or 0 on every line.")
    files = _value_files(folder)
    names = _differing([path.stem for path in files])
    zero = options.need_zero(source.path)
    rows: list[int] = []
    columns: list[int] = []
    length: int | None = None
    for column, path in enumerate(files):
        values = [line.strip() for _, line in read_lines(path)]
        if set(values) - {"0", "1"} or (length is not None and len(values) != length):
            raise data_error(
                path, f"expected 1 or 0 on each of {length or 'all'} lines, as in other files."
            )
        length = len(values)
        ones = [row for row, value in enumerate(values) if value == "1"]
        rows += ones
        columns += [column] * len(ones)
    images, note = _images(folder, source.path, length or 0)
    table = assemble(
        images,
        names,
        rows,
        columns,
        State.PRESENT,
        unlisted=zero,
        source=source.path,
        step=Step("read", {"file": str(source.path), "format": "value_files"}),
        notes=[note],
    )
    return in_class_order(table, options)


def _folder(path: Path) -> Path | None:
    return next(
        (path / part for part in _LABEL_FOLDERS if len(_value_files(path / part)) > 1), None
    )


def _value_files(folder: Path) -> list[Path]:
    """The files of a folder if nearly all of them hold 1 or 0 on their first lines."""
    if not folder.is_dir():
        return []
    texts = [path for name, path in sorted(files_in(folder).items()) if name.endswith(".txt")]
    found = [path for path in texts if _VALUES.fullmatch(_start(path))]
    return found if 10 * len(found) >= 9 * len(texts) or len(texts) - len(found) == 1 else []


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def _differing(stems: Sequence[str]) -> list[str]:
    """What is left of names without what all begin and end with, up to a mark between words."""
    first, last = _alike(stems), _alike([stem[::-1] for stem in stems])
    names = [stem[first : len(stem) - last] for stem in stems]
    return names if all(names) and len(set(names)) == len(names) else list(stems)


def _alike(words: Sequence[str]) -> int:
    """Number of letters that all begin with, up to the last mark between words among them."""
    lowest, highest = min(words), max(words)
    same = (at for at, letter in enumerate(lowest) if highest[at : at + 1] != letter)
    start = lowest[: next(same, len(lowest))]
    return max((at + 1 for at, letter in enumerate(start) if letter in "_- "), default=0)


def _images(folder: Path, root: Path, length: int) -> tuple[list[str], str]:
    """Names of the images from a list beside the files, else their numbers, and what to say."""
    for path in _lists(folder, root):
        names = [line.strip() for _, line in read_lines(path)]
        if len(names) == length and all(names) and len(set(names)) == length:
            return names, f"images are named by {path.name}."
    return (
        [str(row) for row in range(length)],
        "no list of images was found beside these files: ids are their lines, from 0.",
    )


def _lists(folder: Path, root: Path) -> Iterator[Path]:
    """Files that may list the images: in the folder, above it, and in folders beside it."""
    for place in dict.fromkeys([folder, root, root.parent, folder.parent]):
        inside = itertools.islice((one for one in place.iterdir() if one.is_dir()), _MOST_FOLDERS)
        for inner in (place, *sorted(inside)):
            for name, path in sorted(files_in(inner).items()):
                if _LISTS.search(Path(name).stem) and path.suffix == ".txt":
                    yield path


FORMAT = Format(
    name="value_files",
    summary="A folder with a text file for each class: 1 or 0 on every line, an image a line.",
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=ReadOnly("Such files hold lines without names"),
    folders=True,
)
