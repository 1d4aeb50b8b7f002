"""Arrays and Parquet files of others: whole, without objects, and small enough for memory."""

from __future__ import annotations

import hashlib
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hilltop.data.data_errors import data_error

_FAULTS = (
    ValueError, OSError, EOFError, KeyError, TypeError, SyntaxError, MemoryError,
    NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error, tokenize.TokenError,
)  # fmt: skip
"""What numpy and zipfile raise for damaged files."""
_GIB = 1 << 30
_DIGEST_BYTES = 1 << 24  # of an array that is mapped, at a time


def read_npy(path: Path, *, mapped: bool = False) -> npt.NDArray[Any]:
    """Read an array; a mapped one stays on disk until it is used.

    Raises:
        DataError: The file is cut or damaged, or does not fit into memory.
    """
    try:
        with path.open("rb") as file:
            size = _check_size(path, file, path.stat().st_size)
        if not mapped:
            check_memory(path, size)
        return np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)  # type: ignore[no-any-return]
    except _FAULTS as error:
        raise _unreadable(path, error) from None


def read_npz(path: Path, names: tuple[str, ...]) -> list[npt.NDArray[Any]]:
    """Read some arrays of an archive.

    Raises:
        DataError: The file is cut or damaged, lacks one of them, or does not fit into memory.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            held = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            for name in names:
                if name not in held:
                    raise data_error(
                        path,
                        f"there is no array {name!r}; the file holds {', '.join(held) or 'none'}."
                        f" Expected {' and '.join(names)}.",
                    )
                with archive.open(held[name]) as file:
                    check_memory(path, _check_size(path, file, held[name].file_size))
        with np.load(path, allow_pickle=False) as content:
            return [content[name] for name in names]
    except _FAULTS as error:
        raise _unreadable(path, error) from None


def read_npz_texts(path: Path, names: tuple[str, ...]) -> dict[str, str]:
    """Read those of some short texts that an archive holds.

    Raises:
        DataError: The file is cut or damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as content:
            held = [name for name in names if name in content.files]
            return {name: str(content[name]) for name in held}
    except _FAULTS as error:
        raise _unreadable(path, error) from None


def digest_of(settings: Iterable[object], arrays: Iterable[npt.NDArray[Any]]) -> str:
    """Return a name for settings and for all that arrays hold, which may be mapped.

    Example:
        >>> one, other = np.arange(3), np.array([0, 1, 3])
        >>> digest_of(["a"], [one]) == digest_of(["a"], [one.copy()]) != digest_of(["a"], [other])
        True
    """
    digest = hashlib.blake2b(f"{list(settings)}".encode(), digest_size=8)
    for array in arrays:
        rows = max(1, _DIGEST_BYTES // max(1, array[:1].nbytes))
        for first in range(0, len(array), rows):
            part = np.ascontiguousarray(array[first : first + rows])
            digest.update(part.view(np.uint8).data)
    return digest.hexdigest()


def check_memory(path: Path, size: int) -> None:
    """Raise if something in a file would take more bytes than there are to be had."""
    free = free_memory()
    if size > free:
        raise data_error(
            path,
            f"reading it would take {size / _GIB:.1f} GiB of memory, but {free / _GIB:.1f} are"
            " free. Split the file, or use a machine with more memory.",
        )


def fits_memory(size: int) -> bool:
    """Whether so many bytes are to be had."""
    return size <= free_memory()


def free_memory() -> int:
    """Bytes that this process may still take: of the machine, and of its control group."""
    found = [1 << 62]
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            found.append(int(line.split()[1]) << 10)
    limit, used = (_lines(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if limit and used and limit[0].isdecimal():
        found.append(max(0, int(limit[0]) - int(used[0])))
    return min(found)


def _check_size(path: Path, file: IO[bytes], held: int) -> int:
    """Compare the size that the header of an array declares with what is there, and return it."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else _read_header_2
    shape, _, dtype = read(file)
    width = max(1, dtype.itemsize)  # a billion texts of no length take no room in a file
    size = int(np.prod([int(length) for length in shape], dtype=object)) * width
    if dtype.hasobject:
        raise data_error(path, "it holds Python objects, which are not read. Save numbers or text.")
    if size != held - file.tell():
        raise data_error(
            path,
            f"an array of {shape} {dtype} takes {size:,} bytes, but {held - file.tell():,} are"
            " there: the file is cut or damaged.",
        )
    return size


def _read_header_2(file: IO[bytes]) -> Any:
    return np.lib.format.read_array_header_2_0(file)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _unreadable(path: Path, error: BaseException) -> Exception:
    if isinstance(error, FileNotFoundError):
        return data_error(path, "there is no such file.")
    reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
    return data_error(path, f"this file cannot be read, it is cut or damaged: {reason}.")


_TEXT = "BYTE_ARRAY"
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
"""Bytes that a number takes; lists and texts take four more for the place where each begins."""
_OFFSET = 4
_PEEK_ROWS = 1024
_Longest = Callable[[int, Any], int]


def read_parquet_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file, once it was seen to fit into memory.

    Raises:
        DataError: It does not.
        pyarrow.ArrowException, OSError: The file is damaged.
    """
    check_parquet(path)
    return pq.read_table(path, columns=None if columns is None else list(columns))


def check_parquet(path: Path) -> None:
    """Raise if a Parquet file would take more memory than there is.

    Rows that are alike take next to nothing in such a file, and a text that is written once can
    stand in every row: two kilobytes unpack to 200 GB. Where even the longest text that a part of
    the file has room for would fit in every row, nothing but its end is read.

    Raises:
        DataError: It would.
        pyarrow.ArrowException, OSError: The file is damaged.
    """
    with pq.ParquetFile(path, pre_buffer=False) as file:
        about = file.metadata
        for group in range(about.num_row_groups):
            # Here a damaged description of a column is an error; asked for below, it would end
            # the process.
            next(file.iter_batches(1, row_groups=[group]), None)
    if not fits_memory(_unpacked(about, lambda _, chunk: int(chunk.total_uncompressed_size))):
        check_memory(path, _unpacked(about, _Dictionaries(path, about).longest))


def _unpacked(about: pq.FileMetaData, longest: _Longest) -> int:
    """Bytes that all values of a file take at most."""
    return sum(
        _size(about, about.row_group(group).column(column), group, column, longest)
        for group in range(about.num_row_groups)
        for column in range(about.num_columns)
    )


def _size(about: pq.FileMetaData, chunk: Any, group: int, column: int, longest: _Longest) -> int:
    if chunk.physical_type == _TEXT:
        texts = int(chunk.total_uncompressed_size)
        if chunk.has_dictionary_page:
            texts = max(texts, chunk.num_values * longest(group, chunk))
        return int(texts + chunk.num_values * _OFFSET)
    width = _WIDTHS.get(chunk.physical_type) or about.schema.column(column).length
    return int(chunk.num_values) * max(1, width)


class _Dictionaries:
    """Looks up how long the texts are that a part of a file has written once for many rows."""

    def __init__(self, path: Path, about: pq.FileMetaData) -> None:
        columns = [about.schema.column(at) for at in range(about.num_columns)]
        texts = [one.path for one in columns if one.physical_type == _TEXT]
        self._file = pq.ParquetFile(path, read_dictionary=texts)

    def longest(self, group: int, chunk: Any) -> int:
        """Length of the longest; 0 if no row has one."""
        for batch in self._file.iter_batches(
            _PEEK_ROWS, row_groups=[group], columns=[chunk.path_in_schema]
        ):
            found = _dictionary(batch.column(0))
            if found is None:
                return 0
            if len(found):
                return int(pc.max(pc.binary_length(found)).as_py() or 0)
        return 0


def _dictionary(values: pa.Array) -> pa.Array | None:
    """The texts that an array, or what its lists and structs hold, points to."""
    while not pa.types.is_dictionary(values.type):
        if pa.types.is_struct(values.type):
            values = values.field(0)
        elif pa.types.is_nested(values.type):
            values = values.values
        else:
            return None
    return values.dictionary
