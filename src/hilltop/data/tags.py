"""Tags of images as a person or program wants them: CSV, JSON lines, Parquet, any label format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write, replacing
from hilltop.data.formats import named_format, write_labels
from hilltop.data.label_table import LabelTable
from hilltop.data.scores import ScoreTable
from hilltop.data.small_files import format_rows
from hilltop.data.tables.write import check_sheet, workbook
from hilltop.errors import ArgumentError

SEPARATOR = ";"
ENDINGS = (".csv", ".xlsx", ".jsonl", ".parquet")

Said = npt.NDArray[np.bool_]
Row = tuple[str, list[str], list[float], list[str]]


def choose_tags(
    probs: ScoreTable, thresholds: npt.NDArray[np.float64] | float, *, top: int | None = None
) -> Said:
    """Return which labels are said of each image.

    Args:
        probs: Probabilities.
        thresholds: What a probability must exceed, of all classes or each.
        top: Most tags of an image, the most probable ones.
    """
    values = np.asarray(probs.values, dtype=np.float64)
    said: Said = values > thresholds
    if top is not None and top < values.shape[1]:
        order = np.argsort(np.argsort(-np.where(said, values, -1.0), axis=1, kind="stable"), axis=1)
        said &= order < top
    return said


def write_tags(
    path: Path,
    probs: ScoreTable,
    said: Said,
    *,
    labelled: Said | None = None,
    to: str | None = None,
) -> None:
    """Write the tags of every image, the most probable ones first.

    Args:
        path: A .csv or .xlsx (file, tags, probabilities; several in a cell, with ; between them),
            .jsonl or .parquet file (with lists); any file with ``to``.
        probs: Probabilities.
        said: Which labels are said ``(images, classes)``.
        labelled: Which of them are labels that a person gave; they stand in a column of their own,
            and their probability is 1.
        to: A label format to write instead; what is not said is left open.

    Raises:
        ArgumentError: The ending is another one.
        DataError: A class name cannot stand in a cell.
    """
    check_tag_file(path, to=to)
    if to is not None:
        names = [tags for _, tags, _, _ in _rows(probs, said, labelled)]
        table = LabelTable.from_lists(
            probs.images.to_pylist(), names, probs.classes, unlisted="unknown"
        )
        write_labels(table, path, format=to, lossy=True)
    elif path.suffix == ".csv":
        atomic_write(path, format_rows(_names(labelled), _cells(path, probs, said, labelled)))
    elif path.suffix == ".xlsx":
        check_sheet([*probs.images.to_pylist(), *probs.classes], path, len(probs.images), 4)
        cells = list(_cells(path, probs, said, labelled))
        columns = pa.table(
            {
                name: pa.array([row[at] for row in cells], pa.string())
                for at, name in enumerate(_names(labelled))
            }
        )
        atomic_write(path, workbook([columns], columns.schema))
    elif path.suffix == ".jsonl":
        lines = (
            json.dumps(dict(zip(_names(labelled), row, strict=False)), ensure_ascii=False)
            for row in _rows(probs, said, labelled)
        )
        atomic_write(path, "".join(f"{line}\n" for line in lines))
    elif path.suffix == ".parquet":
        kinds = (pa.string(), pa.list_(pa.string()), pa.list_(pa.float64()), pa.list_(pa.string()))
        rows = list(_rows(probs, said, labelled))
        lists = {
            name: pa.array([row[at] for row in rows], kinds[at])
            for at, name in enumerate(_names(labelled))
        }
        with replacing(path) as temporary:
            pq.write_table(pa.table(lists), temporary)


def check_tag_file(path: Path, *, to: str | None = None) -> None:
    """Stop before anything is computed that could not be written.

    Raises:
        ArgumentError: The ending is none of those of tags.
        AmbiguousInputError: There is no such format.
    """
    if to is not None:
        named_format(to)
    elif path.suffix not in ENDINGS:
        raise ArgumentError(
            f"{path}: tags are written to {', '.join(ENDINGS)} files; --to writes any label format,"
            " and an --out that ends in .npy all scores."
        )


def _names(labelled: Said | None) -> tuple[str, ...]:
    names = ("file", "tags", "probabilities")
    return names if labelled is None else (*names, "labelled")


def _rows(probs: ScoreTable, said: Said, labelled: Said | None = None) -> Iterator[Row]:
    """File, tags, their probabilities, and those that a person gave; the most probable first."""
    given = np.zeros(said.shape, dtype=bool) if labelled is None else labelled
    files = probs.images.to_pylist()
    for file, scores, chosen, own in zip(files, probs.values, said, given, strict=True):
        values = np.where(own, 1.0, np.asarray(scores, dtype=np.float64))
        places = np.flatnonzero(chosen)
        places = places[np.argsort(-values[places], kind="stable")]
        tags = [probs.classes[place] for place in places]
        theirs = [probs.classes[place] for place in places if own[place]]
        yield file, tags, [round(float(values[place]), 4) for place in places], theirs


def _cells(
    path: Path, probs: ScoreTable, said: Said, labelled: Said | None
) -> Iterator[tuple[str, ...]]:
    """The cells of every image."""
    for name in probs.classes:
        if SEPARATOR in name:
            raise data_error(
                path,
                f"the class {name!r} cannot stand in a cell with {SEPARATOR!r} between tags."
                " Write a .jsonl or .parquet file, which have lists.",
            )
    for file, tags, values, theirs in _rows(probs, said, labelled):
        numbers = (f"{value:.4f}" for value in values)
        cells = (file, *map(SEPARATOR.join, (tags, numbers, theirs)))
        yield cells[: len(_names(labelled))]
