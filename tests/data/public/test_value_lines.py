"""Lines with an image and a value for each class: CelebA's attributes, and lists without names."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.content import Source
from hilltop.data.public import lists
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.conftest import write
from tests.data.fuzz import survives
from tests.data.patched import PatchCase, check_patch, found_format

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
CELEBA = "2\r\ncat cow dog \r\na.jpg  1 -1 -1\r\nb.jpg -1 -1 -1\r\n"
LIST = "x/a.jpg 0 1 0\nx/b.jpg 0 0 0\nc.jpg 1 1 0\n"
UNKNOWN = ReadOptions(unlisted="unknown")


@pytest.fixture
def attributes(tmp_path: Path) -> Path:
    return write(tmp_path / "list_attr.txt", CELEBA)


@pytest.fixture
def values(tmp_path: Path) -> Path:
    return write(tmp_path / "train.txt", LIST)


def message(path: Path, format: str, options: ReadOptions = UNKNOWN) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format=format, options=options)
    return str(caught.value)


def test_minus_one_is_absent_in_celeba(attributes: Path) -> None:
    table = read_labels(attributes)
    assert table.classes == ("cat", "cow", "dog")
    assert table.dense().tolist() == [[P, A, A], [A, A, A]]
    assert table.notes == ()
    other = read_labels(attributes, options=ReadOptions(minus_one="unknown"))
    assert other.dense().tolist() == [[P, U, U], [U, U, U]]


def test_a_count_that_is_not_that_of_the_lines_is_noted(attributes: Path) -> None:
    attributes.write_text(CELEBA.replace("2", "202599", 1))
    notes = read_labels(attributes).notes
    assert notes == ("the first line says 202,599 images, but the file has 2.",)


def test_zeros_are_asked_about(attributes: Path, values: Path) -> None:
    attributes.write_text(CELEBA.replace("-1", "0", 1))
    for path in (attributes, values):
        with pytest.raises(AmbiguousInputError, match="'0' is in"):
            read_labels(path)
    assert read_labels(attributes, options=UNKNOWN).dense().tolist() == [[P, U, A], [A, A, A]]


@pytest.mark.parametrize("mark", [" ", "\t", "   "])
def test_values_are_between_spaces_or_tabs(values: Path, mark: str) -> None:
    values.write_text(LIST.replace(" ", mark))
    assert found_format(values) == "multi_hot"
    table = read_labels(values, options=UNKNOWN)
    assert table.classes == ("0", "1", "2")
    assert table.images.to_pylist() == ["x/a.jpg", "x/b.jpg", "c.jpg"]
    assert table.dense().tolist() == [[U, P, U], [U, U, U], [P, P, U]]


def test_names_come_from_the_class_list(values: Path, tmp_path: Path) -> None:
    names = write(tmp_path / "names.txt", "cat\ndog\nred fox\n")
    options = ReadOptions(unlisted="absent", classes=names)
    table = read_labels(values, options=options)
    assert table.labels_of(2) == ("cat", "dog")
    assert table.count(A) == 6
    names.write_text("cat\n")
    assert "3 class columns, but 1 name in the class list" in message(values, "multi_hot", options)


def test_minus_one_is_asked_about_in_a_list(values: Path) -> None:
    values.write_text(LIST + "d.jpg -1 1 0\n")
    with pytest.raises(AmbiguousInputError, match="--minus-one"):
        read_labels(values, options=UNKNOWN)
    options = ReadOptions(unlisted="unknown", minus_one="absent")
    assert read_labels(values, options=options).count(A) == 1


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("d.jpg 0 2 0", "hold '2' (row 4)"),
        ("d.jpg 0 1", "row 4 has 3 cells"),
        ("d.jpg", "row 4 has 1 cell"),
    ],
)
def test_a_faulty_line_is_named(values: Path, line: str, text: str) -> None:
    values.write_text(f"{LIST}{line}\n")
    assert text in message(values, "multi_hot")


def test_faulty_headers_are_said(attributes: Path) -> None:
    for text in ("", "2\n", "many\ncat\na.jpg 1\n"):
        attributes.write_text(text)
        assert "line 1: expected the number of images" in message(attributes, "celeba")


@pytest.mark.parametrize(
    "content",
    ["", "a.jpg,0 1\nb.jpg,1\n", "image,cat,dog\na,0,1\n", "2008_01 -1\n2008_02 1\n", "3 5 2\n"],
)
def test_other_content_does_not_fit(tmp_path: Path, content: str) -> None:
    path = write(tmp_path / "other.txt", content)
    assert not lists.matches_multi_hot(Source(path))
    assert not lists.matches_celeba(Source(path))
    assert not lists.matches_celeba(Source(tmp_path))


def test_an_image_on_two_lines_must_not_contradict_itself(values: Path) -> None:
    values.write_text(LIST + "c.jpg 0 1 0\n")
    assert "c.jpg' has class '0' both" in message(
        values, "multi_hot", ReadOptions(unlisted="absent")
    )
    table = read_labels(values, options=UNKNOWN)
    assert table.notes[0].startswith("1 image name is in several rows")


def test_round_trips(tmp_path: Path) -> None:
    for classes in (["0", "1"], ["cat", "red fox"]):
        table = LabelTable.from_coo(["b", "a"], classes, [0, 1], [1, 0], P, unlisted=U)
        write_labels(table, tmp_path / f"{classes[0]}.txt", format="multi_hot")
        assert read_labels(tmp_path / f"{classes[0]}.txt", options=UNKNOWN) == table


def test_what_cannot_be_written_is_said(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 pair that is absent"):
        write_labels(small, tmp_path / "out.txt", format="multi_hot")
    with pytest.raises(DataError, match="the image name 'd, e"):
        write_labels(small, tmp_path / "out.txt", format="multi_hot", lossy=True)
    with pytest.raises(DataError, match="read, but not written"):
        write_labels(small, tmp_path / "out.txt", format="celeba", lossy=True)


PATCHES = [
    PatchCase(
        "aligned attributes",
        "celeba",
        CELEBA,
        ["- b.jpg -1 -1 -1\r\n", "+ b.jpg -1 -1  1\r\n"],
        options=ReadOptions(),
    ),
    PatchCase(
        "a list",
        "multi_hot",
        "a.jpg 1 0 0\nb.jpg 0 0 0",
        ["- a.jpg 1 0 0\n", "+ a.jpg 1 -1 0\n", "- b.jpg 0 0 0", "+ b.jpg 0 0 1"],
    ),
    PatchCase(
        "a list with -1",
        "multi_hot",
        "a.jpg 1 0 0\nb.jpg 0 -1 0\n",
        ["- a.jpg 1 0 0\n", "+ a.jpg 1 -1 0\n", "- b.jpg 0 -1 0\n", "+ b.jpg 0 -1 1\n"],
        options=ReadOptions(unlisted="unknown", minus_one="absent"),
    ),
]


@pytest.mark.parametrize("case", PATCHES, ids=lambda case: case.name)
def test_patches_change_only_the_answered_values(case: PatchCase, tmp_path: Path) -> None:
    if case.format == "multi_hot":
        for file in (case.file, f"new {case.file}"):
            write(tmp_path / f"{file}.classes.txt", "cat\ncow\ndog\n")
    check_patch(case, tmp_path)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("format", ["celeba", "multi_hot"])
def test_damaged_files_end_in_a_table_or_in_words(
    attributes: Path, values: Path, format: str, count: int
) -> None:
    path = attributes if format == "celeba" else values
    tables, faults = survives(path, count, format, UNKNOWN)
    assert tables > 0
    assert faults > 0
