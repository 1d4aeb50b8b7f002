"""The lists released with the paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.content import Source
from hilltop.data.public import lists
from hilltop.errors import DataError
from tests.data.fuzz import survives

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
CONTENT = "a.jpg,2\nb.jpg, 0 2\nc.jpg,\nd.jpg,0 1 4"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "list.txt"
    path.write_text(CONTENT)
    return path


def message(path: Path, options: ReadOptions | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format="paper_list", options=options)
    return str(caught.value)


def test_numbers_become_classes_up_to_the_highest(file: Path) -> None:
    table = read_labels(file)
    assert table.classes == ("0", "1", "2", "3", "4")
    assert table.images.to_pylist() == ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
    assert [table.labels_of(row) for row in range(4)] == [
        ("2",),
        ("0", "2"),
        (),
        ("0", "1", "4"),
    ]
    assert table.unlisted == U


def test_unlisted_pairs_are_absent_if_the_user_says_so(file: Path) -> None:
    assert read_labels(file, options=ReadOptions(unlisted="absent")).count(A) == 14


def test_line_ends_of_windows_and_a_last_newline_change_nothing(file: Path) -> None:
    table = read_labels(file)
    file.write_bytes((CONTENT + "\n").replace("\n", "\r\n").encode())
    assert read_labels(file) == table


def test_class_names_come_from_the_class_list(file: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("\n".join("vwxyz!"))
    table = read_labels(file, options=ReadOptions(classes=names))
    assert table.classes == tuple("vwxyz!")
    assert table.labels_of(3) == ("v", "w", "z")
    names.write_text("v\nw\n")
    text = message(file, ReadOptions(classes=names))
    assert "list.txt, line 1: class number 2 is too high" in text
    assert "line 4: class number 4" in text


@pytest.mark.parametrize("line", ["a.jpg,x", "a.jpg,-1", "a.jpg,1.5", "a.jpg,1;2", "a,٣"])
def test_what_is_no_class_number_is_a_fault(file: Path, line: str) -> None:
    file.write_text(f"ok.jpg,1\n{line}\nok2.jpg,2\n", encoding="utf-8")
    assert "list.txt, line 2: expected class numbers" in message(file)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("a.jpg", "row 2 has 1 cell"),
        ("a.jpg,1,2", "row 2 has 3 cells"),
        (",3", "line 2: the image name is empty"),
    ],
)
def test_a_line_of_another_form_is_a_fault(file: Path, line: str, text: str) -> None:
    file.write_text(f"ok.jpg,1\n{line}\nok2.jpg,2\n", encoding="utf-8")
    assert text in message(file)


def test_an_absurd_class_number_is_a_fault_and_no_table_of_that_width(file: Path) -> None:
    file.write_text("a.jpg,1 99999999\n")
    assert "line 1: class number 99999999 is too high" in message(file)


def test_an_image_on_two_lines_is_merged_and_noted(file: Path) -> None:
    file.write_text("a.jpg,1 2\nb.jpg,0\na.jpg,0\nb.jpg,0\n")
    table = read_labels(file)
    assert table.dense().tolist() == [[P, P, P], [P, U, U]]
    assert table.notes[0].startswith("2 image names are in several rows; the labels")
    assert "1 of them has different labels there; the first is 'a.jpg'" in table.notes[0]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "image,label\na.jpg,1\nb.jpg,2\n",
        "a,b,c\n1,2,3\n",
        "a.jpg,\nb.jpg,\n",
        "{}",
        "a\\b.jpg\n",
    ],
)
def test_other_content_does_not_fit(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.txt"
    path.write_text(content)
    assert not lists.matches_numbers(Source(path))
    assert not lists.matches_numbers(Source(tmp_path))


def test_a_few_damaged_lines_are_recognised_and_reported(file: Path) -> None:
    file.write_text("".join(f"{number}.jpg,{number}\n" for number in range(20)) + "broken\n")
    with pytest.raises(DataError, match="row 21 has 1 cell"):
        read_labels(file)


def test_round_trip(file: Path, tmp_path: Path) -> None:
    table = read_labels(file)
    write_labels(table, tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_text() == "a.jpg,2\nb.jpg,0 2\nc.jpg,\nd.jpg,0 1 4\n"
    assert read_labels(tmp_path / "again.txt") == table
    assert not (tmp_path / "again.txt.classes.txt").exists()


@pytest.mark.parametrize("classes", [("cat", "red fox"), ("0", "1", "2"), ("1", "0")])
def test_other_classes_are_kept_in_a_file_beside(tmp_path: Path, classes: tuple[str, ...]) -> None:
    table = LabelTable.from_coo(["a", "b"], classes, [0, 1], [1, 0], P, unlisted=U)
    write_labels(table, tmp_path / "list.txt")
    assert (tmp_path / "list.txt.classes.txt").read_text().splitlines() == list(classes)
    again = read_labels(tmp_path / "list.txt")
    assert again == table
    assert again.notes == ("the class names are those of list.txt.classes.txt.",)


def test_an_old_file_of_names_does_not_rename_a_new_list(file: Path) -> None:
    (file.parent / "new.txt.classes.txt").write_text("v\nw\nx\ny\nz\n")
    table = read_labels(file)
    write_labels(table, file.parent / "new.txt")
    assert read_labels(file.parent / "new.txt") == table


def test_what_cannot_be_written_is_said(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 pair that is absent"):
        write_labels(small, tmp_path / "out.txt")
    with pytest.raises(DataError, match=r"the image name 'd, e.jpg'"):
        write_labels(small, tmp_path / "out.txt", lossy=True)
    absent = LabelTable.from_coo(["a"], ["0", "1"], [0], [1], P, unlisted=A)
    with pytest.raises(DataError, match="1 unlisted pair that is absent"):
        write_labels(absent, tmp_path / "out.txt")


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_files_end_in_a_table_or_in_words(file: Path, count: int) -> None:
    tables, faults = survives(file, count, "paper_list", ReadOptions())
    assert tables > 0
    assert faults > 0


@pytest.mark.parametrize(
    ("name", "labels"),
    [("full", 241_035), ("0.75left", 181_422), ("0.4left", 96_251), ("singlelabel", 82_081)],
)
def test_the_real_lists_have_the_counts_of_the_paper(
    real_lists: Path, name: str, labels: int
) -> None:
    table = read_labels(real_lists / f"coco_train_{name}.txt")
    assert (len(table), len(table.classes), table.count(P)) == (82_081, 80, labels)


def test_the_real_list_without_a_last_newline_is_whole(real_lists: Path) -> None:
    table = read_labels(real_lists / "nus_val.txt")
    assert (len(table), len(table.classes)) == (50_720, 81)
