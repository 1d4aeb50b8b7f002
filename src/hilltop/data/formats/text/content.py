"""The bytes of a label file as UTF-8: unpacked where it is compressed, and decoded from UTF-16."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from hilltop.data.array_files import check_memory
from hilltop.data.data_errors import data_error

_GZIP = b"\x1f\x8b"
_PACKED: dict[bytes, tuple[str, Callable[[Path], Any]]] = {
    _GZIP: ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\x00": ("xz", lzma.open),
}
"""How compressed files begin, what they are called and how they are opened."""
PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zip")
"""Endings of compressed files; the ending before it says what is in there."""
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SHOWN = 5
_PIECE = 16 << 20
_COPIES = 4
"""How many times what was unpacked is held at least, until it is a table."""


def read_content(path: Path) -> bytes:
    """Return the whole file; a byte order mark of UTF-8 stays.

    Raises:
        DataError: The file is compressed or UTF-16, and damaged; or an archive of several files.
    """
    if is_archive(path):
        raw = _read_member(path)
    else:
        raw = path.read_bytes()
        packed = next((one for start, one in _PACKED.items() if raw.startswith(start)), None)
        if packed is not None:
            name, open_packed = packed
            try:
                with open_packed(path) as file:
                    raw = _unpack(path, file)
            except _DAMAGED:
                raise data_error(
                    path, f"this {name} file is damaged. Was it cut off? Fetch it again."
                ) from None
    if not raw.startswith(_UTF_16):
        return raw
    try:
        return raw.decode("utf-16").encode()
    except UnicodeError:
        raise data_error(
            path, "this looks like UTF-16, but is damaged. Save the file as UTF-8."
        ) from None


def read_head(path: Path, size: int) -> bytes:
    """Return the first bytes, as far as they can be read: damage is told by the whole file."""
    with path.open("rb") as file:
        raw = file.read(size)
    packed = next((one for start, one in _PACKED.items() if raw.startswith(start)), None)
    try:
        if raw.startswith(_GZIP):  # a cut file still has a beginning
            raw = zlib.decompressobj(wbits=31).decompress(raw, size)
        elif packed is not None:
            with packed[1](path) as packed_file:
                raw = packed_file.read(size)
        elif is_archive(path):
            names = _members(path)
            with zipfile.ZipFile(path) as archive:
                raw = b"" if len(names) != 1 else archive.open(names[0]).read(size)
    except _DAMAGED:
        return b""
    if raw.startswith(_UTF_16):
        return raw.decode("utf-16", errors="replace").encode(errors="replace")
    return raw


def is_archive(path: Path) -> bool:
    """Whether a file is a ZIP archive; workbooks and arrays are such, too, but not called so."""
    return path.suffix.lower() == ".zip" and path.is_file() and zipfile.is_zipfile(path)


def _members(path: Path) -> list[str]:
    """Names of the files in an archive, but for what macOS adds."""
    with zipfile.ZipFile(path) as archive:
        return [
            name
            for name in archive.namelist()
            if not name.endswith("/") and "__MACOSX" not in name and "/." not in f"/{name}"
        ]


def _read_member(path: Path) -> bytes:
    """The only file in an archive."""
    try:
        names = _members(path)
        if len(names) == 1:
            with zipfile.ZipFile(path) as archive, archive.open(names[0]) as file:
                return _unpack(path, file)
    except _DAMAGED:
        raise data_error(
            path, "this ZIP archive is damaged or locked. Unpack it and name the label file."
        ) from None
    raise data_error(path, _describe_members(names))


def _unpack(path: Path, file: IO[bytes]) -> bytes:
    """All that a compressed file holds, unless memory ends before: ten MB can be ten GB inside."""
    pieces, size = [], 0
    while piece := file.read(_PIECE):
        size += len(piece)
        check_memory(path, _COPIES * size)
        pieces.append(piece)
    return b"".join(pieces)


def _describe_members(names: list[str]) -> str:
    """Say what an archive of several files holds, and what to do."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = ", ".join(names[:_SHOWN]) or "nothing"
    return (
        f"this archive holds {shown}{more}. Unpack it, and name the label file in it or its folder."
    )
