"""Small CSV, JSON and YAML files of settings, notes and answers, which people open and edit.

A name that begins like a formula would be run by a spreadsheet, so such a cell gets an apostrophe
before it, which reading takes off again. Label files are not written here: their names are data.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from hilltop.data.data_errors import data_error

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""How a cell begins that a spreadsheet would take for a formula, or for a mark."""
FORMULA_PATTERN = r"^[=+\-@\t\r']"
"""The same as a regular expression."""


def mark_cell(cell: Any) -> Any:
    """Return a cell with an apostrophe before it where a spreadsheet would run it.

    Example:
        >>> mark_cell("=1+1"), mark_cell("cat"), mark_cell(-1)
        ("'=1+1", 'cat', -1)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def unmark_cell(cell: str) -> str:
    """Return a cell as it was before :func:`mark_cell`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def format_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return the text of a table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([mark_cell(cell) for cell in row] for row in rows)
    return text.getvalue()


def parse_json(text: str | bytes) -> Any:
    """Return what JSON says.

    Raises:
        ValueError: It is not JSON, or holds half a character, which no file and no reply can.
        RecursionError: It is nested too deeply.
    """
    content = json.loads(text)
    json.dumps(content, ensure_ascii=False).encode()
    return content


def read_rows(path: Path, needed: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Return the lines of a table with their numbers; what a line lacks is an empty cell.

    Args:
        path: The file, in UTF-8.
        needed: Columns that must be there; others may be, too.

    Raises:
        DataError: There is no such file, it is not such a table, or a column is missing.
    """
    return parse_rows(path, csv_text(path), needed)


def parse_rows(path: Path, text: str, needed: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Return the same of text that was read already; the path is for messages."""
    reader = csv.DictReader(io.StringIO(text, newline=""), restval="")
    try:
        names = reader.fieldnames or ()
        missing = [name for name in needed if name not in names]
        if missing:
            raise data_error(
                path,
                f"the column {missing[0]!r} is missing; expected {', '.join(needed)}.",
                line=1,
            )
        repeated = [name for name, count in Counter(names).items() if name and count > 1]
        if repeated:
            raise data_error(path, f"the column {repeated[0]!r} stands twice.", line=1)
        found = []
        for cells in reader:
            further = "".join(cells.pop(None, ()))  # what has no column
            if further:
                problem = f"{further!r} stands behind the last column. Put quotes around cells"
                raise data_error(path, f"{problem} with commas.", line=reader.line_num)
            found.append((reader.line_num, {name: unmark_cell(cells[name]) for name in names}))
        return found
    except csv.Error as error:
        raise data_error(path, f"this is not a CSV file: {error}.") from None


def read_cells(path: Path) -> list[tuple[int, list[str]]]:
    """Return the lines of a table without a header with their numbers, but blank ones.

    Raises:
        DataError: There is no such file, or it is not such a table.
    """
    reader = csv.reader(io.StringIO(csv_text(path), newline=""))
    try:
        return [(reader.line_num, [*map(unmark_cell, cells)]) for cells in reader if cells]
    except csv.Error as error:
        raise data_error(path, f"this is not a CSV file: {error}.") from None


def csv_text(path: Path) -> str:
    """Read the text of a table that a person may have saved.

    Raises:
        DataError: There is no such file, or it is not UTF-8.
    """
    if path.is_char_device() or path.is_block_device():  # one that never ends would fill memory
        raise data_error(path, "this is a device. Name a file.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise data_error(path, "there is no such file.") from None
    except UnicodeDecodeError:
        raise data_error(path, "this is not UTF-8 text. Save it as CSV in UTF-8.") from None


def read_json(path: Path, remedy: str) -> Any:
    """Return what a file of ours says.

    Args:
        path: The file.
        remedy: A sentence that says what to do if it is damaged.

    Raises:
        DataError: It is cut or damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise data_error(path, f"this is not valid JSON. {remedy}") from None


MOST_VALUES = 100_000
"""More than any settings have; names of parts (``*``) can make billions of a few lines."""


class _TextLoader(yaml.BaseLoader):  # type: ignore[misc]  # yaml has no types
    """Leaves words as they are, and refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(found) < len(node.value):
            raise yaml.YAMLError("a key stands twice")
        return found


def read_yaml(path: Path, *, as_text: bool = False) -> Any:
    """Return what a file says.

    Args:
        path: The file.
        as_text: Take no word for a number or for yes and no.

    Raises:
        ValueError: It is no YAML, or repeats its own parts without end.
    """
    try:
        loader = _TextLoader if as_text else yaml.SafeLoader
        content = yaml.load(path.read_text(encoding="utf-8"), loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"this is not YAML: {' '.join(str(error).split())}.") from None
    waiting, seen = [content], 0
    while waiting:
        value = waiting.pop()
        seen += 1
        if seen > MOST_VALUES:
            raise ValueError(
                f"this YAML holds more than {MOST_VALUES:,} values, or repeats its own parts (*)"
                " without end."
            )
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set):
            waiting += value
    return content
