"""Pairs to ask about, and answers that came back, as CSV files with names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from hilltop.checks import did_you_mean
from hilltop.data import LabelTable
from hilltop.data.data_errors import data_error, unknown_class
from hilltop.data.files import atomic_write
from hilltop.data.small_files import csv_text, format_rows, parse_rows
from hilltop.missing.answers import PlannedPairs, SampledAnswers

PLAN_COLUMNS = ("image", "class", "probability", "sampled_with")
_WORDS = {"yes": True, "no": False, "unsure": None}


def write_planned_pairs(pairs: PlannedPairs, labels: LabelTable, path: Path) -> None:
    """Write pairs in the order in which they were drawn, completely or not at all."""
    atomic_write(path, format_rows(PLAN_COLUMNS, planned_rows(pairs, labels)))


def planned_rows(pairs: PlannedPairs, labels: LabelTable) -> list[tuple[str, str, str, str]]:
    """The cells of ``PLAN_COLUMNS`` for each pair."""
    names = labels.images.take(pa.array(pairs.rows)).to_pylist()
    classes = [labels.classes[column] for column in pairs.columns.tolist()]
    numbers = zip(pairs.probs.tolist(), pairs.sampled_with.tolist(), strict=True)
    return [
        (name, class_name, f"{prob:.4g}", f"{sampled:.6g}")
        for name, class_name, (prob, sampled) in zip(names, classes, numbers, strict=True)
    ]


def read_sampled_answers(paths: Sequence[Path], labels: LabelTable) -> SampledAnswers:
    """Read answers: files with the columns image, class, answer and, for samples, sampled_with.

    Cells without an answer, and answers ``unsure``, are passed over; of two answers to one pair the
    later one counts.

    Args:
        paths: One file for each sample, in the order in which they were drawn.
        labels: The labels that are judged by.

    Raises:
        DataError: A file is not such a table, or names something that the labels do not have.
    """
    return sampled_answers([(path, csv_text(path)) for path in paths], labels)


def sampled_answers(tables: Sequence[tuple[Path, str]], labels: LabelTable) -> SampledAnswers:
    """Take answers from the text of such files, one for each sample; paths are for messages."""
    rows = {name: row for row, name in enumerate(labels.images.to_pylist())}
    columns = {name: column for column, name in enumerate(labels.classes)}
    found: dict[tuple[int, int], tuple[bool, float, int]] = {}
    asked = [0] * len(tables)
    for batch, (path, text) in enumerate(tables):
        for line, cells in parse_rows(path, text, ("image", "class", "answer")):
            asked[batch] += 1
            if not cells["answer"]:
                continue
            present = _answer(path, line, cells["answer"])
            if present is None:
                continue
            if cells["image"] not in rows:
                name = cells["image"]
                raise data_error(path, f"image {name!r} is not in the labels.", line=line)
            if cells["class"] not in columns:
                raise data_error(path, unknown_class(cells["class"], columns), line=line)
            sampled = _probability(path, line, cells.get("sampled_with") or "")
            pair = rows[cells["image"]], columns[cells["class"]]
            found[pair] = present, sampled, batch
    if not found:
        return SampledAnswers.none()
    pairs = np.array(list(found), dtype=np.int64)
    presents, sampled_with, batches = zip(*found.values(), strict=True)
    return SampledAnswers(
        pairs[:, 0],
        pairs[:, 1],
        np.array(presents),
        np.array(sampled_with),
        np.array(batches),
        tuple(asked),
    )


def _answer(path: Path, line: int, cell: str) -> bool | None:
    word = cell.strip().lower()
    if word not in _WORDS:
        raise data_error(
            path,
            f"answer must be yes, no or unsure, but got {cell!r}.{did_you_mean(word, _WORDS)}",
            line=line,
        )
    return _WORDS[word]


def _probability(path: Path, line: int, cell: str) -> float:
    if not cell:
        return float("nan")
    try:
        prob = float(cell)
    except ValueError:
        prob = -1.0
    if not 0 < prob <= 1:
        raise data_error(
            path,
            f"sampled_with must be greater than 0 and at most 1, but got {cell!r}.",
            line=line,
        )
    return prob
