"""A text file for each image, an object a line: DOTA, KITTI and the annotations of brat.

On such a line one word is the class and all others are numbers: the corners of a box. In brat's
``.ann`` files the types of entities and events are the classes of a document.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.folder_files import choose_split, files_in, folders_in, need_folder
from hilltop.data.formats.text.record_rows import IMAGE, LABELS, table_from_records
from hilltop.data.label_table import LabelTable

_BRAT = ".ann"
_TEXT = ".txt"
_ENTITY = re.compile(r"[TE]\d+\t([^\s:]+)[ :]")
_OTHER = re.compile(r"[A-Z*#]\d*\t|[*#]")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", re.ASCII)
_ABOUT = re.compile(r"[\w ]+:\S*")
"""A line that says something of the image: ``gsd:0.146``."""
_FEWEST_NUMBERS = 4
_PEEKED = 20
_DEPTH, _MOST_FOLDERS = 3, 20


def fits(source: LabelSource) -> bool:
    """Whether the first files of the folder, or of one in it, hold such lines and nothing else."""
    if not source.is_folder:
        return False
    return bool(_parts(source.path))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the classes of every file; the image is called as the file, without its ending."""
    need_folder(source)
    parts = _parts(source.path)
    if not parts:
        raise data_error(source.path, "there are no text files with an object on every line here.")
    part = choose_split(source.path, parts, options.split)
    files = parts[part]
    errors = ErrorCollector(source.path)
    place = _place([row for path in files[:_PEEKED] for row in _peek(path)])
    records = []
    for path in files:
        if path.suffix == _BRAT:
            names = _entities(path, errors.found)
        else:
            names = _objects(path, place, errors.found)
        records.append({IMAGE: path.stem, LABELS: list(dict.fromkeys(names))})
    errors.check()
    return table_from_records(source.path, records, options, format="object_files")


def _entities(path: Path, found: list[str]) -> Iterator[str]:
    """Types of the entities and events in a file of brat."""
    errors = ErrorCollector(path, found)
    for number, line in read_lines(path):
        entity = _ENTITY.match(line)
        if entity:
            yield entity[1]
        elif line.strip() and not _OTHER.match(line):
            errors.add(
                f"expected an annotation such as 'T1\\tDrug 0 7', but got {line!r:.50}.",
                line=number,
            )


def _objects(path: Path, place: int | None, found: list[str]) -> Iterator[str]:
    errors = ErrorCollector(path, found)
    for number, line in read_lines(path):
        words = line.split()
        if not words or _ABOUT.fullmatch(line.strip()):
            continue
        if place is None or len(words) <= place or _NUMBER.fullmatch(words[place]):
            errors.add(
                f"expected a class and the corners of a box, but got {line!r:.50}.", line=number
            )
        else:
            yield words[place]


def _peek(path: Path) -> list[list[str]]:
    head = LabelSource(path).head.split("\n")[:_PEEKED]
    return [line.split() for line in head if line.strip() and not _ABOUT.fullmatch(line.strip())]


def _place(rows: Sequence[Sequence[str]]) -> int | None:
    """Where the class stands, if on every line all other words are numbers, and enough of them."""
    places = {
        tuple(at for at, word in enumerate(row) if not _NUMBER.fullmatch(word)) for row in rows
    }
    if len(places) != 1 or any(len(row) <= _FEWEST_NUMBERS for row in rows):
        return None
    (found,) = places
    return found[0] if len(found) == 1 else None


def _parts(root: Path) -> dict[str, list[Path]]:
    """The files by the folder they lie in: this one, else those within it, and within these."""
    level = {".": root}
    for _ in range(_DEPTH):
        found = {name: _files(folder) for name, folder in level.items()}
        parts = {name: files for name, files in found.items() if files}
        if parts:
            return parts
        level = {
            inner if name == "." else f"{name}/{inner}": path
            for name, folder in itertools.islice(level.items(), _MOST_FOLDERS)
            for inner, path in folders_in(folder).items()
        }
    return {}


def _files(folder: Path) -> list[Path]:
    """Files of brat in a folder, or text files with an object on every line."""
    inside = files_in(folder).values()
    brat = [path for path in inside if path.suffix == _BRAT]
    texts = [path for path in inside if path.suffix == _TEXT]
    texts = [path for path in texts if not path.stem.lower().startswith(("readme", "classes"))]
    rows = [row for path in texts[:_PEEKED] for row in _peek(path)] if not brat else []
    return brat or (texts if rows and _place(rows) is not None else [])


FORMAT = Format(
    name="object_files",
    summary="A text file for each image with an object on every line: DOTA, KITTI, brat.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=ReadOnly("Such files hold the places of objects"),
    folders=True,
    boxes=True,
)
