"""A small problem with complete labels that every test of comparisons shares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilltop.data import State, assemble, write_labels
from hilltop.training import TrainConfig

CLASSES = ("ant", "bee", "cat", "dog", "eel")


@pytest.fixture(scope="session")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with features.npz, and complete labels in train.parquet and val.parquet."""
    folder = tmp_path_factory.mktemp("complete")
    rng = np.random.default_rng(1)
    values = rng.normal(size=(240, 10)).astype(np.float32)
    truth = values @ rng.normal(size=(10, 5)) > 1.0
    ids = [f"{number}.jpg" for number in range(240)]
    np.savez(folder / "features.npz", ids=np.array(ids), X=values)
    for name, rows in {"train": range(180), "val": range(180, 240)}.items():
        at, columns = np.nonzero(truth[list(rows)])
        names = [ids[row] for row in rows]
        table = assemble(names, CLASSES, at, columns, State.PRESENT, unlisted=State.ABSENT)
        write_labels(table, folder / f"{name}.parquet")
    return folder


@pytest.fixture
def base(complete: Path) -> TrainConfig:
    """Settings of a short run on the small problem."""
    return TrainConfig(
        labels=complete / "train.parquet",
        val_labels=complete / "val.parquet",
        features=complete / "features.npz",
        epochs=2,
        batch_size=32,
        learning_rate=0.03,
    )


def words(complete: Path, out: Path, *more: object) -> list[str]:
    """Words of a comparison on the small problem."""
    given = ["compare", "--labels", complete / "train.parquet"]
    given += ["--val-labels", complete / "val.parquet", "--features", complete / "features.npz"]
    given += ["--epochs", 2, "--batch-size", 32, "--learning-rate", 0.03, "--out", out]
    return [str(word) for word in (*given, *more)]
