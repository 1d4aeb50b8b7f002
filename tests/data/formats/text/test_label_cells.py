"""Cells that hold all labels of an image: delimiters, JSON text, class numbers and faults."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import ReadOptions, State, read_labels
from hilltop.errors import DataError, OptionNeeded
from tests.data.conftest import write

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
UNKNOWN, ABSENT = ReadOptions(unlisted="unknown"), ReadOptions(unlisted="absent")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


@pytest.mark.parametrize(
    "cells",
    [
        ['"cat, dog"', "fox"],
        ["cat dog", "fox"],
        ["cat;dog", "fox|emu"],
        ['"[""cat""]"', "fox"],
    ],
)
def test_an_uncertain_delimiter_is_asked_for(path: Path, cells: list[str]) -> None:
    text = "image,labels\n" + "".join(f"{at}.jpg,{cell}\n" for at, cell in enumerate(cells))
    with pytest.raises(OptionNeeded, match=r"labels.csv: it is not certain what separates"):
        read_labels(write(path, text), options=UNKNOWN)


@pytest.mark.parametrize(
    ("delimiter", "cell", "names"),
    [
        (",", '"cat, dog"', ("cat", "dog")),
        (" ", "cat  dog", ("cat", "dog")),
        (";", "red fox", ("red fox",)),
        (" / ", "cat / dog", ("cat", "dog")),
        ("|", "a;b|c", ("a;b", "c")),
    ],
)
def test_the_named_delimiter_is_used(
    path: Path, delimiter: str, cell: str, names: tuple[str, ...]
) -> None:
    write(path, f"image,labels\na.jpg,{cell}\n")
    options = ReadOptions(unlisted="unknown", delimiter=delimiter)
    assert read_labels(path, options=options).labels_of(0) == names


def test_single_names_need_no_delimiter(path: Path) -> None:
    table = read_labels(write(path, "filename,label\na,cat\nb,dog\n"), options=UNKNOWN)
    assert table.dense().tolist() == [[P, U], [U, P]]


def test_cells_that_are_json_lists_are_read(path: Path) -> None:
    write(path, 'image,labels\na,"[""cat, small"", ""dog;""]"\nb,\nc,[]\n')
    table = read_labels(path, options=UNKNOWN)
    assert table.labels_of(0) == ("cat, small", "dog;")
    assert len(table) == 3


def test_a_broken_json_list_in_a_cell_is_a_fault(path: Path) -> None:
    write(path, "image,labels\na,\"['cat'\"\n")
    with pytest.raises(DataError, match=r"line 2: column 'labels' must hold JSON lists"):
        read_labels(path, options=UNKNOWN)


def test_a_list_as_python_prints_it_is_read(path: Path) -> None:
    write(path, "image,labels\na,\"['cat', 'red fox']\"\nb,[]\nc,\"[3, 4]\"\n")
    table = read_labels(path, options=UNKNOWN)
    assert [table.labels_of(row) for row in range(3)] == [("cat", "red fox"), (), ("3", "4")]


def test_columns_absent_and_unknown_hold_further_states(path: Path) -> None:
    write(path, "image,labels,absent,unknown\na,cat;dog,fox,\nb,,cat,dog;fox\n")
    assert read_labels(path, options=UNKNOWN).dense().tolist() == [[P, P, A], [A, U, U]]
    assert read_labels(path, options=ABSENT).dense().tolist() == [[P, P, A], [A, U, U]]


def test_a_class_both_present_and_absent_is_a_fault(path: Path) -> None:
    write(path, "image,labels,absent\na,cat,\nb,cat;dog,cat\n")
    with pytest.raises(DataError, match=r"line 3: image 'b' has class 'cat' both absent and"):
        read_labels(path, options=UNKNOWN)


def test_an_image_in_two_rows_has_the_labels_of_both(path: Path) -> None:
    table = read_labels(write(path, "image,labels\na,cat\nb,dog\na,dog\n"), options=UNKNOWN)
    assert table.labels_of(0) == ("cat", "dog")
    assert len(table.notes) == 1
    assert table.notes[0].startswith("1 image id stands in more than one record; the labels")
    assert "1 of them has different labels there, the first is" in table.notes[0]


def test_an_image_in_two_equal_rows_is_not_said_to_differ(path: Path) -> None:
    text = "image,labels\na,cat;dog\nb,dog\na,dog;cat;dog\n"
    table = read_labels(write(path, text), options=UNKNOWN)
    assert table.notes == ("1 image id stands in more than one record; the labels are merged.",)


def test_a_class_list_closes_and_orders_the_classes(path: Path, tmp_path: Path) -> None:
    text = "image,labels\na.jpg,cat;dog\nb.jpg,\nc.jpg,red fox\n"
    names = write(tmp_path / "names.txt", "red fox\ndog\ncat\nemu\n")
    options = ReadOptions(unlisted="unknown", classes=names)
    assert read_labels(write(path, text), options=options).classes == (
        "red fox",
        "dog",
        "cat",
        "emu",
    )
    write(names, "cat\n")
    with pytest.raises(DataError) as caught:
        read_labels(path, options=options)
    assert str(caught.value).splitlines() == [
        f"{path}, line 2: class 'dog' is not in the class list (1 name).",
        f"{path}, line 4: class 'red fox' is not in the class list (1 name).",
    ]


def test_class_numbers_are_names_without_a_class_list(tmp_path: Path) -> None:
    names = write(tmp_path / "names.txt", "cat\ndog\n")
    path = write(tmp_path / "t.jsonl", '{"id": 7, "labels": [1, 0]}\n{"id": 8, "labels": [2]}\n')
    assert read_labels(path, options=UNKNOWN).classes == ("0", "1", "2")
    options = ReadOptions(unlisted="unknown", classes=names)
    with pytest.raises(DataError, match=r"line 2: 'labels' holds 2, which is no number of a class"):
        read_labels(path, options=options)
    write(path, '{"id": 7, "labels": [1]}\n{"id": 8, "labels": []}\n')
    table = read_labels(path, options=options)
    assert table.images.to_pylist() == ["7", "8"]
    assert table.dense().tolist() == [[U, P], [U, U]]


def test_nothing_between_separators_is_no_label_but_null_is_a_fault(
    path: Path, tmp_path: Path
) -> None:
    table = read_labels(write(path, "image,labels\na,cat;;dog;\n"), options=UNKNOWN)
    assert table.classes == ("cat", "dog")
    parquet = tmp_path / "t.parquet"
    pq.write_table(pa.table({"image": ["a"], "labels": [["cat", None]]}), parquet)
    with pytest.raises(DataError, match="line 1: a class name is empty"):
        read_labels(parquet, options=UNKNOWN)


def test_columns_of_another_type_are_faults(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    for labels in ([1.5], [[1.5]], [{"a": "b"}]):
        pq.write_table(pa.table({"image": ["a"], "labels": labels}), path)
        with pytest.raises(DataError, match="column 'labels' must hold lists of names, but holds"):
            read_labels(path, options=UNKNOWN)


def test_a_line_break_in_a_cell_is_a_fault(path: Path) -> None:
    write(path, 'image,labels\na,"cat\nb,dog"\n')
    with pytest.raises(DataError, match="line 2: column 'labels' holds a line break"):
        read_labels(path, options=UNKNOWN)
