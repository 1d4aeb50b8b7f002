"""A CSV file as text: records that are not touched keep every byte."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
        text = path.read_bytes().decode("utf-8")
        self._start = _BOM if text.startswith(_BOM) else ""
        text = text.removeprefix(_BOM)
        self.line_end = "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"
        records = list(_records(text))
        first = next(at for at, record in enumerate(records) if record.cells)
        self._before = records[: first + 1]
        self.header = self._before[-1]
        self.names = [cell.strip() for cell in self.header.cells]
        self.records = records[first + 1 :]

    def column(self, name: str) -> int | None:
        """Number of a column, if there is one of that name."""
        return self.names.index(name) if name in self.names else None

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
        body = record.raw.rstrip("\r\n")
        record.raw = f"{body},{self._line([cell]).rstrip()}" + record.raw[len(body) :]
        if not cell:
            record.raw = f"{body}," + record.raw[len(record.raw.rstrip("\r\n")) :]
        record.cells.append(cell)

    def _line(self, cells: Sequence[str]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator=self.line_end).writerow(cells)
        return text.getvalue()


def _records(text: str) -> Iterator[CsvRecord]:
    """Split into records; a quoted cell may hold line ends, so a record may be several lines."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    if not lines[-1]:
        lines.pop()
    taken: list[str] = []

    def feed() -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    for cells in csv.reader(feed()):
        yield CsvRecord(cells, "".join(taken))
        taken.clear()
