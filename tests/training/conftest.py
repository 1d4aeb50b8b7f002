"""A small problem on features that every training test shares."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hilltop.data import State, assemble, drop_positives, write_labels

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
    words += ["--learning-rate", "0.03"]
    return [str(word) for word in (*words, *more)]


def start(words: list[str], *, processes: int = 1) -> subprocess.Popen[str]:
    """Start the command as a user would, on one process or under torchrun."""
    runner = [sys.executable, "-m"]
    if processes > 1:
        runner += ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*runner, "hilltop", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
