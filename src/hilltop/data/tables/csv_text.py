"""A text table as text: cells that are not touched keep every byte."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass

_BOM = "\ufeff"


@dataclass
class Record:
    """One row: the number of its first line, its cells, and its text with the line end."""

    row: int
    cells: list[str]
    raw: str


class CsvText:
    """The rows of a text.

    Args:
        text: The whole file.
        separator: What separates its cells.
        comments: Number of lines before the table.
    """

    def __init__(self, text: str, separator: str, comments: int = 0) -> None:
        """Split the text into rows; a quoted cell may hold line ends."""
        self.separator = separator
        self._start = _BOM if text.startswith(_BOM) else ""
        text = text.removeprefix(_BOM)
        self.line_end = "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"
        lines = text.split("\n")
        lines = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
        self._before = lines[:comments]
        self.records = list(_records(lines[comments:], separator, comments))
        self._by_row = {record.row: record for record in self.records}

    def set_cell(self, row: int, column: int, text: str) -> None:
        """Put another text into a cell."""
        record = self._by_row[row]
        body = record.raw.rstrip("\r\n")
        spans = cell_spans(body, self.separator)
        while len(spans) <= column:
            body += self.separator
            spans = cell_spans(body, self.separator)
        start, end = spans[column]
        old = body[start:end]
        bare = old.strip()
        new = self._quoted(text, bare.startswith('"'))
        around = old.partition(bare) if bare else (old, "", "")
        if not bare and new:
            around = ("", "", "")
        body = f"{body[:start]}{around[0]}{new}{around[2]}{body[end:]}"
        record.raw = body + record.raw[len(record.raw.rstrip("\r\n")) :]
        while len(record.cells) <= column:
            record.cells.append("")
        record.cells[column] = text

    def append(self, cells: list[str]) -> None:
        """Add a row at the end."""
        if self.records and not self.records[-1].raw.endswith("\n"):
            self.records[-1].raw += self.line_end
        line = self.separator.join(self._quoted(cell, False) for cell in cells)
        row = self.records[-1].row + 1 if self.records else 1
        self.records.append(Record(row, list(cells), f"{line}{self.line_end}"))

    def text(self) -> str:
        """The whole file."""
        return self._start + "".join([*self._before, *(record.raw for record in self.records)])

    def _quoted(self, text: str, quoted: bool) -> str:
        if quoted or any(mark in text for mark in (self.separator, '"', "\n", "\r")):
            return '"' + text.replace('"', '""') + '"'
        return text


def cell_spans(body: str, separator: str) -> list[tuple[int, int]]:
    """Start and end of every cell of a row, quotes included.

    Example:
        >>> [('a,"b,""c"",d"'[start:end]) for start, end in cell_spans('a,"b,""c"",d"', ",")]
        ['a', '"b,""c"",d"']
    """
    spans, start, at, inside = [], 0, 0, False
    while at < len(body):
        mark = body[at]
        if inside and body.startswith('""', at):
            at += 1  # a quote within the cell
        elif mark == '"' and (inside or not body[start:at].strip()):
            inside = not inside
        elif mark == separator and not inside:
            spans.append((start, at))
            start = at + 1
        at += 1
    return [*spans, (start, len(body))]


def _records(lines: list[str], separator: str, comments: int) -> Iterator[Record]:
    taken: list[str] = []
    if separator == " ":
        for at, line in enumerate(lines, comments + 1):
            yield Record(at, line.split(), line)
        return

    def feed() -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    reader = csv.reader(feed(), delimiter=separator, skipinitialspace=True, strict=True)
    begins = comments + 1
    for cells in reader:
        yield Record(begins, cells, "".join(taken))
        taken.clear()
        begins = reader.line_num + comments + 1
