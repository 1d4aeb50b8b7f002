"""CSV files, spreadsheets and Parquet files as columns, with the line of every row for messages."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from hilltop.checks import did_you_mean, pluralize
from hilltop.data.assemble import ascending
from hilltop.data.data_errors import ErrorCollector, data_error, unknown_class
from hilltop.data.formats.options import ready_command
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.arrow_structs import plain_columns
from hilltop.data.formats.text.content import read_content
from hilltop.data.formats.text.known_names import ROW_NUMBER, is_label_name
from hilltop.data.formats.text.spreadsheet import ALL, ask_for_sheet
from hilltop.errors import OptionNeeded

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
            self.notes += _sheet_note(source)
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
        rows = _sheet_rows if self._source.is_spreadsheet else _csv_rows
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
        content = pq.read_table(path)
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
    return _as_table(*_sheet_rows(source)[:2]) if source.is_spreadsheet else _read_csv(source)


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


def _read_csv(source: LabelSource) -> pa.Table:
    """Read fast; if that fails, read again row by row to say where and why."""
    raw, dialect = read_content(source.path), source.dialect
    quotes = raw.count(b'"')
    convert = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(source.header, pa.string()), strings_can_be_null=False
    )
    try:
        # A quote may hide line ends, which the fast reader only looks for when told to. It takes
        # a quote that is never closed for a long cell; the strict reader below does not.
        content = pa_csv.read_csv(
            pa.BufferReader(raw),
            read_options=pa_csv.ReadOptions(
                skip_rows=dialect.comments,
                column_names=None if dialect.header else list(source.header),
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=dialect.separator, newlines_in_values=quotes > 0
            ),
            convert_options=convert,
        )
        # A header with spaces around names is read by the slow reader, which takes them off.
        as_named = content.column_names == list(source.header) and not dialect.skip_blanks
        all_text = all(column.type == pa.string() for column in content.columns)
        if quotes % 2 == 0 and as_named and all_text and not _has_blank_rows(content):
            return content
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError):
        pass
    return _as_table(*_csv_rows(source)[:2])


def takes_all(header: Sequence[str]) -> bool:
    """Whether cells behind the last column are more of it: it is the one of labels."""
    return len(header) > 1 and is_label_name(header[-1])


def fold_rows(header: Sequence[str], rows: list[list[str]]) -> list[list[str]]:
    """Rows with all cells from the last column on in one list, where some have more of them."""
    width = len(header)
    if all(len(row) <= width for row in rows) or not takes_all(header):
        return rows
    return [[*row[: width - 1], _listed(row[width - 1 :])] for row in rows]


def _listed(cells: Sequence[str]) -> str:
    words = [cell.strip() for cell in cells if cell.strip()]
    return json.dumps(words, ensure_ascii=False)


def _has_blank_rows(content: pa.Table) -> bool:
    """Whether a row holds nothing at all."""
    blank: Any = pa.scalar(content.num_columns > 0)
    for column in content.columns:
        blank = pc.and_(blank, pc.equal(pc.utf8_trim_whitespace(column), ""))
        if not pc.any(blank).as_py():
            return False
    return True


def _as_table(header: list[str], rows: list[list[str]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    return pa.table([pa.array(column, pa.string()) for column in columns], names=header)


def _sheet_note(source: LabelSource) -> list[str]:
    """What to say of the sheets that are not read.

    Raises:
        OptionNeeded: Several sheets have the same columns, and nobody said which one is meant.
    """
    sheet, options = source.whole_sheet, source.options
    if len(sheet.alike) > 1 and (options is None or options.sheet is None):
        command = ready_command(source.path, options, sheet=ALL) if options else "--sheet all"
        raise OptionNeeded(ask_for_sheet(source.path, sheet, command))
    return [sheet.note] * bool(sheet.note)


def _sheet_rows(source: LabelSource) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows, and the row of the sheet in which each stands."""
    if not source.sheet:
        raise data_error(source.path, "the sheet is empty. Expected a header and rows.")
    start = source.whole_sheet.titles + 2
    filled = [(at, row) for at, row in enumerate(source.sheet[1:], start=start) if any(row)]
    return list(source.header), [row for _, row in filled], [at for at, _ in filled]


def _csv_rows(source: LabelSource) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows, and the line on which each row begins."""
    errors = ErrorCollector(source.path)
    comments = source.dialect.comments
    text = (f"{line}\n" for _, line in read_lines(source.path)[comments:])
    reader = source.dialect.reader(text, strict=True)
    header: list[str] = [] if source.dialect.header else list(source.header)
    rows: list[list[str]] = []
    lines: list[int] = []
    begins = comments + 1
    try:
        for cells in reader:
            if cells and not header:
                header = list(source.header)
            elif not any(map(str.strip, cells)):
                pass  # nothing but separators, as spreadsheets write below a table
            elif any(cells[len(header) :]) and takes_all(header):
                rows.append(cells)
                lines.append(begins)
            elif any(cells[len(header) :] or [len(cells) < len(header)]):
                wanted = pluralize(len(header), "cell", "cells")
                errors.add(
                    f"expected {wanted} as in the header, but got {len(cells)}."
                    " Quote cells that contain commas.",
                    line=begins,
                )
            else:
                rows.append(cells[: len(header)])
                lines.append(begins)
            begins = comments + reader.line_num + 1
    except csv.Error as error:
        errors.add(f"this row is not valid CSV: {error}.", line=begins)
    if not header:
        errors.add("the file is empty. Expected a header and rows.")
    errors.check()
    return header, fold_rows(header, rows), lines
