"""Long tables: one row a statement, with an image, a class and, if it says so, a state."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from hilltop.data.assemble import assemble
from hilltop.data.faults import Faults, fault
from hilltop.data.formats.base import Format, ReadOptions, Source, read_lines
from hilltop.data.formats.express import check_expressible
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.errors import DataError

IMAGE, CLASS, STATE = "image", "class", "state"
_WORDS = {state.name.lower(): state for state in State}


def fits(source: Source) -> bool:
    """Whether the header has just the columns image, class and perhaps state."""
    return _columns(source) in ({IMAGE, CLASS}, {IMAGE, CLASS, STATE})


def read(source: Source, options: ReadOptions) -> LabelTable:
    """Read a long CSV or Parquet file; without a state column every row says "present"."""
    content = _parquet(source) if source.suffix == ".parquet" else _csv(source)
    images = _text(source.path, content, options.image_column or IMAGE).dictionary_encode()
    names = _text(source.path, content, options.label_column or CLASS).dictionary_encode()
    states = _states(source, content, options)
    classes, columns = _class_codes(source, names, options.class_list())
    return assemble(
        images.dictionary,
        classes,
        images.indices.to_numpy(zero_copy_only=False),
        columns,
        states,
        unlisted=options.need_unlisted(source.path),
        source=source.path,
        lines=np.arange(len(images)) + 2,
        step=Step("read", {"file": str(source.path), "format": "long"}),
    )


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write one row an entry; images without any entry cannot be expressed."""
    check_expressible(table, path, lossy, images_without_entries=False, unused_classes=False)
    words = pa.array([state.name.lower() for state in sorted(State)], pa.string())
    content = pa.table(
        {
            IMAGE: table.images.take(pa.array(table.rows)),
            CLASS: pa.array(table.classes, pa.string()).take(pa.array(table.columns)),
            STATE: words.take(pa.array(table.states)),
        }
    )
    if path.suffix.lower() == ".parquet":
        pq.write_table(content, path)
    else:
        pa_csv.write_csv(content, path, pa_csv.WriteOptions(quoting_style="needed"))


def _columns(source: Source) -> set[str]:
    if source.is_folder:
        return set()
    if source.suffix == ".parquet":
        try:
            return set(pq.read_schema(source.path).names)
        except (pa.ArrowInvalid, OSError):
            return set()
    return set(source.header)


def _parquet(source: Source) -> pa.Table:
    try:
        return pq.read_table(source.path)
    except (pa.ArrowInvalid, OSError) as error:
        raise fault(source.path, f"this Parquet file cannot be read: {error}.") from None


def _csv(source: Source) -> pa.Table:
    """Read fast; if that fails, read again line by line to say where and why."""
    convert = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(source.header, pa.string()), strings_can_be_null=False
    )
    parse = pa_csv.ParseOptions(newlines_in_values='"' in source.head)
    try:
        return pa_csv.read_csv(source.path, parse_options=parse, convert_options=convert)
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return _csv_line_by_line(source)


def _csv_line_by_line(source: Source) -> pa.Table:
    faults, rows = Faults(source.path), []
    lines = read_lines(source.path)
    if not lines:
        raise fault(source.path, "the file is empty.")
    reader = csv.reader((f"{line}\n" for _, line in lines), strict=True)
    header: list[str] = []
    try:
        for cells in reader:
            if not header:
                header = cells
            elif cells and len(cells) != len(header):
                faults.add(
                    f"expected {len(header)} cells as in the header, but got {len(cells)}."
                    " Quote cells that contain commas.",
                    line=reader.line_num,
                )
            elif cells:
                rows.append(cells)
    except csv.Error as error:
        faults.add(f"this line is not valid CSV: {error}.", line=reader.line_num)
    faults.check()
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    return pa.table([pa.array(column, pa.string()) for column in columns], names=header)


def _text(path: Path, content: pa.Table, name: str) -> pa.Array:
    if name not in content.column_names:
        raise fault(
            path, f"there is no column {name!r}; the columns are {', '.join(content.column_names)}."
        )
    column = content.column(name).combine_chunks()
    try:
        column = column.cast(pa.string())
    except pa.ArrowInvalid:
        raise fault(path, f"column {name!r} must hold text, but holds {column.type}.") from None
    empty = pc.fill_null(pc.equal(column, ""), True)
    faults = Faults(path)
    for row in np.flatnonzero(empty.to_numpy(zero_copy_only=False)):
        faults.add(f"column {name!r} is empty. Fill it in or remove the line.", line=int(row) + 2)
    faults.check()
    return column


def _class_codes(
    source: Source, names: pa.DictionaryArray, closed: list[str] | None
) -> tuple[list[str], npt.NDArray[Any]]:
    codes = names.indices.to_numpy(zero_copy_only=False)
    found = names.dictionary.to_pylist()
    classes = sorted(found) if closed is None else closed
    number = {name: at for at, name in enumerate(classes)}
    new = np.array([number.get(name, -1) for name in found], dtype=np.int64)
    columns = new[codes] if len(codes) else codes.astype(np.int64)
    faults = Faults(source.path)
    for row in np.flatnonzero(columns < 0):
        faults.add(
            f"class {found[codes[row]]!r} is not in the class list ({len(classes)} names).",
            line=int(row) + 2,
        )
    faults.check()
    return classes, columns


def _states(source: Source, content: pa.Table, options: ReadOptions) -> Any:
    if STATE not in content.column_names:
        return State.PRESENT
    written = _text(source.path, content, STATE).dictionary_encode()
    meaning, faults = [], Faults(source.path)
    codes = written.indices.to_numpy(zero_copy_only=False)
    for code, word in enumerate(written.dictionary.to_pylist()):
        state = _meaning(word.strip().lower(), source.path, options)
        if state is None:
            line = int(np.argmax(codes == code)) + 2
            faults.add(f"state {word!r} is none of present, absent, unknown, 1, 0, -1.", line=line)
        meaning.append(State.UNKNOWN if state is None else state)
    faults.check()
    return np.array(meaning, dtype=np.int8)[codes] if len(codes) else np.zeros(0, dtype=np.int8)


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
        return options.need_unlisted(path, "zeros and pairs that are not listed")
    return options.need_minus_one(path) if number == -1 else None


FORMAT = Format(
    name="long",
    summary="CSV or Parquet with a row for each statement: image, class and perhaps state.",
    fits=fits,
    read=read,
    write=write,
)
