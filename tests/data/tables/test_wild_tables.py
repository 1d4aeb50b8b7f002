"""Real public label files: each is recognised and has the counts that are known of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hilltop.data import ReadOptions, State, read_labels
from hilltop.errors import AmbiguousInputError
from tests.data.conftest import SHARED

WILD = SHARED / "wild"
UNKNOWN = ReadOptions(unlisted="unknown")


def wild(name: str) -> Path:
    path = WILD / name
    if not path.exists():
        pytest.skip(f"the real label files are not there: {path}")
    return path


@pytest.mark.parametrize(
    ("name", "options", "counts"),
    [
        ("audioset_segments.csv", UNKNOWN, (200, 484, 0)),
        ("birds-train.arff", UNKNOWN, (322, 341, 0)),
        ("celeba_attributes.txt", ReadOptions(), (100, 922, 3_078)),
        ("huggingface_classlabel.parquet", UNKNOWN, (500, 604, 0)),
        ("yolo", UNKNOWN, (40, 119, 0)),
        ("multi_hot.txt", UNKNOWN, (100, 302, 0)),
    ],
)
def test_a_real_file_has_the_counts_that_are_known_of_it(
    name: str, options: ReadOptions, counts: tuple[int, int, int]
) -> None:
    table = read_labels(wild(name), options=options)
    assert (len(table), table.count(State.PRESENT), table.count(State.ABSENT)) == counts


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("audioset_segments.csv", "--unlisted"),
        ("birds-train.arff", "--unlisted"),
        ("huggingface_classlabel.parquet", "--unlisted"),
        ("yolo", "--unlisted"),
        ("multi_hot.txt", "--unlisted"),
    ],
)
def test_the_first_answer_names_the_option_that_is_needed(name: str, option: str) -> None:
    with pytest.raises(AmbiguousInputError, match=option):
        read_labels(wild(name), options=replace(UNKNOWN, unlisted=None))
