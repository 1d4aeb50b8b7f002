"""Audits made up for tests: candidates with probabilities, and images that the project draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hilltop.audit.decisions.apply import apply_changes, read_answers, verdicts
from hilltop.audit.folder import AuditFolder
from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels

Pair = tuple[str, str, float]


def write_candidates(path: Path, pairs: Sequence[Pair]) -> None:
    ranked = sorted(pairs, key=lambda pair: -pair[2])
    images, classes, probabilities = zip(*ranked, strict=True) if ranked else ((), (), ())
    table = pa.table(
        {
            "image": pa.array(images, pa.string()),
            "class": pa.array(classes, pa.string()),
            "probability": pa.array(probabilities, pa.float32()),
            "rank": pa.array(np.arange(1, len(ranked) + 1)),
        }
    )
    pq.write_table(table, path)


def write_audit(
    path: Path,
    labels: Path,
    *,
    format: str,
    pairs: Sequence[Pair] | None = None,
    options: ReadOptions | None = None,
    images: Path | None = None,
) -> AuditFolder:
    """Write the folder of an audit; without pairs, every unknown pair is a candidate."""
    reading = options or ReadOptions(unlisted="unknown")
    table = read_labels(labels, format=format, options=reading)
    path.mkdir(parents=True)
    write_labels(table, path / "labels.parquet", format="hilltop")
    write_candidates(path / "candidates.parquet", unknown_pairs(table) if pairs is None else pairs)
    folder = AuditFolder(
        path=path,
        labels=labels,
        format=format,
        reading=reading,
        images=images,
        images_total=len(table),
        missing={"value": 12.0, "low": 8.0, "high": 20.0},
        created="2026-01-31T12:00:00+00:00",
    )
    folder.write()
    return folder


def unknown_pairs(table: LabelTable) -> list[Pair]:
    """Every pair that is not known to be present or absent, with made-up probabilities."""
    rng = np.random.default_rng(0)
    names = table.images.to_pylist()
    rows, columns = np.nonzero(table.dense() == State.UNKNOWN)
    chances = np.round(rng.random(len(rows)) ** 3, 4)
    return [
        (names[row], table.classes[column], float(chance))
        for row, column, chance in zip(rows, columns, chances, strict=True)
    ]


def corrected_table(folder: AuditFolder) -> LabelTable:
    """The audited labels with all answers applied."""
    table = folder.table()
    return apply_changes(table, verdicts(table, read_answers(folder)).changes)


def without_images(folder: AuditFolder) -> AuditFolder:
    """The same audit without a folder of images."""
    changed = replace(folder, images=None)
    changed.write()
    return changed
