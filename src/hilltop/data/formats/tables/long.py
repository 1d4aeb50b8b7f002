"""Long tables: one row a statement, with an image, a class and, if it says so, a state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hilltop.data.assemble import assemble
from hilltop.data.data_errors import ErrorCollector
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, of_state
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.csv_text import CsvText
from hilltop.data.formats.text.statements import CLASS, IMAGE, STATE, write_statements
from hilltop.data.formats.text.table_file import TableFile, column_names, is_binary
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_WORDS = {state.name.lower(): state for state in State}


def fits(source: LabelSource) -> bool:
    """Whether the columns are just image, class and perhaps state."""
    return set(column_names(source)) in ({IMAGE, CLASS}, {IMAGE, CLASS, STATE})


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read a long CSV or Parquet file; without a state column every row says "present"."""
    table = TableFile(source)
    images = table.images(options.image_column or IMAGE)
    names = table.text(options.label_column or CLASS).dictionary_encode()
    states = _states(table, options)
    closed = options.class_list()
    classes = sorted(names.dictionary.to_pylist()) if closed is None else closed
    return assemble(
        images.dictionary,
        classes,
        images.indices.to_numpy(zero_copy_only=False),
        table.class_codes(names, classes, options.class_numbers()),
        states,
        unlisted=options.need_unlisted(source.path),
        source=source.path,
        line_of=table.line_of,
        step=Step("read", {"file": str(source.path), "format": "long"}),
    )


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Append a row for each change; a state column is added where absents call for one."""
    if is_binary(LabelSource(original.path)):
        return
    text = CsvText(original.path)
    image = text.column(original.options.image_column or IMAGE)
    name = text.column(original.options.label_column or CLASS)
    state = text.column(STATE)
    if image is None or name is None:
        return
    if state is None and of_state(changes, State.ABSENT):
        state = text.add_column(STATE, "present")
    words = _state_words(text, state, original)
    for change in changes:
        cells = [""] * len(text.names)
        cells[image], cells[name] = change.image, change.class_name
        if state is not None:
            cells[state] = words[change.state]
        text.append(cells)
    yield Patched(text.content(), original.options)


def _states(table: TableFile, options: ReadOptions) -> Any:
    if STATE not in table.names:
        return State.PRESENT
    written = table.text(STATE).dictionary_encode()
    codes = written.indices.to_numpy(zero_copy_only=False)
    meaning, errors = [], ErrorCollector(table.path)
    for code, word in enumerate(written.dictionary.to_pylist()):
        state = _meaning(word.strip().lower(), table.path, options)
        if state is None:
            line = table.line_of(int(np.argmax(codes == code)))
            errors.add(f"state {word!r} is none of present, absent, unknown, 1, 0, -1.", line=line)
        meaning.append(State.UNKNOWN if state is None else state)
    errors.check()
    return np.array(meaning, dtype=np.int8)[codes]


def _meaning(word: str, path: Path, options: ReadOptions) -> State | None:
    if word in _WORDS:
        return _WORDS[word]
    try:
        number = float(word)
    except ValueError:
        return None
    if number == 1:
        return State.PRESENT
    if number == 0:
        return options.need_zero(path)
    return options.need_minus_one(path) if number == -1 else None


def _state_words(text: CsvText, state: int | None, original: Original) -> dict[State, str]:
    """How the file writes states: in words or, where it does so throughout, in numbers."""
    rows = [record.cells for record in text.records if record.cells]
    written = set() if state is None else {cells[state].strip().lower() for cells in rows}
    if not written or written & set(_WORDS):
        return {State.PRESENT: "present", State.ABSENT: "absent"}
    absent = "-1" if original.options.minus_one == "absent" else "absent"
    if original.options.zero == "absent":
        absent = "0"
    return {State.PRESENT: "1", State.ABSENT: absent}


FORMAT = Format(
    name="long",
    summary="CSV or Parquet with a row for each statement: image, class and perhaps state.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write_statements,
    patch=patch,
)
