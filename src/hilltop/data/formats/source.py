"""A first look at a file or folder of labels, and its lines with their numbers for messages."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hilltop.data.data_errors import ErrorCollector, data_error

_HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class LabelSource:
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


def read_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a UTF-8 file with their numbers, counted from 1.

    Raises:
        DataError: Some bytes are not UTF-8, with the lines they stand in.
    """
    errors = ErrorCollector(path)
    lines = []
    raw = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(raw.split(b"\n"), start=1):
        try:
            lines.append((number, line.removesuffix(b"\r").decode("utf-8")))
        except UnicodeDecodeError as error:
            errors.add(
                f"byte {error.start + 1} (0x{line[error.start]:02x}) is not UTF-8."
                " Save the file as UTF-8.",
                line=number,
            )
    errors.check()
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
    errors = ErrorCollector(path)
    names: dict[str, int] = {}
    for number, line in read_lines(path):
        name = line.strip()
        if not name:
            errors.add(f"the {kind} name is empty. Remove the line.", line=number)
        elif name in names:
            errors.add(f"{kind} {name!r} stands in line {names[name]} already.", line=number)
        names.setdefault(name, number)
    errors.check()
    return list(names)
