"""Hugging Face datasets: Parquet with names of classes, and folders of ``save_to_disk``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.conftest import write
from tests.data.fuzz import survives
from tests.data.patched import found_format

P, U = State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")
CLASSES = {"names": ["cat", "cow", "red fox, small"], "_type": "ClassLabel"}
SEVERAL = {"feature": CLASSES, "_type": "Sequence"}
IMAGE = {"_type": "Image"}


def content(features: dict[str, Any], **columns: Any) -> pa.Table:
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.table(columns).replace_schema_metadata(metadata)


LISTS = content(
    {"id": {"dtype": "string", "_type": "Value"}, "tags_of": SEVERAL, "image": IMAGE},
    id=["a", "b", "c"],
    tags_of=[[0, 2], [], [1]],
    image=[{"bytes": b"x", "path": "a.jpg"}] * 3,
)


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    pq.write_table(LISTS, tmp_path / "train-00000-of-00001.parquet")
    return tmp_path / "train-00000-of-00001.parquet"


def save(folder: Path, table: pa.Table) -> None:
    """As ``save_to_disk`` does."""
    datasets = pytest.importorskip("datasets")
    datasets.Dataset(datasets.table.InMemoryTable(table)).save_to_disk(str(folder), num_shards=2)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save(tmp_path / "saved" / "train", LISTS)
    save(tmp_path / "saved" / "test", LISTS.slice(1))
    return write(tmp_path / "saved" / "dataset_dict.json", '{"splits": ["train", "test"]}').parent


def message(path: Path, options: ReadOptions = UNKNOWN) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format="huggingface", options=options)
    return str(caught.value)


def check(table: LabelTable) -> None:
    assert table.classes == tuple(CLASSES["names"])
    assert table.images.to_pylist() == ["a", "b", "c"]
    assert table.dense().tolist() == [[P, U, P], [U, U, U], [U, P, U]]


def test_a_parquet_file_names_its_classes(parquet: Path) -> None:
    assert found_format(parquet) == "huggingface"
    check(read_labels(parquet, options=UNKNOWN))
    with pytest.raises(AmbiguousInputError, match="--unlisted"):
        read_labels(parquet)


def test_a_folder_of_shards_is_one_table_for_each_split(parquet: Path) -> None:
    check(read_labels(parquet.parent, options=UNKNOWN))
    (parquet.parent / "data").mkdir()
    parquet.rename(parquet.parent / "data" / parquet.name)
    pq.write_table(LISTS, parquet.parent / "data" / "test-00000-of-00001.parquet")
    with pytest.raises(AmbiguousInputError, match="--split with one of test, train"):
        read_labels(parquet.parent, options=UNKNOWN)


def test_folders_of_save_to_disk(saved: Path) -> None:
    check(read_labels(saved / "train", options=UNKNOWN))
    with pytest.raises(AmbiguousInputError, match="--split with one of test, train"):
        read_labels(saved, options=UNKNOWN)
    table = read_labels(saved, options=ReadOptions(unlisted="unknown", split="test"))
    assert table.images.to_pylist() == ["b", "c"]


def test_one_class_number_a_row_and_rows_without_ids(tmp_path: Path) -> None:
    single = content({"label": CLASSES, "text": {}}, label=[2, -1, None, 0], text=list("abcd"))
    pq.write_table(single, tmp_path / "x.parquet")
    table = read_labels(tmp_path / "x.parquet", options=UNKNOWN)
    assert table.images.to_pylist() == ["0", "1", "2", "3"]
    assert [table.labels_of(row) for row in range(4)] == [("red fox, small",), (), (), ("cat",)]


def test_classes_of_objects_are_labels(tmp_path: Path) -> None:
    features = {"image_id": {}, "objects": {"category": SEVERAL, "bbox": {}}}
    objects = [{"category": [1, 1], "bbox": [1.0]}, {"category": [], "bbox": [2.0]}]
    pq.write_table(content(features, image_id=[7, 8], objects=objects), tmp_path / "x.parquet")
    table = read_labels(tmp_path / "x.parquet", options=UNKNOWN)
    assert (table.images.to_pylist(), table.labels_of(0)) == (["7", "8"], ("cow",))


def test_several_columns_of_labels_are_asked_about(tmp_path: Path) -> None:
    both = content({"colour": CLASSES, "kind": CLASSES}, colour=[0], kind=[1])
    pq.write_table(both, tmp_path / "x.parquet")
    with pytest.raises(AmbiguousInputError, match="--label-columns with one of colour, kind"):
        read_labels(tmp_path / "x.parquet", options=UNKNOWN)
    options = ReadOptions(unlisted="unknown", label_columns="kind")
    assert read_labels(tmp_path / "x.parquet", options=options).labels_of(0) == ("cow",)


def test_faults_are_named(saved: Path, tmp_path: Path) -> None:
    pq.write_table(content({"label": CLASSES}, label=[0, 7]), tmp_path / "x.parquet")
    assert "x.parquet, line 2: class '7' is not in the class list (3 names)" in message(
        tmp_path / "x.parquet"
    )
    pq.write_table(content({"label": CLASSES}, label=["dog"]), tmp_path / "x.parquet")
    assert "class 'dog' is not in the class list" in message(tmp_path / "x.parquet")
    (saved / "train" / "data-00001-of-00002.arrow").unlink()
    assert "cannot be read" in message(saved / "train")
    (tmp_path / "none").mkdir()
    assert "no data set of Hugging Face here" in message(tmp_path / "none")


def test_round_trip(tmp_path: Path) -> None:
    table = LabelTable.from_coo(
        ["b", "a"], ["dog", "cat", "cow"], [0, 0, 1], [2, 0, 2], P, unlisted=U
    )
    path = tmp_path / "out.parquet"
    write_labels(table, path, format="huggingface")
    assert found_format(path) == "huggingface"
    assert read_labels(path, options=UNKNOWN) == table


def test_what_cannot_be_written_is_said(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 pair that is absent"):
        write_labels(small, tmp_path / "out.parquet", format="huggingface")
    with pytest.raises(DataError, match=r"any other Parquet file"):
        write_labels(small, tmp_path / "out.csv", format="huggingface", lossy=True)


@pytest.mark.parametrize("count", [150, pytest.param(3_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "file", ["dataset_info.json", "state.json", "data-00001-of-00002.arrow", ""]
)
def test_damaged_files_end_in_a_table_or_in_words(
    saved: Path, parquet: Path, file: str, count: int
) -> None:
    path = saved / "train" if file else parquet
    damaged = path / file if file else None
    tables, faults = survives(path, count, "huggingface", UNKNOWN, file=damaged)
    assert tables > 0
    assert faults > 0
