"""Shared by the tests of labels: the real files, where they are, small tables and pictures."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hilltop.data import LabelTable, State
from tests.data.annotations.voc_devkit import make_devkit

SHARED = Path(__file__).parents[3] / "shared" / "data"


def picture(seed: int = 0, width: int = 60, height: int = 40) -> Image.Image:
    """Smooth noise, so that JPEG changes little."""
    coarse = np.random.default_rng(seed).integers(256, size=(5, 7, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


@pytest.fixture(scope="session")
def real_lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the lists released with the paper."""
    archive = SHARED / "coco_nus_label_lists.tar.xz"
    if not archive.exists():
        pytest.skip(f"the real label lists are not there: {archive}")
    folder = tmp_path_factory.mktemp("lists")
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    return folder


@pytest.fixture
def small() -> LabelTable:
    """Four images, three classes, all states; the third image has nothing listed."""
    return LabelTable.from_coo(
        ["a.jpg", "b.jpg", "c.jpg", "d, e.jpg"],
        ["cat", "dog", "red fox"],
        rows=[1, 0, 0, 3, 3],
        columns=[2, 1, 0, 2, 0],
        states=[State.PRESENT, State.PRESENT, State.ABSENT, State.PRESENT, State.PRESENT],
        unlisted=State.UNKNOWN,
    )


@pytest.fixture
def devkit(tmp_path: Path) -> Path:
    """A small PASCAL VOC data set."""
    return make_devkit(tmp_path)


@pytest.fixture
def main(devkit: Path) -> Path:
    """Its image sets."""
    return devkit / "ImageSets" / "Main"


@pytest.fixture
def bare(devkit: Path) -> Path:
    """Its XML files."""
    return devkit / "Annotations"


def write(path: Path, text: str) -> Path:
    """Write a small text file, and return its path."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
