"""Scores of any model, from the files people have: with names beside them, or in a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from hilltop.data.array_files import read_npz
from hilltop.data.data_errors import data_error
from hilltop.data.parquet_files import read_parquet_table
from hilltop.data.scores import ScoreTable, Values

TABLE = "a column of image ids, and a column of numbers for each class"
"""What a table of scores has."""


def read_scores(path: Path) -> ScoreTable:
    """Read scores.

    Args:
        path: ``.npy`` as written by predict or train, with its names beside it; ``.npz`` with
            ``ids``, ``classes`` and ``scores``; or a table, ``.csv``, ``.tsv`` or ``.parquet``: a
            column of image ids, and a column for each class. Blank cells are NaN.

    Raises:
        DataError: The file is none of these, or is damaged.
    """
    suffix = path.suffix.lower()
    if suffix not in (".npz", ".csv", ".tsv", ".parquet"):
        return _with_names(path)
    if not path.is_file():
        raise data_error(path, "there is no such file.")
    if suffix == ".npz":
        ids, classes, values = read_npz(path, ("ids", "classes", "scores"))
        if values.shape != (ids.size, classes.size) or values.dtype.kind not in "fiu":
            raise data_error(
                path,
                f"scores must be numbers, {ids.size} ids by {classes.size} classes, but are"
                f" {values.dtype} of shape {values.shape}.",
            )
        return _table(path, ids.astype(str).tolist(), classes.astype(str).tolist(), values)
    return _from_columns(path, _columns(path, suffix))


def _with_names(path: Path) -> ScoreTable:
    names = path.parent / f"{path.name}.names.parquet"
    if path.is_file() and not names.is_file():
        raise data_error(
            path,
            f"there are no names beside these scores, {names.name}. Give a table instead (.csv or"
            f" .parquet): {TABLE}.",
        )
    return ScoreTable.load(path)


def _columns(path: Path, suffix: str) -> pa.Table:
    try:
        if suffix == ".parquet":
            return read_parquet_table(path)
        parse = pacsv.ParseOptions(delimiter="\t" if suffix == ".tsv" else ",")
        first = pacsv.open_csv(path, parse_options=parse).schema.names[:1]
        # Ids that look like numbers are names, too: 007 is not 7.
        convert = pacsv.ConvertOptions(column_types=dict.fromkeys(first, pa.string()))
        return pacsv.read_csv(path, parse_options=parse, convert_options=convert)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(path, f"this table of scores cannot be read: {reason}.") from None


def _from_columns(path: Path, table: pa.Table) -> ScoreTable:
    """The first column has ids, all others must be numbers."""
    if table.num_columns < 2:
        raise data_error(path, f"a table of scores has {TABLE}; this one has one column.")
    names, numbers = table.column_names, []
    if "tags" in names and "probabilities" in names:
        raise data_error(
            path,
            "these are tags, which say nothing of the other classes. Write scores of all of them:"
            " hilltop predict RUN --images DIR --out scores.npy",
        )
    for name, column in zip(names[1:], table.columns[1:], strict=True):
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise data_error(
                path, f"the column {name!r} is not of numbers; a table of scores has {TABLE}."
            )
        numbers.append(column.cast(pa.float64()).to_numpy())
    ids = table.column(0).cast(pa.string()).to_pylist()
    return _table(path, ids, names[1:], np.stack(numbers, axis=1))


def _table(path: Path, ids: Sequence[str], classes: Sequence[str], values: Values) -> ScoreTable:
    for kind, found in (("image", ids), ("class", classes)):
        if None in found or len(set(found)) < len(found):
            raise data_error(path, f"some {kind} names are blank, or stand more than once.")
    return ScoreTable(pa.array(ids, pa.string()), tuple(classes), values)
