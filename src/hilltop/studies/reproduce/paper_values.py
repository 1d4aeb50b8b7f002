"""The numbers of the paper, as printed, with a note where the print is known to be wrong."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hilltop.data.data_errors import ErrorCollector
from hilltop.studies.reproduce.recipe import paper_values_file

COLUMNS = ("table", "row", "column", "value", "note")


@dataclass(frozen=True)
class PaperValue:
    """One printed number: its text, with all digits, and what is known to be wrong with it."""

    text: str
    note: str = ""

    def __float__(self) -> float:
        """Return the number."""
        return float(self.text)


class PaperValues:
    """Numbers by table, row and column, all named as in the recipes."""

    def __init__(self, values: dict[tuple[str, str, str], PaperValue]) -> None:
        """Keep the numbers."""
        self.values = values

    def get(self, table: str, row: str, column: str) -> PaperValue | None:
        """The printed number, or None where the paper has none."""
        return self.values.get((table, row, column))

    def rows(self, table: str) -> Sequence[str]:
        """Names of the rows of a table, in the paper's order."""
        return list(dict.fromkeys(row for name, row, _ in self.values if name == table))

    def columns(self, table: str) -> Sequence[str]:
        """Names of the columns of a table, in the paper's order."""
        return list(dict.fromkeys(column for name, _, column in self.values if name == table))


def read_paper_values(path: Path | None = None) -> PaperValues:
    """Read ``paper_values.csv``.

    Raises:
        DataError: A line is not a number with its place, or a place stands twice.
    """
    file = path or paper_values_file()
    faults = ErrorCollector(file)
    values: dict[tuple[str, str, str], PaperValue] = {}
    with file.open(newline="", encoding="utf-8") as lines:
        for number, line in enumerate(csv.DictReader(lines), start=2):
            if tuple(line) != COLUMNS:
                faults.add(f"the columns must be {', '.join(COLUMNS)}.")
                break
            place = (line["table"], line["row"], line["column"])
            if not _is_number(line["value"]):
                faults.add(f"{line['value']!r} is not a number.", line=number)
            if place in values:
                faults.add(f"{', '.join(place)} stands twice.", line=number)
            values[place] = PaperValue(line["value"], line["note"])
    faults.check()
    return PaperValues(values)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
