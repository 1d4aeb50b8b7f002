"""The generated data set: enough classes, correlated and uneven labels, the same from a seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hilltop.data import LabelTable, State, read_labels
from hilltop.errors import ArgumentError, DataError
from hilltop.inputs.drawing import Glyphs, draw_picture
from hilltop.inputs.synthetic import CLASSES, SCENES, SYMBOLS, choose_classes, write_dataset


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LabelTable]:
    folder = tmp_path_factory.mktemp("set")
    return folder, write_dataset(folder, images=60, size=48, seed=3)


def draws(count: int = 3000) -> np.ndarray:
    labels = np.zeros((count, len(CLASSES)), dtype=bool)
    for number in range(count):
        labels[number, choose_classes(np.random.default_rng([0, number]))] = True
    return labels


def test_there_are_at_least_40_classes_all_with_names_and_symbols_of_their_own() -> None:
    assert len(CLASSES) >= 40
    assert len(set(SYMBOLS.values())) == len(CLASSES) == sum(map(len, SCENES.values()))


def test_every_image_is_a_jpeg_of_the_size_and_all_are_in_the_table(
    written: tuple[Path, LabelTable],
) -> None:
    folder, table = written
    files = sorted(file.name for file in (folder / "images").iterdir())
    assert files == table.images.to_pylist()
    for file in files:
        with Image.open(folder / "images" / file) as image:
            assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (48, 48))


def test_the_file_holds_the_returned_labels_and_they_are_complete(
    written: tuple[Path, LabelTable],
) -> None:
    folder, table = written
    assert read_labels(folder / "labels.parquet") == table
    assert table.unlisted == State.ABSENT
    assert table.count(State.UNKNOWN) == 0
    assert table.labels_per_image().min() >= 1


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(
    written: tuple[Path, LabelTable], tmp_path: Path
) -> None:
    folder, table = written
    again = write_dataset(tmp_path / "again", images=8, size=48, seed=3)
    other = write_dataset(tmp_path / "other", images=8, size=48, seed=4)
    assert again == table.select(range(8)), "more pictures begin with the same ones"
    assert other != again
    for name in again.images.to_pylist():
        pixels = (tmp_path / "again" / "images" / name).read_bytes()
        assert pixels == (folder / "images" / name).read_bytes()
        assert pixels != (tmp_path / "other" / "images" / name).read_bytes()


def test_images_have_about_three_labels() -> None:
    assert 2.7 < draws().sum(axis=1).mean() < 3.3


def test_frequencies_are_uneven_and_no_class_is_nearly_empty() -> None:
    frequency = draws().mean(axis=0)
    assert frequency.max() > 4 * frequency.min()
    assert frequency.min() > 0.008


def test_classes_of_a_scene_are_seen_together() -> None:
    labels = draws()
    sun, cloud = CLASSES.index("sun"), CLASSES.index("cloud")
    assert labels[labels[:, sun], cloud].mean() > 3 * labels[:, cloud].mean()


@pytest.mark.parametrize("name", CLASSES)
def test_each_symbol_is_in_the_font(name: str) -> None:
    nowhere, symbol = Glyphs(["\U0010fffd", SYMBOLS[name]]).things
    assert symbol.tobytes() != nowhere.tobytes()
    assert np.asarray(symbol).max() > 200


def test_a_thing_changes_many_pixels_of_its_picture() -> None:
    glyphs = Glyphs([SYMBOLS["heart"], SYMBOLS["moon"]])
    heart, moon = (
        np.asarray(draw_picture(glyphs, [number], size=64, rng=np.random.default_rng(5)))
        for number in (0, 1)
    )
    changed = (np.abs(heart.astype(int) - moon).max(axis=2) > 40).mean()
    assert 0.03 < changed < 0.4


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("images", {"images": 0, "size": 48, "seed": 0}),
        ("size", {"images": 1, "size": 8, "seed": 0}),
        ("seed", {"images": 1, "size": 48, "seed": -1}),
    ],
)
def test_impossible_arguments_are_named(
    name: str, arguments: dict[str, int], tmp_path: Path
) -> None:
    with pytest.raises(ArgumentError, match=f"^{name} must be at least"):
        write_dataset(tmp_path, **arguments)


def test_a_full_disk_is_told_with_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")  # as Pillow does, without a name

    monkeypatch.setattr(Image.Image, "save", full)
    with pytest.raises(DataError, match=r"00000\d\.jpg: it could not be written: No space left"):
        write_dataset(tmp_path, images=2, size=16, seed=0)
