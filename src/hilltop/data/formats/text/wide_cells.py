"""What the cells of a wide table mean, and which of its columns are classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.checks import did_you_mean, pluralize
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.text.cell_codes import cell_meaning, describe_values, odd_cells
from hilltop.data.formats.text.cell_values import (
    BLANK,
    KINDS,
    MINUS_ONE,
    ONE,
    OTHER,
    SAID_ABSENT,
    SAID_UNKNOWN,
    ZERO,
    Kinds,
    cell_kinds,
    own_names,
)
from hilltop.data.formats.text.column_roles import resolve_columns
from hilltop.data.formats.text.known_names import is_no_class_name
from hilltop.data.formats.text.table_file import TableFile
from hilltop.data.state import State
from hilltop.errors import OptionNeeded

_SHOWN_PER_COLUMN = 3
_MOST_VALUES = 12
_FEW = 2
"""Where few odd values occur this often each, they have a meaning; others are mistakes."""
_NO_CLASS = 0.5
"""A column with a greater share of other values than 1, 0, -1 and blank is no class."""
_TRUTHS = {"true", "false"}
_OTHERS = 3
"""So many columns of numbers stand beside one of TRUE and FALSE that is no class."""
_RAW = {"1": ONE, "0": ZERO, "-1": MINUS_ONE, "blank": BLANK}
_LIKELY = {"zero": "absent", "blank": "unknown", "minus_one": "unknown"}


@dataclass(frozen=True)
class WideColumns:
    """Which columns are classes.

    Attributes:
        cells: Kind of value in every cell, by column.
        classes: All classes: those of the columns, or those of a closed list.
        number: Class number of each column.
        ignored: Columns that are no classes though nobody said so.
        remarks: Those of them that hold TRUE and FALSE where classes have 1 and 0.
    """

    cells: dict[str, Kinds]
    classes: list[str]
    number: dict[str, int]
    ignored: list[str]
    remarks: Sequence[str] = ()

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each kind of value occurs."""
        return np.bincount(np.concatenate([*self.cells.values()]), minlength=KINDS)

    def notes(self) -> list[str]:
        """Say what was ignored, and the raw values where -1 occurs."""
        said = []
        counts = self.counts
        if self.ignored:
            are = pluralize(len(self.ignored), "column is", "columns are")
            said.append(
                f"{are} taken for no class: {', '.join(self.ignored)}."
                " --class-columns names the columns that are."
            )
        if self.remarks:
            said.append(
                f"TRUE and FALSE stand in {', '.join(self.remarks)}, but 1 and 0 in the classes, so"
                " that it is taken for a remark."
            )
        if counts[MINUS_ONE]:
            cells = pluralize(int(counts[ONE]), "cell", "cells")
            said.append(
                f"raw values: 1 in {cells}, 0 in {counts[ZERO]},"
                f" -1 in {counts[MINUS_ONE]}, blank in {counts[BLANK]}"
            )
        return said

    def raw_values(self) -> dict[str, int]:
        """How often each value occurs, by how it is written."""
        return {value: int(self.counts[kind]) for value, kind in _RAW.items()}


def is_class_like(name: str, kinds: npt.NDArray[Any]) -> bool:
    """Whether a column can be a class: few cells that are none of 1, 0, -1 and blank."""
    filled = np.count_nonzero(kinds != BLANK)
    other = np.count_nonzero(kinds == OTHER)
    return bool(other <= _NO_CLASS * filled) and not is_no_class_name(name)


def find_classes(table: TableFile, image: str, options: ReadOptions) -> WideColumns:
    """Find the columns that are classes: as the user says, else by what they hold."""
    names = [name for name in table.names if name != image]
    closed = options.class_list()
    meaning = cell_meaning(options)
    cells = {name: cell_kinds(table.column(name), meaning) for name in names}
    odd = {name: table.distinct(name) for name in names if OTHER in cells[name]}
    for name in own_names(odd):
        cells[name] = np.where(cells[name] == OTHER, ONE, cells[name]).astype(np.int8)
    ignored: list[str] = []
    remarks: list[str] = []
    if options.ignore_columns is not None:
        gone = resolve_columns(table.path, options.ignore_columns, table.names)
        cells = {name: kinds for name, kinds in cells.items() if name not in gone}
    if options.class_columns is not None:
        chosen = resolve_columns(table.path, options.class_columns, table.names)
        cells = {name: cells[name] for name in chosen if name in cells}
    else:
        kept = [name for name in cells if _is_chosen(name, cells[name], closed)]
        remarks = _remarks(table, kept) if closed is None else []
        kept = [name for name in kept if name not in remarks]
        ignored = [name for name in cells if name not in kept]
        cells = {name: cells[name] for name in kept}
    _check_columns(table, cells, ignored, closed)
    _check_cells(table, cells, options)
    classes = list(cells) if closed is None else closed
    numbers = _numbers(table.path, list(cells), options)
    return WideColumns(cells, classes, numbers, ignored, remarks)


def _remarks(table: TableFile, names: Sequence[str]) -> list[str]:
    """The few columns of TRUE and FALSE where all others are written with numbers."""
    values = {name: {str(one).strip().lower() for one in table.distinct(name)} for name in names}
    filled = {name: words - {""} for name, words in values.items() if words - {""}}
    found = [name for name, words in filled.items() if words <= _TRUTHS]
    numbers = [name for name, words in filled.items() if words <= set(_RAW)]
    few = _OTHERS * len(found) <= len(numbers) and len(found) + len(numbers) == len(filled)
    return found if few else []


def _is_chosen(name: str, kinds: Kinds, closed: list[str] | None) -> bool:
    if closed is None or name.isdigit() or name.startswith("column "):
        return is_class_like(name, kinds) or not name
    return name in closed


def _check_columns(
    table: TableFile, cells: dict[str, Kinds], ignored: list[str], closed: list[str] | None
) -> None:
    errors = ErrorCollector(table.path)
    if not cells:
        what = "of the class list" if closed else "with 1, 0, -1 or blanks"
        errors.add(
            f"there is no column {what} besides the images. Expected one for each class."
            f" The columns are {', '.join(table.names)}."
        )
    if "" in cells:
        errors.add("a column has no name. Name it after its class or remove it.", line=1)
    for name in closed or ():
        near = did_you_mean(name, ignored) if name not in cells and len(name) > 3 else ""
        if near and not any(column.isdigit() for column in cells):
            errors.add(f"no column is called {name!r}, as the class list does.{near}", line=1)
    errors.check()


def _numbers(path: Path, columns: list[str], options: ReadOptions) -> dict[str, int]:
    """Class number of each column; columns called by numbers count in the closed list."""
    closed, place = options.class_list(), options.class_numbers()
    if closed is None or place is None:
        return {name: at for at, name in enumerate(columns)}
    if all(name.startswith("column ") for name in columns):
        if len(columns) != len(closed):
            raise data_error(
                path,
                f"there are {len(columns)} columns of zeros and ones, but {len(closed)} names in"
                " the class list. Name the columns with --class-columns, such as 1:.",
            )
        return {name: at for at, name in enumerate(columns)}
    errors = ErrorCollector(path)
    listed = pluralize(len(closed), "name", "names")
    for name in columns:
        if name not in place:
            errors.add(f"column {name!r} is not in the class list ({listed}).", line=1)
    errors.check()
    return {name: place[name] for name in columns}


def _check_cells(table: TableFile, cells: dict[str, Kinds], options: ReadOptions) -> None:
    errors = ErrorCollector(table.path)
    wrong = {name: np.flatnonzero(kinds == OTHER) for name, kinds in cells.items()}
    wrong = {name: rows for name, rows in wrong.items() if len(rows)}
    odd = {name: table.column(name).take(rows).to_pylist() for name, rows in wrong.items()}
    values = odd_cells(odd)
    often = len(values) <= _MOST_VALUES and sum(values.values()) > _FEW * len(values)
    if often and (len(wrong) > 1 or len(cells) == 1):
        told = describe_values(table.path, options, list(wrong), values)
        raise OptionNeeded(f"{table.path}: {told}")
    for name, rows in wrong.items():
        more = len(rows) - _SHOWN_PER_COLUMN
        are = pluralize(more, "more cell of this column is", "more cells of this column are")
        rest = f" {are} like that." if more > 0 else ""
        for row in rows[:_SHOWN_PER_COLUMN]:
            value = table.column(name)[int(row)].as_py()
            shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:37]}..."
            errors.add(
                f"column {name!r} holds {shown}, which is none of 1, 0, -1 and blank. Correct it,"
                f" or pass --ignore-columns if the column is not a class.{rest}",
                line=table.line_of(int(row)),
            )
    if wrong and len(wrong) < len(cells) and options.class_columns is None:
        gone = [options.ignore_columns] if options.ignore_columns else []
        ignore = ",".join([*gone, *wrong])
        command = ready_command(table.path, options, ignore_columns=ignore)
        errors.found.append(f"Without such columns, for example: {command}")
    errors.check()


def cell_states(
    path: Path, options: ReadOptions, counts: npt.NDArray[np.int64], silent: bool
) -> tuple[Kinds, State]:
    """State of each kind of value, and that of pairs without a cell.

    Args:
        path: The file, for messages.
        options: What the user said.
        counts: How often each kind of value occurs.
        silent: Whether some classes have no column.

    Raises:
        OptionNeeded: Some values are left open; the message names all of them at once.
    """
    both = bool(counts[ZERO] and counts[BLANK])
    either = None if both else options.unlisted
    said = {
        "zero": options.zero or either,
        "blank": options.blank or either,
        "minus_one": options.minus_one,
    }
    kinds = {"zero": ZERO, "blank": BLANK, "minus_one": MINUS_ONE}
    open_ = [name for name in said if said[name] is None and counts[kinds[name]]]
    if open_:
        raise _question(path, options, counts, open_, both)
    first = [options.unlisted, options.blank, options.zero]
    if silent and not any(first):
        options.need_unlisted(path, "classes without a column")
    unlisted = State.parse(next(filter(None, [*first, options.minus_one]), "unknown"))
    if unlisted == State.PRESENT:
        unlisted = State.UNKNOWN
    state_of = np.zeros(KINDS, dtype=np.int8)
    state_of[ONE] = State.PRESENT
    state_of[SAID_ABSENT], state_of[SAID_UNKNOWN] = State.ABSENT, State.UNKNOWN
    for name, kind in kinds.items():
        word = said[name]
        state_of[kind] = unlisted if word is None else State.parse(word)
    return state_of, unlisted


def _question(
    path: Path,
    options: ReadOptions,
    counts: npt.NDArray[np.int64],
    open_: Sequence[str],
    both: bool,
) -> OptionNeeded:
    """Ask for all that is open at once, with the counts and a command."""
    words = {"zero": ("0", ZERO), "blank": ("a blank", BLANK), "minus_one": ("-1", MINUS_ONE)}
    told = [
        f"{text} stands in {pluralize(int(counts[kind]), 'cell', 'cells')}"
        for text, kind in (words[name] for name in open_)
    ]
    # One kind alone: what is not 1 was mostly not looked at.
    likely = {name: _LIKELY[name] for name in open_}
    if "zero" in likely and not both and not counts[MINUS_ONE]:
        likely = {"unlisted": "unknown"}
    flags = [f"--{name.replace('_', '-')}" for name in likely]
    alike = ""
    if both and options.unlisted:
        alike = " --unlisted would settle zeros and blanks alike."
        options = replace(options, unlisted=None)
    return OptionNeeded(
        f"{path}: {', '.join(told)}, and the file does not say what that means: absent (a"
        f" person looked) or unknown (nobody did).{alike} Pass {' and '.join(flags)}, for example:"
        f" {ready_command(path, options, **likely)}"
    )
