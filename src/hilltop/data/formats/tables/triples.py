"""Lists of an image, a class and 1 or 0 on every line: CUB's attributes, TREC's qrels.

``1 14 1 3 12.5`` is image, class, value, and what Caltech-UCSD Birds says of its annotators;
``E11 2286 1`` and ``301 0 FBIS3-10082 1`` are class, document and value, as judgements of
relevance are written (``.qrels``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from hilltop.checks import pluralize
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource, read_lines
from hilltop.data.formats.text.table_file import is_binary
from hilltop.data.formats.text.value_rows import ValueRows, table_from_values
from hilltop.data.label_table import LabelTable

_SAMPLE = 200
_FEWEST = 4
_VALUE = re.compile(r"-?[0-9]{1,2}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_WHOLE = re.compile(r"[0-9]+", re.ASCII)
_BIRDS = (0, 1, 2)
_TREC = (2, 0, 3)
_JUDGED = (1, 0, 2)
_PLAIN = (0, 1, 2)
Places = tuple[int, int, int]
"""Where image, class and value stand on a line."""


def fits(source: LabelSource) -> bool:
    """Whether all lines have the same three to five words, of which one is 1 or 0."""
    if source.is_folder or is_binary(source) or source.head.lstrip()[:1] in ("{", "[", "<", "@"):
        return False
    lines = source.head.split("\n")[: _SAMPLE + 1]
    rows = [line.split() for line in (lines[:-1] if source.is_cut else lines) if line.strip()]
    if {word for row in rows for word in row} <= {"0", "1", "-1"}:
        return False  # a value for each class, without names
    return _places(source, rows) is not None


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the value of every pair; ``--classes`` has the names of classes that are numbers."""
    lines = [(number, line.split()) for number, line in read_lines(source.path) if line.strip()]
    image, name, value = _places(source, [words for _, words in lines[:_SAMPLE]]) or _PLAIN
    errors = ErrorCollector(source.path)
    for number, words in lines:
        if len(words) <= max(image, name, value):
            errors.add(
                f"expected an image, a class and 1 or 0, but got {' '.join(words)!r:.40}.",
                line=number,
            )
    if not lines:
        errors.add("the file is empty. Expected an image, a class and 1 or 0 on every line.")
    errors.check()
    rows = ValueRows(
        source.path,
        _column(lines, image),
        _column(lines, name),
        _column(lines, value),
        f"word {value + 1}",
        lambda row: lines[row][0],
    )
    notes = [f"image, class and value are words {image + 1}, {name + 1} and {value + 1} of a line."]
    longer = sum(len(words) != len(lines[0][1]) for _, words in lines)
    if longer:
        have = pluralize(longer, "line has", "lines have")
        notes.append(f"{have} another number of words than the first; what follows is passed over.")
    return table_from_values(rows, options, format="triples", notes=notes)


def _column(lines: Sequence[tuple[int, list[str]]], place: int) -> pa.Array:
    return pa.array([words[place] for _, words in lines], pa.string())


def _places(source: LabelSource, rows: Sequence[Sequence[str]]) -> Places | None:
    """Where image, class and value stand; None if these are no such lines."""
    widths = {len(row) for row in rows}
    if len(rows) < _FEWEST or len(widths) != 1:
        return None
    columns = list(zip(*rows, strict=True))
    judged = "qrel" in source.path.name.lower()
    if len(columns) == 5 and _are_judged_by_birds(columns):
        return _BIRDS
    if len(columns) == 4 and set(columns[1]) <= {"0", "Q0"} and _are_values(columns[3]):
        return _TREC
    if len(columns) != 3 or not _are_values(columns[2]):
        return None
    if judged:
        return _JUDGED
    # A value for each of two classes behind an image is another kind of list.
    several = len(set(columns[0])) < len(rows) and not _are_values(columns[1])
    pairs = len(set(zip(columns[0], columns[1], strict=True))) == len(rows)
    return _PLAIN if several and pairs and set(columns[2]) <= {"0", "1", "-1"} else None


def _are_judged_by_birds(columns: Sequence[Sequence[str]]) -> bool:
    image, name, value, certainty, seconds = columns
    return (
        all(map(_WHOLE.fullmatch, (*image, *name)))
        and set(value) <= {"0", "1"}
        and all(map(_VALUE.fullmatch, certainty))
        and all(map(_NUMBER.fullmatch, seconds))
        and len(set(name)) > 1
    )


def _are_values(words: Sequence[str]) -> bool:
    return all(map(_VALUE.fullmatch, words))


FORMAT = Format(
    name="triples",
    summary="An image, a class and 1 or 0 on every line: CUB's attributes, TREC's qrels.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=ReadOnly("Such lists hold judgements line by line and what annotators said beside them"),
)
