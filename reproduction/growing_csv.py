"""Tables of results that grow line by line, so that a script goes on where it was stopped."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path


def made_keys(path: Path) -> set[tuple[str, ...]]:
    """What the lines of a file are of: all columns but the last, which is the result."""
    if not path.is_file():
        return set()
    with path.open(encoding="utf-8", newline="") as file:
        return {tuple(row[:-1]) for row in csv.reader(file)}


def add_lines(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Add lines at the end of a file, with a header if it is new, and print them."""
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not file.tell():
            writer.writerow(columns)
        for row in rows:
            writer.writerow(row)
            print(*row, flush=True)
