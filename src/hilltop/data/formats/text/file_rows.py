"""The rows of CSV files and spreadsheets, with the line of each, however they are written."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from hilltop.checks import pluralize
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.options import ready_command
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.content import read_content
from hilltop.data.formats.text.known_names import is_label_name
from hilltop.data.formats.text.spreadsheet import ALL, ask_for_sheet
from hilltop.errors import OptionNeeded


def read_csv_table(source: LabelSource) -> pa.Table:
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
    return as_table(*csv_rows(source)[:2])


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


def as_table(header: list[str], rows: list[list[str]]) -> pa.Table:
    """Rows of text as columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    return pa.table([pa.array(column, pa.string()) for column in columns], names=header)


def sheet_note(source: LabelSource) -> list[str]:
    """What to say of the sheets that are not read.

    Raises:
        OptionNeeded: Several sheets have the same columns, and nobody said which one is meant.
    """
    sheet, options = source.whole_sheet, source.options
    if len(sheet.alike) > 1 and (options is None or options.sheet is None):
        command = ready_command(source.path, options, sheet=ALL) if options else "--sheet all"
        raise OptionNeeded(ask_for_sheet(source.path, sheet, command))
    return [sheet.note] * bool(sheet.note)


def sheet_rows(source: LabelSource) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows, and the row of the sheet in which each stands."""
    if not source.sheet:
        raise data_error(source.path, "the sheet is empty. Expected a header and rows.")
    start = source.whole_sheet.titles + 2
    filled = [(at, row) for at, row in enumerate(source.sheet[1:], start=start) if any(row)]
    return list(source.header), [row for _, row in filled], [at for at, _ in filled]


def csv_rows(source: LabelSource) -> tuple[list[str], list[list[str]], list[int]]:
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
