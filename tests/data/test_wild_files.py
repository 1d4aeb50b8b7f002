"""Real public label files: after at most one question each has the counts that are known of it."""

from __future__ import annotations

import csv

import pytest

from hilltop.data import Ambiguous, ReadOptions, State, detect, read
from hilltop.data.layout import read_options
from tests.data.conftest import SHARED

WILD = SHARED / "wild"
NAMED = {"hpa_train.csv": ReadOptions(classes=WILD / "hpa_classes.txt")}
FILES = (
    *("planet_train.csv", "chexpert_train.csv", "hpa_train.csv", "audioset_segments.csv"),
    *("celeba_attributes.txt", "zero_one_list.txt", "roboflow_classes.csv"),
    *("huggingface_classlabel.parquet", "yolo/", "birds-train.arff"),
)


@pytest.mark.parametrize("name", FILES)
def test_a_real_file_has_its_counts_after_one_question_at_most(name: str) -> None:
    if not (WILD / name).exists():
        pytest.skip(f"the real label files are not there: {WILD / name}")
    with (WILD / "expected.csv").open(newline="") as file:
        expected = {row["file"]: row for row in csv.DictReader(file)}[name]
    options = NAMED.get(name, ReadOptions())
    layout = detect(WILD / name, options)
    if isinstance(layout, Ambiguous):
        layout = detect(WILD / name, read_options(layout.answers, options))
    assert not isinstance(layout, Ambiguous), str(layout)
    table = read(WILD / name, layout)
    assert len(table) == int(expected["rows"])
    assert table.count(State.PRESENT) == int(expected["present"])
    assert table.count(State.ABSENT) == int(expected["confirmed_absent"])
