"""Wide tables: one row an image, one column a class, and 1, 0, -1 or nothing in the cells."""

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

from hilltop.checks import did_you_mean, pluralize
from hilltop.data.assemble import assemble
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.cell_values import (
    BLANK,
    MINUS_ONE,
    ONE,
    OTHER,
    ZERO,
    Kinds,
    cell_kind,
    cell_kinds,
)
from hilltop.data.formats.text.csv_text import CsvText
from hilltop.data.formats.text.express import check_expressible, check_lines
from hilltop.data.formats.text.repetitions import repetitions
from hilltop.data.formats.text.sample import IMAGE_NAMES, is_image_name, peek_columns
from hilltop.data.formats.text.table_file import TableFile, is_parquet
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import OptionNeeded

_SHOWN_PER_COLUMN = 3
_ROWS_AT_ONCE = 1 << 14


def fits(source: LabelSource) -> bool:
    """Whether all columns but that of the images hold nothing but 1, 0, -1 and blanks."""
    columns = peek_columns(source)
    names = list(columns)
    if len(names) < 2:
        return False
    kinds = {name: {cell_kind(cell) for cell in cells} for name, cells in columns.items()}
    other = [name for name in names if OTHER in kinds[name]]
    if len(other) > 1 or not (other or is_image_name(names[0])):
        return False
    image = other[0] if other else names[0]
    classes = [name for name in names if name != image]
    if not is_image_name(image) and any(_is_number(name) for name in classes):
        return False  # The first line is no header but data.
    return any(kinds[name] & {ONE, ZERO, MINUS_ONE} for name in classes)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read a wide CSV or Parquet file.

    1, 1.0 and true mean present. What 0, 0.0, false and blanks (null, NaN) mean is left open by
    the format: ``--unlisted`` says it, for both alike. What -1 means is said by ``--minus-one``.
    Neither is asked for unless such cells occur. Any other value is an error.
    """
    table = TableFile(source)
    image = _image_column(table, options)
    columns = [name for name in table.names if name != image]
    classes = _classes(table, columns, options.class_list())
    cells = _cells(table, columns)
    images = table.text(image).dictionary_encode()
    rows = images.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    counts = np.bincount(np.concatenate(cells), minlength=5)
    silent = len(rows) > 0 and len(classes) > len(columns)
    state_of, unlisted = _meanings(source.path, options, counts, silent)
    # Of an image that stands in several rows every cell counts, so that 1 and 0 contradict.
    repeated = np.bincount(rows, minlength=len(images.dictionary))[rows] > 1
    states = [state_of[kinds] for kinds in cells]
    lines = [np.flatnonzero((state != unlisted) | repeated) for state in states]
    at = np.concatenate(lines)
    number = {name: code for code, name in enumerate(classes)}
    numbers = np.repeat([number[name] for name in columns], [len(line) for line in lines])
    entries = np.concatenate([state[line] for state, line in zip(states, lines, strict=True)])
    return assemble(
        images.dictionary,
        classes,
        rows[at],
        numbers,
        entries,
        unlisted=unlisted,
        source=source.path,
        line_of=lambda entry: table.line_of(int(at[entry])),
        step=_step(source.path, options, counts),
        notes=[*_raw_values(counts), *repetitions(images.dictionary, rows, at, numbers, entries)],
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
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
    with _writer(path, schema, as_parquet) as file:
        for start in range(0, max(1, len(table)), _ROWS_AT_ONCE):
            rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(table)))
            cells = _written(table, rows)
            file.write_table(pa.table([table.images.slice(start, len(rows)), *cells], schema))


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Change the cells of the pairs, in every row of an image that stands in several.

    Absent is -1, unless -1 means unknown in this file: then absents cannot be said.
    """
    if is_parquet(LabelSource(original.path)):
        return
    text = CsvText(original.path)
    image = text.column(original.options.image_column or text.names[0]) or 0
    minus_one = original.options.minus_one
    absents = minus_one != "unknown"
    said = changes if absents else of_state(changes, State.PRESENT)
    if any(change.class_name not in text.names for change in said):
        return
    of_image = by_image(said)
    one = _written_one(text, image)
    for record in text.records:
        wanted = of_image.get(record.cells[image], []) if record.cells else []
        if wanted:
            cells = list(record.cells)
            for change in wanted:
                place = text.names.index(change.class_name)
                cells[place] = one if change.state == State.PRESENT else "-1"
            text.change(record, cells)
    new = absents and minus_one is None and bool(of_state(changes, State.ABSENT))
    options = replace(original.options, minus_one="absent") if new else original.options
    note = "-1 stands for confirmed absents; read the file with --minus-one absent." if new else ""
    yield Patched(text.content(), options, absents, note=note)


def _image_column(table: TableFile, options: ReadOptions) -> str:
    if options.image_column is not None:
        table.column(options.image_column)
        return options.image_column
    first = table.names[0]
    if is_image_name(first):
        return first
    other = [name for name in table.names if (cell_kinds(table.column(name)) == OTHER).any()]
    if other == [first]:
        return first
    raise OptionNeeded(
        f"{table.path}: which column holds the image ids? Pass --image-column with one of"
        f" {', '.join(other or table.names)}."
    )


def _classes(table: TableFile, columns: list[str], closed: list[str] | None) -> list[str]:
    errors = ErrorCollector(table.path)
    if not columns:
        errors.add("there is no column besides the images. Expected one column for each class.")
    for name in columns:
        if not name:
            errors.add("a column has no name. Name it after its class or remove it.", line=1)
        elif closed is not None and name not in closed:
            listed = pluralize(len(closed), "name", "names")
            errors.add(
                f"column {name!r} is not in the class list ({listed})."
                f"{did_you_mean(name, closed)} Remove the column if it is not a class.",
                line=1,
            )
    errors.check()
    return columns if closed is None else closed


def _cells(table: TableFile, columns: list[str]) -> list[Kinds]:
    errors = ErrorCollector(table.path)
    cells = []
    for name in columns:
        kinds = cell_kinds(table.column(name))
        wrong = np.flatnonzero(kinds == OTHER)
        for row in wrong[:_SHOWN_PER_COLUMN]:
            value = table.column(name)[int(row)].as_py()
            more = len(wrong) - _SHOWN_PER_COLUMN
            are = pluralize(more, "more cell of this column is", "more cells of this column are")
            rest = f" {are} like that." if more > 0 else ""
            errors.add(
                f"column {name!r} holds {value!r}, which is none of 1, 0, -1 and blank."
                f" Correct it, or remove the column if it is not a class.{rest}",
                line=table.line_of(int(row)),
            )
        cells.append(kinds)
    errors.check()
    return cells


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace(".", "", 1).isdigit() or not text


def _meanings(
    path: Path, options: ReadOptions, counts: npt.NDArray[np.int64], silent: bool
) -> tuple[Kinds, State]:
    """State of each kind of value, and that of pairs without an entry."""
    minus_one = options.need_minus_one(path) if counts[MINUS_ONE] else State.UNKNOWN
    if options.unlisted is not None or silent or counts[ZERO] or counts[BLANK]:
        unlisted = options.need_unlisted(path, "zeros, blanks and unlisted pairs")
    else:
        unlisted = minus_one
    state_of = np.zeros(5, dtype=np.int8)
    state_of[[ONE, ZERO, MINUS_ONE, BLANK]] = [State.PRESENT, unlisted, minus_one, unlisted]
    return state_of, unlisted


def _step(path: Path, options: ReadOptions, counts: npt.NDArray[np.int64]) -> Step:
    """What was read; with -1, also how often each value stood there and what -1 was taken for."""
    details: dict[str, Any] = {"file": str(path), "format": "wide"}
    if counts[MINUS_ONE]:
        kinds = {"1": ONE, "0": ZERO, "-1": MINUS_ONE, "blank": BLANK}
        details["minus_one"] = options.minus_one
        details["raw_values"] = {value: int(counts[kind]) for value, kind in kinds.items()}
    return Step("read", details)


def _raw_values(counts: npt.NDArray[np.int64]) -> list[str]:
    if not counts[MINUS_ONE]:
        return []
    return [
        f"raw values: 1 in {pluralize(int(counts[ONE]), 'cell', 'cells')}, 0 in {counts[ZERO]},"
        f" -1 in {counts[MINUS_ONE]}, blank in {counts[BLANK]}"
    ]


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
    quoting = pa_csv.WriteOptions(quoting_style="needed")
    return pa_csv.CSVWriter(path, schema, write_options=quoting)


def _written(table: LabelTable, rows: npt.NDArray[np.int64]) -> list[pa.Array]:
    """The cells of some rows, column by column."""
    states = np.asfortranarray(table.dense(rows))
    blanks = table.unlisted != State.ABSENT
    value_of = np.array([-1, 1, 0] if blanks else [0, 1, -1], dtype=np.int8)
    return [
        pa.array(value_of[column], mask=(column == State.UNKNOWN) if blanks else None)
        for column in states.T
    ]


def _written_one(text: CsvText, image: int) -> str:
    """How the file writes a one."""
    for record in text.records:
        for at, cell in enumerate(record.cells):
            if at != image and cell.strip().lower() in ("1", "1.0", "true"):
                return cell
    return "1"


FORMAT = Format(
    name="wide",
    summary="CSV or Parquet with a row for each image and a column for each class: 1, 0, -1.",
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=write,
    patch=patch,
)
