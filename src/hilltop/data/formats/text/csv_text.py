"""A CSV file as text: records that are not touched keep every byte."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.content import read_content
from hilltop.data.formats.text.dialect import Dialect

_BOM = "\ufeff"


@dataclass
class CsvRecord:
    """One record: its cells, and the text it stands in, line end included."""

    cells: list[str]
    raw: str


class CsvText:
    """The records of a file, which has been read as CSV before and is known to be sound."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self._dialect = LabelSource(path).dialect
        text = read_content(path).decode("utf-8")
        self._start = _BOM if text.startswith(_BOM) else ""
        text = text.removeprefix(_BOM)
        self.line_end = "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"
        records = list(_records(text, self._dialect))
        first = next(at for at, record in enumerate(records) if record.cells)
        self.header = records[first]
        self.names = self._dialect.names(self.header.cells)
        start = first + 1 if self._dialect.header else first
        self._before, self.records = records[:start], records[start:]

    def column(self, name: str) -> int | None:
        """Number of a column, if there is one of that name."""
        return self.names.index(name) if name in self.names else None

    def images(self, name: str) -> Iterator[tuple[str, CsvRecord]]:
        """Yield every record with the id of its image: a cell, or its number without such one."""
        at = self.column(name)
        filled = (record for record in self.records if any(map(str.strip, record.cells)))
        for number, record in enumerate(filled):
            yield str(number) if at is None else record.cells[at], record

    def change(self, record: CsvRecord, cells: Sequence[str]) -> None:
        """Give a record new cells."""
        record.cells = list(cells)
        record.raw = self._line(cells)

    def append(self, cells: Sequence[str]) -> None:
        """Add a record at the end."""
        last = self.records[-1] if self.records else self.header
        if not last.raw.endswith("\n"):
            last.raw += self.line_end
        self.records.append(CsvRecord(list(cells), self._line(cells)))

    def add_column(self, name: str, value: str) -> int:
        """Add a last column with one value in every record; the rest of each line stays."""
        self._extend(self.header, name)
        self.names.append(name)
        for record in self.records:
            if record.cells:
                self._extend(record, value)
        return len(self.names) - 1

    def content(self) -> bytes:
        """The file."""
        lines = (record.raw for record in [*self._before, *self.records])
        return (self._start + "".join(lines)).encode()

    def _extend(self, record: CsvRecord, cell: str) -> None:
        body, mark = record.raw.rstrip("\r\n"), self._dialect.separator
        record.raw = f"{body}{mark}{self._line([cell]).rstrip()}" + record.raw[len(body) :]
        if not cell:
            record.raw = f"{body}{mark}" + record.raw[len(record.raw.rstrip("\r\n")) :]
        record.cells.append(cell)

    def _line(self, cells: Sequence[str]) -> str:
        text = io.StringIO()
        mark = self._dialect.separator
        csv.writer(text, delimiter=mark, lineterminator=self.line_end).writerow(cells)
        return text.getvalue()


def _records(text: str, dialect: Dialect) -> Iterator[CsvRecord]:
    """Split into records; a quoted cell may hold line ends, so a record may be several lines."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    if not lines[-1]:
        lines.pop()
    yield from (CsvRecord([], line) for line in lines[: dialect.comments])
    taken: list[str] = []

    def feed() -> Iterator[str]:
        for line in lines[dialect.comments :]:
            taken.append(line)
            yield line

    for cells in dialect.reader(feed()):
        yield CsvRecord(cells, "".join(taken))
        taken.clear()
