"""Wide tables: which column holds the images, which are classes, and what a class list changes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import ReadOptions, read_labels
from hilltop.errors import DataError, OptionNeeded
from tests.data.conftest import write
from tests.data.formats.tables.conftest import ONES_AND_ZEROS, UNKNOWN, A, P, U, read


def test_a_column_that_mostly_holds_other_values_is_no_class_and_named(path: Path) -> None:
    rows = "".join(f"{row}.jpg,1,{row + 20},{'MF'[row % 2]},A text, no more.\n" for row in range(9))
    text = ("image,cat,age,sex,words\n" + rows).replace("A text, no more.", '"A text, no more."')
    table = read(path, UNKNOWN, text)
    assert table.classes == ("cat",)
    assert table.notes[0].startswith("3 columns are taken for no class: age, sex, words.")


@pytest.mark.parametrize(
    "options",
    [
        ReadOptions(unlisted="unknown", ignore_columns="sex, fold"),
        ReadOptions(unlisted="unknown", ignore_columns="1,2"),
        ReadOptions(unlisted="unknown", class_columns="cat,dog"),
        ReadOptions(unlisted="unknown", class_columns="3:"),
        ReadOptions(unlisted="unknown", class_columns="3:5"),
        ReadOptions(unlisted="unknown", class_columns="-2:"),
    ],
)
def test_columns_are_chosen_by_name_and_by_number(path: Path, options: ReadOptions) -> None:
    table = read(path, options, "image,sex,fold,cat,dog\na.jpg,1,2,1,0\nb.jpg,0,1,0,1\n")
    assert table.classes == ("cat", "dog")
    assert table.dense().tolist() == [[P, U], [U, P]]


def test_a_column_that_is_not_there_cannot_be_ignored(path: Path) -> None:
    options = ReadOptions(unlisted="unknown", ignore_columns="dgo")
    with pytest.raises(DataError, match=r"no column 'dgo'. Did you mean 'dog'\?"):
        read(path, options, ONES_AND_ZEROS)


def test_columns_called_by_numbers_are_named_by_the_class_list(path: Path) -> None:
    names = write(path.with_name("names.txt"), "cat\ndog\nemu\n")
    options = ReadOptions(unlisted="unknown", classes=names)
    table = read(path, options, "image,2,0\na.jpg,1,0\nb.jpg,1,1\n")
    assert [table.labels_of(row) for row in (0, 1)] == [("emu",), ("cat", "emu")]


def test_a_file_without_a_header_is_named_by_the_class_list(path: Path) -> None:
    names = write(path.with_name("names.txt"), "cat\ndog\n")
    text = "a.jpg,1,0\nb.jpg,1,1\nc.jpg,0,0\n"
    table = read(path, ReadOptions(unlisted="unknown", classes=names), text)
    assert table.dense().tolist() == [[P, U], [P, P], [U, U]]
    assert read(path, UNKNOWN, text).classes == ("0", "1"), "numbers, as in a list"


def test_the_only_column_with_other_values_holds_the_images_if_it_comes_first(path: Path) -> None:
    table = read(path, UNKNOWN, "picture,cat,dog\na.jpg,1,0\n")
    assert table.images.to_pylist() == ["a.jpg"]
    assert table.classes == ("cat", "dog")


def test_the_image_column_is_asked_for_where_it_is_not_certain(path: Path) -> None:
    text = "cat,picture,scan\n1,a,p\n0,b,q\n"
    with pytest.raises(OptionNeeded, match="--image-column with one of picture, scan"):
        read_labels(write(path, text), format="wide", options=UNKNOWN)
    table = read(path, ReadOptions(unlisted="unknown", image_column="picture"), text)
    assert table.images.to_pylist() == ["a", "b"]
    assert table.classes == ("cat",)


def test_a_missing_image_column_is_a_fault_with_a_suggestion(path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'imag'. Did you mean 'image'\?"):
        read(path, ReadOptions(unlisted="unknown", image_column="imag"), ONES_AND_ZEROS)


def test_a_class_list_closes_and_orders_the_classes(path: Path, tmp_path: Path) -> None:
    names = write(tmp_path / "names.txt", "dog\nemu\ncat\n")
    options = ReadOptions(zero="absent", blank="absent", classes=names)
    table = read(path, options, ONES_AND_ZEROS)
    assert table.classes == ("dog", "emu", "cat")
    assert table.dense().tolist() == [[A, A, P], [A, A, A]]
    write(names, "dog\n")
    table = read(path, options, ONES_AND_ZEROS)
    assert table.classes == ("dog",)
    assert table.notes[0].startswith("1 column is taken for no class: cat.")


def test_a_class_list_with_a_name_that_is_nearly_a_column_is_an_error(path: Path) -> None:
    names = write(path.with_name("names.txt"), "cat\nhorse\n")
    with pytest.raises(DataError, match=r"no column is called 'horse', .* Did you mean 'hrose'"):
        read(path, ReadOptions(unlisted="absent", classes=names), "image,cat,hrose\na,1,1\n")


def test_a_listed_class_without_a_column_needs_unlisted(path: Path, tmp_path: Path) -> None:
    names = write(tmp_path / "names.txt", "cat\ndog\n")
    with pytest.raises(OptionNeeded, match="--unlisted"):
        read(path, ReadOptions(classes=names), "image,cat\na.jpg,1\n")


def test_parquet_columns_of_another_type_are_no_classes(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"image": ["a"], "cat": [[1]], "dog": [0.5]}), path)
    with pytest.raises(DataError, match=r"no column with 1, 0, -1 or blanks .* image, cat, dog"):
        read_labels(path, format="wide", options=UNKNOWN)
