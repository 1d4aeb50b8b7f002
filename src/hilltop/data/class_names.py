"""Class names that mean the same: spellings merged, mapped by a file, and "nothing there"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import did_you_mean, pluralize
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.files import atomic_write
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.data.layout import ReadOptions, ask
from hilltop.data.small_files import format_rows, read_rows

_CLASS, _RENAME, _LABELS = "class", "rename", "labels"
# Present is said by a person, absent too, unknown by nobody.
_RANK = {State.PRESENT: 0, State.ABSENT: 1, State.UNKNOWN: 2}


def visible(name: str) -> str:
    """Return a name as it looks: composed letters, plain spaces, nothing of no width."""
    composed = re.sub(r"[\s\ufe00-\ufe0f]", _plain_space, unicodedata.normalize("NFC", name))
    return "".join(one for one in composed if unicodedata.category(one) != "Cf").strip()


def _plain_space(found: re.Match[str]) -> str:
    return " " if found[0].isspace() else ""


def spelling(name: str) -> str:
    """Return a name without what people write now this way, now that: case, spaces, underscores."""
    return re.sub(r"[\s_]+", " ", visible(name).casefold()).strip()


def merged_spellings(table: LabelTable) -> dict[str, str]:
    """The commonest spelling of every class that is spelled in several ways."""
    counts = dict(zip(table.classes, table.counts_by_class(State.PRESENT).tolist(), strict=True))
    return _merged(counts)


def _merged(counts: Mapping[str, int]) -> dict[str, str]:
    groups: dict[str, list[str]] = {}
    for name in counts:
        groups.setdefault(spelling(name), []).append(name)
    found = {}
    for group in groups.values():
        best = visible(max(group, key=lambda name: counts[name]))
        found.update(dict.fromkeys(group, best))
    return {name: best for name, best in found.items() if name != best}


def class_map(table: LabelTable, options: ReadOptions) -> dict[str, str]:
    """The new name of every class that is renamed: by the user's file, then by spelling."""
    new = {} if options.class_map is None else read_class_map(options.class_map)
    if options.merge_names:
        counts: dict[str, int] = {}
        present = table.counts_by_class(State.PRESENT).tolist()
        for name, count in zip(table.classes, present, strict=True):
            called = new.get(name, name)
            counts[called] = counts.get(called, 0) + count
        merged = _merged(counts)
        new = {name: new.get(name, name) for name in table.classes}
        new = {name: merged.get(called, called) for name, called in new.items()}
    return {name: called for name, called in new.items() if name != called}


def rename_by_map(table: LabelTable, new: Mapping[str, str]) -> LabelTable:
    """Return the table with classes renamed, and a note on those that became one."""
    if not any(name in new for name in table.classes):
        return table
    counts = dict(zip(table.classes, table.counts_by_class(State.PRESENT).tolist(), strict=True))
    renamed = rename_classes(table, new, Step("class_map", dict(new)))
    after = dict(zip(renamed.classes, renamed.counts_by_class(State.PRESENT).tolist(), strict=True))
    notes = []
    for best in dict.fromkeys(new.values()):
        members = [name for name in table.classes if new.get(name, name) == best]
        if len(members) > 1:
            before = ", ".join(f"{name!r} ({counts[name]:,})" for name in members)
            labels = pluralize(after[best], "label", "labels")
            notes.append(f"merged into {best!r} ({labels}): {before}.")
    return replace(renamed, notes=(*renamed.notes, *notes))


def check_look_alikes(table: LabelTable, path: Path, options: ReadOptions) -> None:
    """Raise if two names look the same but are spelled with different characters.

    Raises:
        DataError: Two image ids look alike.
        AmbiguousInputError: Two classes do; ``--merge-names`` makes them one.
    """
    if told := look_alikes("class", pa.array(table.classes, pa.string())):
        told += " Pass --merge-names to make them one."
        raise ask(path, told, options, merge_names=True)
    if told := look_alikes("image", table.images):
        raise data_error(path, f"{told} Make them one in the file.")


def look_alikes(kind: str, names: pa.Array) -> str:
    """What to say of two names that look the same; empty if there are none."""
    plain = pc.and_(pc.string_is_ascii(names), pc.equal(pc.utf8_trim_whitespace(names), names))
    odd = names.filter(pc.invert(plain)).to_pylist()
    seen = {visible(name): name for name in names.filter(plain).to_pylist()} if odd else {}
    for name in odd:
        other = seen.setdefault(visible(name), name)
        if other != name:
            return (
                f"the {kind} names {name!a} and {other!a} look the same, but are spelled with"
                " different characters (accents, spaces or characters without width)."
            )
    return ""


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


def read_class_map(path: Path) -> dict[str, str]:
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


def write_class_map(table: LabelTable, path: Path, likely: Mapping[str, str]) -> None:
    """Write a line for every class, for people to fill in what it should be called.

    Args:
        table: The labels.
        path: The CSV file, which ``--class-map`` reads.
        likely: New names to propose.
    """
    proposed = {**likely, **merged_spellings(table)}
    counts = table.counts_by_class(State.PRESENT).tolist()
    rows = [
        (name, proposed.get(name, ""), count)
        for name, count in zip(table.classes, counts, strict=True)
    ]
    atomic_write(path, format_rows((_CLASS, _RENAME, _LABELS), rows))


def apply_background_class(table: LabelTable, name: str, path: Path) -> LabelTable:
    """Return the table without a class that means: looked at, nothing there.

    Of an image that has it, all other classes are absent unless they are present.
    """
    if name not in table.classes:
        raise data_error(
            path,
            f"--background-class: there is no class {name!r}.{did_you_mean(name, table.classes)}",
        )
    number = table.classes.index(name)
    chosen = (table.columns == number) & (table.states == State.PRESENT)
    rows = table.rows[chosen]
    empty = table.dense(rows) != State.PRESENT
    others = int(np.count_nonzero((~empty).sum(axis=1) > 1))
    at, columns = np.nonzero(empty)
    step = Step("background_class", {"class": name, "images": len(rows)})
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
