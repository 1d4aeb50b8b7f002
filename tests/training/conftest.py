"""A small problem on features that every training test shares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilltop.data import State, assemble, drop_positives, write_labels
from tests.forked import fork, run_forked

STOPPED = Path(__file__).with_name("stopped_worker.py")
CLASSES = ("ant", "bee", "cat", "dog", "eel")


@pytest.fixture(scope="session")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with features.npz, train.parquet (labels left out) and val.parquet (complete)."""
    folder = tmp_path_factory.mktemp("problem")
    rng = np.random.default_rng(0)
    values = rng.normal(size=(401, 12)).astype(np.float32)
    truth = values @ rng.normal(size=(12, 5)) > 2.5
    ids = [f"{i}.jpg" for i in range(401)]
    np.savez(folder / "features.npz", ids=np.array(ids), X=values)
    for name, rows in {"train": range(300), "val": range(300, 401)}.items():
        at, columns = np.nonzero(truth[list(rows)])
        names = [ids[row] for row in rows]
        table = assemble(names, CLASSES, at, columns, State.PRESENT, unlisted=State.ABSENT)
        if name == "train":
            table = drop_positives(table, "0.5", seed=0).table
        write_labels(table, folder / f"{name}.parquet")
    return folder


def command(problem: Path, out: Path, *more: object) -> list[str]:
    """Words of a training command on the small problem."""
    words = [
        "train",
        "--labels",
        problem / "train.parquet",
        "--val-labels",
        problem / "val.parquet",
    ]
    words += ["--features", problem / "features.npz", "--out", out, "--batch-size", "32"]
    words += ["--learning-rate", "0.003", "--weight-decay", "0.3"]
    return [str(word) for word in (*words, *more)]


def finish(words: list[str], *, processes: int = 1) -> str:
    """Run the command to its end in a process of its own, and return what it printed."""
    return run_forked("-m", "hilltop", *words, processes=processes)


def stop(words: list[str], name: str, *, steps: int, files: int = 0) -> tuple[int, str]:
    """Run the command until a signal stops it; return its exit code and its errors."""
    (ended,) = fork(STOPPED, name, steps, files, *words)
    assert ended.code is not None
    return ended.code, ended.errors
