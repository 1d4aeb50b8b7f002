"""What a format is, what may be said when reading one, and a first look at a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.label_table import LabelTable, State
from hilltop.errors import OptionNeeded

_HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class ReadOptions:
    """What a file may leave open and only the user can say."""

    unlisted: Literal["unknown", "absent"] | None = None
    """What unlisted pairs, blanks and bare zeros mean."""
    minus_one: Literal["unknown", "absent"] | None = None
    """What -1 means."""
    classes: Path | None = None
    """File with one class name a line: the closed list of classes, in order."""
    split: str | None = None
    """Which part of a data set with several, such as train or val."""
    difficult: Literal["unknown", "present", "absent"] = "unknown"
    """VOC: what a class with only 'difficult' instances is."""
    confidence_cut: float | None = None
    """Open Images: from this confidence on, a fraction means present; below it, unknown."""
    image_column: str | None = None
    """Name of the column with image ids."""
    label_column: str | None = None
    """Name of the column with the labels, where one column holds them all."""
    delimiter: str | None = None
    """What separates labels within one cell."""

    def need_unlisted(self, path: Path, what: str = "pairs that are not listed") -> State:
        """Return the state of unlisted pairs, which the format leaves open."""
        if self.unlisted is None:
            raise OptionNeeded(
                f"{path}: this format does not say what {what} mean. Pass --unlisted unknown"
                " (nobody looked: assumed negative, may be corrected) or --unlisted absent"
                " (a person looked: confirmed)."
            )
        return State.parse(self.unlisted)

    def need_minus_one(self, path: Path) -> State:
        """Return the state that -1 stands for."""
        if self.minus_one is None:
            raise OptionNeeded(
                f"{path}: -1 means 'absent' in some files and 'unknown' in others."
                " Pass --minus-one absent or --minus-one unknown."
            )
        return State.parse(self.minus_one)

    def class_list(self) -> list[str] | None:
        """Return the names in the class file, if one was given."""
        return None if self.classes is None else read_class_file(self.classes)


@dataclass(frozen=True)
class Source:
    """A file or folder with a first look at it; what is read once is kept."""

    path: Path

    @cached_property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path.is_dir()

    @cached_property
    def head(self) -> str:
        """The first 64 KiB as text; empty for a folder."""
        if self.is_folder:
            return ""
        with self.path.open("rb") as file:
            return file.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace")

    @cached_property
    def header(self) -> tuple[str, ...]:
        """The first line, split at commas as CSV."""
        try:
            cells = next(csv.reader(self.head.split("\n")[:1]), [])
        except csv.Error:
            return ()
        return tuple(cell.strip() for cell in cells)

    @property
    def suffix(self) -> str:
        """The file's ending in lower case, with its dot."""
        return self.path.suffix.lower()

    @cached_property
    def text(self) -> str:
        """The whole file as UTF-8."""
        return "\n".join(line for _, line in read_lines(self.path))

    @cached_property
    def json(self) -> Any:
        """The whole file as JSON."""
        try:
            return json.loads(self.text)
        except json.JSONDecodeError as error:
            raise data_error(
                self.path,
                f"this is not complete JSON: {error.msg} at column {error.colno}."
                " Was the file cut off?",
                line=error.lineno,
            ) from None
        except RecursionError:
            raise data_error(self.path, "this JSON is nested too deeply to be labels.") from None
        except ValueError:
            # Python refuses to convert numbers of more than 4,300 digits.
            raise data_error(
                self.path, "a number in this JSON is too long to be a label."
            ) from None


@dataclass(frozen=True)
class Format:
    """One way to write labels down."""

    name: str
    summary: str
    fits: Callable[[Source], bool]
    """Whether the content looks like this format. Two that fit leave the choice to the user."""
    read: Callable[[Source, ReadOptions], LabelTable]
    write: Callable[[LabelTable, Path, bool], None]
    """Writes a table; the last argument is ``lossy``: leave out what cannot be expressed."""
    folders: bool = False
    """Whether a folder can be read."""
    suffixes: tuple[str, ...] = ()
    """Endings of files that are written in this format unless another one is named."""


def read_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a UTF-8 file with their numbers, counted from 1.

    Raises:
        DataError: Some bytes are not UTF-8, with the lines they stand in.
    """
    faults = ErrorCollector(path)
    lines = []
    raw = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(raw.split(b"\n"), start=1):
        try:
            lines.append((number, line.removesuffix(b"\r").decode("utf-8")))
        except UnicodeDecodeError as error:
            faults.add(
                f"byte {error.start + 1} (0x{line[error.start]:02x}) is not UTF-8."
                " Save the file as UTF-8.",
                line=number,
            )
    faults.check()
    if lines and not lines[-1][1]:
        lines.pop()
    return lines


def read_class_file(path: Path) -> list[str]:
    """Return the class names in a file with one name a line."""
    if not path.is_file():
        raise data_error(path, "there is no such file of class names.")
    return read_names(path, "class")


def read_names(path: Path, kind: str) -> list[str]:
    """Return the names in a file with one a line, which must differ.

    Args:
        path: The file.
        kind: What is named, for the messages: image or class.
    """
    faults = ErrorCollector(path)
    names: dict[str, int] = {}
    for number, line in read_lines(path):
        name = line.strip()
        if not name:
            faults.add(f"the {kind} name is empty. Remove the line.", line=number)
        elif name in names:
            faults.add(f"{kind} {name!r} stands in line {names[name]} already.", line=number)
        names.setdefault(name, number)
    faults.check()
    return list(names)
