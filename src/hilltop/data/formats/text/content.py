"""The bytes of a label file as UTF-8: unpacked where it is compressed, and decoded from UTF-16."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from hilltop.data.data_errors import data_error

_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_content(path: Path) -> bytes:
    """Return the whole file; a byte order mark of UTF-8 stays.

    Raises:
        DataError: The file is compressed or UTF-16, and damaged.
    """
    raw = path.read_bytes()
    if raw.startswith(_GZIP):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error):
            raise data_error(
                path, "this gzip file is damaged. Was it cut off? Fetch it again."
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
    if raw.startswith(_GZIP):
        try:
            raw = zlib.decompressobj(wbits=31).decompress(raw, size)
        except zlib.error:
            return b""
    if raw.startswith(_UTF_16):
        return raw.decode("utf-16", errors="replace").encode(errors="replace")
    return raw
