"""A first look at a file or folder of labels, and its lines with their numbers for messages."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.text.content import PACKED_SUFFIXES, read_content, read_head
from hilltop.data.formats.text.dialect import Dialect, has_double_colons, sniff
from hilltop.data.formats.text.encodings import check_encoding
from hilltop.data.formats.text.spreadsheet import SUFFIXES, Sheet, read_sheet
from hilltop.data.formats.text.yaml_text import parse_yaml
from hilltop.errors import NotUtf8

if TYPE_CHECKING:
    from hilltop.data.formats.options import ReadOptions

_HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class LabelSource:
    """A file or folder with a first look at it; what is read once is kept.

    Attributes:
        path: The file or folder.
        options: What the user said about it, as far as it helps to recognise the format.
    """

    path: Path
    options: ReadOptions | None = None

    @cached_property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path.is_dir()

    @cached_property
    def head(self) -> str:
        """The first 64 KiB as text; empty for a folder. Where ``::`` stands between cells, tabs."""
        return self._head.replace("::", "\t") if self.has_double_colons else self._head

    @cached_property
    def _head(self) -> str:
        if self.is_folder:
            return ""
        encoding = self.options.encoding if self.options else None
        named = "utf-8-sig" if encoding is None else check_encoding(encoding)
        return read_head(self.path, _HEAD_BYTES).decode(named, errors="replace")

    @cached_property
    def is_cut(self) -> bool:
        """Whether the file may go on behind the head, so that its last line may be half a line."""
        size = self.path.stat().st_size
        return size > _HEAD_BYTES or len(self._head.encode()) >= _HEAD_BYTES - 4

    @cached_property
    def has_double_colons(self) -> bool:
        """Whether cells are separated as in the files of MovieLens."""
        return has_double_colons(self._head)

    @cached_property
    def dialect(self) -> Dialect:
        """How the file is written, if it is CSV."""
        return sniff(self.head)

    @cached_property
    def is_spreadsheet(self) -> bool:
        """Whether it is an Excel workbook."""
        return self.suffix in SUFFIXES and not self.is_folder

    @cached_property
    def sheet(self) -> list[list[str]]:
        """The rows of a spreadsheet, the header first."""
        return self.whole_sheet.rows[self.whole_sheet.titles :]

    @cached_property
    def whole_sheet(self) -> Sheet:
        """The sheet of a workbook that holds the labels, titles above the header included."""
        return read_sheet(self.path, self.options.sheet if self.options else None)

    @cached_property
    def header(self) -> tuple[str, ...]:
        """Names of the columns: the first line that is no comment, split as CSV."""
        if self.is_spreadsheet:
            return tuple(cell.strip() for cell in self.sheet[0]) if self.sheet else ()
        lines = self.head.split("\n")[self.dialect.comments :]
        rows: list[list[str]] = []
        with contextlib.suppress(csv.Error):
            rows.extend(itertools.islice((row for row in self.dialect.reader(lines) if row), 50))
        names = self.dialect.names(rows[0]) if rows else []
        # Separators behind the last name are no columns unless something stands there.
        return tuple(names[: max(map(_filled, rows), default=0)])

    @property
    def suffix(self) -> str:
        """The file's ending in lower case, with its dot; of a compressed file, the one before."""
        suffix = self.path.suffix.lower()
        return Path(self.path.stem).suffix.lower() if suffix in PACKED_SUFFIXES else suffix

    @cached_property
    def text(self) -> str:
        """The whole file as UTF-8."""
        return "\n".join(line for _, line in read_lines(self.path))

    @cached_property
    def is_yaml(self) -> bool:
        """Whether it is meant to be YAML, by its ending."""
        return self.suffix in (".yaml", ".yml") and not self.is_folder

    @cached_property
    def document(self) -> Any:
        """The whole file as YAML, if it is called so, else as JSON."""
        return parse_yaml(self.path, self.text) if self.is_yaml else self.json

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


def _filled(row: list[str]) -> int:
    """Number of cells up to the last one that holds something."""
    return max((at for at, cell in enumerate(row, start=1) if cell.strip()), default=0)


def read_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a UTF-8 file with their numbers, counted from 1.

    Raises:
        NotUtf8: Some bytes are not UTF-8, with the first line they stand in.
    """
    raw = read_content(path).removeprefix(b"\xef\xbb\xbf")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        at = error.start - raw.rfind(b"\n", 0, error.start)
        raise NotUtf8(
            f"{path}, line {line}: byte {at} (0x{raw[error.start]:02x}) is not UTF-8."
            " Save the file as UTF-8."
        ) from None
    lines = [(at, line.removesuffix("\r")) for at, line in enumerate(text.split("\n"), start=1)]
    if lines and not lines[-1][1]:
        lines.pop()
    return lines


def read_class_file(path: Path) -> list[str]:
    """Return the class names in a file with one name a line, or a number and a name."""
    if not path.is_file():
        raise data_error(path, "there is no such file of class names.")
    codes = read_class_codes(path)
    return read_names(path, "class") if codes is None else list(codes.values())


def read_class_codes(path: Path) -> dict[str, str] | None:
    """Return the name of every number in a file such as ``7,cat``; None if it has names alone."""
    source = LabelSource(path)
    lines = [line for _, line in read_lines(path) if line.strip()]
    try:
        rows = [[cell.strip() for cell in row] for row in source.dialect.reader(lines)]
    except csv.Error:
        return None
    if rows and not rows[0][0].isdigit():
        rows = rows[1:]
    if not rows or any(len(row) < 2 or not row[0].isdigit() or not row[1] for row in rows):
        return None
    codes = {row[0]: row[1] for row in rows}
    if len(codes) < len(rows) or len(set(codes.values())) < len(rows):
        raise data_error(path, "a class number or a class name stands here twice.")
    return codes


def read_names(path: Path, kind: str) -> list[str]:
    """Return the names in a file with one a line, which must differ; empty lines may end it.

    Args:
        path: The file.
        kind: What is named, for the messages: image or class.
    """
    errors = ErrorCollector(path)
    names: dict[str, int] = {}
    lines = [(number, line.strip()) for number, line in read_lines(path)]
    while lines and not lines[-1][1]:
        lines.pop()
    for number, name in lines:
        if not name:
            errors.add(f"the {kind} name is empty. Remove the line.", line=number)
        elif name in names:
            errors.add(f"{kind} {name!r} stands in line {names[name]} already.", line=number)
        names.setdefault(name, number)
    errors.check()
    return list(names)
