"""YOLO data sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import (
    LabelTable,
    ReadOptions,
    State,
    read_labels,
    write_labels,
)
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.conftest import picture
from tests.data.fuzz import survives
from tests.data.patched import found_format, patched_file

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")
BOX = "0.5 0.5 0.25 0.25"
SEGMENT = "0.1 0.1 0.2 0.1 0.2 0.3 .15 4e-1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two splits; the names have holes, as ids of COCO do."""
    root = tmp_path / "set"
    for split in ("train", "val"):
        (root / "labels" / split).mkdir(parents=True)
        (root / "images" / split).mkdir(parents=True)
    (root / "data.yaml").write_text(
        "path: ../elsewhere\ntrain: images/train\nval: images/val\n"
        "names:\n  1: cat\n  2: dog\n  '5': red fox\n"
    )
    train = root / "labels" / "train"
    (train / "a.txt").write_text(f"5 {BOX}\n1 {SEGMENT}\r\n5 {BOX} 0.9\n\n")
    (train / "b.txt").write_text("")
    (train / "c.txt").write_text(f"2 {BOX}")
    picture().save(root / "images" / "train" / "a.jpg")
    picture().save(root / "images" / "train" / "d.png")
    (root / "labels" / "val" / "e.txt").write_text(f"2 {BOX}\n")
    return root


def message(path: Path, options: ReadOptions = UNKNOWN) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format="yolo", options=options)
    return str(caught.value)


def table_of(root: Path, **options: str) -> LabelTable:
    return read_labels(root, options=ReadOptions(unlisted="unknown", **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("place", ["", "data.yaml"])
def test_a_class_counts_once_an_image_and_an_empty_file_is_an_image(root: Path, place: str) -> None:
    table = table_of(root / place, split="train")
    assert table.classes == ("cat", "dog", "red fox")
    assert table.images.to_pylist() == ["a.jpg", "b", "c"]
    assert table.dense().tolist() == [[P, U, P], [U, U, U], [U, P, U]]
    assert table.notes == ("1 image has no text file of labels and is left out.",)


def test_several_splits_and_unlisted_pairs_are_asked_about(root: Path) -> None:
    with pytest.raises(AmbiguousInputError, match="--split with one of train, val"):
        table_of(root)
    with pytest.raises(AmbiguousInputError, match="--unlisted"):
        read_labels(root, options=ReadOptions(split="val"))


def test_the_folder_of_labels_finds_the_names_beside_it(root: Path) -> None:
    assert table_of(root / "labels" / "val").labels_of(0) == ("dog",)


def test_a_split_may_hold_its_own_images_and_labels(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "roboflow"
    (other / "valid").mkdir(parents=True)
    (root / "labels" / "train").rename(other / "valid" / "labels")
    (root / "images" / "train").rename(other / "valid" / "images")
    (other / "data.yaml").write_text("nc: 6\nnames: ['v', 'cat', 'dog', 'x', 'y', 'red fox']\n")
    table = table_of(other)
    assert table.images.to_pylist()[0] == "a.jpg"
    assert table.labels_of(0) == ("cat", "red fox")
    assert len(table.classes) == 6


@pytest.mark.parametrize("names", ["classes.txt", "obj.names"])
def test_names_may_stand_in_a_list_beside_images_and_labels(tmp_path: Path, names: str) -> None:
    (tmp_path / names).write_text("cat\ndog\n")
    (tmp_path / "a.txt").write_text(f"1 {BOX}\n")
    (tmp_path / "train.txt").write_text("data/a.jpg\n")
    picture().save(tmp_path / "a.jpg")
    table = table_of(tmp_path)
    assert (table.images.to_pylist(), table.labels_of(0)) == (["a.jpg"], ("dog",))


def test_classes_without_names_are_numbered_or_named_by_the_class_list(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"2 {BOX}\n")
    assert table_of(tmp_path).classes == ("0", "1", "2")
    names = tmp_path.parent / "names.txt"
    names.write_text("x\ny\nz\n")
    options = ReadOptions(unlisted="unknown", classes=names)
    assert read_labels(tmp_path, options=options).labels_of(0) == ("z",)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("3 " + BOX, "a.txt, line 2: class number 3 has no name (there are 3)"),
        ("cat " + BOX, "a.txt, line 2: expected a class number and a box"),
        ("1 0.5 0.5 0.2", "a.txt, line 2: expected a class number and a box"),
        ("1 0.5 0.5 0.2 nan", "a.txt, line 2: expected a class number and a box"),
        ("-1 " + BOX, "a.txt, line 2: expected a class number and a box"),
    ],
)
def test_a_faulty_line_is_named(root: Path, line: str, text: str) -> None:
    (root / "labels" / "train" / "a.txt").write_text(f"1 {BOX}\n{line}\n")
    assert text in message(root, ReadOptions(unlisted="unknown", split="train"))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("names: [cat, dog", "this is not YAML"),
        ("names: 7", "expected the names of classes under 'names'"),
        ("names: {a: cat}", "expected the names of classes under 'names'"),
        ("names: {1: cat, '1': dog}", "a key stands twice"),
        ("names: [cat, cat, dog]", "a number or name stands twice"),
        ("names: !!python/object:os.system {}", "expected the names of classes under 'names'"),
    ],
)
def test_faulty_names_are_said(root: Path, content: str, text: str) -> None:
    (root / "data.yaml").write_text(content)
    (root / "labels" / "train" / "a.txt").write_text("")
    (root / "labels" / "train" / "c.txt").write_text("")
    found = message(root, ReadOptions(unlisted="unknown", split="train"))
    assert text in found


def test_a_path_in_the_yaml_never_leads_out_of_its_folder(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.txt").write_text(f"1 {BOX}\n")
    table = table_of(root / "data.yaml", split="train")
    assert "secret" not in table.images.to_pylist()


def test_round_trip(tmp_path: Path) -> None:
    table = LabelTable.from_coo(
        ["b.jpg", "a.png", "c"], ["cat: 1", "no", "dog"], [0, 0, 1], [2, 0, 2], P, unlisted=U
    )
    write_labels(table, tmp_path / "out", format="yolo")
    assert found_format(tmp_path / "out") == "yolo"
    assert read_labels(tmp_path / "out", options=UNKNOWN) == table
    assert read_labels(tmp_path / "out" / "data.yaml", options=UNKNOWN) == table


def test_what_cannot_be_written_is_said(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 pair that is absent"):
        write_labels(small, tmp_path / "out", format="yolo")
    for images, text in ((["../a.jpg"], "the image name"), (["a.jpg", "a.png"], "differ only")):
        table = LabelTable.from_coo(images, ["x"], [0], [0], P, unlisted=U)
        with pytest.raises(DataError, match=text):
            write_labels(table, tmp_path / "out", format="yolo")


@pytest.mark.parametrize("count", [200, pytest.param(5_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("file", ["data.yaml", "labels/train/a.txt"])
def test_damaged_files_end_in_a_table_or_in_words(root: Path, count: int, file: str) -> None:
    options = ReadOptions(unlisted="unknown", split="train")
    tables, faults = survives(root, count, "yolo", options, file=root / file)
    assert tables > 0
    assert faults > 0


def test_a_patched_data_set_keeps_boxes_and_adds_or_drops_labels(root: Path) -> None:
    options = ReadOptions(unlisted="unknown", split="train")
    answers = [
        ("a.jpg", "dog", State.PRESENT),
        ("a.jpg", "cat", State.ABSENT),
        ("b", "cat", State.PRESENT),
    ]
    new = patched_file(root, answers, options)
    lines = new.files["labels/train/a.txt"].decode().split("\n")
    assert [line for line in lines if line] == [f"5 {BOX}", f"5 {BOX} 0.9", "2 0.5 0.5 1 1"]
    unchanged = root / "labels" / "train" / "c.txt"
    assert new.files["labels/train/c.txt"] == unchanged.read_bytes()
