"""PASCAL VOC: image sets, and what they share with the XML files."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Literal

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.annotations import voc
from hilltop.data.content import Source
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.annotations.voc_devkit import SETS, message
from tests.data.conftest import SHARED
from tests.data.fuzz import survives
from tests.data.patched import found_format

Difficult = Literal["unknown", "present", "absent"]
A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
TRAIN = ReadOptions(split="train")
XML = ReadOptions(split="train", unlisted="absent")


def test_image_sets_say_present_absent_and_difficult(devkit: Path) -> None:
    table = read_labels(devkit, options=TRAIN)
    assert table.images.to_pylist() == ["2008_01", "2008_02"]
    assert table.classes == ("dog", "train")
    assert table.dense().tolist() == [[A, U], [P, A]]
    assert table.unlisted == A
    assert read_labels(devkit.parent, options=TRAIN) == table


@pytest.mark.parametrize(("word", "state"), [("unknown", U), ("present", P), ("absent", A)])
@pytest.mark.parametrize("format", ["voc", "voc_xml"])
def test_difficult_is_what_the_option_says(
    devkit: Path, format: str, word: Difficult, state: State
) -> None:
    options = ReadOptions(split="train", difficult=word, unlisted="absent")
    table = read_labels(devkit, format=format, options=options)
    assert table.dense().tolist() == [[A, state], [P, A]]


def test_minus_one_is_absent_unless_the_user_says_otherwise(devkit: Path) -> None:
    table = read_labels(devkit, options=ReadOptions(split="train", minus_one="unknown"))
    assert table.dense().tolist() == [[U, U], [P, U]]


def test_several_splits_or_data_sets_are_left_to_the_user(devkit: Path) -> None:
    with pytest.raises(AmbiguousInputError, match="--split with one of train, val"):
        read_labels(devkit)
    with pytest.raises(AmbiguousInputError, match="no split 'test'"):
        read_labels(devkit, options=ReadOptions(split="test"))
    (devkit.parent / "VOC2007" / "ImageSets" / "Main").mkdir(parents=True)
    with pytest.raises(AmbiguousInputError, match="several data sets here: VOC2007, VOC2012"):
        read_labels(devkit.parent, options=TRAIN)


def test_image_sets_without_a_list_of_the_split_are_read_alike(devkit: Path, main: Path) -> None:
    table = read_labels(devkit, options=TRAIN)
    for name in ("train", "val"):
        (main / f"{name}.txt").unlink()
    assert read_labels(devkit, options=TRAIN) == table


def test_a_class_list_gives_the_order_and_is_closed(devkit: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    options = ReadOptions(split="train", classes=names)
    names.write_text("train\ndog\n")
    assert read_labels(devkit, options=options).classes == ("train", "dog")
    names.write_text("dog\ncat\n")
    text = message(devkit, "voc", options)
    assert "class 'train' is not in the class list (2 names)" in text
    assert "there is no file for class 'cat'" in text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("2008_01 -1\n2008_02 2\n", "dog_train.txt, line 2: expected an image and 1, 0 or -1"),
        ("2008_01 -1\n2008_02\n", "dog_train.txt, line 2: expected an image and 1, 0 or -1"),
        ("2008_01 -1\n2008_09 1\n", "line 2: expected image '2008_02', but got '2008_09'"),
        ("2008_01 -1\n", "dog_train.txt: expected 2 images, but got 1"),
    ],
)
def test_faulty_image_sets_are_named(devkit: Path, main: Path, content: str, text: str) -> None:
    (main / "dog_train.txt").write_text(content)
    assert text in message(devkit, "voc", TRAIN)


def test_an_image_twice_is_a_fault(devkit: Path, main: Path) -> None:
    (main / "train.txt").write_text("2008_01\n2008_01\n")
    text = "train.txt, line 2: image '2008_01' is also in line 1"
    assert text in message(devkit, "voc", TRAIN)
    assert text in message(devkit, "voc_xml", XML)


def test_xml_of_a_split_says_the_same_as_the_image_sets(devkit: Path) -> None:
    for split in ("train", "val"):
        options = ReadOptions(split=split, unlisted="absent")
        by_xml = read_labels(devkit, format="voc_xml", options=options)
        assert by_xml.dense().tolist() == read_labels(devkit, options=options).dense().tolist()


def test_image_sets_say_more_than_xml_files(devkit: Path, main: Path, bare: Path) -> None:
    assert found_format(devkit) == "voc"
    assert found_format(devkit.parent) == "voc"
    assert voc.matches_xml(Source(bare))
    assert not voc.matches_sets(Source(bare))
    for path in main.glob("*_*.txt"):
        path.unlink()
    assert voc.matches_xml(Source(devkit))
    assert not voc.matches_sets(Source(devkit))
    for path in (main, main / "train.txt", bare / "2008_01.xml"):
        assert not voc.FORMAT.recognises(Source(path))
        assert not voc.XML_FORMAT.recognises(Source(path))


def test_a_file_or_an_empty_folder_is_a_fault(bare: Path, tmp_path: Path) -> None:
    for format in ("voc", "voc_xml"):
        assert "this is a file, but" in message(bare / "2008_01.xml", format, XML)
    (tmp_path / "empty").mkdir()
    assert "there are no files such as cat_train.txt" in message(tmp_path / "empty", "voc", XML)
    assert "there are no XML files here" in message(tmp_path / "empty", "voc_xml", XML)


def test_image_sets_round_trip(devkit: Path, tmp_path: Path) -> None:
    table = read_labels(devkit, options=TRAIN)
    write_labels(table, tmp_path / "again", format="voc")
    assert read_labels(tmp_path / "again") == table
    written = tmp_path / "again" / "ImageSets" / "Main" / "train_train.txt"
    assert written.read_text() == SETS["train_train"]


def test_what_cannot_be_written_is_said(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="7 unlisted pairs that are unknown"):
        write_labels(small, tmp_path / "out", format="voc")
    with pytest.raises(DataError, match="1 pair that is absent"):
        write_labels(small, tmp_path / "out", format="voc_xml")
    odd = LabelTable.from_coo(["a\nb"], ["x"], [0], [0], P, unlisted=A)
    for format in ("voc", "voc_xml"):
        with pytest.raises(DataError, match="the image name"):
            write_labels(odd, tmp_path / "out", format=format)
    assert not (tmp_path / "out").exists()


def test_lossy_image_sets_write_unknown_as_difficult(small: LabelTable, tmp_path: Path) -> None:
    write_labels(small, tmp_path / "out", format="voc", lossy=True)
    assert read_labels(tmp_path / "out").dense().tolist() == small.dense().tolist()


FUZZED = [
    ("voc", "ImageSets/Main/dog_train.txt"),
    ("voc", "ImageSets/Main/train.txt"),
    ("voc_xml", "ImageSets/Main/train.txt"),
    ("voc_xml", "Annotations/2008_02.xml"),
]


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("format", "file"), FUZZED)
def test_damaged_files_end_in_a_table_or_in_words(
    devkit: Path, format: str, file: str, count: int
) -> None:
    tables, faults = survives(devkit, count, format, XML, file=devkit / file)
    assert tables > 0
    assert faults > 0


def test_the_real_train_split_has_8331_labels(tmp_path: Path) -> None:
    archive = SHARED / "voc2012_annotations.tar.xz"
    if not archive.exists():
        pytest.skip(f"the real annotations are not there: {archive}")
    with tarfile.open(archive) as content:
        wanted = [one for one in content if one.name.endswith("_train.txt")]
        content.extractall(tmp_path, members=wanted, filter="data")
    table = read_labels(tmp_path / "VOCdevkit", options=TRAIN)
    assert (len(table), len(table.classes), table.count(P)) == (5_717, 20, 8_331)
