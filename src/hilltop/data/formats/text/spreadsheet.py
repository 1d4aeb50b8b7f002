"""The sheets of an Excel workbook as rows of text, and which of them holds the labels."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilltop.checks import did_you_mean, pluralize
from hilltop.data.data_errors import data_error
from hilltop.data.formats.text.cell_values import cell_number
from hilltop.data.formats.text.dialect import heads_files
from hilltop.errors import MissingExtra

SUFFIXES = (".xlsx", ".xlsm")
ALL = "all"
"""What ``--sheet`` is called where all sheets of one header are read together."""
Rows = list[list[str]]
_SHOWN = 4
_LINK = re.compile(r'=HYPERLINK\(.*?"([^"]*)"\s*\)\s*', re.IGNORECASE)


@dataclass(frozen=True)
class Sheet:
    """The rows of a sheet.

    Attributes:
        rows: All rows, of one length.
        titles: Number of rows above the header.
        alike: Sheets with the same header, this one among them, by name with their rows.
        note: What to say of the other sheets.
    """

    rows: Rows
    titles: int
    alike: Mapping[str, int]
    note: str = ""


def read_sheet(path: Path, wanted: str | None = None) -> Sheet:
    """Return the sheet that was named, else the first that holds a table.

    Raises:
        DataError: This is no workbook, a damaged one, or it has no such sheet.
        MissingExtra: openpyxl is not installed.
    """
    sheets = _read_sheets(path)
    headers = {name: _header(rows) for name, rows in sheets.items()}
    tables = [name for name, rows in sheets.items() if _is_table(rows)]
    chosen = (tables or [*sheets] or [""])[0]
    if wanted is not None and wanted != ALL:
        chosen = _named(path, wanted, list(sheets))
    alike = [name for name in tables if headers[name] == headers.get(chosen)] or [chosen]
    rows = sheets.get(chosen, [])
    if wanted == ALL:
        rows = _together([sheets[name] for name in alike])
    others = [name for name in sheets if name != chosen and not (wanted == ALL and name in alike)]
    read = ", ".join(repr(name) for name in (alike if wanted == ALL else [chosen]))
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    shown = ", ".join(repr(name) for name in others[:_SHOWN])
    note = f"read: {read}; not read: {shown}{more}. --sheet chooses." if others else ""
    counted = {name: len(sheets[name]) - title_rows(sheets[name]) - 1 for name in alike if name}
    return Sheet(rows, title_rows(rows), counted, note)


def title_rows(rows: Rows) -> int:
    """Number of rows above the header: blank, a title, sums, or headings of several columns."""
    filled = [sum(map(bool, row)) for row in rows]
    width = max(filled, default=0)
    start = next((at for at, count in enumerate(filled) if 2 * count > width), 0)
    if start + 1 < len(rows) and _are_sums(rows[start], rows[start + 1]):
        start += 1
    above = filled[:start]
    if width > 2:
        return start if all(count <= filled[start] for count in above) else 0
    if start and heads_files(rows, start):
        return start
    return next((at for at, count in enumerate(filled) if count), 0)


def ask_for_sheet(path: Path, sheet: Sheet, command: str) -> str:
    """What to ask where several sheets have the same columns."""
    told = ", ".join(
        f"{name!r} ({pluralize(count, 'row', 'rows')})" for name, count in sheet.alike.items()
    )
    return (
        f"{path}: {len(sheet.alike)} sheets have the same columns: {told}. Pass --sheet with the"
        f" name of one, or --sheet {ALL} to read them together, for example: {command}"
    )


def _are_sums(row: Sequence[str], below: Sequence[str]) -> bool:
    """Whether a row holds numbers alone, and the one below it the names of these columns."""
    numbers = [at for at, cell in enumerate(row) if cell and cell_number(cell) is not None]
    words = [cell for cell in row[1:] if cell and cell_number(cell) is None]
    named = all(below[at] and cell_number(below[at]) is None for at in numbers)
    return len(numbers) > 1 and not words and named


def _read_sheets(path: Path) -> dict[str, Rows]:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingExtra("Reading a spreadsheet", error.name, "xlsx") from None
    try:
        with path.open("rb") as file:  # openpyxl leaves a damaged one open
            found = _values(load_workbook(file, read_only=True, data_only=True))
            if _holds(path, b"HYPERLINK("):
                written = _values(load_workbook(file, read_only=True, data_only=False))
                found = {name: _with_links(rows, written[name]) for name, rows in found.items()}
            found = {name: _even(rows) for name, rows in found.items()}
            if _holds(path, b"<mergeCell "):
                _fill_merged(found, load_workbook(file))
    except Exception as error:  # openpyxl passes on whatever its parsers of ZIP and XML raise
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise data_error(
            path, f"this spreadsheet cannot be read: {reason}. Save it as CSV."
        ) from None
    return found


def _values(book: Any) -> dict[str, Rows]:
    found = {
        sheet.title: [list(map(_text, cells)) for cells in sheet.iter_rows(values_only=True)]
        for sheet in book.worksheets
    }
    book.close()
    return found


def _holds(path: Path, mark: bytes) -> bool:
    """Whether these bytes stand in a sheet."""
    with zipfile.ZipFile(path) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
        return any(mark in archive.read(name) for name in sheets)


def _fill_merged(found: Mapping[str, Rows], book: Any) -> None:
    """Repeat what stands in a cell that was made of several below each other: it holds for all."""
    for sheet in book.worksheets:
        rows = found[sheet.title]
        for area in sheet.merged_cells.ranges:
            first, column = rows[area.min_row - 1 : area.min_row], area.min_col - 1
            if first and area.min_col == area.max_col <= len(first[0]):
                for row in rows[area.min_row : area.max_row]:
                    row[column] = first[0][column]


def _with_links(rows: Rows, written: Rows) -> Rows:
    """The rows with the text of links that no spreadsheet program has worked out yet."""
    return [
        [_link_text(cell, formula) for cell, formula in zip(row, formulas, strict=False)]
        for row, formulas in zip(rows, written, strict=False)
    ]


def _link_text(cell: str, formula: str) -> str:
    found = None if cell else _LINK.fullmatch(formula)
    return cell if found is None else found[1]


def _even(rows: Rows) -> Rows:
    """The rows, all of one length, without empty ones at the end."""
    while rows and not any(rows[-1]):
        rows.pop()
    width = max((_filled(row) for row in rows), default=0)
    return [(row + [""] * width)[:width] for row in rows]


def _is_table(rows: Rows) -> bool:
    """Whether a sheet has a header of two columns or more, and rows below it."""
    body = rows[title_rows(rows) :]
    return (
        len(body) > 1
        and sum(map(bool, body[0])) > 1
        and any(sum(map(bool, r)) > 1 for r in body[1:])
    )


def _header(rows: Rows) -> tuple[str, ...]:
    body = rows[title_rows(rows) :]
    return tuple(cell.strip().casefold() for cell in body[0]) if body else ()


def _together(sheets: Sequence[Rows]) -> Rows:
    """The first sheet, and the rows below the header of the others."""
    first, *others = sheets
    return [*first, *(row for rows in others for row in rows[title_rows(rows) + 1 :])]


def _named(path: Path, wanted: str, names: Sequence[str]) -> str:
    if wanted in names:
        return wanted
    if wanted.isascii() and wanted.isdigit() and int(wanted) < len(names):
        return names[int(wanted)]
    raise data_error(
        path,
        f"there is no sheet {wanted!r}.{did_you_mean(wanted, names)}"
        f" The sheets are {', '.join(names)}.",
    )


def _filled(row: list[str]) -> int:
    """Number of cells up to the last one that holds something."""
    return max((at + 1 for at, cell in enumerate(row) if cell), default=0)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
