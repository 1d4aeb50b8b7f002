"""Rows of an image, a class and a value: 1 and 0, words for them, votes or confidences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.checks import pluralize
from hilltop.data.assemble import assemble
from hilltop.data.data_errors import ErrorCollector, unknown_class
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.text.cell_codes import cell_meaning
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
    cell_number,
)
from hilltop.data.formats.text.label_cells import in_order
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import OptionNeeded

_CUT = 0.5
_VALUES = {"zero": ("0", ZERO), "blank": ("a blank", BLANK), "minus_one": ("-1", MINUS_ONE)}
_LIKELY = {"zero": "absent", "blank": "unknown", "minus_one": "absent", "unlisted": "unknown"}


@dataclass(frozen=True)
class ValueRows:
    """What the rows of a file say, column by column.

    Attributes:
        path: The file.
        images: Image of each row.
        names: Class of each row.
        values: Value of each row, as it is written.
        value_name: What the column of values is called.
        line_of: Line of a row, for messages.
        label_column: What ``--label-column`` is called so that every row means "present", whatever
            its value is; None where that cannot be said.
    """

    path: Path
    images: pa.Array
    names: pa.Array
    values: pa.Array
    value_name: str
    line_of: Callable[[int], int]
    label_column: str | None = None


def table_from_values(
    rows: ValueRows, options: ReadOptions, *, format: str, notes: Sequence[str] = ()
) -> LabelTable:
    """Build a table; what 0, -1, a blank and a pair without a row mean is asked, all at once.

    Raises:
        OptionNeeded: The values leave something open, or are confidences that nobody cut.
        DataError: A value is none that can be understood.
    """
    kinds = cell_kinds(rows.values, cell_meaning(options))
    _check_values(rows, kinds, options)
    images, names = rows.images.dictionary_encode(), rows.names.dictionary_encode()
    closed = options.class_list()
    classes = in_order(names.dictionary.to_pylist()) if closed is None else closed
    columns = _columns(rows, names, classes, options)
    numbers = images.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    listed = len(np.unique(numbers * len(classes) + columns))
    silent = len(images.dictionary) * len(classes) - listed
    states, unlisted = _states(rows, kinds, silent, options)
    return assemble(
        images.dictionary,
        classes,
        numbers,
        columns,
        states,
        unlisted=unlisted,
        source=rows.path,
        line_of=rows.line_of,
        step=Step("read", {"file": str(rows.path), "format": format}),
        notes=notes,
    )


def _states(
    rows: ValueRows, kinds: Kinds, silent: int, options: ReadOptions
) -> tuple[npt.NDArray[np.int8], State]:
    """State of every row, and that of pairs without one."""
    counts = np.bincount(kinds, minlength=KINDS)
    said: dict[str, Any] = {name: getattr(options, name) for name in _VALUES}
    if not silent:  # Nothing but the values is open, and the short form can mean only them.
        said["zero"] = said["zero"] or options.unlisted
    open_ = [name for name in _VALUES if counts[_VALUES[name][1]] and said[name] is None]
    if silent and options.unlisted is None:
        open_.append("unlisted")
    if open_:
        raise _question(rows.path, options, counts, silent, open_)
    unlisted = State.parse(options.unlisted or said["zero"] or "unknown")
    state_of = np.full(KINDS, State.UNKNOWN, dtype=np.int8)
    state_of[ONE], state_of[SAID_ABSENT] = State.PRESENT, State.ABSENT
    state_of[SAID_UNKNOWN] = State.UNKNOWN
    for name, (_, kind) in _VALUES.items():
        if said[name] is not None:
            state_of[kind] = State.parse(said[name])
    return state_of[kinds], unlisted


def _question(
    path: Path,
    options: ReadOptions,
    counts: npt.NDArray[np.int64],
    silent: int,
    open_: Sequence[str],
) -> OptionNeeded:
    """Ask for all that is open at once, with the counts and a command."""
    told = [
        f"{text} stands in {pluralize(int(counts[kind]), 'row', 'rows')}"
        for name, (text, kind) in _VALUES.items()
        if name in open_
    ]
    if "unlisted" in open_:
        told.append(f"{pluralize(silent, 'pair has', 'pairs have')} no row")
    flags = " and ".join(f"--{name.replace('_', '-')}" for name in open_)
    command = ready_command(path, options, **{name: _LIKELY[name] for name in open_})
    return OptionNeeded(
        f"{path}: {', '.join(told)}, and the file does not say what that means: absent (a person"
        f" looked) or unknown (nobody did). Pass {flags}, for example: {command}"
    )


def _check_values(rows: ValueRows, kinds: Kinds, options: ReadOptions) -> None:
    """Raise where values are none of 1, 0, -1 and blank: ask for a cut where they are numbers."""
    wrong = np.flatnonzero(kinds == OTHER)
    if not len(wrong):
        return
    words = [str(rows.values[int(at)].as_py()) for at in wrong]
    numbers = [cell_number(word) for word in words]
    found = [number for number in numbers if number is not None]
    if len(found) == len(numbers):
        cut = _CUT if any(number < 1 for number in found) else max(1.0, float(np.median(found)))
        above = sum(number >= cut for number in found) + int(np.count_nonzero(kinds == ONE))
        either = ""
        if rows.label_column is not None:
            either = f"; --label-column {rows.label_column} takes every row for present"
        raise OptionNeeded(
            f"{rows.path}: {rows.value_name!r} holds numbers from {min(found):g} to"
            f" {max(found):g} in {pluralize(len(found), 'row', 'rows')}. --confidence-cut says from"
            f" which number on a row means present, below it unknown (with {cut:g}:"
            f" {above:,} of {len(kinds):,} rows){either}, for example:"
            f" {ready_command(rows.path, options, confidence_cut=f'{cut:g}')}"
        )
    errors = ErrorCollector(rows.path)
    for at, word in zip(wrong, words, strict=True):
        errors.add(
            f"{rows.value_name!r} holds {word!r:.40}, which is none of 1, 0, -1 and blank. Correct"
            " it, or say with --values what it means.",
            line=rows.line_of(int(at)),
        )
    errors.check()


def _columns(
    rows: ValueRows, names: pa.DictionaryArray, classes: Sequence[str], options: ReadOptions
) -> npt.NDArray[np.int64]:
    """Class number of each row; a class that is not in the closed list is an error."""
    place = options.class_numbers() or {name: at for at, name in enumerate(classes)}
    found = names.dictionary.to_pylist()
    codes = names.indices.to_numpy(zero_copy_only=False)
    numbers = np.array([place.get(name, -1) for name in found] or [0], dtype=np.int64)
    columns: npt.NDArray[np.int64] = numbers[codes]
    errors = ErrorCollector(rows.path)
    for row in np.flatnonzero(columns < 0):
        errors.add(unknown_class(found[codes[row]], classes), line=rows.line_of(int(row)))
    errors.check()
    return columns
