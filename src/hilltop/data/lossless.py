"""What a format cannot express of a table: an error beforehand, or left out with ``lossy``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_MOST_NAME_BYTES = 200


def check_lossless(
    table: LabelTable,
    path: Path,
    lossy: bool,
    *,
    states: tuple[State, ...] = tuple(State),
    images_without_entries: bool = True,
    unused_classes: bool = True,
    unlisted: tuple[State, ...] = tuple(State),
) -> None:
    """Raise if the table says something that the format has no words for, unless ``lossy``.

    Args:
        table: What is to be written.
        path: Where to, for the message.
        lossy: Whether to leave it out instead.
        states: The states that can be listed.
        images_without_entries: Whether an image of which nothing is listed can be written.
        unused_classes: Whether a class that no entry mentions can be written.
        unlisted: What a reader can take pairs to be that are not written.
    """
    if lossy:
        return
    errors = ErrorCollector(path)
    for state in State:
        count = int(np.count_nonzero(table.states == state))
        if state not in states and count:
            errors.add(
                _lost(f"{pluralize(count, 'pair that is', 'pairs that are')} {state.name.lower()}")
            )
    silent = int(np.count_nonzero(np.diff(table.indptr) == 0))
    if silent and not images_without_entries:
        errors.add(_lost(f"{pluralize(silent, 'image', 'images')} of which nothing is listed"))
    unused = len(table.classes) - len(np.unique(table.columns))
    if unused and not unused_classes:
        errors.add(_lost(f"{pluralize(unused, 'class', 'classes')} that no image has"))
    beyond = int(table.not_looked_for().sum())
    if beyond:
        errors.add(_lost(f"that nobody looked for {pluralize(beyond, 'pair', 'pairs')}"))
    pairs = len(table) * len(table.classes) - len(table.states)
    if pairs and table.unlisted not in unlisted:
        unsaid = pluralize(pairs, "unlisted pair that is", "unlisted pairs that are")
        errors.add(_lost(f"{unsaid} {table.unlisted.name.lower()}"))
    errors.check()


def with_listed_absents(table: LabelTable) -> LabelTable:
    """Return the table with every absent pair listed and the others unknown.

    For formats in which a pair that is not listed is unknown: what was confirmed absent all the
    same has to be said pair by pair.
    """
    if table.unlisted != State.ABSENT:
        return table
    rows, columns = np.nonzero(table.dense() == State.ABSENT)
    step = Step("list_absents", {"pairs": len(rows)})
    return table.with_states(rows, columns, State.ABSENT, step=step, unlisted=State.UNKNOWN)


def check_names(path: Path, kind: str, names: Iterable[str], without: str) -> None:
    """Raise if a name cannot be written as one word of a text file.

    Such a name cannot be left out either, so ``lossy`` does not help.

    Args:
        path: Where to write, for the message.
        kind: What is named, for the message: image or class.
        names: The names.
        without: Characters that no name may hold, besides control characters and outer spaces.
    """
    errors = ErrorCollector(path)
    banned = re.compile(f"[\\x00-\\x1f\\x7f{re.escape(without)}]")
    for name in names:
        if name != name.strip() or banned.search(name):
            errors.add(
                f"this format cannot express the {kind} name {name!r}: line ends, outer spaces"
                f" and any of {without!r} are not possible. Rename it or write another format."
            )
    errors.check()


def check_file_words(path: Path, names: tuple[str, ...], *, kind: str = "class") -> None:
    """Raise if a name of this kind cannot be part of a file name."""
    check_names(path, kind, names, without='/\\:*?"<>|')
    errors = ErrorCollector(path)
    for name in names:
        if len(name.encode()) > _MOST_NAME_BYTES:
            errors.add(f"the {kind} name {name!r:.60} is too long for the name of a file.")
    errors.check()


def check_cells(table: LabelTable, path: Path) -> None:
    """Raise if a name cannot be a cell of a table: readers strip cells, and lines are rows."""
    errors = ErrorCollector(path)
    names = {"image": table.images, "class": pa.array(table.classes, pa.string())}
    for kind, column in names.items():
        odd = pc.or_(
            pc.match_substring_regex(column, "[\n\r\\x00]"),
            pc.not_equal(pc.utf8_trim_whitespace(column), column),
        )
        for name in column.filter(pc.or_(odd, pc.equal(column, ""))).to_pylist()[:3]:
            errors.add(
                f"a table cannot express the {kind} name {name!r}: it is empty, holds a line end,"
                " or begins or ends with a space. Rename it, or write Hilltop's own .parquet file."
            )
    errors.check()


def _lost(what: str) -> str:
    return (
        f"this format cannot express {what}."
        " Write another format, or pass --lossy to leave this out."
    )
