"""The first sheet of an Excel workbook as rows of text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hilltop.data.data_errors import data_error
from hilltop.errors import MissingExtra

SUFFIXES = (".xlsx", ".xlsm")


def read_sheet(path: Path) -> list[list[str]]:
    """Return the rows of the first sheet, all of one length, without empty ones at the end.

    Raises:
        DataError: This is no workbook, or a damaged one.
        MissingExtra: openpyxl is not installed.
    """
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingExtra("Reading a spreadsheet", error.name, "xlsx") from None
    try:
        with path.open("rb") as file:  # openpyxl leaves a damaged one open
            book = load_workbook(file, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            rows = [list(map(_text, cells)) for cells in sheet.iter_rows(values_only=True)]
            book.close()
    except Exception as error:  # openpyxl passes on whatever its parsers of ZIP and XML raise
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise data_error(
            path, f"this spreadsheet cannot be read: {reason}. Save it as CSV."
        ) from None
    while rows and not any(rows[-1]):
        rows.pop()
    width = max((_filled(row) for row in rows), default=0)
    return [(row + [""] * width)[:width] for row in rows]


def _filled(row: list[str]) -> int:
    """Number of cells up to the last one that holds something."""
    return max((at + 1 for at, cell in enumerate(row) if cell), default=0)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
