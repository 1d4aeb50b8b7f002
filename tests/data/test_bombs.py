"""Small files that would unpack to more than there is memory are refused before they do."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.data import LabelTable, array_files, read_labels
from hilltop.data.array_files import check_parquet
from hilltop.data.label_table import State
from hilltop.data.scores import read_scores
from hilltop.errors import DataError
from hilltop.inputs.features import read_features

FREE = 64 << 20
ROWS = 2000
TEXT = "a" * (100 << 10)


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "free_memory", lambda: FREE)


def repeated(text: str, rows: int = ROWS) -> pa.Array:
    """A text that is written once and stands in every row."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


def one_text_in_every_row(path: Path, *, known: bool = True, column: str = "image") -> Path:
    others = {"x": pa.array(np.zeros(ROWS)), "y": pa.array(np.zeros(ROWS))}
    content = pa.table({column: repeated(TEXT), **others})
    pq.write_table(content, path, compression="zstd", store_schema=known)
    assert path.stat().st_size < 10_000
    return path


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("read", [read_labels, read_features, read_scores])
def test_one_long_text_in_every_row_is_refused(read, known: bool, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = one_text_in_every_row(tmp_path / "f.parquet", known=known)
    with pytest.raises(DataError, match=r"f\.parquet: reading it would take .* are free"):
        read(path)


def test_texts_in_lists_and_structs_are_seen(tmp_path: Path) -> None:
    lists = pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), repeated(TEXT))
    structs = pa.StructArray.from_arrays([pa.array(range(ROWS)), repeated(TEXT)], ["n", "t"])
    for name, column in {"list": lists, "struct": structs}.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"c": column}), path, compression="zstd", store_schema=False)
        with pytest.raises(DataError, match="are free"):
            check_parquet(path)


def test_a_first_row_without_a_text_hides_nothing(tmp_path: Path) -> None:
    starts = pa.array([0, *([0] * 1500), *range(1, ROWS + 1)], pa.int32())
    lists = pa.ListArray.from_arrays(starts, repeated(TEXT))
    pq.write_table(pa.table({"c": lists}), tmp_path / "f.parquet", compression="zstd")
    with pytest.raises(DataError, match="are free"):
        check_parquet(tmp_path / "f.parquet")


def test_many_rows_of_one_number_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": np.zeros(FREE // 8 + 1)}), tmp_path / "f.parquet")
    assert (tmp_path / "f.parquet").stat().st_size < 100_000
    with pytest.raises(DataError, match="are free"):
        check_parquet(tmp_path / "f.parquet")


def test_short_texts_in_many_rows_are_not_refused(tmp_path: Path) -> None:
    """Dictionary and rows together are beyond the memory, texts and rows are not."""
    words = pa.array([f"{number:06}.jpg" for number in range(100_000)])
    pq.write_table(pa.table({"image": words, "class": repeated("cat", 100_000)}), tmp_path / "f")
    check_parquet(tmp_path / "f")


def test_candidates_and_names_of_scores_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.zeros((1, 1)))
    one_text_in_every_row(tmp_path / "s.npy.names.parquet")
    with pytest.raises(DataError, match=r"s\.npy\.names\.parquet: .* are free"):
        read_scores(tmp_path / "s.npy")

    class Folder:
        candidates = tmp_path / "c.parquet"
        suspects = tmp_path / "none.parquet"

    numbers = {"probability": np.zeros(ROWS), "rank": np.zeros(ROWS, np.int64)}
    content = pa.table({"image": repeated(TEXT), "class": repeated("cat"), **numbers})
    pq.write_table(content, Folder.candidates)
    table = LabelTable.from_coo(["a"], ["cat"], [0], [0], State.PRESENT, unlisted=State.UNKNOWN)
    with pytest.raises(DataError, match=r"c\.parquet: .* are free"):
        CandidateIndex.read(Folder, table)  # type: ignore[arg-type]


def archive(path: Path, dtype: str, shape: tuple[int, ...], content: bytes) -> Path:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("Y.npy", header.getvalue() + content)
    return path
