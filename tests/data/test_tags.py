"""Tags chosen from probabilities, and the files they are written to."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import ReadOptions, State, read_labels
from hilltop.data.scores import ScoreTable
from hilltop.data.tags import check_tag_file, choose_tags, write_tags
from hilltop.errors import AmbiguousInputError, ArgumentError, DataError

PROBS = ScoreTable(
    pa.array(["a.jpg", "b.jpg", "c.jpg"]),
    ("cat", "dog", "sofa"),
    np.array([[0.9, 0.95, 0.2], [0.1, 0.3, 0.6], [0.1, 0.1, 0.1]]),
)
THRESHOLDS = np.array([0.5, 0.5, 0.7])
SAID = choose_tags(PROBS, THRESHOLDS)


def test_each_class_has_its_threshold_and_top_keeps_the_most_probable() -> None:
    assert SAID.tolist() == [[True, True, False], [False] * 3, [False] * 3]
    assert choose_tags(PROBS, THRESHOLDS, top=1).tolist()[0] == [False, True, False]
    every = choose_tags(PROBS, -1.0, top=2)
    assert every.sum(axis=1).tolist() == [2, 2, 2]
    assert every[1].tolist() == [False, True, True]


def test_csv_has_a_row_for_each_image_and_the_most_probable_tag_first(tmp_path: Path) -> None:
    write_tags(tmp_path / "tags.csv", PROBS, SAID)
    with (tmp_path / "tags.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {"file": "a.jpg", "tags": "dog;cat", "probabilities": "0.9500;0.9000"}
    assert rows[2] == {"file": "c.jpg", "tags": "", "probabilities": ""}


@pytest.mark.parametrize("labelled", [None, SAID])
def test_a_spreadsheet_has_the_cells_of_the_csv_file(
    labelled: np.typing.NDArray[np.bool_] | None, tmp_path: Path
) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    for ending in ("csv", "xlsx"):
        write_tags(tmp_path / f"tags.{ending}", PROBS, SAID, labelled=labelled)
    sheet = openpyxl.load_workbook(tmp_path / "tags.xlsx").active
    found = [[cell or "" for cell in row] for row in sheet.iter_rows(values_only=True)]
    with (tmp_path / "tags.csv").open(newline="") as file:
        assert found == list(csv.reader(file))
    odd = ScoreTable(pa.array(["a\x01.jpg", "b.jpg", "c.jpg"]), PROBS.classes, PROBS.values)
    with pytest.raises(DataError, match="control character"):
        write_tags(tmp_path / "odd.xlsx", odd, SAID)
    assert not (tmp_path / "odd.xlsx").exists()


def test_json_lines_and_parquet_hold_lists(tmp_path: Path) -> None:
    for ending in ("jsonl", "parquet"):
        write_tags(tmp_path / f"tags.{ending}", PROBS, SAID)
    lines = (tmp_path / "tags.jsonl").read_text().splitlines()
    read = pq.read_table(tmp_path / "tags.parquet").to_pylist()
    assert [json.loads(line) for line in lines] == read
    assert read[0] == {"file": "a.jpg", "tags": ["dog", "cat"], "probabilities": [0.95, 0.9]}


def test_any_label_format_can_be_written_and_read_again(tmp_path: Path) -> None:
    write_tags(tmp_path / "tags.json", PROBS, SAID, to="coco")
    options = ReadOptions(unlisted="unknown")
    table = read_labels(tmp_path / "tags.json", format="coco", options=options)
    assert table.images.to_pylist() == PROBS.images.to_pylist()
    assert set(table.labels_of(0)) == {"cat", "dog"}
    assert table.count(State.PRESENT) == 2


def test_a_file_that_cannot_be_written_is_told_before_anything_is_computed(tmp_path: Path) -> None:
    check_tag_file(tmp_path / "tags.xyz", to="coco")
    with pytest.raises(ArgumentError, match=r"tags are written to \.csv"):
        check_tag_file(tmp_path / "tags.xyz")
    with pytest.raises(AmbiguousInputError, match=r"Unknown format 'coca'\. Did you mean 'coco'"):
        check_tag_file(tmp_path / "tags.csv", to="coca")


def test_other_endings_and_names_that_break_a_cell_are_told(tmp_path: Path) -> None:
    with pytest.raises(
        ArgumentError, match=r"tags are written to \.csv, \.xlsx, \.jsonl, \.parquet"
    ):
        write_tags(tmp_path / "tags.txt", PROBS, SAID)
    odd = ScoreTable(PROBS.images, ("cat", "dog", "a;b"), PROBS.values)
    with pytest.raises(DataError, match=r"'a;b' cannot stand in a cell"):
        write_tags(tmp_path / "tags.csv", odd, SAID)
