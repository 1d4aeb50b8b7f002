"""The content of label files: unpacked, decoded, as lines, as JSON, and as lists of names."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from hilltop.data.array_files import check_memory
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.layout import ask
from hilltop.errors import DataError

_PACKED: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
"""How compressed files begin, and how they are opened."""
_LONGEST_MARK = 6
PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zip")
"""Endings of compressed files; the ending before it says what is in there."""
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SHOWN = 5
_PIECE = 16 << 20
_HEAD_BYTES = 1 << 16
_SAMPLE = 1 << 18
_HIGH = re.compile(rb"[\x80-\xff]+")
_LETTERS_ALONE = 1.9
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "big5hkscs": "big5", "cp932": "shift_jis"}
_HEADINGS = frozenset(
    ["class", "classes", "class name", "class names", "label", "labels", "name", "names"]
)
"""How a list of class names may be headed."""
_COPIES = 4
"""How many times what was unpacked is held at least, until it is a table."""


def unpacked(path: Path) -> bytes:
    """Return the whole file, unpacked where it is compressed.

    Raises:
        DataError: The file is compressed and damaged, or an archive of several files.
    """
    try:
        with _open(path) as file:
            if isinstance(file, io.BufferedReader):  # it is not compressed
                return file.read()
            pieces, size = [], 0
            while piece := file.read(_PIECE):  # ten MB can be ten GB inside
                size += len(piece)
                check_memory(path, _COPIES * size)
                pieces.append(piece)
            return b"".join(pieces)
    except _DAMAGED:
        raise data_error(
            path, "this compressed file is damaged or locked. Fetch it again, or unpack it."
        ) from None


def read_head(path: Path, size: int) -> bytes:
    """Return the first bytes, as far as they can be read: damage is told by the whole file."""
    try:
        with _open(path) as file:
            return file.read(size)
    except (*_DAMAGED, DataError):
        return b""


def is_archive(path: Path) -> bool:
    """Whether a file is a ZIP archive; workbooks and arrays are such, too, but not called so."""
    return path.suffix.lower() == ".zip" and path.is_file() and zipfile.is_zipfile(path)


def _open(path: Path) -> IO[bytes]:
    """Open a file; of a compressed one what is in it, of an archive the only file."""
    if is_archive(path):
        archive = zipfile.ZipFile(path)
        names = [
            name
            for name in archive.namelist()
            if not name.endswith("/") and "__MACOSX" not in name and "/." not in f"/{name}"
        ]
        if len(names) == 1:
            return archive.open(names[0])
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise data_error(
            path,
            f"this archive holds {', '.join(names[:_SHOWN]) or 'nothing'}{more}. Unpack it, and"
            " name the label file in it or its folder.",
        )
    with path.open("rb") as file:
        start = file.read(_LONGEST_MARK)
    opened = next((one for mark, one in _PACKED.items() if start.startswith(mark)), None)
    return path.open("rb") if opened is None else opened(path)


class Source:
    """A label file or folder, or a DataFrame; what is read once is kept.

    Args:
        path: The file or folder; for messages only where ``content`` or ``frame`` is given.
        encoding: How its text is encoded; None for UTF-8, or UTF-16 with a byte order mark.
        content: The bytes, where they do not come from the file.
        frame: A DataFrame of pandas or polars.
    """

    def __init__(
        self,
        path: Path,
        *,
        encoding: str | None = None,
        content: bytes | None = None,
        frame: Any = None,
    ) -> None:
        """Look at nothing yet."""
        self.path, self.frame = path, frame
        self.cache: dict[Any, Any] = {}  # tables that were read already, by how
        self._content = content
        self._encoding = None if encoding is None else check_encoding(encoding)

    def within(self, path: Path) -> Source:
        """A file of this folder, in the same encoding."""
        return Source(path, encoding=self._encoding)

    @cached_property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.frame is None and self._content is None and self.path.is_dir()

    @property
    def is_file(self) -> bool:
        """Whether it is a file, or the content of one."""
        return self.frame is None and not self.is_folder

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed, so that its text cannot be changed in place."""
        return self._content is None and self.raw != self.path.read_bytes()

    @cached_property
    def suffix(self) -> str:
        """The file's ending in lower case, with its dot; of a compressed file, the one before."""
        suffix = self.path.suffix.lower()
        return Path(self.path.stem).suffix.lower() if suffix in PACKED_SUFFIXES else suffix

    @cached_property
    def raw(self) -> bytes:
        """All bytes, unpacked."""
        return unpacked(self.path) if self._content is None else self._content

    @cached_property
    def head(self) -> str:
        """The first 64 KiB as text; empty where there is no file."""
        if not self.is_file:
            return ""
        if self._content is None:
            raw = read_head(self.path, _HEAD_BYTES)
        else:
            raw = self._content[:_HEAD_BYTES]
        name = self._encoding or ("utf-16" if raw.startswith(_UTF_16) else "utf-8")
        return raw.decode(name, errors="replace").removeprefix("\ufeff")

    @cached_property
    def start(self) -> str:
        """The first character of the text that is no space."""
        return self.head.lstrip()[:1]

    @property
    def encoding(self) -> str:
        """The encoding of the text; a byte order mark is part of its name."""
        if self._encoding is not None:
            return self._encoding
        if self.raw.startswith(_UTF_16):
            return "utf-16"
        return "utf-8-sig" if self.raw.startswith(codecs.BOM_UTF8) else "utf-8"

    @cached_property
    def text(self) -> str:
        """The whole file as text.

        Raises:
            AmbiguousInputError: It is not UTF-8, and the user has not said what it is.
        """
        try:
            return self.raw.decode(self.encoding)
        except UnicodeError as error:
            raise self._not_decoded(error) from None

    def _not_decoded(self, error: UnicodeError) -> DataError:
        if self._encoding is not None or self.encoding == "utf-16":
            return data_error(self.path, f"the file is not in the encoding {self.encoding}.")
        start = getattr(error, "start", 0)
        line = self.raw.count(b"\n", 0, start) + 1
        likely = likely_encoding(self.raw)
        if likely is None:
            return data_error(self.path, "this is not text in UTF-8.", line=line)
        return ask(
            self.path,
            f"This is not UTF-8: line {line} holds the byte 0x{self.raw[start]:02x}. Save the file"
            f" as UTF-8, or pass --encoding; it looks like {likely}.",
            encoding=likely,
        )

    @cached_property
    def lines(self) -> list[tuple[int, str]]:
        """The lines with their numbers from 1, without line ends."""
        lines = [
            (at, line.removesuffix("\r")) for at, line in enumerate(self.text.split("\n"), start=1)
        ]
        if lines and not lines[-1][1]:
            lines.pop()
        return lines

    @cached_property
    def json(self) -> Any:
        """The whole file as JSON; a key that stands twice in one object is an error."""
        return parse_json(self.path, self.text)


def parse_json(path: Path, text: str, line: int = 1) -> Any:
    """Return the value that a text is.

    Args:
        path: The file, for messages.
        text: JSON.
        line: The line on which it begins.
    """

    def whole(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise data_error(path, f"the key {twice!r} stands twice in one JSON object. Keep one.")
        return content

    try:
        return json.loads(text, object_pairs_hook=whole)
    except json.JSONDecodeError as error:
        raise data_error(
            path,
            f"this is not complete JSON: {error.msg} at column {error.colno}."
            " Was the file cut off?",
            line=line + error.lineno - 1,
        ) from None
    except RecursionError:
        raise data_error(path, "this JSON is nested too deeply to be labels.", line=line) from None
    except ValueError:  # Python refuses to convert numbers of more than 4,300 digits
        raise data_error(path, "a number here is too long to be a label.", line=line) from None


def check_encoding(name: str) -> str:
    """Return the name of an encoding of text.

    Raises:
        AmbiguousInputError: Python knows no such encoding, or it is not one of text.
    """
    try:
        "a".encode(name).decode(name)
        return codecs.lookup(name).name
    except (LookupError, UnicodeError, AttributeError, TypeError, ValueError):
        raise ask(
            Path("--encoding"),
            f"Unknown encoding {name!r}. Known are for example utf-8, cp1252 (Western Europe),"
            " cp1251 (Cyrillic), gb18030 (Chinese), shift_jis (Japanese) and utf-16.",
        ) from None


def likely_encoding(raw: bytes) -> str | None:
    """What bytes that are not UTF-8 are likely encoded in; None if they are no text."""
    from charset_normalizer import from_bytes

    if b"\0" in raw[:_SAMPLE]:
        halves = {"utf-16-le": raw[1:_SAMPLE:2], "utf-16-be": raw[:_SAMPLE:2]}
        return next((name for name, one in halves.items() if 2 * one.count(0) > len(one)), None)
    # Single accents between ASCII letters are Western far more often than anything else.
    high = sum(byte > 127 for byte in raw[:_SAMPLE])
    runs = len(_HIGH.findall(raw[:_SAMPLE]))
    if runs and high / runs < _LETTERS_ALONE:
        return "cp1252"
    best = from_bytes(raw[:_SAMPLE]).best()
    if best is None:
        return None
    return _WIDER.get(best.encoding, best.encoding)


def read_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a UTF-8 file with their numbers, counted from 1."""
    return Source(path).lines


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
            errors.add(f"{kind} {name!r} is also in line {names[name]}.", line=number)
        names.setdefault(name, number)
    errors.check()
    return list(names)


def read_class_file(path: Path) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the class names in a file, and the codes by which labels may call them.

    A line holds a name; or a number or an id and a name, such as ``7,cat`` or ``/m/01g317,Person``;
    or a number, an id and a name, as AudioSet has them. Names without codes are called by their
    place, from 0, unless some name is a number itself.

    Raises:
        DataError: There is no such file, names are not all different, or a comment is among them.
    """
    if not path.is_file():
        raise data_error(path, "there is no such file of class names.")
    lines = [(number, line.strip()) for number, line in read_lines(path)]
    if lines and lines[0][1].startswith("#"):
        raise data_error(
            path,
            f"{lines[0][1]!r:.60} begins like a comment, but every line is a class, and class"
            " numbers count lines. Remove it, or the '#' if it is a class.",
            line=lines[0][0],
        )
    names = _named_codes(path, [(number, line) for number, line in lines if line])
    if names is None and lines and lines[0][1].lower().replace("_", " ") in _HEADINGS:
        raise data_error(
            path,
            f"{lines[0][1]!r} looks like a heading, but every line is a class, and class numbers"
            " count lines. Remove it; if it is a class, write the number of each class before its"
            " name, such as '0,cat'.",
            line=lines[0][0],
        )
    if names is None:
        plain = read_names(path, "class")
        numbered = any(name.isdigit() for name in plain)
        return tuple(plain), {} if numbered else {str(at): at for at in range(len(plain))}
    used = Counter(names.values())
    told = [name if used[name] == 1 else f"{name} ({code})" for code, name in names.items()]
    return tuple(told), {code: at for at, code in enumerate(names)}


def _named_codes(path: Path, lines: list[tuple[int, str]]) -> dict[str, str] | None:
    """The name of every code in the lines of a file; None if they have names alone."""
    for separator in (",", "\t", ";", ":", " "):
        rows = [(number, _code_and_name(line, separator)) for number, line in lines]
        if separator in ": ":  # which are parts of names, unless every line has its number
            numbers = [row and row[0] for _, row in rows]
            counted = [[str(at + first) for at in range(len(rows))] for first in (0, 1)]
            if len(rows) < 2 or numbers not in counted:
                continue
        if rows and rows[0][1] is None:  # column names
            rows = rows[1:]
        if not rows or rows[0][1] is None:
            continue
        errors, names = ErrorCollector(path), dict[str, str]()
        for number, row in rows:
            if row is None:
                errors.add("expected a code and a name, such as '7,cat'.", line=number)
            elif row[0] in names:
                errors.add(f"the code {row[0]!r} is here again.", line=number)
            else:
                names[row[0]] = row[1]
        errors.check()
        return names
    return None


def _code_and_name(line: str, separator: str) -> tuple[str, str] | None:
    try:
        cells = [*map(str.strip, next(csv.reader([line], delimiter=separator, strict=True)))]
    except csv.Error:
        return None
    if len(cells) > 1 and cells[1].startswith("/"):
        cells = cells[1:]
    name = separator.join(cells[1:]).strip()
    return (cells[0], name) if name and (cells[0].isdigit() or cells[0].startswith("/")) else None
