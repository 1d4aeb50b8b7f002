"""How a CSV file is written: what separates its cells, comments before it, and its header."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hilltop.data.formats.text.known_names import is_image_name, is_label_name, names_columns

_SEPARATORS = (",", "\t", ";", "|")
_SAMPLE = 50
_MOST_TITLES = 3
_FIT = 0.9
"""Share of lines with as many cells as the header, so that a few damaged ones are reported."""
FILE_ENDING = r"\.(?:jpe?g|png|gif|bmp|tiff?|webp|wav|mp[34]|flac|dcm|npy)"
"""The ending of a picture or a sound."""
_FILE = re.compile(rf"{FILE_ENDING}$", re.IGNORECASE)
_NUMBERS = re.compile(r"-?[0-9]+(\.[0-9]+)?([ ,;|]+-?[0-9]+(\.[0-9]+)?)*", re.ASCII)


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

    Attributes:
        separator: What stands between cells.
        comments: Lines before the header that begin with ``#``, or are a title of one cell.
        skip_blanks: Whether blanks behind a separator do not belong to the cell.
        header: Whether the first line names the columns.
    """

    separator: str = ","
    comments: int = 0
    skip_blanks: bool = False
    header: bool = True

    def reader(self, lines: Iterable[str], *, strict: bool = False) -> Any:
        """Return a reader of the rows in some lines."""
        return csv.reader(
            lines, delimiter=self.separator, skipinitialspace=self.skip_blanks, strict=strict
        )

    def names(self, first: list[str]) -> list[str]:
        """Names of the columns: those in the first row, or "column 1" and so on."""
        if self.header:
            return [cell.strip() for cell in first]
        return [f"column {number}" for number in range(1, len(first) + 1)]


def sniff(head: str) -> Dialect:
    """Return how the first lines of a file are written; plain CSV where nothing speaks against."""
    lines = head.split("\n")
    comments = _comments(lines) or _titles(lines)
    sample = [f"{line}\n" for line in lines[comments : comments + _SAMPLE] if line.strip()]
    if not sample:
        return Dialect()
    separator = max(_SEPARATORS, key=lambda one: _fit(sample, one))
    blank = re.compile(f'{re.escape(separator)} +"')
    skip = f"{separator} " in sample[0] or any(blank.search(line) for line in sample)
    written = Dialect(separator, comments, skip)
    rows = list(_rows(sample, written))
    if _is_grouped(rows):
        rows, comments = rows[1:], comments + 1
    return Dialect(separator, comments, skip, header=not _is_data(rows))


def has_double_colons(head: str) -> bool:
    """Whether ``::`` stands between cells, equally often on each line, as in MovieLens."""
    lines = [line for line in head.split("\n")[:_SAMPLE] if line.strip()]
    counts = {line.count("::") for line in lines[:-1] or lines}
    return bool(lines) and counts <= {2, 3, 4} and len(counts) == 1 and "\t" not in head


def is_labels_alone(lines: list[str]) -> bool:
    """Whether lines hold nothing but words that come back on many: ``cs.LG stat.ML``."""
    words = [word for line in lines for word in line.split()]
    plain = not any(re.search(r"[,;|\t{}<>\"]", line) for line in lines)
    wordy = all(re.search(r"[^\W\d]", word) for word in words)
    return plain and wordy and len(lines) > 9 and 4 * len(set(words)) <= len(words)


def looks_like_file(cell: str) -> bool:
    """Whether a cell names a picture or a sound."""
    return _FILE.search(cell.strip()) is not None


def looks_numeric(cell: str) -> bool:
    """Whether a cell is a number, or several with something between them."""
    return _NUMBERS.fullmatch(cell.strip()) is not None


def _comments(lines: list[str]) -> int:
    """Number of lines before the first that is no comment; 0 if there is nothing else."""
    for at, line in enumerate(lines):
        if line.strip() and not line.startswith("#"):
            return at if any(line.startswith("#") for line in lines[:at]) else 0
    return 0


def _titles(lines: list[str]) -> int:
    """Number of lines above the header that hold one cell, where those below hold several."""
    for separator in _SEPARATORS:
        counts = [
            sum(bool(cell.strip(' "\r')) for cell in line.split(separator))
            for line in lines[:_SAMPLE]
        ]
        cells = [line.split(separator) for line in lines[:_SAMPLE]]
        named = [count == 2 and heads_files(cells, at) for at, count in enumerate(counts)]
        start = next((at for at, count in enumerate(counts) if count > 2 or named[at]), 0)
        below = [count for count in counts[start:-1] if count]
        if 0 < start <= _MOST_TITLES and below and (named[start] or min(below) > 1):
            titled = all(count <= 1 for count in counts[:start])
            return start if titled and not _is_header(lines[start - 1 : start + 1]) else 0
    return 0


def heads_files(rows: Sequence[Sequence[str]], start: int) -> bool:
    """Whether a row names columns: by usual names, or as the last one above names of files."""
    above, below = rows[: start + 1], rows[start + 1 : start + 2]
    files = [
        any(looks_like_file(cell.strip('" ')) for row in part for cell in row)
        for part in (above, below)
    ]
    return names_columns(rows[start]) or files == [False, True]


def _is_header(lines: list[str]) -> bool:
    """Whether two lines have the same several cells with another separator."""
    for mark in _SEPARATORS:
        rows = list(_rows([f"{line}\n" for line in lines], Dialect(mark, skip_blanks=True)))
        if len(rows) != 2:
            continue
        first, second = rows
        if len(first) == len(second) > 1 and all(cell.strip() for cell in first):
            return True
    return False


def _fit(sample: list[str], separator: str) -> tuple[bool, float, int]:
    rows = list(_rows(sample, Dialect(separator, skip_blanks=True)))
    width = len(rows[0]) if rows else 0
    if width < 2:
        return False, 0.0, 0
    # A separator at the end of a line is no further cell.
    same = [len(row) == width or (len(row) == width + 1 and not row[-1]) for row in rows]
    share = sum(same) / len(rows)
    return share >= _FIT, 0.0 if share >= _FIT else share, width


def _rows(sample: list[str], dialect: Dialect) -> Iterator[list[str]]:
    reader = dialect.reader(sample)
    while True:
        try:
            yield next(reader)
        except csv.Error:
            continue
        except StopIteration:
            return


def _is_grouped(rows: list[list[str]]) -> bool:
    """Whether the first row has headings of several columns each, above the names of these."""
    if len(rows) < 3 or len({len(row) for row in rows[:3]}) > 1 or len(rows[0]) < 3:
        return False
    groups, names, cells = ([cell.strip() for cell in row] for row in rows[:3])
    named = all(names) and len(set(names)) == len(names) and not any(map(_is_value, names))
    between = "" in groups and any(groups) and not any(map(_is_value, groups))
    return named and between and any(map(_is_value, cells)) and is_image_name(names[0])


def _is_value(cell: str) -> bool:
    return looks_numeric(cell) or looks_like_file(cell)


def _is_data(rows: list[list[str]]) -> bool:
    """Whether the first row is like the others: a file's name, or numbers where they have them."""
    if len(rows) < 2:
        return False
    first, others = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if len(first) < 2 or not others:
        return False
    if any(looks_like_file(cell) for cell in first):
        return True
    if any(is_image_name(cell) or is_label_name(cell) for cell in first):
        return False
    numeric = [
        cell
        for at, cell in enumerate(first)
        if looks_numeric(cell) and all(looks_numeric(row[at]) for row in others)
    ]
    # Columns may well be called 0, 1, 2, but not 27 alone, and never alike.
    return len(numeric) == 1 or len(set(numeric)) < len(numeric)
