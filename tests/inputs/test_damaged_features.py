"""Feature and score files that are cut, damaged, shifted or too large are refused in words."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import array_files
from hilltop.data.scores import ScoreTable
from hilltop.errors import DataError
from hilltop.inputs.features import FeatureInputs, read_features

IDS = [f"{number}.jpg" for number in range(240)]


def write_lists(path: Path, lists: list[list[float | None] | None]) -> None:
    pq.write_table(pa.table({"image": IDS[: len(lists)], "features": lists}), path)


def test_rows_of_other_lengths_do_not_shift_the_rest(tmp_path: Path) -> None:
    lists: list[list[float | None] | None] = [[float(row)] * 4 for row in range(240)]
    lists[1], lists[239] = [1.0] * 5, [239.0] * 3  # as many numbers as before, all in other rows
    write_lists(tmp_path / "f.parquet", lists)
    with pytest.raises(DataError, match=r"differ in length: row 2 has 5 numbers, the first .* 4"):
        read_features(tmp_path / "f.parquet")


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[1.0, 2.0], None], "row 2 is blank"),
        ([[1.0, 2.0], [1.0, None]], "have 1 blank numbers"),
        ([[], []], "All must have the same, at least one"),
    ],
)
def test_blank_rows_and_numbers_are_said(
    tmp_path: Path, lists: list[list[float | None] | None], message: str
) -> None:
    write_lists(tmp_path / "f.parquet", lists)
    with pytest.raises(DataError, match=message):
        read_features(tmp_path / "f.parquet")


def test_blank_and_nested_ids_are_said(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"image": ["a", None], "x": [1.0, 2.0], "y": [1.0, 2.0]}), tmp_path / "f.parquet"
    )
    with pytest.raises(DataError, match="column 'image' has 1 blank cells"):
        read_features(tmp_path / "f.parquet")
    pq.write_table(pa.table({"image": [["a"], ["b"]], "x": [[1.0], [2.0]]}), tmp_path / "g.parquet")
    with pytest.raises(DataError, match="column 'image' must hold text"):
        read_features(tmp_path / "g.parquet")


def bomb(path: Path, shape: tuple[int, int], *, there: int) -> None:
    """An archive whose array declares a shape, with that many bytes of zeros behind it."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    ids = io.BytesIO()
    np.save(ids, np.array(["a", "b"]))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ids.npy", ids.getvalue())
        with archive.open("X.npy", "w", force_zip64=True) as file:
            file.write(header.getvalue())
            for _ in range(there >> 20):
                file.write(bytes(1 << 20))


def test_an_archive_that_declares_more_than_it_holds_is_refused_before_it_is_read(
    tmp_path: Path,
) -> None:
    bomb(tmp_path / "f.npz", (2, 1 << 30), there=1 << 20)
    with pytest.raises(DataError, match=r"takes 8,589,934,592 bytes, but 1,048,576 are there"):
        read_features(tmp_path / "f.npz")


def test_an_archive_that_does_not_fit_into_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_files, "free_memory", lambda: 16 << 20)
    bomb(tmp_path / "f.npz", (2, 4 << 20), there=32 << 20)
    assert (tmp_path / "f.npz").stat().st_size < 100_000
    with pytest.raises(DataError, match=r"would take 0\.0 GiB of memory, but 0\.0 are free"):
        read_features(tmp_path / "f.npz")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(8 << 20, np.float32)), 4 << 20)
    pq.write_table(pa.table({"image": ["a", "b"], "features": lists}), tmp_path / "f.parquet")
    with pytest.raises(DataError, match="are free"):
        read_features(tmp_path / "f.parquet")


def test_objects_are_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", ids=np.array(["a"]), X=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="it holds Python objects, which are not read"):
        read_features(tmp_path / "f.npz")


def whole_files(folder: Path) -> dict[str, Path]:
    values = np.random.default_rng(0).normal(size=(240, 4)).astype(np.float32)
    np.savez(folder / "a.npz", ids=np.array(IDS), X=values)
    np.savez_compressed(folder / "b.npz", ids=np.array(IDS), X=values)
    np.save(folder / "c.npy", values)
    np.save(folder / "c.ids.npy", np.array(IDS))
    write_lists(folder / "d.parquet", values.tolist())
    ScoreTable(pa.array(IDS), tuple("wxyz"), values).save(folder / "e.npy")
    return {
        "npz": folder / "a.npz", "compressed": folder / "b.npz", "npy": folder / "c.npy",
        "ids": folder / "c.ids.npy", "parquet": folder / "d.parquet",
        "scores": folder / "e.npy", "names": folder / "e.npy.names.parquet",
    }  # fmt: skip


def read_again(folder: Path, kind: str) -> None:
    if kind in ("scores", "names"):
        ScoreTable.load(folder / "e.npy")
    else:
        read_features({"ids": folder / "c.npy"}.get(kind, whole_path(folder, kind)))


def whole_path(folder: Path, kind: str) -> Path:
    names = {"npz": "a.npz", "compressed": "b.npz", "npy": "c.npy", "parquet": "d.parquet"}
    return folder / names.get(kind, "c.npy")


@pytest.mark.parametrize("kind", ["npz", "compressed", "npy", "ids", "parquet", "scores", "names"])
def test_a_damaged_file_gives_a_sentence_or_is_read(kind: str, tmp_path: Path) -> None:
    path = whole_files(tmp_path)[kind]
    whole, rng = path.read_bytes(), random.Random(kind)
    for attempt in range(60):
        content = bytearray(whole)
        if attempt % 3 == 0:
            del content[rng.randrange(len(content)) :]
        else:
            for _ in range(1 + attempt % 4):
                content[rng.randrange(len(content) if attempt % 2 else 200)] = rng.randrange(256)
        path.write_bytes(content)
        try:
            read_again(tmp_path, kind)
        except DataError as error:
            assert str(tmp_path) in str(error)  # noqa: PT017 (some damage is no damage)


def test_names_of_scores_that_do_not_fit_are_said(tmp_path: Path) -> None:
    whole_files(tmp_path)
    for classes, message in (
        (["w"] * 4, "stand more than once"),
        (["w"], "expected numbers for 240"),
    ):
        names = pa.table({"image": IDS}).replace_schema_metadata({"classes": json.dumps(classes)})
        pq.write_table(names, tmp_path / "e.npy.names.parquet")
        with pytest.raises(DataError, match=message):
            ScoreTable.load(tmp_path / "e.npy")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"classes": "[" * 100_000}, "the names of scores cannot be read: maximum recursion"),
        ({"classes": '["w", "x", "y", 5]'}, "expected a list of texts"),
        ({"classes": '"wxyz"'}, "expected a list of texts"),
        ({"thresholds": '["x", 1, 2, 3]'}, "expected a list of numbers"),
        ({"thresholds": "[1]"}, "1 thresholds for 4 classes"),
        ({"thresholds": "[" * 100_000}, "the names of scores cannot be read: maximum recursion"),
    ],
)
def test_odd_notes_beside_scores_are_said(told: dict[str, str], said: str, tmp_path: Path) -> None:
    whole_files(tmp_path)
    names = pq.read_table(tmp_path / "e.npy.names.parquet")
    known = {key.decode(): value for key, value in names.schema.metadata.items()}
    pq.write_table(
        names.replace_schema_metadata({**known, **told}), tmp_path / "e.npy.names.parquet"
    )
    with pytest.raises(DataError, match=said):
        ScoreTable.load(tmp_path / "e.npy")


def test_features_without_a_row_are_said(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", ids=np.array([], dtype=str), X=np.zeros((0, 3), np.float32))
    with pytest.raises(DataError, match="there is not one row of features"):
        read_features(tmp_path / "f.npz")


def test_features_that_are_infinite_in_32_bits_are_said(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", ids=np.array(["a", "b"]), X=np.array([[1.0, 2.0], [1e300, 1.0]]))
    features = read_features(tmp_path / "f.npz")
    with pytest.raises(DataError, match="the features of 'b' are not finite in 32 bits"):
        FeatureInputs(features, features.images)
