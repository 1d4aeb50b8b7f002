"""Labels and inputs that do not fit exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hilltop.data import LabelTable, ReadOptions, State, write_labels
from hilltop.errors import DataError
from hilltop.inputs.features import FeatureInputs, read_features
from hilltop.inputs.image_files import find_images
from hilltop.inputs.matching import labelled_inputs, matching_rows
from hilltop.training import TrainConfig
from hilltop.training.task import read_both


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.jpg", "deep/er/b.png", "x/same.jpg", "y/same.jpg"):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "images"


def test_images_are_found_in_folders_below(folder: Path) -> None:
    found = find_images(folder, pa.array(["a", "b.png", "b", "er/b.png", "x/same", "c/b.png"]))
    below = "deep/er/b.png"
    assert found.to_pylist() == ["a.jpg", below, below, below, "x/same.jpg", None]
    with pytest.raises(DataError, match=r"'same' fits 'x/same.jpg' and 'y/same.jpg'"):
        find_images(folder, pa.array(["same"]))


@pytest.mark.parametrize(
    "name",
    [
        r"C:\Users\Ann\Pictures\{file}",
        r"\\server\share\{file}",
        "/Users/ann/{file}",
        "https://host/2014/{file}?size=large",
        "{folder}/{file}",
    ],
)
def test_paths_of_another_machine_are_found_by_the_name_of_the_file(
    tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "photos"
    (folder / "deep").mkdir(parents=True)
    for file in ("a b.jpg", "c.JPG", "deep/d.jpg"):
        (folder / file).touch()
    ids = [name.format(folder="photos", file=file) for file in ("a b.jpg", "c.jpg", "e.png")]
    if name.startswith(("/", "{")):
        ids = ids[:2]  # what is absolute here must be inside
    found = find_images(folder, pa.array(ids)).to_pylist()
    assert found[:2] == ["a b.jpg", "c.JPG"]
    held = read_features(features(tmp_path / "x.npz", ["a b.jpg", "c.JPG", "deep/d.jpg"]))
    assert held.find(pa.array(ids[:2])).to_pylist() == [0, 1]


def test_two_paths_of_another_machine_cannot_be_one_file(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    with pytest.raises(DataError, match=r"'https://x/1/a.jpg' and 'https://x/2/a.jpg' both fit"):
        find_images(tmp_path, pa.array(["https://x/1/a.jpg", "https://x/2/a.jpg"]))


def test_rows_without_an_image_stop_or_are_left_out_and_both_sides_are_said(folder: Path) -> None:
    images, said = pa.array(["gone.jpg", "b.png", "a.jpg"]), []
    with pytest.raises(DataError, match=r"1 of 3 labelled images has no image .*--allow-missing"):
        matching_rows(images, folder, allow_missing=False, say=said.append)
    rows = matching_rows(images, folder, allow_missing=True, say=said.append)
    assert rows.tolist() == [1, 2]
    assert "the first is 'gone.jpg'. Such rows are left out." in said[0]
    assert said[1].endswith("2 images have no labels, the first is 'x/same.jpg'.")
    with pytest.raises(DataError, match=r"Names here look like 'a.jpg'"):
        matching_rows(pa.array(["z"]), folder, allow_missing=True, say=said.append)


def features(path: Path, ids: list[str]) -> Path:
    np.savez(path, ids=np.array(ids), X=np.zeros((len(ids), 2), dtype=np.float32))
    return path


def test_features_are_found_by_file_name_where_that_leaves_no_doubt(tmp_path: Path) -> None:
    held = read_features(features(tmp_path / "x.npz", ["s/a.jpg", "t/b.jpg"]))
    assert held.find(pa.array(["b", "a.jpg", "c"])).to_pylist() == [1, 0, None]
    twice = read_features(features(tmp_path / "y.npz", ["s/a.jpg", "t/a.jpg"]))
    with pytest.raises(DataError, match=r"'a\.jpg' matches 's/a\.jpg' and 't/a\.jpg'"):
        twice.find(pa.array(["a.jpg", "s/a.jpg"]))


@pytest.mark.parametrize(
    ("image", "row"), [("train/i0.jpg", "val/i0.jpg"), ("a.png", "a.jpg"), ("b.jpg", "a.jpg")]
)
def test_features_of_another_image_are_never_taken(tmp_path: Path, image: str, row: str) -> None:
    held = read_features(features(tmp_path / "x.npz", [row, "other.jpg"]))
    assert held.find(pa.array([image])).to_pylist() == [None]


def test_two_images_never_share_a_row(tmp_path: Path) -> None:
    held = read_features(features(tmp_path / "x.npz", ["i000.jpg", "other.jpg"]))
    with pytest.raises(DataError, match=r"'i000\.jpg' and 'i000' both match the row 'i000\.jpg'"):
        held.find(pa.array(["i000", "i000.jpg"]))


def test_what_was_not_matched_exactly_is_said_with_counts(tmp_path: Path) -> None:
    path = features(tmp_path / "x.npz", ["s/a.jpg", "t/b.jpg"])
    said: list[str] = []
    matching_rows(pa.array(["a", "t/b.jpg"]), path, allow_missing=True, say=said.append)
    assert "1 image name matches a row of features only without folders" in said[0]
    assert "'a' and 's/a.jpg'" in said[0]


def test_features_of_another_byte_order_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", ids=np.array(["a", "b"]), X=np.array([[1.0], [2.0]], dtype=">f4"))
    held = read_features(tmp_path / "x.npz")
    inputs = FeatureInputs(held, pa.array(["b", "a"]))
    assert inputs.values.tolist() == [[2.0], [1.0]]


def labels(path: Path, ids: list[str]) -> Path:
    write_labels(
        LabelTable.from_coo(ids, ["cat"], [0], [0], State.PRESENT, unlisted=State.UNKNOWN), path
    )
    return path


def test_validation_has_its_own_features_and_must_not_overlap(tmp_path: Path) -> None:
    config = TrainConfig(
        labels=labels(tmp_path / "a.parquet", ["1", "2", "3"]),
        val_labels=labels(tmp_path / "b.parquet", ["4", "5"]),
        features=features(tmp_path / "a.npz", ["1", "2", "9"]),
        val_features=features(tmp_path / "b.npz", ["4", "5"]),
        allow_missing=True,
    )
    said: list[str] = []
    train, val = read_both(config, said.append)
    assert (train.images.to_pylist(), val.images.to_pylist()) == (["1", "2"], ["4", "5"])
    assert len(said) == 2
    shared = TrainConfig(
        labels=config.labels, val_labels=config.labels, features=config.features,
        allow_missing=True,
    )  # fmt: skip
    with pytest.raises(DataError, match=r"3 validation images are among .*--allow-overlap"):
        read_both(shared, said.append)


def test_validation_labels_are_read_by_options_of_their_own(tmp_path: Path) -> None:
    for name, ids in (("a", "12"), ("b", "34")):
        lines = "".join(f"{each}.jpg,cat\n" for each in ids)
        (tmp_path / f"{name}.csv").write_text(f"image,labels\n{lines}")
    config = TrainConfig(
        labels=tmp_path / "a.csv",
        val_labels=tmp_path / "b.csv",
        features=features(tmp_path / "x.npz", ["1", "2", "3", "4"]),
        reading=ReadOptions(unlisted="unknown"),
        val_unlisted="absent",
    )
    said: list[str] = []
    train, val = read_both(config, said.append)
    assert (train.unlisted, val.unlisted) == (State.UNKNOWN, State.ABSENT)
    assert all("only without folders, endings" in one for one in said)


def test_the_images_of_a_label_file_are_named_as_their_folder_does(folder: Path) -> None:
    table = labels(folder.parent / "l.parquet", ["b", "gone", "a.jpg"])
    said: list[str] = []
    with pytest.raises(DataError, match="--allow-missing"):
        labelled_inputs(table, folder, allow_missing=False, say=said.append)
    names = labelled_inputs(table, folder, allow_missing=True, say=said.append)
    assert names.to_pylist() == ["deep/er/b.png", "a.jpg"]


def test_folders_of_elsewhere_do_not_count_where_names_leave_no_doubt(tmp_path: Path) -> None:
    for name in ("a.jpg", "train/b.jpg", "val/c.jpg", "d.jpg", "e.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    ids = [
        "Archive\\2014\\A.jpg",
        "trip/b",
        "train/c.jpg",
        "x/d.jpg",
        "y/d.jpg",
        "e.jpg",
        "z/e.jpg",
    ]
    found = find_images(tmp_path, pa.array(ids)).to_pylist()
    assert found == ["a.jpg", "train/b.jpg", None, None, None, "e.jpg", None]
