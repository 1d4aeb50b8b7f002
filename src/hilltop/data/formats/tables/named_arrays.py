"""Files of several arrays with names, one of which holds the labels: MATLAB's .mat, NumPy's .npz.

Lists of text beside the labels name classes or images where they are as long as these are many. In
MATLAB the classes are often the rows; other arrays and lists show which of the two is meant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hilltop.data.array_files import check_memory, read_npz_all
from hilltop.data.data_errors import data_error
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.cell_codes import cell_meaning
from hilltop.data.formats.text.cell_values import OTHER, cell_kinds
from hilltop.data.formats.text.label_vectors import table_from_vectors
from hilltop.data.formats.text.table_file import row_numbers
from hilltop.data.label_table import LabelTable
from hilltop.errors import DataError, MissingExtra, OptionNeeded

_NAMES = ("label", "target", "gnd", "groundtruth", "truth", "tag", "annot")
_SHORT = ("y", "l", "t", "yt", "y_full")
_CUT = 0.5
_MOST_DEPTH = 4
_WIDTHS = {"double": 8, "single": 4, "char": 4, "int64": 8, "uint64": 8, "int32": 4, "uint32": 4}
"""Bytes of a number by what MATLAB calls it; at least one of all others."""
Matrix = npt.NDArray[Any]


@dataclass
class _Arrays:
    """What a file holds: matrices of numbers, and lists of names, by what they are called."""

    path: Path
    matrices: dict[str, Matrix] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def line_of(self, row: int) -> int:
        """Return the number of a row, counted from 1."""
        return row + 1

    def add(self, name: str, value: Any, depth: int = 0) -> None:
        """Take one array; of a struct, its parts."""
        if hasattr(value, "toarray"):
            check_memory(self.path, value.shape[0] * value.shape[1] * value.dtype.itemsize)
            value = value.toarray()
        if not isinstance(value, np.ndarray) or depth > _MOST_DEPTH:
            return
        if value.dtype.names and value.size == 1:
            for part in value.dtype.names:
                self.add(f"{name}.{part}", value.ravel()[0][part], depth + 1)
        elif value.dtype == object and value.size == 1 and not _words(value):
            self.add(name, value.ravel()[0], depth + 1)
        elif value.dtype == object and not _words(value) and value.size <= _MOST_DEPTH:
            for number, part in enumerate(value.ravel()):
                self.add(f"{name}.{number}", part, depth + 1)
        elif value.dtype.kind in "biuf" and value.ndim == 2:
            self.matrices[name] = value
        elif _words(value):
            self.lists[name] = _words(value)

    def candidates(self) -> list[str]:
        """Matrices of 0, 1 and -1; those that are called labels, if there are any."""
        found = [name for name, values in self.matrices.items() if _is_labels(values)]
        called = [name for name in found if _is_called(name)]
        return called or found


def fits(source: LabelSource) -> bool:
    """Whether the ending and the first bytes are those of MATLAB's or NumPy's files."""
    if source.is_folder:
        return False
    with source.path.open("rb") as file:
        start = file.read(8)
    mat = source.suffix == ".mat" and (start.startswith(b"MATLAB") or start[1:4] == b"HDF")
    return mat or (source.suffix == ".npz" and start.startswith(b"PK"))


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read the matrix of labels; ``--label-column`` names it where several could be."""
    arrays = _load(source)
    name = _chosen(arrays, options)
    values = arrays.matrices[name]
    if _is_turned(arrays, values):
        values = values.T
        arrays.notes.append(f"the rows of {name!r} are the classes, and its columns the images.")
    elif values.shape[1] > values.shape[0]:
        arrays.notes.append(f"{name!r} has more classes than images. Is it turned over?")
    kinds = cell_kinds(pa.array(values.ravel().astype(np.float64)), cell_meaning(options))
    kinds = kinds.reshape(values.shape)
    if (kinds == OTHER).any():
        raise data_error(
            source.path, f"{name!r} holds other numbers than 1, 0 and -1. Expected labels."
        )
    images = _named(arrays, name, len(values), "images") or row_numbers(len(values)).to_pylist()
    classes = _named(arrays, name, values.shape[1], "classes")
    coded = pa.array(images, pa.string()).dictionary_encode()
    return table_from_vectors(arrays, coded, kinds, options, format="named_arrays", classes=classes)


def _are_shares(values: Matrix) -> bool:
    """Whether a matrix holds numbers from 0 to 1, as votes of annotators or confidences."""
    return (
        bool(values.size)
        and bool(np.isfinite(values).all() and (values >= 0).all())
        and bool((values <= 1).all())
    )


def _load(source: LabelSource) -> _Arrays:
    arrays = _Arrays(source.path)
    for name, value in (
        _read_mat(source.path) if source.suffix == ".mat" else read_npz_all(source.path)
    ):
        arrays.add(name, value)
    return arrays


def _read_mat(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as file:
        start = file.read(128)
        if start[1:4] == b"HDF" or b"MATLAB 7.3" in start:
            raise data_error(
                path, "this is MATLAB 7.3 (HDF5). Save it again with: save(name, '-v7'), or as CSV."
            )
    try:
        from scipy.io import loadmat, whosmat
    except ImportError as error:
        raise MissingExtra("Reading a .mat file", error.name, "sklearn") from None
    try:
        sizes = [
            math.prod(shape) * _WIDTHS.get(kind, 1)
            for _, shape, kind in whosmat(path)
            if kind != "sparse"
        ]
        check_memory(path, sum(sizes))
        content = loadmat(path)
    except DataError:
        raise
    except Exception as error:  # scipy passes on whatever its parsers raise
        reason = str(error).partition("\n")[0].rstrip(".")[:100]
        raise data_error(path, f"this .mat file cannot be read: {reason}.") from None
    yield from ((name, value) for name, value in content.items() if not name.startswith("__"))


def _chosen(arrays: _Arrays, options: ReadOptions) -> str:
    """The matrix of labels: as the user says, or the only one that can be."""
    shown = ", ".join(f"{name} {one.shape}" for name, one in [*arrays.matrices.items()][:12])
    if options.label_column is not None:
        if options.label_column in arrays.matrices:
            return options.label_column
        raise data_error(
            arrays.path,
            f"there is no matrix {options.label_column!r}. There are: {shown or 'none'}.",
        )
    found = arrays.candidates()
    if len(found) == 1:
        return found[0]
    shares = [name for name, values in arrays.matrices.items() if _are_shares(values)]
    if not found and len(shares) == 1:
        command = ready_command(
            arrays.path, options, label_column=shares[0], confidence_cut=f"{_CUT:g}"
        )
        above = int(np.count_nonzero(arrays.matrices[shares[0]] >= _CUT))
        raise OptionNeeded(
            f"{arrays.path}: {shares[0]!r} holds shares between 0 and 1. --confidence-cut says from"
            f" which number on they mean present, below it unknown (with {_CUT:g}: {above:,} of"
            f" {arrays.matrices[shares[0]].size:,} cells), for example: {command}"
        )
    if not found:
        raise data_error(
            arrays.path,
            f"no array in here holds 0 and 1 for images and classes. There are: {shown or 'none'}.",
        )
    command = ready_command(arrays.path, options, label_column=found[0])
    raise OptionNeeded(
        f"{arrays.path}: which array holds the labels? Pass --label-column with one of"
        f" {', '.join(found)}, for example: {command}"
    )


def _is_labels(values: Matrix) -> bool:
    if min(values.shape) < 2:
        return False
    seen = np.unique(values[np.isfinite(values)] if values.dtype.kind == "f" else values)
    return 1 in seen and len(seen) > 1 and bool(np.isin(seen, (-1, 0, 1)).all())


def _is_called(name: str) -> bool:
    low = name.lower().rpartition(".")[2]
    return low in _SHORT or any(word in low for word in _NAMES)


def _is_turned(arrays: _Arrays, values: Matrix) -> bool:
    """Whether rows are classes: by lists of names, by features, or by parts of other lengths."""
    rows, columns = values.shape
    lengths = {len(names) for names in arrays.lists.values()}
    if (rows in lengths) != (columns in lengths) and rows != columns:
        named_rows = next(
            (name for name, names in arrays.lists.items() if len(names) in (rows, columns)), ""
        )
        of_classes = not any(word in named_rows.lower() for word in ("image", "img", "file", "id"))
        return (rows in lengths) == of_classes
    others = [one for name, one in arrays.matrices.items() if not _is_labels(one)]
    if any(one.shape[0] in (rows, columns) for one in others) and rows != columns:
        return not any(one.shape[0] == rows for one in others)
    alike = [one.shape for one in arrays.matrices.values() if _is_labels(one)]
    same = [shape for shape in alike if shape[0] == rows]
    return len(same) > 1 and len({shape[1] for shape in same}) > 1 and rows < columns


def _named(arrays: _Arrays, label: str, count: int, kind: str) -> list[str] | None:
    """A list of as many different names; of several, the one whose name begins like the labels."""
    fitting = {
        name: names
        for name, names in arrays.lists.items()
        if len(names) == count and len(set(names)) == count and all(names)
    }
    begins = label.lower().partition("_")[0]
    best = sorted(fitting, key=lambda name: not name.lower().startswith(begins))
    if best:
        arrays.notes.append(f"{kind} are those of {best[0]!r}.")
    return fitting[best[0]] if best else None


def _words(value: Matrix) -> list[str]:
    """The texts in an array of texts, or in a cell array of MATLAB; none if it holds others."""
    if value.dtype.kind == "U" and value.ndim <= 2:
        return [str(one).strip() for one in value.ravel()]
    if value.dtype.kind == "S":
        return [one.decode("utf-8", "replace").strip() for one in value.ravel().tolist()]
    if value.dtype != object or not value.size:
        return []
    found = []
    for one in value.ravel():
        if not isinstance(one, np.ndarray) or one.dtype.kind != "U" or one.size > 1:
            return []
        found.append(str(one.ravel()[0]).strip() if one.size else "")
    return found


FORMAT = Format(
    name="named_arrays",
    summary="MATLAB's .mat or NumPy's .npz with a matrix of labels among other arrays.",
    priority=Priority.SPECIFIC,
    fits=fits,
    read=read,
    write=ReadOnly("Such files hold features and other arrays"),
)
