"""Cells that hold all labels of an image: delimited text, JSON text, or lists, as entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.data.assemble import assemble
from hilltop.data.data_errors import ErrorCollector, data_error, unknown_class
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.text.known_names import is_class_name, is_species_name
from hilltop.data.formats.text.label_vectors import label_vectors, table_from_vectors
from hilltop.data.formats.text.prose_lists import as_lists
from hilltop.data.formats.text.repetitions import repetitions
from hilltop.data.formats.text.separators import (
    LINE_END,
    Separator,
    count_names,
    find_separator,
    likely_delimiter,
)
from hilltop.data.formats.text.split_cells import Entries, split_cells
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import OptionNeeded

_NOTHING = pa.array(["nan", "NaN", "NULL", "null", "<NA>"], pa.string())
"""What pandas and databases write where there is nothing."""


class ImageRows(Protocol):
    """Columns of a file with one row an image."""

    path: Path
    notes: list[str]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""

    def sample(self) -> dict[str, list[Any]]:
        """The first cells of every column."""

    def column(self, name: str) -> pa.Array:
        """Return one column as it is stored."""

    def text(self, name: str) -> pa.Array:
        """Return one column as text without empty cells."""

    def line_of(self, row: int) -> int:
        """Line of a row."""


def table_from_cells(
    rows: ImageRows,
    image_column: str,
    label_columns: Mapping[State, str],
    options: ReadOptions,
    *,
    format: str,
) -> LabelTable:
    """Build a table from columns whose cells list the classes in one state each."""
    images = rows.text(image_column).dictionary_encode()
    cells = {state: _cells(rows, name) for state, name in label_columns.items()}
    prose = None
    if options.delimiter is None and not _one_a_row(label_columns.values()):
        cells[State.PRESENT], prose = as_lists(cells[State.PRESENT])
    named = {label_columns[state]: column for state, column in cells.items()}
    texts = {name: column for name, column in named.items() if column.type == pa.string()}
    named_columns = list(label_columns.values())
    separator = Separator(",") if prose else _separator(rows, named_columns, texts, options)
    vectors = label_vectors(cells[State.PRESENT], separator.mark) if len(cells) == 1 else None
    if vectors is not None:
        return table_from_vectors(rows, images, vectors, options, format=format)
    closed = options.class_list()
    parts = []
    for state, name in label_columns.items():
        parts.append(_entries(rows, name, cells[state], separator.mark, closed))
    parts = [_filled(*part) for part in parts]
    at = np.concatenate([row for row, _ in parts])
    classes, columns = _class_codes(
        rows, at, pa.concat_arrays([names for _, names in parts]), options
    )
    numbers = images.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    states = np.repeat([int(state) for state in label_columns], [len(row) for row, _ in parts])
    return assemble(
        images.dictionary,
        classes,
        numbers[at],
        columns,
        states,
        unlisted=options.need_unlisted(rows.path),
        source=rows.path,
        line_of=lambda entry: rows.line_of(int(at[entry])),
        step=Step("read", {"file": str(rows.path), "format": format}),
        notes=[
            *rows.notes,
            *(
                [f"{prose!r} before the last label of a cell separates, as commas do."]
                * bool(prose)
            ),
            *([separator.note] * separator.inferred),
            *repetitions(images.dictionary, numbers, at, columns, states),
        ],
    )


def _filled(at: npt.NDArray[np.int64], names: pa.Array) -> Entries:
    """The entries without those between two separators that follow each other: no label."""
    some = pc.fill_null(pc.not_equal(names, ""), True)
    return at[some.to_numpy(zero_copy_only=False)], names.filter(some)


def _cells(rows: ImageRows, name: str) -> pa.Array:
    """Return one column; blanks of text are empty."""
    cells = _plain(rows.column(name))
    if cells.type != pa.string():
        return cells
    cells = pc.fill_null(cells, "")
    return pc.if_else(pc.is_in(cells, value_set=_NOTHING), "", cells)


def _check_line_ends(rows: ImageRows, name: str, cells: pa.Array) -> None:
    """Raise where a cell of text goes on in the next line: it may have swallowed rows."""
    # A list as numpy prints it goes on in the next line.
    broken = pc.match_substring_regex(cells, r"^\s*[^\[\s][^\n]*\n").to_numpy(zero_copy_only=False)
    line_break = f"column {name!r} holds a line break. Is a quote missing or too many?"
    _errors_at(rows, np.arange(len(cells)), broken, lambda _: line_break)


def _plain(column: pa.Array) -> pa.Array:
    """Undo encodings that do not matter here."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    return column


def _separator(
    rows: ImageRows, names: list[str], texts: Mapping[str, pa.Array], options: ReadOptions
) -> Separator:
    """What separates names within a cell: as the user says, else as the cells show."""
    if options.delimiter:
        return Separator(options.delimiter)
    cells = pa.concat_arrays([pa.array([], pa.string()), *texts.values()]).unique().to_pylist()
    found = find_separator(cells)
    if found.mark != LINE_END or not found.certain:
        for name, column in texts.items():
            _check_line_ends(rows, name, column)
    if found.mark in (" ", ",") and _one_a_row(names):
        return Separator(None)  # One class a row, whatever its name is made of.
    if not found.certain:
        raise _unclear(rows.path, names, cells, found, options)
    return found


def _one_a_row(names: Iterable[str]) -> bool:
    """Whether columns are known to hold one class in each row."""
    return all(is_class_name(name) or is_species_name(name) for name in names)


def _unclear(
    path: Path, names: list[str], cells: list[str], found: Separator, options: ReadOptions
) -> OptionNeeded:
    """Ask what separates labels, with the number of classes that follows and a command."""
    command = ready_command(
        path,
        options,
        unlisted=options.unlisted or "unknown",
        delimiter=likely_delimiter(found),
    )
    apart = count_names(cells, found.mark or ";")
    whole = len({cell.strip() for cell in cells} - {""})
    return OptionNeeded(
        f"{path}: it is not certain what separates the labels within a cell of"
        f" {', '.join(map(repr, names))}: there are {apart} classes if {found} do, and {whole} if"
        " every cell is a single name. Pass --delimiter (for single names, any character that no"
        f" name has), for example: {command}"
    )


def _entries(
    rows: ImageRows, name: str, cells: pa.Array, mark: str | None, closed: list[str] | None
) -> Entries:
    """Row and class name of every label in one column."""
    kind = cells.type
    if kind == pa.string():
        return split_cells(rows, name, cells, mark)
    if pa.types.is_integer(kind):
        at = np.flatnonzero(cells.is_valid().to_numpy(zero_copy_only=False))
        return at, _by_number(rows, name, at, cells.drop_null(), closed)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise data_error(rows.path, f"column {name!r} must hold lists of names, but holds {kind}.")
    lengths = pc.fill_null(cells.value_lengths(), 0).to_numpy(zero_copy_only=False)
    at, names = np.repeat(np.arange(len(cells)), lengths), _plain(cells.flatten())
    if pa.types.is_integer(names.type):
        return at, _by_number(rows, name, at, names, closed)
    if names.type != pa.string():
        raise data_error(rows.path, f"column {name!r} must hold lists of names, but holds {kind}.")
    return at, names


def _by_number(
    rows: ImageRows,
    name: str,
    at: npt.NDArray[np.int64],
    numbers: pa.Array,
    closed: list[str] | None,
) -> pa.Array:
    """Names of classes given by their number in the class list, from 0; the numbers without one."""
    if closed is None:
        return pc.fill_null(numbers, -1).cast(pa.string())
    codes = pc.fill_null(numbers.cast(pa.int64(), safe=False), -1)
    codes = codes.to_numpy(zero_copy_only=False)
    wrong = (codes < 0) | (codes >= len(closed))
    _errors_at(
        rows,
        at,
        wrong,
        lambda entry: (
            f"{name!r} holds {codes[entry]}, which is no number of a class"
            f" (0 to {len(closed) - 1})."
        ),
    )
    return pa.array(closed, pa.string()).take(pa.array(codes))


def _class_codes(
    rows: ImageRows, at: npt.NDArray[np.int64], names: pa.Array, options: ReadOptions
) -> tuple[list[str], npt.NDArray[np.int64]]:
    words = pc.fill_null(names, "").dictionary_encode()
    found = words.dictionary.to_pylist()
    codes = words.indices.to_numpy(zero_copy_only=False)
    closed = options.class_list()
    classes = in_order(found) if closed is None else closed
    number = options.class_numbers() or {name: at for at, name in enumerate(classes) if name}
    columns = np.array([number.get(name, -1) for name in found] or [0], dtype=np.int64)[codes]
    _errors_at(rows, at, columns < 0, lambda entry: _wrong_class(found[codes[entry]], classes))
    return classes, columns


def in_order(names: list[str]) -> list[str]:
    """Names by letter, numbers by size."""
    if all(name.isascii() and name.isdigit() for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def _wrong_class(name: str, classes: list[str]) -> str:
    if not name:
        return "a class name is empty. Remove it or name it."
    return unknown_class(name, classes)


def _errors_at(
    rows: ImageRows,
    at: npt.NDArray[np.int64],
    wrong: npt.NDArray[np.bool_],
    message: Callable[[int], str],
) -> None:
    errors = ErrorCollector(rows.path)
    for entry in np.flatnonzero(wrong):
        errors.add(message(int(entry)), line=rows.line_of(int(at[entry])))
    errors.check()


def lists_of(table: LabelTable, state: State) -> pa.ListArray:
    """The names of the classes that every image has in one state."""
    chosen = table.states == state
    ends = np.concatenate([[0], np.cumsum(chosen)])[table.indptr]
    names: Any = pa.array(table.classes, pa.string()).take(pa.array(table.columns[chosen]))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), names)
