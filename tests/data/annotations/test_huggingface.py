"""Hugging Face imagefolder: metadata files, folders, splits, objects, class numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.annotations import huggingface
from hilltop.data.content import Source
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.conftest import write
from tests.data.fuzz import survives
from tests.data.patched import PatchCase, check_patch, found_format

P, U = State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")
CSV = "file_name,labels\n0001.png,cat|dog\n0002.png,\n"
JSONL = '{"file_name": "0001.png", "labels": ["cat", "dog"]}\n{"file_name": "x", "labels": []}\n'
OBJECTS = (
    '{"file_name": "0001.png", "objects": {"bbox": [[1, 2, 3, 4], [5, 6, 7, 8]], "KEY": [1, 1]}}\n'
    '{"file_name": "0002.png", "objects": {"bbox": [], "KEY": []}}\n'
)


@pytest.fixture
def names(tmp_path: Path) -> Path:
    return write(tmp_path / "names.txt", "cat\ndog\n")


@pytest.mark.parametrize(("name", "text"), [("metadata.csv", CSV), ("metadata.jsonl", JSONL)])
def test_a_metadata_file_or_its_folder_is_recognised_and_read(
    tmp_path: Path, name: str, text: str
) -> None:
    path = write(tmp_path / name, text)
    for place in (path, tmp_path):
        assert found_format(place) == "huggingface"
        table = read_labels(place, options=UNKNOWN)
        assert table.images[0].as_py() == "0001.png"
        assert table.dense().tolist() == [[P, P], [U, U]]


def test_unlisted_classes_are_never_guessed(tmp_path: Path) -> None:
    with pytest.raises(AmbiguousInputError, match="--unlisted"):
        read_labels(write(tmp_path / "metadata.jsonl", JSONL))


@pytest.mark.parametrize("key", ["categories", "category"])
def test_objects_are_read_with_class_numbers(tmp_path: Path, names: Path, key: str) -> None:
    path = write(tmp_path / "metadata.jsonl", OBJECTS.replace("KEY", key))
    options = ReadOptions(unlisted="unknown", classes=names)
    assert read_labels(path, options=options).dense().tolist() == [[U, P], [U, U]]
    assert read_labels(path, options=UNKNOWN).count(State.PRESENT) == 1


def test_parquet_with_objects_is_read(tmp_path: Path, names: Path) -> None:
    path = tmp_path / "metadata.parquet"
    objects = [{"categories": [0, 1]}, {"categories": []}]
    pq.write_table(pa.table({"file_name": ["a", "b"], "objects": objects}), path)
    options = ReadOptions(unlisted="unknown", classes=names)
    assert read_labels(path, options=options).dense().tolist() == [[P, P], [U, U]]


def test_a_column_that_ends_in_file_name_serves_too(tmp_path: Path) -> None:
    text = "left_file_name,label\na.png,cat\n"
    table = read_labels(write(tmp_path / "metadata.csv", text), options=UNKNOWN)
    assert table.images.to_pylist() == ["a.png"]
    text = "left_file_name,right_file_name,label\na.png,b.png,cat\n"
    path = write(tmp_path / "metadata.csv", text)
    with pytest.raises(
        AmbiguousInputError, match="--image-column with one of left_file_name, right_fi"
    ):
        read_labels(path, options=UNKNOWN)


def test_the_label_column_is_asked_for_where_it_is_not_certain(tmp_path: Path) -> None:
    path = write(tmp_path / "metadata.csv", "file_name,caption\na.png,a cat\n")
    with pytest.raises(AmbiguousInputError, match="Is 'a cat' one label or several"):
        read_labels(path, options=UNKNOWN)


def test_a_split_is_chosen_by_name(tmp_path: Path) -> None:
    write(tmp_path / "train" / "metadata.jsonl", JSONL)
    assert len(read_labels(tmp_path, options=UNKNOWN)) == 2
    write(tmp_path / "test" / "metadata.csv", "file_name,label\na.png,cat\n")
    with pytest.raises(AmbiguousInputError, match="--split with one of test, train"):
        read_labels(tmp_path, options=UNKNOWN)
    options = ReadOptions(unlisted="unknown", split="test")
    assert read_labels(tmp_path, options=options).images.to_pylist() == ["a.png"]


def test_two_metadata_files_in_one_folder_are_a_fault(tmp_path: Path) -> None:
    write(tmp_path / "metadata.jsonl", JSONL)
    write(tmp_path / "metadata.csv", CSV)
    with pytest.raises(DataError, match=r"holds metadata.csv and metadata.jsonl. Name one"):
        read_labels(tmp_path, options=UNKNOWN)


def test_a_folder_without_metadata_does_not_fit_and_is_a_fault(tmp_path: Path) -> None:
    assert not huggingface.matches(Source(tmp_path))
    with pytest.raises(DataError, match=r"no data set of Hugging Face here"):
        read_labels(tmp_path, format="huggingface", options=UNKNOWN)


@pytest.mark.parametrize("text", ["", "\x00\xff", '{"file_name"', "image,labels\na,cat\n", "[1]"])
def test_other_content_does_not_fit(tmp_path: Path, text: str) -> None:
    for name in ("metadata.csv", "metadata.jsonl", "metadata.parquet"):
        assert not huggingface.matches(Source(write(tmp_path / name, text)))
    assert not huggingface.matches(Source(write(tmp_path / "labels.csv", CSV)))


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl", "metadata.parquet"])
def test_round_trip(small: LabelTable, tmp_path: Path, name: str) -> None:
    write_labels(small, tmp_path / name, format="huggingface")
    assert read_labels(tmp_path / name, options=UNKNOWN) == small


def test_a_folder_gets_a_file_that_the_hub_reads(tmp_path: Path) -> None:
    table = LabelTable.from_coo(["a.png", "b.png"], ["cat"], [0], [0], P, unlisted=U)
    write_labels(table, tmp_path, format="huggingface")
    lines = (tmp_path / "metadata.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {"file_name": "a.png", "labels": ["cat"]}
    assert json.loads(lines[1]) == {"file_name": "b.png", "labels": []}


def test_files_with_another_name_are_not_written(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"from files named metadata.csv"):
        write_labels(small, tmp_path / "labels.csv", format="huggingface")


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metadata.csv", CSV),
        ("metadata.jsonl", JSONL),
        ("metadata.jsonl", OBJECTS.replace("KEY", "categories")),
    ],
)
def test_damaged_files_end_in_a_table_or_in_words(
    tmp_path: Path, names: Path, count: int, name: str, text: str
) -> None:
    options = ReadOptions(unlisted="unknown", classes=names)
    tables, faults = survives(write(tmp_path / name, text), count, "huggingface", options)
    assert tables + faults == count
    assert tables
    assert faults


PATCHES = [
    PatchCase(
        "hugging face metadata",
        "huggingface",
        '{"file_name": "a.jpg", "labels": ["dog"]}\n{"file_name": "b.jpg", "labels": ["cow"]}\n',
        [
            '- {"file_name": "a.jpg", "labels": ["dog"]}\n',
            '+ {"file_name": "a.jpg", "labels": ["dog"], "absent": ["cow"]}\n',
            '- {"file_name": "b.jpg", "labels": ["cow"]}\n',
            '+ {"file_name": "b.jpg", "labels": ["cow", "dog"]}\n',
        ],
        file="metadata.jsonl",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", PATCHES, ids=lambda case: case.name)
def test_a_patch_changes_only_what_was_answered(case: PatchCase, tmp_path: Path) -> None:
    check_patch(case, tmp_path)
