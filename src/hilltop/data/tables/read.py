"""Reads a table of labels by its layout; nothing is inferred here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import pluralize
from hilltop.data.content import Source
from hilltop.data.data_errors import ErrorCollector, data_error, unknown_class
from hilltop.data.label_table import LabelTable, State, Step, duplicate_ids, entries_of
from hilltop.data.layout import JSON_LISTS, MULTI_HOT, ROW_NUMBER, Layout
from hilltop.data.tables.cells import (
    Cells,
    Table,
    apply_header,
    codes_of,
    is_list,
    parse_labels,
    parse_vector,
    read_cells,
    with_comment_row,
)
from hilltop.data.tables.words import cell_states

Ints = npt.NDArray[np.int64]
_AGAINST_READERS = (
    "If annotators disagree, --zero unknown counts what one of them saw as present and takes no 0"
    " for certain."
)


def open_table(source: Source, layout: Layout) -> Table:
    """Return the rows of a table as its layout says.

    Raises:
        DataError: Rows differ in length where the layout does not allow it.
    """
    cells = table_cells(source, layout)
    if not layout.ragged:
        errors = ErrorCollector(source.path)
        for row, width in cells.widths(layout.header_row, layout.skip_rows).items():
            count = pluralize(width, "cell", "cells")
            errors.add(f"this row has {count}, unlike the others. Correct it.", line=row)
        errors.check()
    return apply_header(cells, layout.header_row, layout.skip_rows)


def table_cells(source: Source, layout: Layout) -> Cells:
    """All cells of a table; a comment line that names the columns is the first row."""
    cells = read_cells(source, separator=layout.separator, sheet=layout.sheet)
    if cells is None:
        raise data_error(source.path, "this is not a table with rows and columns.")
    if layout.header_row is not None and layout.header_row in cells.comments:
        return with_comment_row(source, cells, layout.header_row)
    return cells


def read_table(source: Source, layout: Layout) -> LabelTable:
    """Read the labels of a table."""
    table = open_table(source, layout)
    reader = _Reader(table, layout)
    return reader.wide() if layout.shape == "wide" else reader.listed()


class _Reader:
    """One table on its way to labels."""

    def __init__(self, table: Table, layout: Layout) -> None:
        self.table, self.layout, self.path = table, layout, table.path
        self.images, self.rows = self._images()

    def _images(self) -> tuple[pa.StringArray, Ints]:
        """All ids, each once, and the number of each row's id."""
        if self.layout.image_column == ROW_NUMBER:
            count = len(self.table)
            return pa.array(map(str, range(count)), pa.string()), np.arange(count)
        at = self.table.index(self.layout.image_column or "")
        if at in self.table.faults:
            raise data_error(self.path, self.table.faults[at])
        ids = self.table.distinct(at)
        if is_list(self.table.columns[at]):
            raise data_error(self.path, f"the image column {self.table.names[at]!r} holds lists.")
        empty = self.table.rows_with(at, "", 20) if _has(ids, "") else []
        errors = ErrorCollector(self.path)
        for row in empty:
            errors.add(
                "the image name is empty. Fill it in, or leave the row out with --skip-rows"
                f" {row}.",
                line=row,
            )
        errors.check()
        return ids.dictionary, codes_of(ids)

    def _line(self, row: int) -> int:
        return self.table.row_of(row)

    def _from_entries(
        self,
        classes: Sequence[str],
        rows: npt.NDArray[Any],
        columns: npt.NDArray[Any],
        states: Any,
        *,
        remedy: str = "",
        **details: Any,
    ) -> LabelTable:
        notes = []
        if self.layout.shape != "long" and self.layout.state_column is None:
            notes = duplicate_ids(self.images, self.rows, rows, columns, states)
        return LabelTable.from_coo(
            self.images,
            classes,
            self.rows[rows],
            columns,
            states,
            unlisted=self.layout.unlisted,
            source=self.path,
            line_of=lambda entry: self._line(int(rows[entry])),
            step=Step("read", {"file": str(self.path), "format": self.layout.format, **details}),
            notes=notes,
            remedy=remedy,
        )

    # Wide

    def wide(self) -> LabelTable:
        """Read a column for each class."""
        layout, table = self.layout, self.table
        columns = [table.index(name) for name in layout.label_columns]
        classes, numbers = self._column_classes([table.names[at] for at in columns])
        repeated = np.bincount(self.rows, minlength=len(self.images))[self.rows] > 1
        rows, entries, places = [], [], []
        counts: dict[str, int] = {}
        for at, number in zip(columns, numbers, strict=True):
            states = self._cell_states(at, counts)
            # Of an image in several rows every cell counts, so that 1 and 0 contradict.
            chosen = np.flatnonzero((states != layout.unlisted) | repeated)
            rows.append(chosen)
            entries.append(states[chosen])
            places.append(np.full(len(chosen), number, dtype=np.int64))
        raw = {}
        if counts.get("-1"):
            raw = {"minus_one": layout.meaning("-1"), "raw_values": counts}
        return self._from_entries(
            classes,
            np.concatenate([*rows, np.empty(0, np.int64)]),
            np.concatenate([*places, np.empty(0, np.int64)]),
            np.concatenate([*entries, np.empty(0, np.int8)]),
            remedy=_AGAINST_READERS if layout.meaning("0") == "absent" else "",
            **raw,
        )

    def _column_classes(self, names: list[str]) -> tuple[Sequence[str], list[int]]:
        """All classes, and the number of each column's."""
        closed = self.layout.classes
        if closed is None:
            return names, list(range(len(names)))
        if all(name.startswith("column ") for name in names):
            if len(names) != len(closed):
                raise data_error(
                    self.path,
                    f"there are {len(names)} class columns, but"
                    f" {pluralize(len(closed), 'name', 'names')} in the class list. Say which"
                    " columns are classes with --class-columns, such as 1:.",
                )
            return closed, list(range(len(names)))
        place = {**dict(self.layout.codes), **{name: at for at, name in enumerate(closed)}}
        errors = ErrorCollector(self.path)
        for name in names:
            if name not in place:
                errors.add(unknown_class(name, closed))
        errors.check()
        return closed, [place[name] for name in names]

    def _cell_states(self, at: int, counts: dict[str, int]) -> npt.NDArray[np.int8]:
        found = self.table.distinct(at)
        occurs = self.table.counts(at)
        meaning = cell_states(
            found.dictionary.to_pylist(), self.layout.values, self.layout.threshold
        )
        for word, count in self.table.values(at).items():
            counts[word] = counts.get(word, 0) + count
        wrong = [cell for cell, state in meaning.items() if state is None and cell in occurs]
        if wrong:
            errors = ErrorCollector(self.path)
            for cell in wrong:
                for row in self.table.rows_with(at, cell):
                    errors.add(
                        f"column {self.table.names[at]!r} holds {cell!r:.40}, and nothing says what"
                        " that means. Correct it, or pass --values.",
                        line=row,
                    )
            errors.check()
        states = np.array([state or 0 for state in meaning.values()] or [0], dtype=np.int8)
        return np.asarray(states[codes_of(found)], dtype=np.int8)

    # Lists and single labels

    def listed(self) -> LabelTable:
        """Read columns of labels, and those of absent and unknown classes if there are any."""
        layout, table = self.layout, self.table
        if layout.delimiter == MULTI_HOT:
            return self._vectors()
        parts: list[tuple[Ints, pa.DictionaryArray, Any]] = []
        for name in layout.label_columns:
            at = table.index(name)
            rows, words = self._labels(at)
            state: Any = State.PRESENT
            if layout.state_column is not None:
                state = self._cell_states(table.index(layout.state_column), {})[rows]
            parts.append((rows, words, state))
        beside = ((layout.absent_column, State.ABSENT), (layout.unknown_column, State.UNKNOWN))
        for column, other in beside:
            if column is not None:
                parts.append((*self._labels(table.index(column)), other))
        classes, place = self._classes([words for _, words, _ in parts])
        columns = [self._numbers(rows, words, place) for rows, words, _ in parts]
        return self._from_entries(
            classes,
            np.concatenate([rows for rows, _, _ in parts]),
            np.concatenate(columns),
            np.concatenate(
                [np.broadcast_to(np.int8(s), len(r)) if np.ndim(s) == 0 else s for r, _, s in parts]
            ),
        )

    def _labels(self, at: int) -> tuple[Ints, pa.DictionaryArray]:
        """Row and name of every label in a column."""
        layout = self.layout
        column = self.table.columns[at]
        if at in self.table.faults:
            raise data_error(self.path, self.table.faults[at])
        if is_list(column):
            rows = np.asarray(pc.list_parent_indices(column).to_numpy(zero_copy_only=False))
            return self._named(rows, column.flatten())
        if layout.delimiter == JSON_LISTS:
            return self._json_labels(at)
        if layout.delimiter is None:
            words = self.table.distinct(at)
            return self._named(np.arange(len(words)), words)
        found = self.table.distinct(at)
        split = pc.split_pattern(found.dictionary, layout.delimiter)
        rows, words = _spread(split, codes_of(found))
        return self._named(rows, words)

    def _json_labels(self, at: int) -> tuple[Ints, pa.DictionaryArray]:
        found = self.table.distinct(at)
        errors = ErrorCollector(self.path)
        lists: list[list[str]] = []
        for cell in found.dictionary.to_pylist():
            parsed = parse_labels(cell) if cell else []
            if parsed is None:
                errors.add(
                    f"{cell!r:.60} is no list of names as JSON or Python writes it. Correct it.",
                    line=self.table.rows_with(at, cell, 1)[0],
                )
            lists.append(parsed or [])
        errors.check()
        rows, words = _spread(pa.array(lists, pa.list_(pa.string())), codes_of(found))
        return self._named(rows, words)

    def _named(self, rows: Ints, words: Any) -> tuple[Ints, pa.DictionaryArray]:
        """The labels without empty ones, stripped."""
        encoded = words if isinstance(words, pa.DictionaryArray) else words.dictionary_encode()
        names = pc.utf8_trim_whitespace(encoded.dictionary)
        nothing = {word for word, meaning in self.layout.values if meaning == "empty"} | {""}
        real = [name.lower() not in nothing for name in names.to_pylist()]
        codes = codes_of(encoded)
        if not all(real):
            keep = np.array(real, dtype=bool)[codes]
            rows, codes = rows[keep], codes[keep]
        return rows, pa.DictionaryArray.from_arrays(pa.array(codes), names)

    def _classes(self, parts: Sequence[pa.DictionaryArray]) -> tuple[Sequence[str], dict[str, int]]:
        closed = self.layout.classes
        if closed is not None:
            place = {name: at for at, name in enumerate(closed)}
            return closed, {**place, **dict(self.layout.codes)}
        names: set[str] = set()
        for words in parts:
            used = np.bincount(codes_of(words), minlength=len(words.dictionary)) > 0
            names |= set(words.dictionary.filter(pa.array(used)).to_pylist())
        classes = sorted(names, key=_natural_order)
        return classes, {name: at for at, name in enumerate(classes)}

    def _numbers(self, rows: Ints, words: pa.DictionaryArray, place: dict[str, int]) -> Ints:
        names = words.dictionary.to_pylist()
        numbers = np.array([place.get(name, -1) for name in names] or [0], dtype=np.int64)
        columns: Ints = numbers[codes_of(words)]
        wrong = np.flatnonzero(columns < 0)
        if len(wrong):
            errors = ErrorCollector(self.path)
            codes = codes_of(words)
            for entry in wrong:
                name = names[int(codes[entry])]
                known = self.layout.classes or place
                errors.add(unknown_class(name, known), line=self._line(int(rows[entry])))
            errors.check()
        return columns

    def _vectors(self) -> LabelTable:
        """Read lists with a 0 or 1 for each class."""
        at = self.table.index(self.layout.label_columns[0])
        column = self.table.columns[at]
        if is_list(column):
            lists = column.to_pylist()
        else:
            lists = [parse_vector(cell or "") for cell in column.to_pylist()]
        errors = ErrorCollector(self.path)
        closed = self.layout.classes
        width = len(closed) if closed is not None else len(next(filter(None, lists), ()))
        states = np.full((len(lists), width), self.layout.unlisted, dtype=np.int8)
        for row, values in enumerate(lists):
            meaning = cell_states(values or (), self.layout.values, None)
            found = [meaning[word] for word in values or ()]
            if len(found) != width or None in found:
                errors.add(
                    f"expected a list of {pluralize(width, 'value', 'values')}, one for each class,"
                    f" but got {values!r:.60}.",
                    line=self._line(row),
                )
            else:
                states[row] = [int(state) for state in found if state is not None]
        errors.check()
        rows, columns = np.nonzero(states != self.layout.unlisted)
        names = closed or [str(number) for number in range(width)]
        return self._from_entries(names, rows, columns, states[rows, columns])


def _has(words: pa.DictionaryArray, word: str) -> bool:
    return bool(pc.any(pc.equal(words.dictionary, word)).as_py())


def _spread(lists: pa.ListArray, codes: Ints) -> tuple[Ints, pa.DictionaryArray]:
    """Row and word of every element, where rows share lists by their number."""
    words = lists.flatten().dictionary_encode()
    inner = codes_of(words)
    ends = np.cumsum(lists.value_lengths().to_numpy(zero_copy_only=False))
    at, lengths = entries_of(np.concatenate([[0], ends]).astype(np.int64), codes)
    rows = np.repeat(np.arange(len(codes)), lengths)
    return rows, pa.DictionaryArray.from_arrays(pa.array(inner[at]), words.dictionary)


def _natural_order(name: str) -> tuple[list[str | int], str]:
    """A key by which class2 stands before class10."""
    parts: list[str | int] = list(re.split("([0-9]{1,9})", name))
    parts[1::2] = map(int, parts[1::2])
    return parts, name
