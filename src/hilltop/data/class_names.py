"""Class names that mean the same: spellings merged, renamed by a file, and "nothing there"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from hilltop.checks import did_you_mean, pluralize
from hilltop.data.csv_rows import format_rows, read_rows
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.files import atomic_write
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_CLASS, _RENAME, _LABELS = "class", "rename", "labels"
# Present is said by a person, absent too, unknown by nobody.
_RANK = {State.PRESENT: 0, State.ABSENT: 1, State.UNKNOWN: 2}


def spelling(name: str) -> str:
    """Return a name without what people write now this way, now that: case, blanks, underscores."""
    return re.sub(r"[\s_]+", " ", name.casefold()).strip()


def merged_spellings(table: LabelTable) -> dict[str, str]:
    """The commonest spelling of every class that is spelled in several ways."""
    counts = table.counts_by_class(State.PRESENT)
    groups: dict[str, list[int]] = {}
    for number, name in enumerate(table.classes):
        groups.setdefault(spelling(name), []).append(number)
    found = {}
    for group in groups.values():
        best = table.classes[max(group, key=lambda number: (counts[number], -number))].strip()
        found.update({table.classes[number]: best for number in group})
    return {name: best for name, best in found.items() if name != best}


def merge_names(table: LabelTable) -> LabelTable:
    """Return the table with classes merged that differ in case, blanks or underscores."""
    new = merged_spellings(table)
    if not new:
        return table
    counts = dict(zip(table.classes, table.counts_by_class(State.PRESENT).tolist(), strict=True))
    merged = rename_classes(table, new, Step("merge_names", dict(new)))
    after = dict(zip(merged.classes, merged.counts_by_class(State.PRESENT).tolist(), strict=True))
    notes = []
    for best in dict.fromkeys(new.values()):
        members = [name for name in table.classes if new.get(name, name) == best]
        before = ", ".join(f"{name!r} ({counts[name]:,})" for name in members)
        labels = pluralize(after[best], "label", "labels")
        notes.append(f"merged into {best!r} ({labels}): {before}.")
    return replace(merged, notes=(*merged.notes, *notes))


def rename_classes(table: LabelTable, new: Mapping[str, str], step: Step) -> LabelTable:
    """Return the table with classes renamed; those of one name become one class.

    Of a pair with different states, present counts before absent, and absent before unknown.
    """
    names = [new.get(name, name) for name in table.classes]
    classes = list(dict.fromkeys(names))
    place = {name: at for at, name in enumerate(classes)}
    columns = np.array([place[name] for name in names], dtype=np.int64)
    members = np.bincount(columns, minlength=len(classes))
    keys = table.rows * max(1, len(classes)) + columns[table.columns]
    rank = np.array([_RANK[state] for state in sorted(State)], dtype=np.int64)[table.states]
    order = np.argsort(keys * 4 + rank, kind="stable")
    keys, first, listed = np.unique(keys[order], return_index=True, return_counts=True)
    states = table.states[order][first]
    if table.unlisted == State.ABSENT:
        # Unknown only if no spelling of the class says that it is absent.
        said = listed < members[keys % max(1, len(classes))]
        states = np.where((states == State.UNKNOWN) & said, State.ABSENT, states).astype(np.int8)
    return _table(table, classes, keys, states, step)


def read_renames(path: Path) -> dict[str, str]:
    """Return the new name of each class in a CSV file with the columns class and rename."""
    if not path.is_file():
        raise data_error(path, "there is no such file of new names.")
    errors = ErrorCollector(path)
    new: dict[str, str] = {}
    for line, row in read_rows(path, (_CLASS, _RENAME)):
        name, rename = row[_CLASS], row[_RENAME].strip()
        if not name:
            errors.add("the class is empty. Name it or remove the line.", line=line)
        elif name in new:
            errors.add(f"class {name!r} stands here again.", line=line)
        elif rename:
            new[name] = rename
    errors.check()
    return {name: rename for name, rename in new.items() if name != rename}


def write_renames(table: LabelTable, path: Path, likely: Mapping[str, str]) -> None:
    """Write a line for every class, for people to fill in what it should be called.

    Args:
        table: The labels.
        path: The CSV file, which ``--renames`` reads.
        likely: New names to propose.
    """
    proposed = {**likely, **merged_spellings(table)}
    counts = table.counts_by_class(State.PRESENT).tolist()
    rows = [
        (name, proposed.get(name, ""), count)
        for name, count in zip(table.classes, counts, strict=True)
    ]
    atomic_write(path, format_rows((_CLASS, _RENAME, _LABELS), rows))


def apply_none_class(table: LabelTable, name: str, path: Path) -> LabelTable:
    """Return the table without a class that means: looked at, nothing there.

    Of an image that has it, all other classes are absent unless they are present.
    """
    if name not in table.classes:
        raise data_error(
            path, f"--none-class: there is no class {name!r}.{did_you_mean(name, table.classes)}"
        )
    number = table.classes.index(name)
    chosen = (table.columns == number) & (table.states == State.PRESENT)
    rows = table.rows[chosen]
    empty = table.dense(rows) != State.PRESENT
    others = int(np.count_nonzero((~empty).sum(axis=1) > 1))
    at, columns = np.nonzero(empty)
    step = Step("none_class", {"class": name, "images": len(rows)})
    told = table.with_states(rows[at], columns, State.ABSENT, step=step)
    kept = told.columns != number
    classes = [one for one in table.classes if one != name]
    new = told.columns[kept].astype(np.int64)
    keys = told.rows[kept] * max(1, len(classes)) + new - (new > number)
    without = _table(told, classes, keys, told.states[kept])
    note = f"{pluralize(len(rows), 'image has', 'images have')} {name!r}: all else is absent there."
    if others:
        have = pluralize(others, "of them has", "of them have")
        note += f" {have} other labels all the same, which stay."
    return replace(without, notes=(*table.notes, note))


def _table(
    table: LabelTable,
    classes: list[str],
    keys: np.ndarray[tuple[int], np.dtype[np.int64]],
    states: np.ndarray[tuple[int], np.dtype[np.int8]],
    step: Step | None = None,
) -> LabelTable:
    """The table with other classes and entries, whose keys are row x classes + column."""
    listed = states != table.unlisted
    keys, width = keys[listed], max(1, len(classes))
    return replace(
        table,
        classes=tuple(classes),
        indptr=np.searchsorted(keys, np.arange(len(table) + 1) * width).astype(np.int64),
        columns=(keys % width).astype(np.int32),
        states=np.ascontiguousarray(states[listed]),
        history=table.history if step is None else (*table.history, step),
    )
