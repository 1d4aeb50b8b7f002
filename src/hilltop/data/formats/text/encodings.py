"""Text that is not UTF-8: which encoding it is likely in, and a copy that is UTF-8."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from hilltop.data.data_errors import data_error
from hilltop.data.formats.text.content import read_content
from hilltop.errors import OptionNeeded

_HIGH = re.compile(rb"[\x80-\xff]+")
_NARROW = re.compile("[\uff61-\uff9f]{2}")
_WESTERN = "cp1252"
_CYRILLIC = "cp1251"
_EAST_ASIAN = ("shift_jis", "gb18030", "euc_kr")
_ALONE, _WORDS = 1.5, 2.5
"""Bytes that follow each other on average: below the first letters stand alone, above the second
they make words."""
_SAMPLE = 1 << 20


def check_encoding(name: str) -> str:
    """Return the name of an encoding of text.

    Raises:
        OptionNeeded: Python knows no such encoding, or it is not one of text.
    """
    try:
        "a".encode(name).decode(name)
        return codecs.lookup(name).name
    except (LookupError, UnicodeError, AttributeError, TypeError, ValueError):
        raise OptionNeeded(
            f"Unknown encoding {name!r}. Known are for example utf-8, cp1252 (Western Europe),"
            " cp1251 (Cyrillic), gb18030 (Chinese), shift_jis (Japanese) and utf-16."
        ) from None


def decoded(path: Path, encoding: str) -> bytes:
    """Return the content of a file as UTF-8.

    Raises:
        DataError: Some bytes are not in that encoding.
    """
    raw = read_content(path)
    try:
        return raw.decode(encoding).encode()
    except UnicodeError:
        raise data_error(path, f"the file is not in the encoding {encoding}.") from None


def likely_encoding(path: Path) -> str | None:
    """Return what a file that is not UTF-8 is likely encoded in; None if it is UTF-8 or no text.

    Letters with accents stand alone between others; those of other scripts follow each other.
    """
    raw = read_content(path)
    if b"\0" in raw[:_SAMPLE] or is_utf8(raw):
        return None
    runs = _HIGH.findall(raw[:_SAMPLE]) or _HIGH.findall(raw)
    length = sum(map(len, runs)) / len(runs)
    if length < _ALONE:
        return _WESTERN
    further = [*_EAST_ASIAN, *([_CYRILLIC] if length > _WORDS else [])]
    return next((name for name in further if _decodes(raw, name)), _WESTERN)


def is_utf8(raw: bytes) -> bool:
    """Whether bytes are UTF-8."""
    return _decodes(raw, "utf-8")


def _decodes(raw: bytes, name: str) -> bool:
    try:
        text = raw.decode(name)
    except UnicodeError:
        return False
    # Nearly any bytes are narrow kana, which hardly anybody writes.
    return name != "shift_jis" or _NARROW.search(text) is None
