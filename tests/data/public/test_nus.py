"""NUS-WIDE in its original layout."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from hilltop.data import ReadOptions, State, read_labels
from hilltop.data.content import Source
from hilltop.data.public import nus
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.fuzz import survives

Unlisted = Literal["unknown", "absent"]
A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
IMAGES = ["actor\\0001_2124494179.jpg", "actor\\0002_174174086.jpg", "zoo\\0003_9.jpg"]
ALL = ReadOptions(unlisted="unknown", split="all")


def put(path: Path, lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines.replace(" ", "\n") + "\n")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "NUS-WIDE"
    put(root / "ConceptsList" / "Concepts81.txt", "airport zebra")
    put(root / "ImageList" / "Imagelist.txt", " ".join(IMAGES))
    put(root / "ImageList" / "TrainImagelist.txt", " ".join(IMAGES[:2]))
    put(root / "ImageList" / "TestImagelist.txt", IMAGES[2])
    truth = root / "Groundtruth"
    put(truth / "AllLabels" / "Labels_airport.txt", "0 1 1")
    put(truth / "AllLabels" / "Labels_zebra.txt", "0 0 1")
    put(truth / "TrainTestLabels" / "Labels_airport_Train.txt", "0 1")
    put(truth / "TrainTestLabels" / "Labels_zebra_Train.txt", "0 0")
    put(truth / "TrainTestLabels" / "Labels_airport_Test.txt", "1")
    put(truth / "TrainTestLabels" / "Labels_zebra_Test.txt", "1")
    return root


def message(path: Path, options: ReadOptions = ALL) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format="nus", options=options)
    return str(caught.value)


def test_ones_are_present_and_names_keep_their_backslashes(folder: Path) -> None:
    table = read_labels(folder, options=ALL)
    assert table.images.to_pylist() == IMAGES
    assert table.classes == ("airport", "zebra")
    assert table.dense().tolist() == [[U, U], [P, U], [P, P]]


@pytest.mark.parametrize(("split", "rows"), [("train", [0, 1]), ("test", [2])])
def test_each_split_is_a_part_of_all(folder: Path, split: str, rows: list[int]) -> None:
    whole = read_labels(folder, options=ALL)
    part = read_labels(folder, options=ReadOptions(unlisted="unknown", split=split))
    assert part == whole.select(rows)


def test_zeros_and_the_split_are_left_to_the_user(folder: Path) -> None:
    with pytest.raises(AmbiguousInputError, match="--split with one of all, test, train"):
        read_labels(folder, options=ReadOptions(unlisted="unknown"))
    with pytest.raises(AmbiguousInputError, match=r"--unlisted unknown"):
        read_labels(folder, options=ReadOptions(split="all"))
    with pytest.raises(AmbiguousInputError, match=r"no split 'tain'. Did you mean 'train'"):
        read_labels(folder, options=ReadOptions(split="tain"))
    assert read_labels(folder, options=ReadOptions(split="all", unlisted="absent")).count(A) == 3


def test_the_only_split_needs_no_option_and_lists_may_lie_in_the_root(folder: Path) -> None:
    table = read_labels(folder, options=ALL)
    (folder / "ImageList" / "Imagelist.txt").rename(folder / "Imagelist.txt")
    (folder / "ConceptsList" / "Concepts81.txt").rename(folder / "Concepts81.txt")
    for name in ("TrainImagelist.txt", "TestImagelist.txt"):
        (folder / "ImageList" / name).unlink()
    assert read_labels(folder, options=ReadOptions(unlisted="unknown")) == table


def test_a_class_list_takes_the_place_of_the_concepts(folder: Path, tmp_path: Path) -> None:
    names = put(tmp_path / "names.txt", "zebra")
    options = ReadOptions(unlisted="unknown", split="all", classes=names)
    assert read_labels(folder, options=options).dense().tolist() == [[U], [U], [P]]
    put(names, "zebra sofa")
    assert "there is no file 'Labels_sofa.txt' for concept 'sofa'" in message(folder, options)


def test_blanks_and_windows_line_ends_change_nothing(folder: Path) -> None:
    table = read_labels(folder, options=ALL)
    labels = folder / "Groundtruth" / "AllLabels" / "Labels_airport.txt"
    for content in (b"0 \r\n1 \r\n1", b"0\n1\n1", b" 0\n1\n 1\n"):
        labels.write_bytes(content)
        assert read_labels(folder, options=ALL) == table


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("0 1", "expected 3 lines, one for each image in the list, but got 2. Was the file cut"),
        ("0 1 1 0", "expected 3 lines, one for each image in the list, but got 4."),
        ("0 -1 1", "Labels_airport.txt, line 2: expected 0 or 1, but got '-1'"),
        ("0  1", "Labels_airport.txt, line 2: expected 0 or 1, but got ''"),
        ("0 2 1", "Labels_airport.txt, line 2: expected 0 or 1, but got '2'"),
    ],
)
def test_faulty_labels_are_named(folder: Path, content: str, text: str) -> None:
    put(folder / "Groundtruth" / "AllLabels" / "Labels_airport.txt", content)
    assert text in message(folder)


def test_an_image_twice_and_a_concept_without_file_are_faults(folder: Path) -> None:
    put(folder / "ImageList" / "Imagelist.txt", "a b a")
    assert "Imagelist.txt, line 3: image 'a' is also in line 1" in message(folder)
    put(folder / "ImageList" / "Imagelist.txt", "a b c")
    put(folder / "ConceptsList" / "Concepts81.txt", "airport ../../secret")
    assert "there is no file 'Labels_../../secret.txt'" in message(folder)


def test_a_concept_never_becomes_a_path(folder: Path) -> None:
    labels = folder / "Groundtruth" / "AllLabels"
    put(labels / "Labels_x" / "y.txt", "1 1 1")
    put(folder / "ConceptsList" / "Concepts81.txt", "airport x/y")
    assert "there is no file 'Labels_x/y.txt'" in message(folder)


def test_only_the_layout_fits(folder: Path, tmp_path: Path) -> None:
    assert nus.FORMAT.recognises(Source(folder))
    assert not nus.FORMAT.recognises(Source(tmp_path))
    assert not nus.FORMAT.recognises(Source(folder / "ImageList" / "Imagelist.txt"))
    assert "this is a file, but" in message(folder / "ImageList" / "Imagelist.txt")
    (tmp_path / "empty").mkdir()
    assert "there is no Imagelist.txt" in message(tmp_path / "empty")
    assert len(read_labels(tmp_path, format="nus", options=ALL)) == 3, "looked for in all folders"
    (folder / "ConceptsList" / "Concepts81.txt").unlink()
    assert not nus.FORMAT.recognises(Source(folder))
    assert "there is no Concepts81.txt" in message(folder)


FILES = [
    "ImageList/Imagelist.txt",
    "ConceptsList/Concepts81.txt",
    "Groundtruth/AllLabels/Labels_airport.txt",
]


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("file", FILES)
def test_damaged_files_end_in_a_table_or_in_words(folder: Path, file: str, count: int) -> None:
    tables, faults = survives(folder, count, "nus", ALL, file=folder / file)
    assert tables + faults == count
    assert faults > 0
