"""Shared by the tests of labels: the real files, where they are, and small tables."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from hilltop.data import LabelTable, State, assemble

SHARED = Path(__file__).parents[3] / "shared" / "data"


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
    return assemble(
        ["a.jpg", "b.jpg", "c.jpg", "d, e.jpg"],
        ["cat", "dog", "red fox"],
        rows=[1, 0, 0, 3, 3],
        columns=[2, 1, 0, 2, 0],
        states=[State.PRESENT, State.PRESENT, State.ABSENT, State.PRESENT, State.PRESENT],
        unlisted=State.UNKNOWN,
    )
