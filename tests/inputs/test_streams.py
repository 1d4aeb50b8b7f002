"""Features of images in tar files and behind addresses are those of the same images in a folder."""

from __future__ import annotations

import io
import tarfile
import threading
import time
from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file

from hilltop.cli.main import main
from hilltop.errors import ArgumentError, DataError
from hilltop.inputs import read_features
from hilltop.inputs.streams import ImageStream, _in_threads, image_streams, is_stream
from tests.data.conftest import picture

IMAGES = 150


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pictures, the same in three tar files beside it, and a small backbone."""
    folder = tmp_path_factory.mktemp("data") / "photos"
    folder.mkdir()
    for number in range(IMAGES):
        picture(number).save(folder / f"{number:03}.png")
    files = sorted(folder.iterdir())
    for number in range(3):
        with tarfile.open(folder.parent / f"part-{number:02}.tar", "w") as archive:
            for file in files[number * 64 : (number + 1) * 64]:
                archive.add(file, file.name)
                about = tarfile.TarInfo(f"{file.stem}.json")  # as in WebDataset: passed over
                about.size = 2
                archive.addfile(about, io.BytesIO(b"{}"))
    torch.manual_seed(0)
    weights = folder.parent / "small.safetensors"
    save_file(timm.create_model("resnet10t").state_dict(), weights)
    return folder


def compute(photos: Path, source: object, out: Path, *words: str) -> int:
    options = ["--backbone", "resnet10t", "--weights", str(photos.parent / "small.safetensors")]
    options += ["--image-size", "32", "--workers", "2", "--shard", "64"]
    return main(["features", str(source), *options, "--out", str(out), *words])


@pytest.fixture(scope="module")
def expected(photos: Path) -> Path:
    out = photos.parent / "expected.npz"
    assert compute(photos, photos, out) == 0
    return out


def in_memory(photos: Path) -> str:
    system = fsspec.filesystem("memory")
    for file in photos.iterdir():
        system.pipe_file(f"/bucket/photos/{file.name}", file.read_bytes())
    return "memory://bucket/photos"


@pytest.mark.parametrize("kind", ["tar", "tars by pattern", "file", "memory"])
def test_streams_give_the_features_of_the_folder(
    photos: Path, expected: Path, tmp_path: Path, kind: str
) -> None:
    source = {
        "tar": photos.parent / "part-{00..02}.tar",
        "tars by pattern": f"file://{photos.parent}/part-*.tar",
        "file": f"file://{photos}",
        "memory": in_memory(photos),
    }[kind]
    out = tmp_path / ("f.npy" if kind == "memory" else "f.npz")
    assert compute(photos, source, out) == 0
    found, whole = read_features(out), read_features(expected)
    assert found.images.equals(whole.images)
    # ONNX Runtime computes those of tar files, however few.
    np.testing.assert_allclose(found.values, whole.values, rtol=2e-3, atol=2e-3)
    assert isinstance(found.values, np.memmap) == (out.suffix == ".npy")
    assert not out.with_suffix(".shards").exists()


def test_what_was_stopped_goes_on_where_it_was(
    photos: Path, expected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tars = tmp_path / "tars"
    tars.mkdir()
    for file in photos.parent.glob("*.tar"):
        (tars / file.name).write_bytes(file.read_bytes())
    whole = (tars / "part-01.tar").read_bytes()
    (tars / "part-01.tar").write_bytes(whole[: len(whole) // 2])
    assert compute(photos, tars / "part-*.tar", tmp_path / "f.npz") == 1
    error = capsys.readouterr().err
    assert "part-01.tar" in error
    assert "Traceback" not in error
    assert len(list((tmp_path / "f.shards").glob("shard-*.npz"))) == 1
    (tars / "part-01.tar").write_bytes(whole)
    assert compute(photos, tars / "part-*.tar", tmp_path / "f.npz") == 0
    assert "1 of 3 shards are there already" in capsys.readouterr().out
    assert read_features(tmp_path / "f.npz").images.equals(read_features(expected).images)


def test_broken_images_are_named_or_left_out(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    system = fsspec.filesystem("memory")
    for number in range(3):
        content = (photos / f"{number:03}.png").read_bytes()
        system.pipe_file(f"/broken/{number}.png", content[: 60 if number == 1 else None])
    assert compute(photos, "memory://broken", tmp_path / "f.npz") == 1
    assert "1.png" in capsys.readouterr().err
    assert compute(photos, "memory://broken", tmp_path / "f.npz", "--skip-broken") == 0
    assert read_features(tmp_path / "f.npz").images.to_pylist() == ["0.png", "2.png"]


def test_images_of_one_name_in_two_tar_files_are_refused(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = (photos.parent / "part-02.tar").read_bytes()
    for name in ("a.tar", "b.tar"):
        (tmp_path / name).write_bytes(content)
    assert compute(photos, tmp_path / "?.tar", tmp_path / "f.npz") == 1
    assert "several images are called '128.png'" in capsys.readouterr().err.lower()


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("nothing-{0..1}.tar", DataError, "nothing-0.tar: there is no such file"),
        ("memory://nothing", DataError, "there are no images"),
        ("nosuch://bucket/photos", ArgumentError, "cannot be opened"),
    ],
)
def test_what_is_not_there_is_said(source: str, kind: type[Exception], words: str) -> None:
    assert is_stream(source)
    with pytest.raises(kind, match=words):
        image_streams(source, 64)


def test_a_folder_behind_an_address_is_listed_in_streams_of_the_size() -> None:
    system = fsspec.filesystem("memory")
    for name in ("b/2.jpg", "a/1.JPG", "a/3.jpg", "a/notes.txt"):
        system.pipe_file(f"/listed/{name}", b"x")
    streams = image_streams("memory://listed/", 2)
    assert streams == [
        ImageStream("memory://listed", ("a/1.JPG", "a/3.jpg")),
        ImageStream("memory://listed", ("b/2.jpg",)),
    ]


def test_items_are_read_while_others_are_worked_on_and_never_many_ahead() -> None:
    taken, together = [], threading.Barrier(2, timeout=60)

    def items() -> object:
        for number in range(40):
            taken.append(number)
            yield number

    def work(number: int) -> int:
        together.wait()  # only two at once can pass
        return number

    done = []
    for number in _in_threads(work, items(), 2):  # type: ignore[arg-type]
        assert len(taken) <= number + 2 * 4 + 3
        done.append(number)
        time.sleep(0)
    assert done == list(range(40))
