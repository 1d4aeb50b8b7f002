"""Reading Parquet files of others: what they would unpack to is compared with memory first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hilltop.data.array_files import check_memory, fits_memory

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
    about = pq.read_metadata(path)
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
