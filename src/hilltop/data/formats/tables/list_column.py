"""One row an image and one column with all its labels: CSV, JSON lines or Parquet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.tables import long, long_values
from hilltop.data.formats.text.cell_values import BLANK, OTHER, cell_kind
from hilltop.data.formats.text.column_roles import find_image_column, image_candidates
from hilltop.data.formats.text.json_shapes import is_object_list
from hilltop.data.formats.text.known_names import PART_NAMES, is_class_name
from hilltop.data.formats.text.label_lists import (
    are_sightings,
    holds_name_lists,
    label_candidates,
    open_rows,
    read_list_rows,
    write_list_rows,
)
from hilltop.data.formats.text.list_patch import patch_list_rows
from hilltop.data.formats.text.sample import (
    is_image_name,
    is_json_lines,
    is_label_name,
    is_one_document,
    peek_columns,
    peek_names,
)
from hilltop.data.formats.text.table_file import TableFile
from hilltop.data.formats.text.totals import drop_footer
from hilltop.data.label_table import LabelTable


def fits(source: LabelSource) -> bool:
    """Whether one column holds images and one their labels: by name, by content, or as said."""
    if not source.is_folder and re.match(r"\s*\[\s*\{", source.head):
        return False  # A JSON document, not a table.
    names, options = peek_names(source), source.options or ReadOptions()
    if options.label_column is None and (long.fits(source) or long_values.fits(source)):
        return False
    if options.label_column is not None:
        return len(names) > 1
    if is_json_lines(source):
        return not is_one_document(source) and any(
            is_label_name(name) or is_object_list(name) for name in names
        )
    if len(names) == 1 and not is_label_name(names[0]):
        return False
    sample = peek_columns(source)
    images = [options.image_column] if options.image_column else image_candidates(sample)
    labels = label_candidates(sample, images[0]) if images else []
    if not labels:
        return any(map(is_image_name, names)) and any(map(is_label_name, names))
    if not source.dialect.header and {str(one).lower() for one in sample[names[0]]} <= PART_NAMES:
        return False  # An import file of a cloud service: a part of the data, a file, its labels.
    if len(names) == 2 and not source.dialect.header and source.dialect.separator == ",":
        return False  # A name, a comma and class numbers.
    # Zeros and ones beside them are classes, unless the labels are known by name and are text.
    binary = [name for name in sample if _is_binary(sample[name])]
    named = [
        name
        for name in labels
        if is_label_name(name) or is_class_name(name) or holds_name_lists(name, sample[name])
    ]
    by_name = [name for name in named if name not in binary]
    if are_sightings(sample, images[0], [name for name in binary if name != images[0]]):
        return True
    return bool(by_name) or not binary or (bool(named) and labels == binary)


def _is_binary(cells: Sequence[Any]) -> bool:
    kinds = {cell_kind(cell) for cell in cells}
    return OTHER not in kinds and kinds != {BLANK}


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read labels from one column.

    A cell is a list, a JSON list as text, or names with a delimiter between them; an empty cell
    has no labels. Columns called ``absent`` and ``unknown``, if there are any, hold classes in
    these states. What the other classes are is left open by the format: ``--unlisted`` says it.
    An image in several rows has the labels of all of them.
    """
    rows = open_rows(source)
    image = find_image_column(rows.path, rows.sample(), options)
    if isinstance(rows, TableFile):
        drop_footer(rows, image)
    return read_list_rows(rows, image, options, format="list_column")


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write JSON lines or Parquet with lists, by the ending, else CSV.

    Cells of a CSV have ``;`` between names, or are JSON lists where names make that unclear.
    Columns ``absent`` and ``unknown`` are written if the table has such entries.
    """
    write_list_rows(table, path, lossy, image_column="image")


FORMAT = Format(
    name="list_column",
    summary="CSV, JSON lines or Parquet with a row for each image and a column of all its labels.",
    priority=Priority.GENERAL,
    fits=fits,
    read=read,
    write=write,
    patch=patch_list_rows,
    suffixes=(".jsonl",),
)
