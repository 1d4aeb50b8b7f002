"""Tables with a row for an image, a class and a value of any name: a confidence, 1 or 0, yes or no.

``long`` is Hilltop's own such table, with columns of fixed names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.patching import Change, Original, Patched, of_state
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.column_roles import find_image_column, image_candidates
from hilltop.data.formats.text.csv_text import CsvText
from hilltop.data.formats.text.sample import peek_columns
from hilltop.data.formats.text.statements import write_statements
from hilltop.data.formats.text.table_file import TableFile, is_binary
from hilltop.data.formats.text.value_column import value_columns
from hilltop.data.formats.text.value_rows import ValueRows, table_from_values
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State


def fits(source: LabelSource) -> bool:
    """Whether there are a column of images, one of single classes and one known to hold values."""
    options = source.options or ReadOptions()
    sample = peek_columns(source)
    if options.label_column or options.class_columns or options.ignore_columns or not sample:
        return False
    images = [options.image_column] if options.image_column else image_candidates(sample)
    return len(images) == 1 and value_columns(sample, images[0]) is not None


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read a value for each pair; below ``--confidence-cut`` nothing is known."""
    table = TableFile(source)
    sample = table.sample()
    image = find_image_column(source.path, sample, options)
    found = value_columns(sample, image)
    if found is None:
        names = [name for name in table.names if name != image]
        found = names[0], names[-1]
    label, value = found
    rows = ValueRows(
        source.path,
        table.text(image),
        table.text(label),
        table.column(value),
        value,
        table.line_of,
        label_column=label,
    )
    note = f"classes are taken from the column {label!r}, and their values from {value!r}."
    return table_from_values(rows, options, format="long_values", notes=[note])


def patch(original: Original, changes: Sequence[Change]) -> Iterator[Patched]:
    """Change the value of a pair that has a row, or append one: 1, or 0 where it means absent."""
    source = LabelSource(original.path, original.options)
    if is_binary(source):
        return
    text, sample = CsvText(original.path), peek_columns(source)
    image = find_image_column(original.path, sample, original.options)
    found = value_columns(sample, image)
    places = [text.column(name) for name in (image, *(found or ()))]
    if len(places) < 3 or None in places:
        return
    absents = original.options.zero == "absent"
    wanted = {
        (change.image, change.class_name): "1" if change.state == State.PRESENT else "0"
        for change in (changes if absents else of_state(changes, State.PRESENT))
    }
    at_image, at_name, at_value = (place or 0 for place in places)
    there = set()
    for record in text.records:
        pair = (record.cells[at_image], record.cells[at_name]) if record.cells else ("", "")
        if pair in wanted:
            cells = list(record.cells)
            cells[at_value] = wanted[pair]
            text.change(record, cells)
            there.add(pair)
    for pair in [pair for pair in wanted if pair not in there]:
        cells = [""] * len(text.names)
        cells[at_image], cells[at_name], cells[at_value] = *pair, wanted[pair]
        text.append(cells)
    yield Patched(text.content(), original.options, absents)


FORMAT = Format(
    name="long_values",
    summary="CSV, Excel or Parquet with an image, a class and a value in each row.",
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=write_statements,
    patch=patch,
)
