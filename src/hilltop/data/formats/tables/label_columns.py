"""Tables with several columns of labels: ``image,label1,label2``, or those that the user names.

Also ``primary_label`` beside ``secondary_labels``. A cell holds one label, or a list in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, by_image, of_state
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.cell_values import BLANK, OTHER, cell_kind
from hilltop.data.formats.text.column_roles import Sample, find_image_column, resolve_columns
from hilltop.data.formats.text.csv_text import CsvText
from hilltop.data.formats.text.known_names import is_class_name, is_label_name
from hilltop.data.formats.text.list_text import names_in_text
from hilltop.data.formats.text.record_rows import (
    IMAGE,
    LABELS,
    table_from_records,
)
from hilltop.data.formats.text.sample import peek_columns
from hilltop.data.formats.text.table_file import TableFile, is_binary
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import DataError

_NUMBERED = re.compile(r"(.*?)[\s_.-]*\d{1,3}")
_ORDERED = re.compile(
    r"(?:primary|secondary|tertiary|first|second|third|main|additional|other)[\s_.-]*(.*)",
    re.IGNORECASE,
)


def fits(source: LabelSource) -> bool:
    """Whether the user named several columns, or some like label1 and label2 hold words."""
    sample, options = peek_columns(source), source.options or ReadOptions()
    if options.label_column is not None:
        return bool(sample) and len(_named(source, list(sample), options)) > 1
    return bool(_columns(sample))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the labels of all such columns; blank cells are none."""
    table = TableFile(source)
    sample = table.sample()
    chosen = _named(source, table.names, options) or _columns(sample)
    rest = {name: cells for name, cells in sample.items() if name not in chosen}
    images = table.text(find_image_column(source.path, rest, options))
    cells = [table.text(name, blank=True).to_pylist() for name in chosen]
    records = [
        {IMAGE: name, LABELS: list(dict.fromkeys(word for cell in row for word in _words(cell)))}
        for name, *row in zip(images.to_pylist(), *cells, strict=True)
    ]
    note = f"labels are taken from the columns {', '.join(chosen)}."
    return table_from_records(source.path, records, options, format="label_columns", notes=[note])


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Write labels into the first blank columns of an image's row; only "present" can be said."""
    source = LabelSource(original.path, original.options)
    if is_binary(source):
        return
    text, sample = CsvText(original.path), peek_columns(source)
    chosen = _named(source, list(sample), original.options) or _columns(sample)
    rest = {name: cells for name, cells in sample.items() if name not in chosen}
    image = find_image_column(original.path, rest, original.options)
    wanted = by_image(of_state(changes, State.PRESENT))
    for name, record in text.images(image):
        cells = list(record.cells)
        free = (text.names.index(one) for one in chosen if not cells[text.names.index(one)].strip())
        new = wanted.pop(name, [])
        for change in new:
            place = next(free, None)
            if place is None:
                return  # There is no room, and the file is not written anew.
            cells[place] = change.class_name
        if new:
            text.change(record, cells)
    yield Patched(text.content(), original.options, absents=False)


def _words(cell: str) -> Sequence[str]:
    text = cell.strip()
    listed = names_in_text(text) if text.startswith("[") else None
    return ([text] if text else []) if listed is None else listed


def _named(source: LabelSource, names: Sequence[str], options: ReadOptions) -> list[str]:
    """Several columns that the user named as those of labels; none where it is one."""
    said = options.label_column
    if said is None or said in names or not re.search("[,:]", said):
        return []
    try:
        return resolve_columns(source.path, said, names)
    except DataError:
        return []


def _columns(sample: Sample) -> list[str]:
    """Columns that differ only in a number or an order about a word for labels, and hold words."""
    groups: dict[str, list[str]] = {}
    for name, cells in sample.items():
        found = _NUMBERED.fullmatch(name.strip()) or _ORDERED.fullmatch(name.strip())
        kinds = {cell_kind(cell) for cell in cells}
        if found and (is_label_name(found[1]) or is_class_name(found[1])) and kinds - {BLANK}:
            groups.setdefault(found[1].lower().removesuffix("s"), []).append(name)
    several = [names for names in groups.values() if len(names) > 1]
    if len(several) != 1:
        return []
    words = [name for name in several[0] if OTHER in {cell_kind(cell) for cell in sample[name]}]
    return several[0] if words else []


FORMAT = Format(
    name="label_columns",
    summary="CSV, Excel or Parquet with several columns of one label each: label1, label2.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=ReadOnly("Which of several columns holds a label has a meaning of its own"),
    patch=patch,
)
