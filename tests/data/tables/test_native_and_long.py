"""Hilltop's own Parquet file and long tables: round trips, faults, and damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import (
    LabelTable,
    ReadOptions,
    State,
    Step,
    drop_positives,
    read_labels,
    write_labels,
)
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.conftest import write
from tests.data.fuzz import survives
from tests.data.patched import PatchCase, check_patch

UNKNOWN, ABSENT = ReadOptions(unlisted="unknown"), ReadOptions(unlisted="absent")


@pytest.mark.parametrize("unlisted", [State.UNKNOWN, State.ABSENT])
def test_native_keeps_everything(small: LabelTable, tmp_path: Path, unlisted: State) -> None:
    rows, columns = np.nonzero(small.dense() != unlisted)
    states = small.dense()[rows, columns]
    table = LabelTable.from_coo(
        small.images, small.classes, rows, columns, states, unlisted=unlisted, notes=["odd"]
    )
    table = drop_positives(table, "0.5", seed=3).table
    look = Step("look", {"at": [1, 2]}, by="Ann", seed=[3, 4])
    table = table.with_states([], [], [], step=look)
    path = tmp_path / "t.parquet"
    write_labels(table, path)
    again = read_labels(path)
    assert again == table
    assert [str(step) for step in again.history] == [str(step) for step in table.history]
    assert again.notes == ("odd",)


def test_native_is_a_plain_parquet_file_for_others(small: LabelTable, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_labels(small, path)
    assert pq.read_table(path).to_pylist()[0] == {
        "image": "a.jpg",
        "present": ["dog"],
        "absent": ["cat"],
    }


def test_native_without_images_or_labels(tmp_path: Path) -> None:
    for images in ([], ["i"]):
        table = LabelTable.from_coo(images, ["a"], [], [], State.PRESENT, unlisted=State.UNKNOWN)
        write_labels(table, tmp_path / "t.parquet")
        assert read_labels(tmp_path / "t.parquet") == table


def test_a_damaged_native_file_is_a_data_error(small: LabelTable, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_labels(small, path)
    survives(path, 300, "hilltop", ReadOptions())


def test_long_by_hand(tmp_path: Path) -> None:
    path = write(tmp_path / "l.csv", "image,class,state\ni,a,present\nj,b,absent\ni,b,unknown\n")
    table = read_labels(path, options=UNKNOWN)
    assert table.images.to_pylist() == ["i", "j"]
    assert table.classes == ("a", "b")
    np.testing.assert_array_equal(table.dense(), [[1, 2], [2, 0]])
    np.testing.assert_array_equal(read_labels(path, options=ABSENT).dense(), [[1, 2], [0, 0]])


def test_long_refuses_names_that_it_could_not_read_back(tmp_path: Path) -> None:
    table = LabelTable.from_coo(["a\nb"], ["x"], [0], [0], State.PRESENT, unlisted=State.UNKNOWN)
    with pytest.raises(DataError, match="cannot express the image name"):
        write_labels(table, tmp_path / "l.csv", format="long")


def test_long_without_states_says_present(tmp_path: Path) -> None:
    path = write(tmp_path / "l.csv", 'image,class\n"a, b",x\n\nc,"y ""z"""\n')
    table = read_labels(path, options=UNKNOWN)
    assert table.images.to_pylist() == ["a, b", "c"]
    assert table.classes == ("x", 'y "z"')
    assert table.count(State.PRESENT) == 2


def test_long_numbers_need_what_they_mean(tmp_path: Path) -> None:
    path = write(tmp_path / "l.csv", "image,class,state\ni,a,1\ni,b,0\nj,b,-1\n")
    with pytest.raises(AmbiguousInputError, match="Pass --zero and --minus-one"):
        read_labels(path)
    with pytest.raises(AmbiguousInputError, match="'-1' is in 1 cell"):
        read_labels(path, options=UNKNOWN)
    options = ReadOptions(unlisted="unknown", zero="unknown", minus_one="absent")
    np.testing.assert_array_equal(read_labels(path, options=options).dense(), [[1, 2], [2, 0]])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_long_round_trip(small: LabelTable, tmp_path: Path, ending: str) -> None:
    path, again = tmp_path / f"l.{ending}", tmp_path / f"m.{ending}"
    with pytest.raises(DataError, match="cannot express 1 image of which nothing is listed"):
        write_labels(small, path, format="long")
    write_labels(small, path, format="long", lossy=True)
    table = read_labels(path, options=UNKNOWN)
    assert table == small.select([0, 1, 3])
    write_labels(table, again, format="long")
    assert read_labels(again, options=UNKNOWN) == table


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,class\ni,a,b\n\ni\n", r"row 2 has 3 cells, row 4 has 1 cell"),
        ("image,class,state\ni,a,maybe\n", r"'state' hold 'maybe' \(row 2\)"),
        ("image,class,state\ni,a,absent\ni,a,present\n", "line 3: image 'i' has class 'a' both"),
        ('image,class\ni,"a\n', "line 2: this row is not valid CSV"),
        ("", "the file is empty"),
        ("image,image\ni,j\n", "2 columns are called 'image'|Which column"),
    ],
)
def test_long_faults_name_line_and_remedy(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "l.csv", text)
    with pytest.raises(DataError, match=message):
        read_labels(path, format="long", options=UNKNOWN)


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    path.write_bytes(b"image,class\ni,a\nj,caf\xe9\n")
    with pytest.raises(DataError, match=r"not UTF-8: line 3 holds the byte 0xe9"):
        read_labels(path, format="long", options=UNKNOWN)


def test_a_class_list_is_closed(tmp_path: Path) -> None:
    path = write(tmp_path / "l.csv", "image,class\ni,b\nj,sofa\n")
    classes = write(tmp_path / "names.txt", "c\nb\n")
    options = ReadOptions(unlisted="unknown", classes=classes)
    with pytest.raises(DataError, match=r"line 3: class 'sofa' is not in the class list \(2 names"):
        read_labels(path, options=options)
    write(path, "image,class\ni,b\n")
    assert read_labels(path, options=options).classes == ("c", "b")
    write(classes, "b\n\nb\n")
    with pytest.raises(DataError, match=r"line 2: the class name is empty(.|\n)*line 3: class 'b'"):
        read_labels(path, options=options)


def test_a_parquet_file_that_is_not_one(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", "hello")
    with pytest.raises(DataError, match="this is not a whole Parquet file"):
        read_labels(path, format="long", options=UNKNOWN)
    pq.write_table(pa.table({"image": [[1]], "class": ["a"]}), path)
    with pytest.raises(DataError, match="image column 'image' holds lists"):
        read_labels(path, format="long", options=UNKNOWN)


def test_files_that_are_not_there_or_are_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file or folder"):
        read_labels(tmp_path / "none.csv")
    with pytest.raises(DataError, match="matches no known format"):
        read_labels(tmp_path)
    with pytest.raises(DataError, match="this is a folder"):
        read_labels(tmp_path, format="long", options=UNKNOWN)
    with pytest.raises(AmbiguousInputError, match=r"Unknown format 'lnog'. Did you mean 'long'\?"):
        read_labels(tmp_path, format="lnog")


def test_writing_needs_a_folder_and_a_format(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="its folder does not exist"):
        write_labels(small, tmp_path / "no" / "t.parquet")
    with pytest.raises(AmbiguousInputError, match="Pass --to with one of hilltop, wide"):
        write_labels(small, tmp_path / "t.xyz")


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_long_files_end_in_a_table_or_a_data_error(tmp_path: Path, count: int) -> None:
    lines = [f"img{i}.jpg,class {i % 7},{'present' if i % 3 else 'absent'}" for i in range(30)]
    path = write(tmp_path / "l.csv", "\n".join(["image,class,state", *lines, '"x, y",a,1\n']))
    tables, faults = survives(path, count, "long", ReadOptions("unknown", "absent"))
    assert min(tables, faults) > count / 20, "the mutations test both ways out"


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 0, 2, 1), (1, 0, 1, 0)])
def test_images_may_stand_in_any_order_and_come_again(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    lines = [f"{'abcd'[image]},{'uv'[number % 2]}\n" for number, image in enumerate(order)]
    file = tmp_path / "labels.csv"
    file.write_text("image,class\n" + "".join(lines))
    table = read_labels(file, options=ReadOptions(unlisted="absent"))
    assert table.images.to_pylist() == ["abcd"[image] for image in dict.fromkeys(order)]
    found = {(image, name) for row, image in enumerate(table.images.to_pylist())
             for name in table.labels_of(row)}  # fmt: skip
    assert found == {tuple(line.strip().split(",")) for line in lines}


PATCHES = [
    PatchCase(
        "long with states",
        "long",
        'image,class,state\na.jpg,dog,present\n"b.jpg",cow,present\n',
        ["+ b.jpg,dog,present\n", "+ a.jpg,cow,absent\n"],
    ),
    PatchCase(
        "long without states and without a last line end",
        "long",
        "image,class\r\na.jpg,dog\r\nb.jpg,cow",
        ["- b.jpg,cow", "+ b.jpg,cow\r\n", "+ b.jpg,dog\r\n"],
        absents=False,
    ),
    PatchCase(
        "long with numbers for states",
        "long",
        "image,class,state\na.jpg,dog,1\nb.jpg,cow,1\n",
        ["+ a.jpg,cow,-1\n", "+ b.jpg,dog,1\n"],
        options=ReadOptions(unlisted="unknown", minus_one="absent"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", PATCHES, ids=lambda case: case.name)
def test_a_patch_changes_only_what_was_answered(case: PatchCase, tmp_path: Path) -> None:
    check_patch(case, tmp_path)
