"""ModelSelection features and joining them to labels by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.errors import DataError
from hilltop.inputs.features import FeatureInputs, read_features

VALUES = np.arange(6, dtype=np.float32).reshape(3, 2)
IDS = np.array(["a", "b", "c"])


def store(folder: Path, kind: str) -> Path:
    path = folder / f"x.{kind.partition('-')[0]}"
    if kind == "npz":
        np.savez(path, ids=IDS, X=VALUES)
    elif kind == "npy-txt":
        np.save(path, VALUES)
        (folder / "x.ids.txt").write_text("a\nb\nc\n")
    elif kind == "npy-npy":
        np.save(path, VALUES)
        np.save(folder / "x.ids.npy", IDS)
    elif kind == "parquet-lists":
        pq.write_table(pa.table({"image": IDS, "features": list(VALUES)}), path)
    else:
        columns = {"image": IDS, "f0": VALUES[:, 0], "f1": VALUES[:, 1]}
        pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("kind", ["npz", "npy-txt", "npy-npy", "parquet-lists", "parquet-columns"])
def test_every_kind_of_file_gives_the_same_features(tmp_path: Path, kind: str) -> None:
    features = read_features(store(tmp_path, kind))
    assert features.images.to_pylist() == ["a", "b", "c"]
    np.testing.assert_array_equal(features.values, VALUES)


def test_features_are_joined_by_name_not_by_position(tmp_path: Path) -> None:
    inputs = FeatureInputs(read_features(store(tmp_path, "npz")), pa.array(["c", "a"]))
    ((rows, batch),) = inputs.loader([[1, 0]], None)
    assert rows.tolist() == [1, 0]
    np.testing.assert_array_equal(batch.numpy(), VALUES[[0, 2]])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": VALUES}, "there is no array 'ids'; the file holds X"),
        ({"ids": IDS, "X": VALUES[:2]}, "there are 3 ids for 2 rows"),
        ({"ids": IDS, "X": VALUES[:, 0]}, "must be a matrix of numbers"),
        ({"ids": np.array(["a", "a", "b"]), "X": VALUES}, "some ids stand more than once"),
        ({"ids": np.array([1.5, 2, 3]), "X": VALUES}, "ids must be one row of text"),
    ],
)
def test_wrong_files_are_said_in_words(
    tmp_path: Path, arrays: dict[str, np.ndarray], message: str
) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(DataError, match=message):
        read_features(tmp_path / "x.npz")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"nothing")
    with pytest.raises(DataError, match="this file cannot be read"):
        read_features(tmp_path / "x.npz")
    np.save(tmp_path / "y.npy", VALUES)
    with pytest.raises(DataError, match=r"expected y.ids.txt or y.ids.npy beside it"):
        read_features(tmp_path / "y.npy")
    with pytest.raises(DataError, match=r"read from .npz, .npy or .parquet"):
        read_features(tmp_path / "z.csv")
    np.savez(tmp_path / "o.npz", ids=np.array(["a"], dtype=object), X=VALUES[:1])
    with pytest.raises(DataError, match="Python objects, which are not read"):
        read_features(tmp_path / "o.npz")


def test_labelled_images_without_features_are_named(tmp_path: Path) -> None:
    features = read_features(store(tmp_path, "npz"))
    with pytest.raises(DataError, match=r"no features for 1 of 2 labelled images, .* 'z.jpg'"):
        FeatureInputs(features, pa.array(["a", "z.jpg"]))


def test_features_that_are_not_finite_are_named(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[1, 1] = np.inf
    np.savez(tmp_path / "x.npz", ids=IDS, X=values)
    features = read_features(tmp_path / "x.npz")
    with pytest.raises(DataError, match="the features of 'b' are not finite"):
        FeatureInputs(features, pa.array(["a", "b"]))
    FeatureInputs(features, pa.array(["a", "c"]))
