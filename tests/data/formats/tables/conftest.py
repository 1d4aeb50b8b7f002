"""Shared by the tests of tables: a file, and reading what a test writes into it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels
from tests.data.conftest import write

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")
ONES_AND_ZEROS = "image,cat,dog\na.jpg,1,0\nb.jpg,0,\n"


def read(path: Path, options: ReadOptions, text: str) -> LabelTable:
    """Write a file and read it."""
    return read_labels(write(path, text), options=options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file that a test writes."""
    return tmp_path / "labels.csv"
