"""JSON objects as columns: one on every line, or in a list, with a place for messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from hilltop.checks import did_you_mean, pluralize
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.source import read_lines
from hilltop.data.formats.text.json_shapes import (
    LISTS,
    MISSING,
    SEPARATORS,
    TEXT,
    UNUSABLE,
    as_array,
    flat,
    is_number,
    kind_of,
)
from hilltop.data.formats.text.known_names import ROW_NUMBER
from hilltop.data.formats.text.table_file import row_numbers

_SAMPLE_ROWS = 200
_MOST_WITHOUT = 0.5
"""Where more records than this share lack a key, it is not that of the labels."""


class JsonLines:
    """The content of a file of JSON lines; a key within a key is called ``outer.inner``."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            DataError: A line is not UTF-8, not JSON or not an object.
        """
        self.path = path
        self.notes: list[str] = []
        self._errors = ErrorCollector(path)
        self._lines: list[int] = []
        self._records: list[dict[str, Any]] = []
        for number, line in read_lines(path):
            if line.strip():
                self._lines.append(number)
                self._records.append(flat(_parse(line, number, self._errors) or {}))
        if not self._records:
            self._errors.add("the file is empty. Expected a JSON object on every line.")
        self._errors.check()
        self.names = list(dict.fromkeys(name for record in self._records for name in record))

    def __len__(self) -> int:
        """Number of records."""
        return len(self._records)

    def line_of(self, row: int) -> int:
        """Line of a record, counted from 1."""
        return self._lines[row]

    def sample(self) -> dict[str, list[Any]]:
        """The first values of every key; what is neither text nor a number is left out."""
        first = self._records[:_SAMPLE_ROWS]
        return {name: [_scalar(record.get(name)) for record in first] for name in self.names}

    def text(self, name: str) -> pa.Array:
        """Return one key as text, never empty; whole numbers become text."""
        if name == ROW_NUMBER and name not in self.names:
            return row_numbers(len(self))
        words = []
        for row, value in enumerate(self._values(name)):
            if is_number(value):
                words.append(str(value))
            elif isinstance(value, str) and value:
                words.append(value)
            elif value is not MISSING:
                self._add_error(row, f"{name!r} must be a name, but is {_shown(value)}.")
        self._errors.check()
        return pa.array(words, pa.string())

    def column(self, name: str) -> pa.Array:
        """Return one key as text, numbers, or lists of one of the two; null stays null.

        A bare name among lists is a list of one, and numbers among names are names.
        """
        values = self._values(name, needed=False)
        kinds = [kind_of(value) for value in values]
        lists = any(kind in LISTS for kind in kinds)
        for row, (value, kind) in enumerate(zip(values, kinds, strict=True)):
            if kind == UNUSABLE and value is not MISSING:
                self._add_error(
                    row,
                    f"{name!r} must be a list of names, but is {_shown(value)}."
                    " Write [] for an image without labels.",
                )
            elif kind == TEXT and lists and SEPARATORS.search(value):
                self._add_error(
                    row,
                    f"{name!r} is a list in other places, but {_shown(value)} here:"
                    " write one name, or a list.",
                )
        self._errors.check()
        return as_array(values, kinds)

    def _values(self, name: str, *, needed: bool = True) -> list[Any]:
        if name not in self.names:
            raise data_error(
                self.path,
                f"no record has the key {name!r}.{did_you_mean(name, self.names)}"
                f" The keys are {', '.join(self.names)}.",
            )
        values = [record.get(name, MISSING) for record in self._records]
        without = sum(value is MISSING for value in values)
        if without and not needed and without < len(values) * _MOST_WITHOUT:
            have = pluralize(without, "record has", "records have")
            self.notes.append(f"{have} no {name!r}, and so no labels.")
            return values
        for row, value in enumerate(values):
            if value is MISSING:
                self._add_error(row, f"the key {name!r} is missing. Write it on every line.")
        return values

    def _add_error(self, row: int, message: str) -> None:
        self._errors.add(message, line=self._lines[row])


def read_json_objects(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a file with one on every line, as they are, with the numbers of the lines.

    Raises:
        DataError: A line is not UTF-8, not JSON or not an object.
    """
    errors = ErrorCollector(path)
    found = []
    for number, line in read_lines(path):
        if line.strip():
            record = _parse(line, number, errors)
            if record is not None:
                found.append((number, record))
    if not found:
        errors.add("the file is empty. Expected a JSON object on every line.")
    errors.check()
    return found


class JsonRecords(JsonLines):
    """The objects of a list in one JSON document."""

    def __init__(self, path: Path, content: list[Any]) -> None:
        """Take the objects.

        Raises:
            DataError: An entry is not an object.
        """
        self.path = path
        self.notes = []
        self._errors = ErrorCollector(path)
        self._lines = list(range(1, len(content) + 1))
        self._records = []
        for row, record in enumerate(content):
            if isinstance(record, dict):
                self._records.append(flat(dict(record)))
            else:
                self._records.append({})
                self._add_error(row, f"expected a JSON object, but got {_shown(record)}.")
        self._errors.check()
        self.names = list(dict.fromkeys(name for record in self._records for name in record))

    def _add_error(self, row: int, message: str) -> None:
        self._errors.add(f"entry {self._lines[row]}: {message}")


def _parse(line: str, number: int, errors: ErrorCollector) -> dict[str, Any] | None:
    """The object on a line; None, and an error, if there is none."""
    try:
        record = _DECODER.decode(line)
        if "\\u" in line:
            json.dumps(record, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        errors.add(
            f"this is not a JSON object: {error.msg} at column {error.colno}."
            " Write one object on every line.",
            line=number,
        )
    except UnicodeEncodeError:
        errors.add("a name holds half a character (a lone surrogate).", line=number)
    except (ValueError, RecursionError) as error:
        errors.add(f"this JSON cannot be used: {error}.", line=number)
    else:
        if isinstance(record, dict):
            return record
        errors.add(f"expected a JSON object, but got {_shown(record)}.", line=number)
    return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object whose keys are all different: of two, JSON would silently keep the last."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    return record


_DECODER = json.JSONDecoder(object_pairs_hook=_once)


def _scalar(value: Any) -> str | int | None:
    return value if isinstance(value, str) or is_number(value) else None


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}..."
