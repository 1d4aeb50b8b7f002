"""From entries in any order to a LabelTable: sorted, merged, and checked for contradictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data.data_errors import ErrorCollector, unknown_class
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State


def assemble(
    images: Sequence[str] | pa.Array,
    classes: Sequence[str],
    rows: npt.ArrayLike,
    columns: npt.ArrayLike,
    states: npt.ArrayLike | State,
    *,
    unlisted: State,
    source: Path | None = None,
    line_of: Callable[[int], int] | None = None,
    step: Step | None = None,
    notes: Sequence[str] = (),
    remedy: str = "",
) -> LabelTable:
    """Build a table from entries in any order.

    The same entry twice is kept once. Two different states for one pair are an error, except that
    "unknown" gives way to what is known.

    Args:
        images: Image ids, all different, in the order of the table.
        classes: Class names, all different.
        rows: Image number of each entry.
        columns: Class number of each entry.
        states: State of each entry, or one for all.
        unlisted: State of the pairs without an entry.
        source: The file, for messages.
        line_of: Line number of an entry, for messages.
        step: What was done, for the history.
        notes: What was noticed, for :attr:`LabelTable.notes`.
        remedy: What else than correcting the file helps against contradictions, as a sentence.

    Raises:
        DataError: A pair is both present and absent, or names are not all different.
    """
    errors = ErrorCollector(source or Path("labels"))
    ids = images if isinstance(images, pa.Array) else pa.array(images, pa.string())
    _check_distinct(errors, "image", ids)
    _check_distinct(errors, "class", pa.array(classes, pa.string()))
    errors.check()
    row, column = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    state = np.broadcast_to(np.asarray(states, dtype=np.int8), row.shape)
    key = row * len(classes) + column
    if len(key) > 1 and not (key[1:] > key[:-1]).all():
        # Sorted by pair and then by state, so that what is known comes before UNKNOWN.
        order = np.argsort(key * 4 + state, kind="stable")
        key, row, state = key[order], row[order], state[order]
        again = key[1:] == key[:-1]
        clash = again & (state[1:] != state[:-1]) & (state[1:] != State.UNKNOWN)
        also = f" {remedy}" if remedy else ""
        for at in np.flatnonzero(clash):
            image, name = divmod(int(key[at]), len(classes))
            errors.add(
                f"image {ids[image].as_py()!r} has class {classes[name]!r} both absent and"
                f" present. Keep one of the two.{also}",
                line=line_of(int(max(order[at], order[at + 1]))) if line_of else None,
            )
        errors.check()
        first = np.concatenate([[True], ~again])
        key, row, state = key[first], row[first], state[first]
    listed = state != unlisted
    if not listed.all():
        key, row, state = key[listed], row[listed], state[listed]
    per_row = np.bincount(row, minlength=len(ids))
    return LabelTable(
        images=ids,
        classes=tuple(classes),
        indptr=np.concatenate([[0], np.cumsum(per_row)]).astype(np.int64),
        columns=(key - row * len(classes)).astype(np.int32),
        states=np.ascontiguousarray(state, dtype=np.int8),
        unlisted=unlisted,
        history=() if step is None else (step,),
        notes=tuple(notes),
    )


class Collector:
    """Collects labels image by image, for readers that parse one record after another."""

    def __init__(self, path: Path, classes: Sequence[str] | None = None) -> None:
        """Start with a closed list of classes, or with None: classes are taken as they come."""
        self.errors = ErrorCollector(path)
        self._closed = classes is not None
        self._classes = {name: number for number, name in enumerate(classes or ())}
        numbered = not any(name.isdigit() for name in self._classes)
        self._by_number = {str(at): name for at, name in enumerate(classes or ()) if numbered}
        self._images: dict[str, int] = {}
        self._entries: list[tuple[int, int, int, int]] = []
        self._records: list[tuple[int, int]] = []  # row, and number of its first entry

    def image(self, name: str, *, line: int | None = None, once: bool = False) -> int:
        """Return the row of an image, new or not.

        With ``once`` a new record of the image begins; more than one for an image is noted.
        """
        if not name:
            self.errors.add("the image id is empty. Give every image a name.", line=line)
        row = self._images.setdefault(name, len(self._images))
        if once:
            self._records.append((row, len(self._entries)))
        return row

    def label(self, row: int, name: str, state: State, *, line: int | None = None) -> None:
        """Add what is said of one class, by its name or its number in the closed list."""
        name = self._by_number.get(name, name)
        if name not in self._classes:
            if self._closed:
                self.errors.add(unknown_class(name, self._classes), line=line)
                return
            if not name:
                self.errors.add("a class name is empty. Remove it or name it.", line=line)
                return
            self._classes[name] = len(self._classes)
        self._entries.append((row, self._classes[name], int(state), line or 0))

    def table(
        self, *, unlisted: State, sort_classes: bool = False, notes: Sequence[str] = (), **step: Any
    ) -> LabelTable:
        """Return the table, or raise with all errors."""
        self.errors.check()
        entries = np.array(self._entries, dtype=np.int64).reshape(-1, 4).T
        rows, columns, states, lines = entries
        classes = list(self._classes)
        if sort_classes and not self._closed:
            classes.sort()
            columns = np.array([classes.index(name) for name in self._classes], dtype=np.int64)[
                columns
            ]
        return assemble(
            list(self._images),
            classes,
            rows,
            columns,
            states,
            unlisted=unlisted,
            source=self.errors.path,
            line_of=(lambda entry: int(lines[entry])) if lines.any() else None,
            step=Step("read", {"file": str(self.errors.path), **step}),
            notes=[*notes, *self._repetitions()],
        )

    def _repetitions(self) -> list[str]:
        """What to say of images that have more than one record."""
        said: dict[int, list[set[tuple[int, int]]]] = {}
        ends = [start for _, start in self._records[1:]] + [len(self._entries)]
        for (row, start), end in zip(self._records, ends, strict=False):
            entries = self._entries[start:end]
            said.setdefault(row, []).append({(column, state) for _, column, state, _ in entries})
        repeated = {row: sets for row, sets in said.items() if len(sets) > 1}
        if not repeated:
            return []
        differ = [row for row, sets in repeated.items() if any(one != sets[0] for one in sets)]
        stand = pluralize(len(repeated), "image id stands", "image ids stand")
        text = f"{stand} in more than one record; the labels are merged."
        if differ:
            example = list(self._images)[differ[0]]
            have = pluralize(len(differ), "of them has", "of them have")
            text += f" {have} different labels there, the first is {example!r}."
        return [text]


def ascending(names: pa.Array) -> bool:
    """Whether each name is greater than the one before, so that no two are the same."""
    return pc.all(pc.greater(names[1:], names[:-1]), min_count=0).as_py() is True


def _check_distinct(errors: ErrorCollector, kind: str, names: pa.Array) -> None:
    if ascending(names) or len(names) == len(names.unique()):
        return
    counted = pc.value_counts(names)
    twice = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
    errors.add(
        f"{len(twice)} {kind} names stand more than once, for example {twice[0].as_py()!r}."
        " Names must differ."
    )
