"""A text file of tags beside every image: ``a.txt`` with ``1girl, solo, long hair`` for ``a.jpg``.

Collections for training image generators and many taggers keep labels so. Commas or line ends
stand between the tags.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from hilltop.checks import pluralize
from hilltop.data.data_errors import data_error
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.dialect import looks_numeric
from hilltop.data.formats.text.express import check_expressible, check_file_words, check_names
from hilltop.data.formats.text.folder_files import (
    files_in,
    folders_in,
    image_files_in,
    need_folder,
    new_folder,
    write_lines,
)
from hilltop.data.formats.text.record_rows import IMAGE, LABELS, table_from_records
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_SUFFIXES = (".txt", ".caption", ".tags", ".cls")
_NUMBERS = ".cls"
"""Files of class numbers, as webdataset calls them."""
_PEEKED = 20


def fits(source: LabelSource) -> bool:
    """Whether most images of the folder, or of one in it, have a text file without numbers."""
    if not source.is_folder:
        return False
    pairs = _pairs(source.path)
    images = sum(len(image_files_in(folder)) for folder in _places(source.path))
    if not pairs or 2 * len(pairs) <= images:
        return False
    heads = [LabelSource(path).head for _, path in itertools.islice(pairs.values(), _PEEKED)]
    first = [head.strip().partition("\n")[0] for head in heads]
    numbers = all(path.suffix == _NUMBERS for _, path in pairs.values())
    return any(first) and (numbers or not any(line and looks_numeric(line) for line in first))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the tags of every image; one without a text file is left out and counted."""
    need_folder(source)
    pairs = _pairs(source.path)
    if not pairs:
        raise data_error(source.path, "there are no text files beside images of the same name.")
    found = {
        key: [line.strip() for _, line in read_lines(path) if line.strip()]
        for key, (_, path) in pairs.items()
    }
    if all(path.suffix == _NUMBERS for _, path in pairs.values()):
        found = {key: " ".join(lines).replace(",", " ").split() for key, lines in found.items()}
    commas = any("," in line for lines in found.values() for line in lines)
    mark = options.delimiter or ("," if commas else "")
    tags = {key: _tags(lines, mark) for key, lines in found.items()}
    whole = all(re.fullmatch("[0-9]{1,9}", tag) for words in tags.values() for tag in words)
    records = [
        {IMAGE: pairs[key][0], LABELS: [int(tag) for tag in words] if whole else words}
        for key, words in tags.items()
    ]
    images = sum(len(image_files_in(folder)) for folder in _places(source.path))
    without = pluralize(images - len(pairs), "image has", "images have")
    return table_from_records(
        source.path,
        records,
        options,
        format="tag_files",
        notes=[f"{without} no text file of tags and is left out."] if images > len(pairs) else [],
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write a text file for each image into a new folder, to be put beside the images."""
    said = (State.UNKNOWN, State.ABSENT)
    check_expressible(
        table, path, lossy, states=(State.PRESENT,), unlisted=said, unused_classes=False
    )
    images = table.images.to_pylist()
    check_file_words(path, tuple(images), kind="image")
    check_names(path, "class", table.classes, without=",")
    stems = [Path(name).stem for name in images]
    if len(set(stems)) < len(stems):
        raise data_error(path, "this format cannot express images that differ only in the ending.")
    with new_folder(path) as folder:
        for row, stem in enumerate(stems):
            write_lines(folder / f"{stem}.txt", [", ".join(table.labels_of(row))])


def _tags(lines: list[str], mark: str) -> list[str]:
    words = [word.strip() for line in lines for word in (line.split(mark) if mark else [line])]
    return list(dict.fromkeys(word for word in words if word))


def _places(root: Path) -> list[Path]:
    """The folder, or those in it where it has no images itself."""
    return [root] if image_files_in(root) else list(folders_in(root).values())


def _pairs(root: Path) -> dict[str, tuple[str, Path]]:
    """Image and text file by their name, with that of the folder where there are several."""
    found: dict[str, tuple[str, Path]] = {}
    for folder in _places(root):
        files = files_in(folder)
        for name in image_files_in(folder):
            stem = name.rpartition(".")[0]
            beside = (files.get(f"{one}{end}") for end in _SUFFIXES for one in (stem, name))
            path = next((path for path in beside if path), None)
            shown = name if folder == root else f"{folder.name}/{name}"
            if path is not None:
                found[shown] = shown, path
    return found


FORMAT = Format(
    name="tag_files",
    summary="A text file of tags beside every image, with commas or line ends between.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write,
    folders=True,
    file_names=True,
)
