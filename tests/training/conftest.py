"""Small problems on features and on drawn pictures that training tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import drop_positives, read_labels, write_labels
from hilltop.inputs.synthetic import write_dataset
from tests.feature_problem import write_problem
from tests.forked import fork, run_forked

STOPPED = Path(__file__).with_name("stopped_worker.py")
CLASSES = ("ant", "bee", "cat", "dog", "eel")


@pytest.fixture(scope="session")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with features.npz, train.parquet (labels left out) and val.parquet (complete)."""
    folder = write_problem(
        tmp_path_factory.mktemp("problem"),
        CLASSES,
        train=300,
        val=101,
        features=12,
        above=2.5,
        seed=0,
    )
    complete = read_labels(folder / "train.parquet")
    write_labels(drop_positives(complete, "0.5", seed=0).table, folder / "train.parquet")
    return folder


def command(problem: Path, out: Path, *more: object, report: bool = False) -> list[str]:
    """Words of a training command on the small problem; its page costs as much as ten epochs."""
    words = [
        "train",
        "--labels",
        problem / "train.parquet",
        "--val-labels",
        problem / "val.parquet",
    ]
    words += ["--features", problem / "features.npz", "--out", out, "--batch-size", "32"]
    words += ["--learning-rate", "0.003", "--weight-decay", "0.3"]
    return [str(word) for word in (*words, *_page(report), *more)]


def _page(report: bool) -> list[str]:
    return [] if report else ["--no-report"]


@pytest.fixture(scope="module")
def picture_size() -> int:
    """Pixels a side of the pictures; a module may have its own."""
    return 32


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory, picture_size: int) -> Path:
    """Folder with images/ and labels.parquet."""
    folder = tmp_path_factory.mktemp("pictures")
    write_dataset(folder, images=60, size=picture_size, seed=0)
    return folder


def image_command(
    pictures: Path, out: Path, *more: object, size: int = 32, report: bool = False
) -> list[str]:
    """Words of a command that trains a very small network on the pictures."""
    words = ["train", "--labels", pictures / "labels.parquet", "--images", pictures / "images"]
    words += ["--model", "test_resnet", "--image-size", size, "--batch-size", 16]
    words += ["--val-share", 0.2, "--out", out, *_page(report)]
    return [str(word) for word in (*words, *more)]


def finish(words: list[str], *, processes: int = 1) -> str:
    """Run the command to its end in a process of its own, and return what it printed."""
    return run_forked("-m", "hilltop", *words, processes=processes)


def stop(words: list[str], name: str, *, steps: int, files: int = 0) -> tuple[int, str]:
    """Run the command until a signal stops it; return its exit code and its errors."""
    (ended,) = fork(STOPPED, name, steps, files, *words)
    assert ended.code is not None
    return ended.code, ended.errors
