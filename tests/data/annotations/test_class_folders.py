"""One folder for each class."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.conftest import picture
from tests.data.patched import found_format

P, U = State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    for place in ("cat/a.jpg", "cat/b.PNG", "red fox/c.jpg"):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        picture().convert("RGB").save(root / place)
    (root / "red fox" / "a.jpg").symlink_to(root / "cat" / "a.jpg")
    (root / "red fox" / "notes.txt").write_text("no image")
    (root / ".cache").mkdir()
    (root / "empty").mkdir()
    return root


def test_an_image_in_several_folders_has_several_labels(root: Path) -> None:
    table = read_labels(root, options=UNKNOWN)
    assert table.classes == ("cat", "red fox")
    assert table.images.to_pylist() == ["a.jpg", "b.PNG", "c.jpg"]
    assert table.dense().tolist() == [[P, P], [P, U], [U, P]]
    assert table.notes == ()


def test_unlisted_pairs_are_asked_about(root: Path) -> None:
    with pytest.raises(AmbiguousInputError, match="--unlisted"):
        read_labels(root)


def test_files_of_one_name_and_different_size_are_noted(root: Path) -> None:
    (root / "red fox" / "b.PNG").write_bytes(b"another one")
    table = read_labels(root, options=UNKNOWN)
    assert "1 image name stands for files of different size" in table.notes[0]
    assert "'b.PNG'" in table.notes[0]


def test_a_split_is_chosen(root: Path, tmp_path: Path) -> None:
    both = tmp_path / "both"
    both.mkdir()
    root.rename(both / "train")
    (both / "val" / "cat").mkdir(parents=True)
    (both / "val" / "dog").mkdir(parents=True)
    picture().save(both / "val" / "cat" / "z.jpg")
    picture().save(both / "val" / "dog" / "z.jpg")
    with pytest.raises(AmbiguousInputError, match="--split with one of train, val"):
        read_labels(both, options=UNKNOWN)
    table = read_labels(both, options=ReadOptions(unlisted="unknown", split="val"))
    assert table.dense().tolist() == [[P, P]]


def test_the_class_list_is_closed_and_gives_the_order(root: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("red fox\ndog\ncat\n")
    options = ReadOptions(unlisted="unknown", classes=names)
    assert read_labels(root, options=options).dense().tolist()[1] == [U, U, P]
    names.write_text("red fox\n")
    with pytest.raises(DataError, match="class 'cat' is not in the class list"):
        read_labels(root, options=options)


def test_folders_without_images_or_with_images_beside_do_not_fit(root: Path) -> None:
    assert found_format(root) == "class_folders"
    picture().save(root / "loose.jpg")
    with pytest.raises(AmbiguousInputError, match="matches no known format"):
        read_labels(root)
    with pytest.raises(DataError, match="there are no folders with images"):
        read_labels(root / "cat", format="class_folders", options=UNKNOWN)
    with pytest.raises(DataError, match="this format is a folder"):
        read_labels(root / "loose.jpg", format="class_folders", options=UNKNOWN)


def test_writing_says_why_not(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="read, but not written"):
        write_labels(small, tmp_path / "out", format="class_folders", lossy=True)
