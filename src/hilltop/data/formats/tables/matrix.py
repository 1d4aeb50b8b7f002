"""NumPy arrays: a row an image and a column a class, with 1, 0, -1 or nan.

Names of images are taken from the array beside it: ``train_images.npy`` of ``train_labels.npy``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from hilltop.data.array_files import read_npy
from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.data.formats.base import Format, Priority
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.cell_values import OTHER, cell_kinds
from hilltop.data.formats.text.express import check_expressible
from hilltop.data.formats.text.label_vectors import table_from_vectors
from hilltop.data.formats.text.names_beside import write_names_beside
from hilltop.data.formats.text.record_rows import IMAGE
from hilltop.data.formats.text.table_file import row_numbers
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State

_MAGIC = b"\x93NUMPY"
LABELS = "labels"


def fits(source: LabelSource) -> bool:
    """Whether this is an array file."""
    if source.is_folder or source.suffix != ".npy":
        return False
    with source.path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


class _Rows:
    """What messages and history need to know of an array."""

    def __init__(self, path: Path, notes: list[str]) -> None:
        """Take the path and what was noticed."""
        self.path, self.notes = path, notes

    def line_of(self, row: int) -> int:
        """Return the number of a row, counted from 1."""
        return row + 1


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read an array; rows without names beside them have their numbers as ids."""
    values = read_npy(source.path)
    if values.ndim != 2 or values.dtype.kind not in "biuf" or not values.shape[1]:
        raise data_error(
            source.path,
            f"expected a row for each image and a number for each class, but got shape"
            f" {values.shape} of {values.dtype}.",
        )
    kinds = cell_kinds(pa.array(values.ravel().astype(np.float64))).reshape(values.shape)
    wrong = np.argwhere(kinds == OTHER)
    if len(wrong):
        row, column = wrong[0]
        raise data_error(
            source.path,
            f"row {row}, column {column} holds {values[row, column]}, which is none of 1, 0, -1"
            " and nan.",
        )
    names, notes = _images(source.path, len(values))
    rows = _Rows(source.path, notes)
    return table_from_vectors(rows, names.dictionary_encode(), kinds, options, format="matrix")


def write(table: LabelTable, path: Path, lossy: bool) -> None:
    """Write 1 for present, 0 for absent and nan for unknown; names go to files beside it."""
    check_expressible(table, path, lossy, unlisted=(State.UNKNOWN, State.ABSENT))
    if not len(table) or not table.classes or path.suffix != ".npy" or LABELS not in path.name:
        raise data_error(
            path, "this format needs images, classes, and a name such as train_labels.npy."
        )
    states = table.dense()
    values = np.where(states == State.PRESENT, 1.0, np.where(states == State.ABSENT, 0.0, np.nan))
    write_names_beside(path, table.classes, used=len(table.classes))
    for target, content in (
        (path, values.astype(np.float32)),
        (_beside(path), np.array(table.images.to_pylist())),
    ):
        with replacing(target) as temporary, temporary.open("wb") as file:
            np.save(file, content, allow_pickle=False)


def _beside(path: Path) -> Path:
    return path.with_name(path.name.replace(LABELS, f"{IMAGE}s"))


def _images(path: Path, count: int) -> tuple[pa.Array, list[str]]:
    beside = _beside(path)
    if beside == path or not beside.is_file():
        return row_numbers(count), []
    names = read_npy(beside)
    if names.ndim != 1 or names.dtype.kind not in "USiu" or len(names) != count:
        raise data_error(beside, f"expected {count} names of images, as in {path.name}.")
    try:
        words = [one.decode() if isinstance(one, bytes) else str(one) for one in names.tolist()]
        return pa.array(words, pa.string()), [f"the images are those of {beside.name}."]
    except UnicodeError:
        raise data_error(beside, "a name of an image is not UTF-8.") from None


FORMAT = Format(
    name="matrix",
    summary="A NumPy array (.npy) of 1, 0, -1 and nan, a row an image and a column a class.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=write,
)
