"""One row an image and one column with all its labels: CSV, JSON lines or Parquet."""

from __future__ import annotations

from pathlib import Path

from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.label_lists import (
    open_rows,
    pick_column,
    read_list_rows,
    write_list_rows,
)
from hilltop.data.formats.text.list_patch import patch_list_rows
from hilltop.data.formats.text.sample import is_image_name, is_label_name, peek_names
from hilltop.data.label_table import LabelTable


def fits(source: LabelSource) -> bool:
    """Whether there is a column known to hold images and one known to hold their labels."""
    names = peek_names(source)
    return any(map(is_image_name, names)) and any(map(is_label_name, names))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read labels from one column.

    A cell is a list, a JSON list as text, or names with a delimiter between them; an empty cell
    has no labels. Columns called ``absent`` and ``unknown``, if there are any, hold classes in
    these states. What the other classes are is left open by the format: ``--unlisted`` says it.
    An image in several rows has the labels of all of them.
    """
    rows = open_rows(source)
    image = pick_column(rows, options.image_column, is_image_name, "--image-column", "image ids")
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
