"""The cells of a table, wherever it is stored: rows and columns of text or of lists of text.

Nothing is interpreted here but the container. The first row may be a header or not, and the layout
says so; files that name their columns (Parquet, JSON, DataFrames) have no header row.
"""

from __future__ import annotations

import ast
import csv
import functools
import io
import itertools
import json
import math
import re
import sys
import tokenize
import zipfile
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from hilltop.checks import did_you_mean
from hilltop.data.array_files import check_parquet
from hilltop.data.content import Source, parse_json
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.layout import ask
from hilltop.data.tables.words import count_values, names_a_column
from hilltop.errors import ArgumentTypeError, DataError, MissingExtra

SHEET_SUFFIXES = (".xlsx", ".xlsm", ".xls", ".ods", ".xlsb")
PARQUET_SUFFIXES = (".parquet", ".pq")
SEPARATORS = (",", "\t", ";", "|")
DELIMITERS = (";", "|", ",", "\n", "\t")
"""What may separate the labels in a cell."""
_NAMED = {"tab": "\t", "space": " ", "comma": ",", "semicolon": ";"}
_ODD_QUOTES = re.compile(rb'[,;|\t] +"|[^,;|\t\n"]"[^,;|\t\r\n"]')
"""A quote behind a space, or within a cell: Python's csv knows what to make of it."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_CELL = re.compile(rb'<c r="([A-Z]+)([0-9]+)"([^>/]*)>(.*?)</c>', re.DOTALL)
_VALUE = re.compile(rb"<v>([^<]+)</v>")
_SNIFFED = 50
_MOST_EXACT = 1 << 53
_LONGEST_BLANK = 3
"""Cells with more bytes are taken for filled without looking for spaces."""


@dataclass(frozen=True)
class Cells:
    """All cells of a table.

    Attributes:
        path: The file, for messages.
        columns: One array per column, all of one length: text, or lists of text.
        names: Names of the columns where the file has them apart from the rows; else None.
        row_of: Number of the row in the file, counted from 1, of each row here.
        lengths: Where rows may differ in length: row number, cells, and last cell that is filled.
        separator: What separates the cells of a text.
        sheet: Which sheet of a workbook it is.
        comments: Row numbers of lines before the table that begin with ``#``.
        merged: Row numbers of a sheet in which cells are merged across columns.
        faults: What is wrong with columns that cannot hold labels, by their number.
        tables: What was read below which header.
    """

    path: Path
    columns: Sequence[pa.Array]
    names: tuple[str, ...] | None
    row_of: Callable[[int], int]
    lengths: Sequence[tuple[int, int, int]] = ()
    separator: str | None = None
    sheet: str | None = None
    comments: tuple[int, ...] = ()
    merged: tuple[int, ...] = ()
    faults: dict[int, str] = field(default_factory=dict)
    tables: dict[Any, Table] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.columns[0]) if self.columns else 0

    def usual(self, header_row: int | None, skip_rows: Container[int]) -> int:
        """Number of cells that a row has: as many as the header, or the first row of several."""
        sizes = {
            row: size
            for row, size, last in self.lengths
            if row == header_row or (last > 1 and row not in skip_rows)
        }
        first = next(iter(sizes.values()), len(self.columns))
        return first if header_row is None else sizes.get(header_row, first)

    def widths(self, header_row: int | None, skip_rows: Container[int]) -> dict[int, int]:
        """Number of cells of rows that have fewer or more than is usual, by row number."""
        usual = self.usual(header_row, skip_rows)
        return {
            row: size
            for row, size, last in self.lengths
            if last and row > (header_row or 0) and (last > usual or size < usual)
            if row not in skip_rows
        }

    def first_rows(self, count: int) -> list[list[str]]:
        """The first rows as stripped text."""
        heads = [column[:count].to_pylist() for column in self.columns]
        return [[_shown(cell) for cell in row] for row in zip(*heads, strict=True)]


@dataclass(frozen=True)
class Table:
    """The rows below the header, with named columns.

    Attributes:
        path: The file, for messages.
        names: Names of the columns; ``column 0`` and so on where there is no header.
        columns: Their cells.
        row_of: Row number in the file of each row here.
        faults: What is wrong with columns that cannot hold labels, by their number.
        places: Number of each column in the file.
        unnamed: Columns without a name below a header that names others.
        words: Columns whose different cells are known already.
        counted: The same for how often values stand in them.
    """

    path: Path
    names: tuple[str, ...]
    columns: Sequence[pa.Array]
    row_of: Callable[[int], int]
    faults: dict[int, str] = field(default_factory=dict)
    places: tuple[int, ...] = ()
    unnamed: frozenset[int] = frozenset()
    words: dict[int, pa.DictionaryArray] = field(default_factory=dict)
    counted: dict[int, Counter[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.columns[0]) if self.columns else 0

    def index(self, named: str) -> int:
        """Number of the column of a name, or of a number counted from 0.

        Raises:
            DataError: There is no such column, or several have the name.
        """
        if self.names.count(named) == 1:
            return self.names.index(named)
        if named in self.names:
            raise data_error(
                self.path,
                f"{self.names.count(named)} columns are called {named!r}. Rename one, or give its"
                " number, counted from 0.",
            )
        if named.isascii() and named.isdigit() and int(named) < len(self.names):
            return int(named)
        raise data_error(
            self.path,
            f"there is no column {named!r}.{did_you_mean(named, self.names)}"
            f" The columns are {', '.join(self.names)}.",
        )

    def indices(self, said: str) -> list[int]:
        """Numbers of the columns that the user named or counted: ``sex,age``, ``2`` or ``5:``."""
        if said in self.names:
            return [self.index(said)]
        found: list[int] = []
        for word in next(csv.reader([said], skipinitialspace=True), []):
            part = word if word in self.names else word.strip()
            bounds = None if part in self.names else re.fullmatch(r"(-?\d*):(-?\d*)", part)
            if bounds is None:
                found.append(self.index(part))
            else:
                first, last = (int(text) if text else None for text in bounds.groups())
                found += range(len(self.names))[first:last]
        return list(dict.fromkeys(found))

    def name(self, index: int) -> str:
        """What the layout calls a column: its name, or its number where that is not unique."""
        return self.names[index] if self.names.count(self.names[index]) == 1 else str(index)

    def called(self, indices: Iterable[int]) -> tuple[str, ...]:
        """What the layout calls some columns."""
        return tuple(map(self.name, indices))

    def distinct(self, index: int) -> pa.DictionaryArray:
        """The cells of a column of text, stripped, each different one once with its places."""
        if index not in self.words:
            column = self.columns[index]
            if is_list(column):
                column = pc.binary_join(column, ", ")
            encoded = column.fill_null("").dictionary_encode()
            words = pc.utf8_trim_whitespace(encoded.dictionary)
            if not words.equals(encoded.dictionary):
                unique = words.dictionary_encode()
                codes = unique.indices.take(encoded.indices)
                encoded = pa.DictionaryArray.from_arrays(codes, unique.dictionary)
            self.words[index] = encoded
        return self.words[index]

    def counts(self, index: int) -> dict[str, int]:
        """How often each different cell of a column occurs."""
        found = self.distinct(index)
        counts = np.bincount(codes_of(found), minlength=len(found.dictionary)).tolist()
        return {
            word: count
            for word, count in zip(found.dictionary.to_pylist(), counts, strict=True)
            if count
        }

    def values(self, index: int) -> Counter[str]:
        """How often each value stands in a column, in canonical form."""
        if index not in self.counted:
            self.counted[index] = count_values(self.counts(index))
        return self.counted[index]

    def rows_with(self, index: int, word: str, most: int = 3) -> list[int]:
        """Row numbers in the file of the first cells that hold a text."""
        found = self.distinct(index)
        code = found.dictionary.to_pylist().index(word)
        return [self.row_of(int(row)) for row in np.flatnonzero(codes_of(found) == code)[:most]]


def codes_of(column: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number of each cell's value in the dictionary."""
    return np.asarray(column.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def is_list(column: pa.Array) -> bool:
    """Whether the cells of a column are lists."""
    return bool(pa.types.is_list(column.type) or pa.types.is_large_list(column.type))


def read_cells(source: Source, *, separator: str | None, sheet: str | None) -> Cells | None:
    """Return the cells of a table; None if the source cannot be one.

    Args:
        source: The file or DataFrame.
        separator: What separates the cells of a text; None finds it.
        sheet: Name or number of the sheet of a workbook; None for the only one with a table.

    Raises:
        AmbiguousInputError: Several sheets hold a table, or several separators are possible.
    """
    key = ("cells", separator, sheet)
    if key not in source.cache:
        found = _read_cells(source, separator, sheet)
        source.cache[key] = found
        if found is not None:  # the layout will ask for it by what was found
            source.cache["cells", found.separator, found.sheet] = found
    cells: Cells | None = source.cache[key]
    return cells


def _read_cells(source: Source, separator: str | None, sheet: str | None) -> Cells | None:
    if source.frame is not None:
        return _frame_cells(source)
    if source.is_folder:
        return None
    if source.suffix in SHEET_SUFFIXES:
        return _sheet_cells(source, sheet)
    if source.suffix in PARQUET_SUFFIXES:
        return _parquet_cells(source)
    start = "" if separator is not None else source.start
    if start == "{" or (start == "[" and re.match(r"\s*\[\s*[{\]]", source.head)):
        return _json_cells(source)
    if start == "<" or start == "[":
        return None
    return _text_cells(source, _NAMED.get(separator or "", separator))


def apply_header(cells: Cells, header_row: int | None, skip_rows: Iterable[int]) -> Table:
    """Return the rows below the header, without those that are left out and empty ones."""
    key = header_row, frozenset(skip_rows)
    if key not in cells.tables:
        cells.tables[key] = _apply_header(cells, *key)
    return cells.tables[key]


def _apply_header(cells: Cells, header_row: int | None, skipped: frozenset[int]) -> Table:
    if cells.names is not None:
        names, first = cells.names, 0
    elif header_row is None:
        names, first = tuple(f"column {at}" for at in range(len(cells.columns))), 0
    else:
        within = range(min(len(cells), header_row))
        at = next((row for row in within if cells.row_of(row) == header_row), None)
        if at is None:
            raise data_error(cells.path, f"there is no row {header_row} to be the header.")
        names = _header_names([_shown(column[at].as_py()) for column in cells.columns])
        first = at + 1
    columns = [column[first:] for column in cells.columns]
    keep = np.ones(len(cells) - first, dtype=bool)
    if skipped:
        keep[:] = [cells.row_of(first + row) not in skipped for row in range(len(keep))]
    used = [at for at, name in enumerate(names) if name or (_filled_mask(columns[at]) & keep).any()]
    filled = np.full(len(keep), cells.names is not None)  # other rows are no blank lines
    for at in used:
        filled |= _filled_mask(columns[at])
        if filled.all():
            break
    keep &= filled
    kept = None if keep.all() else np.flatnonzero(keep)
    rows = None if kept is None else pa.array(kept)
    return Table(
        cells.path,
        tuple(names[at] or f"column {at}" for at in used),
        [columns[at] if rows is None else columns[at].take(rows) for at in used],
        lambda row: cells.row_of(first + (row if kept is None else int(kept[row]))),
        {new: cells.faults[at] for new, at in enumerate(used) if at in cells.faults},
        tuple(used),
        frozenset(new for new, at in enumerate(used) if not names[at]),
    )


def _header_names(row: list[str]) -> tuple[str, ...]:
    return tuple(cell.lstrip("#").strip() if at == 0 else cell for at, cell in enumerate(row))


def _filled_mask(column: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if is_list(column):
        return np.ones(len(column), dtype=bool)
    if not column.null_count and (pc.min(pc.binary_length(column)).as_py() or 0) > _LONGEST_BLANK:
        return np.ones(len(column), dtype=bool)
    filled = pc.not_equal(pc.utf8_trim_whitespace(column.fill_null("")), "")
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=bool)


def _shown(cell: Any) -> str:
    return "" if cell is None else cell.strip() if isinstance(cell, str) else str(cell)


def with_comment_row(source: Source, cells: Cells, row: int) -> Cells:
    """The cells, with a comment line before the table as their first row."""
    line = source.lines[row - 1][1].lstrip("#")
    names = [cell.strip() for cell in line.split(cells.separator or ",")]
    columns = [
        pa.concat_arrays([pa.array([names[at] if at < len(names) else ""], pa.string()), column])
        for at, column in enumerate(cells.columns)
    ]
    return replace(
        cells,
        columns=columns,
        row_of=lambda at: row if at == 0 else cells.row_of(at - 1),
    )


def parse_list(cell: str) -> list[str] | None:
    """The names in a list as JSON or Python writes it; None if the text is none.

    Example:
        >>> parse_list('["cat", "dog"]'), parse_list("['cat']"), parse_list("['a' 'b']")
        (['cat', 'dog'], ['cat'], None)
    """
    text = cell.strip()
    if not text.startswith(("[", "(", "{")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _python_list(text)
    if not isinstance(value, list | tuple | set):
        return None
    items = sorted(value, key=str) if isinstance(value, set) else list(value)
    if not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in items):
        return None
    return [
        str(int(one)) if isinstance(one, float) and one.is_integer() else str(one) for one in items
    ]


def parse_vector(cell: str) -> list[str]:
    """The values in a list, or in a text with commas, semicolons, bars or spaces between."""
    return parse_list(cell) or [word for word in re.split(r"[,;|\s]+", cell) if word]


def _python_list(text: str) -> Any:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        kinds = [token.type for token in tokens]
        if any(one == two == tokenize.STRING for one, two in itertools.pairwise(kinds)):
            return None  # Python would join neighbours without a comma into one
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError, tokenize.TokenError):
        return None


def parse_labels(cell: str) -> list[str] | None:
    """The labels in a list, or the only label of a cell that is no list; None for anything else."""
    if not cell.startswith(("[", "(", "{")) and not any(mark in cell for mark in DELIMITERS):
        return [cell]
    return parse_list(cell)


# Text


def _text_cells(source: Source, separator: str | None) -> Cells | None:
    if not source.head.strip() or "\0" in source.head:
        return None
    lines = source.head.split("\n")
    comments = _comment_lines(lines)
    if separator is None:
        separator = find_separator(source, lines[comments:])
        if separator is None:
            return None
    raw = source.raw
    exact = (
        not comments
        and separator != " "
        and source.encoding in ("utf-8", "utf-8-sig")
        and (b"\r" not in raw or b"\r" not in raw.replace(b"\r\n", b""))
        and (b'"' not in raw or (raw.count(b'"') % 2 == 0 and not _ODD_QUOTES.search(raw)))
    )
    table = _arrow_cells(raw, separator) if exact else None
    if table is not None:
        lines_all = raw.count(b"\n") + (not raw.endswith(b"\n"))
        if lines_all == table.num_rows:
            return Cells(
                source.path,
                [column.combine_chunks() for column in table.columns],
                None,
                lambda row: row + 1,
                separator=separator,
            )
    return _csv_cells(source, separator, comments)


def _arrow_cells(raw: bytes, separator: str) -> pa.Table | None:
    """The rows as Arrow reads them; None where they differ in length or a quote is not closed."""
    first = raw[: raw.find(b"\n") + 1 or len(raw)].decode("utf-8-sig", errors="replace")
    width = len(next(csv.reader([first], delimiter=separator), []))
    names = [str(at) for at in range(width)]
    try:
        return pa.csv.read_csv(
            pa.BufferReader(raw),
            read_options=pa.csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=pa.csv.ParseOptions(
                delimiter=separator, newlines_in_values=b'"' in raw, ignore_empty_lines=False
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowException:
        return None


def _csv_cells(source: Source, separator: str, comments: int) -> Cells:
    """The rows as Python's csv reads them: of any length, with the line on which each begins."""
    rows: list[list[str]] = []
    starts: list[int] = []
    for record in csv_records(source.path, source.text, separator, comments):
        rows.append(record.cells)
        starts.append(record.row)
    found = tuple(starts)
    return Cells(
        source.path,
        _columns(rows),
        None,
        lambda row: found[row],
        [*zip(starts, map(len, rows), map(_last_filled, rows), strict=True)],
        separator,
        comments=tuple(range(1, comments + 1)),
    )


@dataclass
class Record:
    """One row of a text: the number of its first line, its cells, and itself with the line end."""

    row: int
    cells: list[str]
    raw: str


def csv_records(path: Path, text: str, separator: str, comments: int) -> Iterator[Record]:
    """Yield the rows of a text below its first lines; a quoted cell may hold line ends.

    Raises:
        DataError: A quote is not closed, or stands where none can be.
    """
    lines = _LINE.findall(text)[comments:]
    if separator == " ":
        for at, line in enumerate(lines, comments + 1):
            yield Record(at, [*map(sys.intern, line.split())], line)
        return
    begins, done = 0, 0
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for cells in reader:
            begins, done = done, reader.line_num
            yield Record(begins + comments + 1, cells, "".join(lines[begins:done]))
    except csv.Error as error:
        raise data_error(
            path,
            f"this row is not valid CSV: {error}. Is a quote missing?",
            line=reader.line_num + comments,
        ) from None


def _columns(rows: Sequence[Sequence[str]]) -> list[pa.Array]:
    """The columns of rows that may differ in length, as far as any of them is filled."""
    width = max(map(_last_filled, rows), default=0)
    return [
        pa.array([row[at] if at < len(row) else "" for row in rows], pa.string())
        for at in range(width)
    ]


def _last_filled(row: Sequence[str]) -> int:
    return next((at for at in range(len(row), 0, -1) if row[at - 1].strip()), 0)


def _comment_lines(lines: Sequence[str]) -> int:
    """Number of lines before the first that is no comment; 0 if there is nothing else."""
    for at, line in enumerate(lines):
        if line.strip() and not line.startswith("#"):
            return at if any(line.startswith("#") for line in lines[:at]) else 0
    return 0


def find_separator(source: Source, lines: Sequence[str]) -> str | None:
    """What separates the cells: what every line has equally often, else what the first one has.

    Raises:
        AmbiguousInputError: Several characters are possible.
    """
    sample = [line for line in lines if line.strip()]
    sample = (sample[:-1] if len(sample) > _SNIFFED else sample)[:_SNIFFED]
    found = {mark: _split(sample, mark) for mark in SEPARATORS}
    present = [mark for mark, rows in found.items() if any(len(row) > 1 for row in rows)]
    if len(present) < 2:
        return present[0] if present else None
    at = next(at for at, line in enumerate(sample) if any(mark in line for mark in present))
    first = [mark for mark in present if len(found[mark][at]) > 1]
    naming = [mark for mark in first if any(map(names_a_column, found[mark][at]))]
    even = [mark for mark in present if len({len(row) for row in found[mark][at:]}) == 1]
    for only in (naming, even, first):
        if len(only) == 1:
            return only[0]
    shown = " or ".join(repr(mark) for mark in first)
    raise ask(
        source.path,
        f"The cells may be separated by {shown}. Pass --separator.",
        separator={"\t": "tab"}.get(first[0], first[0]),
    )


def _split(lines: Sequence[str], mark: str) -> list[list[str]]:
    """The cells of some lines; a quoted cell that spans lines may make rows of several."""
    rows = []
    for line in lines:
        try:
            rows += list(csv.reader([line], delimiter=mark, skipinitialspace=True))
        except csv.Error:
            rows.append(line.split(mark))
    return rows


# Workbooks


def _sheet_cells(source: Source, wanted: str | None) -> Cells:
    sheets = _read_sheets(source)
    names = list(sheets)
    if wanted is not None:
        if wanted not in names and not (wanted.isdigit() and int(wanted) < len(names)):
            raise data_error(
                source.path,
                f"there is no sheet {wanted!r}.{did_you_mean(wanted, names)}"
                f" The sheets are {', '.join(names)}.",
            )
        chosen = wanted if wanted in names else names[int(wanted)]
    else:
        tables = [name for name in names if _holds_table(sheets[name][0])]
        if len(tables) > 1:
            told = ", ".join(f"{name!r} ({len(sheets[name][0])} rows)" for name in tables)
            raise ask(
                source.path,
                f"{len(tables)} sheets hold a table: {told}. Pass --sheet with the one to read.",
                sheet=tables[0],
            )
        chosen = (tables or names or [""])[0]
    rows, merged = sheets.get(chosen, ([], ()))
    return Cells(
        source.path, _columns(rows), None, lambda row: row + 1, sheet=chosen, merged=merged
    )


def _holds_table(rows: Sequence[Sequence[str]]) -> bool:
    return sum(_last_filled(row) > 1 and sum(map(bool, row)) > 1 for row in rows) > 1


def _read_sheets(source: Source) -> dict[str, tuple[list[list[str]], tuple[int, ...]]]:
    """The cells of each sheet, and the rows in which some are merged across columns."""
    try:
        from python_calamine import CalamineWorkbook
    except ImportError as error:
        raise MissingExtra("Reading a spreadsheet", error.name, "xlsx") from None
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(source.raw))
        found: dict[str, tuple[list[list[str]], tuple[int, ...]]] = {}
        for name in book.sheet_names:
            sheet = book.get_sheet_by_name(name)
            values = sheet.to_python(skip_empty_area=False)
            rows = [
                [_sheet_text(source, cell, at) for cell in row] for at, row in enumerate(values, 1)
            ]
            _mark_errors(source, len(found), rows)
            wide = set[int]()
            for (top, left), (bottom, right) in getattr(sheet, "merged_cell_ranges", None) or ():
                if left == right:  # what stands in a merged cell holds for all rows that it spans
                    for row in rows[top + 1 : bottom + 1]:
                        row[left] = rows[top][left]
                else:
                    wide |= set(range(top + 1, bottom + 2))
            found[name] = rows, tuple(sorted(wide))
    except DataError:
        raise
    except Exception as error:  # the library passes on whatever its parsers raise
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise data_error(
            source.path, f"this spreadsheet cannot be read: {reason}. Save it as CSV."
        ) from None
    return found


def _mark_errors(source: Source, number: int, rows: list[list[str]]) -> None:
    """Put ``#N/A`` and other errors into the cells of a sheet, which the library leaves empty.

    Raises:
        DataError: A cell holds a formula whose value was never saved.
    """
    if source.suffix not in (".xlsx", ".xlsm"):
        return
    with zipfile.ZipFile(io.BytesIO(source.raw)) as book:
        ids = re.findall(rb'<sheet\b[^>]*\br:id="([^"]+)"', book.read("xl/workbook.xml"))
        links = re.findall(rb"<Relationship\b[^>]*>", book.read("xl/_rels/workbook.xml.rels"))
        about = [dict(re.findall(rb'(\w+)="([^"]*)"', link)) for link in links]
        part = {one[b"Id"]: one[b"Target"].decode() for one in about}.get(ids[number], "")
        name = part.lstrip("/") if part.startswith("/") else f"xl/{part}"
        content = book.read(name) if name in book.namelist() else b""
    if b't="e"' not in content and b"<f" not in content:
        return
    for column, row, kind, inner in _CELL.findall(content):
        value = _VALUE.search(inner)
        if b"<f" in inner and value is None and b't="str"' not in kind:
            raise data_error(
                source.path,
                f"cell {column.decode()}{row.decode()} holds a formula whose value was not saved."
                " Open the file in a spreadsheet program and save it.",
            )
        if b't="e"' in kind and value is not None:
            at = functools.reduce(lambda total, letter: 26 * total + letter - 64, column, 0) - 1
            rows[int(row) - 1][at] = value[1].decode()


def _sheet_text(source: Source, value: Any, row: int) -> str:
    if isinstance(value, int | float) and abs(value) >= _MOST_EXACT:
        raise data_error(
            source.path,
            f"the number {value:.0f} has more digits than a spreadsheet keeps. Save it as text.",
            line=row,
        )
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


# Parquet, JSON and DataFrames


def _parquet_cells(source: Source) -> Cells:
    try:
        if source.path.is_file():
            check_parquet(source.path)
        content = pq.ParquetFile(pa.BufferReader(source.raw)).read()
        content.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(source.path, f"this is not a whole Parquet file: {reason}.") from None
    return arrow_table_cells(source, content)


def arrow_table_cells(source: Source, content: pa.Table) -> Cells:
    """The cells of a table of Arrow; parts of objects become columns of their own."""
    while any(pa.types.is_struct(column.type) for column in content.columns):
        content = content.flatten()  # objects: {categories} -> objects.categories
    faults: dict[int, str] = {}
    columns = []
    for at, (name, column) in enumerate(_named_columns(content)):
        text, fault = as_text(column)
        columns.append(text)
        if fault:
            faults[at] = f"column {name!r} {fault}"
    names = tuple(content.column_names)
    return Cells(source.path, columns, names, lambda row: row + 1, faults=faults)


def _named_columns(content: pa.Table) -> Iterable[tuple[str, pa.Array]]:
    for name, column in zip(content.column_names, content.columns, strict=True):
        chunks = column.chunks
        if len(chunks) == 1:
            yield name, chunks[0]
        else:
            yield name, pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


def as_text(column: pa.Array) -> tuple[pa.Array, str]:
    """Return a column as text or lists of text, and what is wrong with it if it held labels."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_text(column.dictionary_decode())
    if pa.types.is_string(kind):
        return column, ""
    if pa.types.is_fixed_size_list(kind):
        column = column.cast(pa.list_(kind.value_type))
    if is_list(column):
        inner, fault = as_text(column.flatten())
        lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths)
        if inner.null_count and not fault:
            first = np.flatnonzero(np.asarray(inner.is_null()))[0]
            row = int(np.searchsorted(ends, first, side="right")) + 1
            fault = f"holds null in the list of row {row}, which is no label. Remove it."
        if is_list(inner):
            return pa.nulls(len(column), pa.string()), "holds lists of lists, which are no labels."
        offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, inner), fault
    if pa.types.is_floating(kind):
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), None, column)
        whole = pc.all(pc.equal(pc.floor(column), column), min_count=0).as_py()
        most = pc.max(pc.abs(column)).as_py()
        if whole and (most is None or most < _MOST_EXACT):
            column = column.cast(pa.int64())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_nested(kind):
        return pa.nulls(len(column), pa.string()), f"holds {kind}, which is no label."
    return column.cast(pa.string()), ""


def _json_cells(source: Source) -> Cells | None:
    """Objects, one per line or in a list, as rows; None for other documents."""
    records = json_records(source)
    if records is None:
        return None
    errors = ErrorCollector(source.path)
    keys: dict[str, None] = {}
    flat: list[dict[str, Any]] = []
    for line, record in records:
        if not isinstance(record, dict):
            errors.add(f"expected a JSON object, but got {record!r:.60}.", line=line)
            continue
        flat.append(_flat(record))
        keys.update(dict.fromkeys(flat[-1]))
    errors.check()
    lines = [line for line, _ in records]
    values = {key: [record.get(key) for record in flat] for key in keys}
    return _value_cells(source, values, lines)


def json_records(source: Source) -> list[tuple[int, Any]] | None:
    """The records of JSON lines or of a JSON list, with their lines; None for other documents."""
    if source.head.lstrip().startswith("["):
        content = source.json
        return [(at, record) for at, record in enumerate(content, 1)]
    lines = [(at, line) for at, line in source.lines if line.strip()]
    if source.suffix == ".json" or not _is_object(lines[0][1]):
        if len(lines) > 1 and all(_is_object(line) for _, line in lines[:2]):
            return [(at, parse_json(source.path, line, at)) for at, line in lines]
        return None
    return [(at, parse_json(source.path, line, at)) for at, line in lines]


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _flat(record: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            found.update(_flat(value, f"{before}{key}."))
        else:
            found[f"{before}{key}"] = value
    return found


def _value_cells(source: Source, values: dict[str, list[Any]], lines: Sequence[int]) -> Cells:
    columns, faults = [], {}
    for at, (name, cells) in enumerate(values.items()):
        column, fault = _value_column(cells, lines)
        columns.append(column)
        if fault:
            faults[at] = f"column {name!r} {fault}"
    return Cells(source.path, columns, tuple(values), lambda row: lines[row], faults=faults)


def _value_column(values: Sequence[Any], lines: Sequence[int]) -> tuple[pa.Array, str]:
    """Values of JSON or Python as text, or as lists of text where any of them is a list."""
    values = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    odd = [at for at, value in enumerate(values) if isinstance(value, dict | bytes)]
    fault = ""
    if odd:
        at = odd[0]
        fault = f"holds {values[at]!r:.60} in row {lines[at]}, which is no label. Correct it."
    if not any(isinstance(value, list | tuple | set) for value in values):
        return pa.array([_plain(value) for value in values], pa.string()), fault
    cells: list[list[str | None]] = []
    for line, value in zip(lines, values, strict=True):
        several = isinstance(value, list | tuple | set)
        parts = list(value) if several else [] if _plain(value) is None else [value]
        cells.append([_plain(part) for part in parts])
        if isinstance(value, str) and re.search(r"[;|,\s]", value) and not fault:
            fault = f"holds lists, but the text {value!r:.40} in row {line}. Make it a list."
        if None in cells[-1] and not fault:
            wrong = next(part for part in parts if _plain(part) is None)
            fault = f"holds {wrong!r:.60} in the list of row {line}, which is no label. Correct it."
    return pa.array(cells, pa.list_(pa.string())), fault


def _plain(value: Any) -> str | None:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return None
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    if value is None or isinstance(value, dict | list | tuple | set | bytes):
        return None
    text = str(value)
    return None if text in ("<NA>", "NaT") and not isinstance(value, str) else text


def _frame_cells(source: Source) -> Cells:
    frame = source.frame
    index: Any = getattr(frame, "index", None)  # names of rows are data too
    named = index is not None and type(index).__name__ != "RangeIndex"
    levels = index.nlevels if named else 0
    names = [
        f"index{at or ''}" if index.names[at] is None else str(index.names[at])
        for at in range(levels)
    ]
    names += map(str, frame.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise data_error(source.path, f"two columns are called {twice!r}. Rename one of them.")
    try:
        columns = [index.get_level_values(at).to_list() for at in range(levels)]
        columns += [frame[name].to_list() for name in frame.columns]
    except (AttributeError, TypeError, KeyError) as error:
        raise ArgumentTypeError(
            f"Expected a DataFrame of pandas or polars, but got {type(frame).__name__}."
        ) from error
    rows = range(1, (len(columns[0]) if columns else 0) + 1)
    return _value_cells(source, dict(zip(names, columns, strict=True)), rows)
