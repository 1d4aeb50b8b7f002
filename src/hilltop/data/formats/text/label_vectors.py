"""Lists of zeros and ones, one for each class, where other files have lists of labels."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.data.assemble import assemble
from hilltop.data.data_errors import data_error
from hilltop.data.formats.options import ReadOptions
from hilltop.data.formats.text.cell_values import KINDS, Kinds, are_bits, cell_kinds
from hilltop.data.formats.text.list_text import names_in_text
from hilltop.data.formats.text.names_beside import names_of_classes, numbered_names
from hilltop.data.formats.text.repetitions import repetitions
from hilltop.data.formats.text.separators import JSON_TEXT
from hilltop.data.formats.text.wide_cells import cell_states
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable

_FEWEST, _FEW = 2, 10
_VALUES = frozenset(["0", "1", "-1", "0.0", "1.0", "-1.0", "true", "false"])


class NumberedRows(Protocol):
    """Rows of a file, for messages and the history."""

    path: Path
    notes: list[str]

    def line_of(self, row: int) -> int:
        """Line of a row."""


def label_vectors(cells: pa.Array, mark: str | None) -> Kinds | None:
    """Return the kinds of values, a row an image and a column a class; None if these are labels.

    Lists of labels never hold a label twice. Where all lists are of one length, hold nothing but
    0, 1 and -1, and one holds a value twice, they are values for each class.
    """
    lists = _lists(cells, mark)
    if lists is None or not len(lists) or lists.null_count:
        return None
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    width = int(lengths[0])
    if width < _FEWEST or (lengths != width).any():
        return None
    values = lists.flatten()
    if values.null_count or not _are_values(values):
        return None
    kinds = cell_kinds(values).reshape(-1, width)
    twice = any(len(set(row.tolist())) < width for row in kinds)
    return kinds if twice else None


def _lists(cells: pa.Array, mark: str | None) -> pa.Array | None:
    if pa.types.is_list(cells.type) or pa.types.is_large_list(cells.type):
        return cells
    if pa.types.is_fixed_size_list(cells.type):
        return cells.cast(pa.list_(cells.type.value_type))
    if cells.type != pa.string() or not len(cells):
        return None
    if mark is None:
        few = cells[:_FEW].to_pylist()  # most columns hold names, however many rows there are
        texts = cells.to_pylist() if all((cell or "").strip().isdigit() for cell in few) else []
        if not are_bits(texts):
            return None
        return pa.array([list(text.strip()) for text in texts], pa.list_(pa.string()))
    first = _words(cells[0].as_py() or "", mark)
    if not first or not set(first) <= _VALUES:
        return None
    words = [_words(cell or "", mark) for cell in cells.to_pylist()]
    return pa.array(words, pa.list_(pa.string()))


def _words(cell: str, mark: str) -> list[str] | None:
    if mark == JSON_TEXT:
        return names_in_text(cell.strip())
    return cell.split() if mark == " " else [word.strip() for word in cell.split(mark)]


def _are_values(values: pa.Array) -> bool:
    if pa.types.is_boolean(values.type):
        return True
    words = pc.unique(values).to_pylist()
    return all(str(word).lower() in _VALUES for word in words)


def table_from_vectors(
    rows: NumberedRows,
    images: pa.DictionaryArray,
    kinds: Kinds,
    options: ReadOptions,
    *,
    format: str,
    classes: list[str] | None = None,
) -> LabelTable:
    """Build a table from a value for each class; ``--zero`` says what 0 means.

    Args:
        rows: The file.
        images: The image of each row.
        kinds: What the values are.
        options: What the user said.
        format: Name of the format.
        classes: Names of the classes, where the file has them and the user said none.
    """
    names, notes = names_of_classes(rows.path, options)
    names = names or classes
    width = kinds.shape[1]
    if names is not None and len(names) != width:
        raise data_error(
            rows.path,
            f"there are {width} values for each image, but {len(names)} names of classes.",
        )
    counts = np.bincount(kinds.ravel(), minlength=KINDS)
    state_of, unlisted = cell_states(rows.path, options, counts, False)
    states = state_of[kinds]
    numbers: npt.NDArray[np.int64] = images.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    repeated = np.bincount(numbers, minlength=len(images.dictionary))[numbers] > 1
    at, columns = np.nonzero((states != unlisted) | repeated[:, None])
    entries = states[at, columns]
    return assemble(
        images.dictionary,
        names or numbered_names(width),
        numbers[at],
        columns,
        entries,
        unlisted=unlisted,
        source=rows.path,
        line_of=lambda entry: rows.line_of(int(at[entry])),
        step=Step("read", {"file": str(rows.path), "format": format}),
        notes=[
            *rows.notes,
            *notes,
            f"every image has a list of {width} values, one for each class.",
            *repetitions(images.dictionary, numbers, at, columns, entries),
        ],
    )
