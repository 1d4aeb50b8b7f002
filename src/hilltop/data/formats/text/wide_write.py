"""Writing wide tables, and patching the cells of one that is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.arrow_files import CSV_STYLE
from hilltop.data.formats.text.cell_codes import cell_meaning
from hilltop.data.formats.text.cell_values import (
    MINUS_ONE,
    ONE,
    SAID_ABSENT,
    ZERO,
    CellMeaning,
)
from hilltop.data.formats.text.column_roles import find_image_column
from hilltop.data.formats.text.csv_text import CsvText
from hilltop.data.formats.text.express import check_expressible, check_lines
from hilltop.data.formats.text.known_names import IMAGE_NAMES
from hilltop.data.formats.text.sample import peek_columns
from hilltop.data.formats.text.table_file import is_binary
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_ROWS_AT_ONCE = 1 << 14


def write_wide(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write 1 for present, and so that other tools do not mistake the rest.

    If unlisted pairs are unknown, unknown is a blank and absent is -1: read it back with
    ``--unlisted unknown --minus-one absent``. If they are absent, absent is 0 and unknown is -1:
    read it back with ``--unlisted absent --minus-one unknown``.
    """
    as_parquet = path.suffix.lower() == ".parquet"
    check_expressible(table, path, lossy, unlisted=(State.UNKNOWN, State.ABSENT))
    check_lines(table, path, classes=False)
    _check_names(table, path, as_parquet)
    free = [name for name in ("image", *sorted(IMAGE_NAMES)) if name not in table.classes]
    names = [free[0], *table.classes]
    schema = pa.schema([pa.field(names[0], pa.string()), *((n, pa.int8()) for n in names[1:])])
    with replacing(path) as temporary, _writer(temporary, schema, as_parquet) as file:
        for start in range(0, max(1, len(table)), _ROWS_AT_ONCE):
            rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(table)))
            cells = _written(table, rows)
            file.write_table(pa.table([table.images.slice(start, len(rows)), *cells], schema))


def patch_wide(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Change the cells of the pairs, in every row of an image that stands in several.

    Absent is written as the file says it: 0 or -1. A file that says it with neither gets -1 or,
    where -1 has another meaning, 0 if there is none yet; otherwise absents cannot be said.
    """
    source = LabelSource(original.path, original.options)
    if is_binary(source):
        return
    text = CsvText(original.path)
    named = find_image_column(original.path, peek_columns(source), original.options)
    classes = {*original.table.classes} - {named}
    written = _notation(text, classes, cell_meaning(original.options))
    absent, options = _absent(original.options, written)
    said = changes if absent else of_state(changes, State.PRESENT)
    if any(change.class_name not in text.names for change in said):
        return
    of_image = by_image(said)
    for name, record in text.images(named):
        wanted = of_image.get(name, [])
        if wanted:
            cells = list(record.cells)
            for change in wanted:
                place = text.names.index(change.class_name)
                cells[place] = written.get(ONE, "1") if change.state == State.PRESENT else absent
            text.change(record, cells)
    new = options != original.options and bool(of_state(changes, State.ABSENT))
    flag = "--minus-one absent" if absent == "-1" else "--zero absent"
    note = f"{absent} stands for confirmed absents; read the file with {flag}." if new else ""
    yield Patched(text.content(), options if new else original.options, bool(absent), note=note)


def _notation(text: CsvText, classes: set[str], meaning: CellMeaning) -> dict[int, str]:
    """How the columns of some classes write 1, 0 and -1, as far as they do."""
    found: dict[int, str] = {}
    for record in text.records:
        for name, cell in zip(text.names, record.cells, strict=False):
            if name in classes and cell:
                found.setdefault(meaning.kind(cell), cell)
    return found


def _absent(options: ReadOptions, written: dict[int, str]) -> tuple[str, ReadOptions]:
    """How to write "absent", nothing if it cannot be said, and how to read the file then."""
    if SAID_ABSENT in written:
        return written[SAID_ABSENT], options
    if ZERO in written and (options.zero or options.unlisted) == "absent":
        return written[ZERO], options
    if options.minus_one == "absent":
        return written.get(MINUS_ONE, "-1"), options
    if options.minus_one is None:
        return "-1", replace(options, minus_one="absent")
    return ("", options) if ZERO in written else ("0", _with_zeros(options))


def _with_zeros(options: ReadOptions) -> ReadOptions:
    """The file has blanks too from now on, which were settled by the short form before."""
    return replace(options, zero="absent", blank=options.blank or options.unlisted)


def _check_names(table: LabelTable, path: Path, as_parquet: bool) -> None:
    if not table.classes:
        raise data_error(path, "this format cannot express a table without classes.")
    if set(table.classes) >= IMAGE_NAMES:
        raise data_error(
            path, f"all names for the image column are classes: {sorted(IMAGE_NAMES)}."
        )
    spaced = [name for name in table.classes if name != name.strip()]
    if spaced and not as_parquet:
        raise data_error(
            path,
            f"a CSV header cannot keep the spaces around class {spaced[0]!r}. Write Parquet.",
        )


def _writer(path: Path, schema: pa.Schema, as_parquet: bool) -> Any:
    if as_parquet:
        return pq.ParquetWriter(path, schema)
    return pa_csv.CSVWriter(path, schema, write_options=CSV_STYLE)


def _written(table: LabelTable, rows: npt.NDArray[np.int64]) -> list[pa.Array]:
    """The cells of some rows, column by column."""
    states = np.asfortranarray(table.dense(rows))
    blanks = table.unlisted != State.ABSENT
    value_of = np.array([-1, 1, 0] if blanks else [0, 1, -1], dtype=np.int8)
    return [
        pa.array(value_of[column], mask=(column == State.UNKNOWN) if blanks else None)
        for column in states.T
    ]
