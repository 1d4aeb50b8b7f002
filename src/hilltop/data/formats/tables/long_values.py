"""Tables with a row for an image, a class and a value of any name: a confidence, 1 or 0, yes or no.

``long`` is Hilltop's own such table, with columns of fixed names.
"""

from __future__ import annotations

from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.tables.long import write
from hilltop.data.formats.text.column_roles import find_image_column, image_candidates
from hilltop.data.formats.text.sample import peek_columns
from hilltop.data.formats.text.table_file import TableFile
from hilltop.data.formats.text.value_column import value_columns
from hilltop.data.formats.text.value_rows import ValueRows, table_from_values
from hilltop.data.label_table import LabelTable


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


FORMAT = Format(
    name="long_values",
    summary="CSV, Excel or Parquet with an image, a class and a value in each row.",
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=write,
)
