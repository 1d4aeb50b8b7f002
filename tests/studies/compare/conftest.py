"""A small problem with complete labels that every test of comparisons shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.training import TrainConfig
from tests.feature_problem import write_problem

CLASSES = ("ant", "bee", "cat", "dog", "eel")


@pytest.fixture(scope="session")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with features.npz, and complete labels in train.parquet and val.parquet."""
    folder = tmp_path_factory.mktemp("complete")
    return write_problem(folder, CLASSES, train=180, val=60, features=10, above=1.0, seed=1)


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
