"""CSV files, spreadsheets and Parquet files as columns, with the line of every row for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hilltop.checks import did_you_mean
from hilltop.data.assemble import ascending
from hilltop.data.data_errors import ErrorCollector, data_error, unknown_class
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.arrow_structs import plain_columns
from hilltop.data.formats.text.file_rows import (
    as_table,
    csv_rows,
    read_csv_table,
    sheet_note,
    sheet_rows,
)
from hilltop.data.formats.text.known_names import ROW_NUMBER
from hilltop.data.parquet_files import read_parquet_table

_SAMPLE_ROWS = 200


class TableFile:
    """The content of a file; cells of a CSV or spreadsheet are text, blanks are empty text."""

    def __init__(self, source: LabelSource) -> None:
        """Read the file.

        Raises:
            DataError: The file is empty, ragged, not UTF-8 or cut off.
        """
        self.path = source.path
        self.notes: list[str] = []
        self._source = source
        self._is_parquet = is_parquet(source)
        if source.is_spreadsheet:
            self.notes += sheet_note(source)
        self.content = _without_row_numbers(_read(source))
        twice = {name for name in self.names if self.names.count(name) > 1}
        if twice:
            raise data_error(
                self.path, f"the column {min(twice)!r} stands twice in the header.", line=1
            )

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.content.column_names)

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.content.num_rows)

    def sample(self) -> dict[str, list[Any]]:
        """The first cells of every column."""
        return {name: self.column(name)[:_SAMPLE_ROWS].to_pylist() for name in self.names}

    def column(self, name: str) -> pa.Array:
        """Return one column as it is stored."""
        if name not in self.names:
            raise data_error(
                self.path,
                f"there is no column {name!r}.{did_you_mean(name, self.names)}"
                f" The columns are {', '.join(self.names)}.",
                line=None if self._is_parquet else 1,
            )
        chunks = self.content.column(name)
        return chunks.combine_chunks() if chunks.num_chunks != 1 else chunks.chunk(0)

    def distinct(self, name: str) -> list[Any]:
        """The different cells of a column of text; none of another column."""
        column = self.column(name)
        return column.unique().to_pylist() if pa.types.is_string(column.type) else []

    def text(self, name: str, *, blank: bool = False) -> pa.Array:
        """Return one column as text; unless ``blank`` is allowed, no cell may be empty."""
        if name == ROW_NUMBER and name not in self.names:
            return row_numbers(len(self))
        column = self.column(name)
        try:
            words = pc.fill_null(column.cast(pa.string()), "")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise data_error(
                self.path, f"column {name!r} must hold text, but holds {column.type}."
            ) from None
        broken = pc.match_substring(words, "\n")
        self._check(broken, f"column {name!r} holds a line break. Is a quote missing or too many?")
        if not blank:
            empty = pc.equal(words, "")
            self._check(empty, f"column {name!r} is empty. Fill it in or remove the line.")
        return words

    def images(self, name: str) -> pa.DictionaryArray:
        """Return a column of image ids, coded; rows of one image mostly follow each other."""
        words = self.text(name)
        changes = pc.not_equal(words[1:], words[:-1]).to_numpy(zero_copy_only=False)
        starts = np.flatnonzero(np.concatenate([[len(words) > 0], changes]))
        names, number = words.take(pa.array(starts)), np.arange(len(starts))
        if not ascending(names):
            runs = names.dictionary_encode()
            names, number = runs.dictionary, runs.indices.to_numpy(zero_copy_only=False)
        codes = np.repeat(number, np.diff(np.append(starts, len(words))))
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names)

    def class_codes(
        self,
        names: pa.DictionaryArray,
        classes: Sequence[str],
        numbers: Mapping[str, int] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Return the place in ``classes`` of each row of a coded column; others are errors.

        Args:
            names: The column.
            classes: The classes.
            numbers: Place of each class by all words that may stand for it, if not just its name.
        """
        place = numbers or {name: code for code, name in enumerate(classes)}
        found = names.dictionary.to_pylist()
        codes = names.indices.to_numpy(zero_copy_only=False)
        new = np.array([place.get(name, -1) for name in found], dtype=np.int64)
        columns: npt.NDArray[np.int64] = new[codes]
        errors = ErrorCollector(self.path)
        for row in np.flatnonzero(columns < 0):
            errors.add(unknown_class(found[codes[row]], classes), line=self.line_of(int(row)))
        errors.check()
        return columns

    def _check(self, wrong: pa.Array, message: str) -> None:
        self.report(np.flatnonzero(wrong.to_numpy(zero_copy_only=False)).tolist(), message)

    def report(self, rows: Sequence[int], message: str) -> None:
        """Raise if there are rows with an error, and name their lines."""
        errors = ErrorCollector(self.path)
        for row in rows:
            errors.add(message, line=self.line_of(row))
        errors.check()

    def line_of(self, row: int) -> int:
        """Line on which a row begins (of a Parquet file: its number), counted from 1."""
        return row + 1 if self._is_parquet else self._lines[row]

    @cached_property
    def _lines(self) -> Sequence[int]:
        rows = sheet_rows if self._source.is_spreadsheet else csv_rows
        return rows(self._source)[2]


def row_numbers(count: int) -> pa.Array:
    """Ids of rows that have no names."""
    return pa.array([str(number) for number in range(count)], pa.string())


def is_parquet(source: LabelSource) -> bool:
    """Whether a file is meant to be Parquet: by its ending or its first bytes."""
    return source.suffix == ".parquet" or source.head.startswith("PAR1")


def column_names(source: LabelSource) -> list[str]:
    """Names of the columns of a CSV or Parquet file; none if it has no such thing."""
    if source.is_folder:
        return []
    if not is_parquet(source):
        return list(source.header)
    try:
        return list(plain_columns(pq.read_schema(source.path).empty_table()).column_names)
    except (pa.ArrowInvalid, OSError):
        return []


def read_parquet(path: Path) -> pa.Table:
    """Read a Parquet file whole."""
    try:
        content = read_parquet_table(path)
        content.validate(full=True)  # Text in a Parquet file may hold bytes that are not UTF-8.
        return content
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(path, f"this Parquet file cannot be read: {reason}.") from None


def is_binary(source: LabelSource) -> bool:
    """Whether a file is no text, so that its lines cannot be changed one by one."""
    return is_parquet(source) or source.is_spreadsheet


def _read(source: LabelSource) -> pa.Table:
    if is_parquet(source):
        return plain_columns(read_parquet(source.path))
    return as_table(*sheet_rows(source)[:2]) if source.is_spreadsheet else read_csv_table(source)


def _without_row_numbers(content: pa.Table) -> pa.Table:
    """Drop columns without a name that hold nothing, or count the rows as pandas does.

    Others without a name are called by their number, from 1.
    """
    kept = []
    for at, name in enumerate(content.column_names):
        if name in ("", "Unnamed: 0", "__index_level_0__"):
            cells = [str(value) for value in content.column(at).to_pylist() if value is not None]
            numbered = at == 0 or name == "__index_level_0__"
            if not any(cells) or (numbered and cells == [str(n) for n in range(len(cells))]):
                continue
        kept.append(at)
    names = [content.column_names[at] or f"column {at + 1}" for at in kept]
    return content.select(kept).rename_columns(names)
