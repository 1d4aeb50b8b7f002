"""Features that stay on disk: arrays that are mapped, and Parquet files too large for memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.cli.main import main
from hilltop.data import write_labels
from hilltop.errors import DataError
from hilltop.inputs import features as features_module
from hilltop.inputs.features import FeatureInputs, read_features
from tests.audit.simulated import Simulated, simulate

ROWS, WIDTH = 700, 5


@pytest.fixture
def values() -> npt.NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((ROWS, WIDTH), dtype=np.float32)


def ids(rows: int = ROWS) -> pa.StringArray:
    return pa.array([f"{row:04}" for row in range(rows)])


def save(path: Path, names: pa.StringArray, values: npt.NDArray[np.float32]) -> Path:
    np.save(path, values)
    np.save(path.with_suffix(".ids.npy"), np.array(names.to_pylist()))
    return path


def test_an_array_stays_in_its_file_where_all_rows_are_used_in_order(
    tmp_path: Path, values: npt.NDArray[np.float32]
) -> None:
    found = read_features(save(tmp_path / "f.npy", ids(), values))
    assert isinstance(found.values, np.memmap)
    inputs = FeatureInputs(found, ids())
    assert inputs.values.data_ptr() == found.values.ctypes.data
    np.testing.assert_array_equal(inputs.values, values)
    some = FeatureInputs(found, ids()[10:20])
    np.testing.assert_array_equal(some.values, values[10:20])


def test_rows_that_are_not_finite_are_named_far_into_a_file(
    tmp_path: Path, values: npt.NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features_module, "_BLOCK_NUMBERS", 64)
    values[555, 2] = np.nan
    with pytest.raises(DataError, match="features of '0555' are not finite"):
        FeatureInputs(read_features(save(tmp_path / "f.npy", ids(), values)), ids())


@pytest.mark.parametrize("wide", [False, True])
def test_a_parquet_file_that_takes_much_of_the_memory_is_read_through_a_file(
    tmp_path: Path, values: npt.NDArray[np.float32], wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"features": pa.array(list(values))}
    if wide:
        columns = {f"f{column}": pa.array(values[:, column]) for column in range(WIDTH)}
    pq.write_table(
        pa.table({"image": ids(), **columns}), tmp_path / "f.parquet", row_group_size=128
    )
    in_memory = read_features(tmp_path / "f.parquet")
    assert not isinstance(in_memory.values, np.memmap)
    del in_memory
    monkeypatch.setattr(features_module, "_MEMORY_SHARE", 1 << 60)
    found = read_features(tmp_path / "f.parquet")
    assert isinstance(found.values, np.memmap)
    np.testing.assert_array_equal(found.values, values)
    assert found.images.equals(ids())


def test_lists_that_differ_in_length_are_refused_in_any_part_of_a_file(
    tmp_path: Path, values: npt.NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features_module, "_MEMORY_SHARE", 1 << 60)
    lists = [*values[:256].tolist(), *values[256:, :4].tolist()]
    table = pa.table({"image": ids(), "features": lists})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=128)
    with pytest.raises(DataError, match=r"differ in length: row \d+ has 4 numbers"):
        read_features(tmp_path / "f.parquet")


@pytest.fixture(scope="module")
def made() -> Simulated:
    return simulate(images=300, classes=4, width=8, seed=1)


def test_an_audit_takes_an_array_in_its_own_order(made: Simulated, tmp_path: Path) -> None:
    write_labels(made.labels, tmp_path / "labels.csv")
    names, rows = made.labels.images, np.random.default_rng(0).permutation(300)
    features = made.features.numpy()
    np.savez(tmp_path / "f.npz", ids=np.array(names.to_pylist()), X=features)
    save(tmp_path / "same.npy", names, features)
    save(tmp_path / "other.npy", names.take(pa.array(rows)), features[rows])
    found = {}
    for file in ("f.npz", "same.npy", "other.npy"):
        words = ["audit", "--labels", str(tmp_path / "labels.csv"), "--unlisted", "unknown"]
        words += ["--features", str(tmp_path / file), "--allow-missing"]
        assert main([*words, "--out", str(tmp_path / f"{file}.audit")]) == 0
        table = pq.read_table(tmp_path / f"{file}.audit" / "candidates.parquet")
        found[file] = table.sort_by([("image", "ascending"), ("class", "ascending")])
    assert found["same.npy"].equals(found["f.npz"])
    one, other = (found[file].column("probability").to_numpy() for file in ("f.npz", "other.npy"))
    assert np.corrcoef(one, other)[0, 1] > 0.95  # other folds, the same images
