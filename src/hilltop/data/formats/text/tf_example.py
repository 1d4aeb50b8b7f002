"""TensorFlow's records of examples, read without TensorFlow: names with texts or whole numbers.

A record is its length, a checksum, the bytes and a checksum. The bytes are a message of features
(https://protobuf.dev/programming-guides/encoding): texts, whole numbers and others by name.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

Example = dict[str, list[Any]]
"""Texts and whole numbers by name; what is too long to be a name is left out."""
_HEADER, _CHECKSUM = 12, 4
_MOST_BYTES = 1 << 31
_LONGEST_TEXT = 4096
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_GZIP = b"\x1f\x8b"


def is_record_file(path: Path) -> bool:
    """Whether the file begins with a record of an example."""
    try:
        return bool(next(read_examples(path), {}))
    except (ValueError, OSError, EOFError):
        return False


def read_examples(path: Path) -> Iterator[Example]:
    """Yield the examples of a file.

    Raises:
        ValueError: A record is cut off or no example.
    """
    with path.open("rb") as start:
        packed = start.read(2) == _GZIP
    with gzip.open(path) if packed else path.open("rb") as file:
        while content := _record(file):
            yield _parse(content)


def _record(file: IO[bytes] | gzip.GzipFile) -> bytes:
    """The bytes of the next record; none at the end of the file."""
    try:
        head = file.read(_HEADER)
        length = struct.unpack("<Q", head[:8])[0] if len(head) == _HEADER else 0
        if length > _MOST_BYTES:
            raise ValueError("a record is longer than any can be")
        content = file.read(length)
        whole = len(head) == _HEADER and len(content) == length
        if head and not (whole and len(file.read(_CHECKSUM)) == _CHECKSUM):
            raise ValueError("a record is cut off")
    except (OSError, EOFError, zlib.error):
        raise ValueError("the compressed file is damaged") from None
    return content


def _parse(content: bytes) -> Example:
    found: Example = {}
    for number, features in _fields(content):
        if number != 1 or not isinstance(features, bytes):
            raise ValueError("a record is no example")
        for _, entry in _fields(features):
            if not isinstance(entry, bytes):
                raise ValueError("a record is no example")
            parts = dict(_fields(entry))
            key, value = parts.get(1, b""), parts.get(2, b"")
            if isinstance(key, bytes) and isinstance(value, bytes):
                found[key.decode("utf-8", "replace")] = _values(value)
    return found


def _values(feature: bytes) -> list[Any]:
    """Texts (1) or whole numbers (3) of a feature; fractions (2) are no labels."""
    found: list[Any] = []
    for kind, content in _fields(feature):
        if not isinstance(content, bytes):
            continue
        for _, value in _fields(content):
            if kind == 1 and isinstance(value, bytes):
                found.append(value.decode("utf-8", "replace") if len(value) < _LONGEST_TEXT else "")
            elif kind == 3 and isinstance(value, bytes):
                found += _varints(value)
            elif kind == 3 and isinstance(value, int):
                found.append(_signed(value))
    return found


def _fields(content: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Number and content of each field of a message."""
    at = 0
    while at < len(content):
        tag, at = _varint(content, at)
        kind, number = tag & 7, tag >> 3
        if kind == _VARINT:
            value, at = _varint(content, at)
            yield number, value
            continue
        size = {_FIXED_64: 8, _FIXED_32: 4}.get(kind, -1)
        if kind == _BYTES:
            size, at = _varint(content, at)
        if size < 0 or at + size > len(content):
            raise ValueError("a record is no example")
        yield number, content[at : at + size]
        at += size


def _varints(content: bytes) -> Iterator[int]:
    at = 0
    while at < len(content):
        value, at = _varint(content, at)
        yield _signed(value)


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(content):
            break
        byte = content[at]
        value, at = value | (byte & 127) << shift, at + 1
        if byte < 128:
            return value, at
    raise ValueError("a record is no example")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
