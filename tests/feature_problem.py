"""A problem that a linear head can learn, as files: features, and labels to learn and judge by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hilltop.data import LabelTable, State, write_labels


def write_problem(
    folder: Path,
    classes: Sequence[str],
    *,
    train: int,
    val: int,
    features: int,
    above: float,
    seed: int,
) -> Path:
    """Write features.npz, and complete labels in train.parquet and val.parquet.

    Args:
        folder: Where they are written.
        classes: Names of the classes.
        train: Images to train on.
        val: Images to validate on.
        features: Width of the features.
        above: A label is present where a random direction of the features is above this.
        seed: Of the features and directions.
    """
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(train + val, features)).astype(np.float32)
    truth = values @ rng.normal(size=(features, len(classes))) > above
    ids = [f"{row}.jpg" for row in range(train + val)]
    np.savez(folder / "features.npz", ids=np.array(ids), X=values)
    for name, rows in {"train": slice(train), "val": slice(train, None)}.items():
        present = np.nonzero(truth[rows])
        table = LabelTable.from_coo(
            ids[rows], classes, *present, State.PRESENT, unlisted=State.ABSENT
        )
        write_labels(table, folder / f"{name}.parquet")
    return folder
