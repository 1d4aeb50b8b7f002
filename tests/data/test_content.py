"""Compressed label files: what they hold is bounded by memory, whatever their size says."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path

import pytest

from hilltop.data import ReadOptions, array_files, content, read_labels
from hilltop.errors import DataError

TEXT = b"image,label\n" + b"a.jpg,cat\n" * 200_000
OPENED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def write_packed(folder: Path, ending: str) -> Path:
    path = folder / f"labels.csv{ending}"
    if ending == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("labels.csv", TEXT)
    else:
        with OPENED[ending](path, "wb") as file:
            file.write(TEXT)
    return path


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zip"])
def test_what_does_not_fit_into_memory_is_not_unpacked(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_packed(tmp_path, ending)
    assert path.stat().st_size < len(TEXT) / 50
    monkeypatch.setattr(content, "_PIECE", 1 << 16)
    assert read_labels(
        path, options=ReadOptions(unlisted="unknown", image_column="image")
    ).images.to_pylist() == ["a.jpg"]
    monkeypatch.setattr(array_files, "free_memory", lambda: 4_000_000)
    with pytest.raises(DataError, match=r"of memory, but 0\.0 are free"):
        read_labels(path, options=ReadOptions(unlisted="unknown", image_column="image"))
