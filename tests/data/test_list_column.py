"""One column with all labels of an image: cells, delimiters, JSON lines, Parquet, round trips."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import LabelTable, ReadOptions, State, assemble, read_labels, write_labels
from hilltop.data.formats import list_column, recognise
from hilltop.data.formats.base import Source
from hilltop.errors import DataError, OptionNeeded
from tests.data.fuzz import survives

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
UNKNOWN, ABSENT = ReadOptions(unlisted="unknown"), ReadOptions(unlisted="absent")
CSV = "image,labels\na.jpg,cat;dog\nb.jpg,\nc.jpg,red fox\n"
JSONL = (
    '{"image": "a.jpg", "labels": ["cat", "dog"]}\n\n'
    '{"image": "b.jpg", "labels": []}\n{"image": "c.jpg", "labels": ["red fox"]}\n'
)
DENSE = [[P, P, U], [U, U, U], [U, U, P]]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


@pytest.mark.parametrize(("ending", "text"), [("csv", CSV), ("jsonl", JSONL), ("txt", JSONL)])
def test_labels_are_read_from_one_column(tmp_path: Path, ending: str, text: str) -> None:
    path = write(tmp_path / f"t.{ending}", text)
    assert recognise(Source(path)).name == "list_column"
    table = read_labels(path, options=UNKNOWN)
    assert table.images.to_pylist() == ["a.jpg", "b.jpg", "c.jpg"]
    assert table.classes == ("cat", "dog", "red fox")
    assert table.dense().tolist() == DENSE


@pytest.mark.parametrize(
    "labels",
    [
        [["cat", "dog"], [], ["red fox"]],
        [["cat", "dog"], None, ["red fox"]],
        ["cat|dog", "", "red fox"],
        ["cat|dog", None, "red fox"],
        pa.array([["cat", "dog"], [], ["red fox"]], pa.large_list(pa.large_string())),
        pa.array([["cat", "dog"], [], ["red fox"]], pa.list_(pa.dictionary(pa.int32(), pa.utf8()))),
        pa.array(["cat;dog", "", "red fox"]).dictionary_encode(),
    ],
)
def test_parquet_lists_and_delimited_text_are_read(tmp_path: Path, labels: object) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"file_name": ["a.jpg", "b.jpg", "c.jpg"], "tags": labels}), path)
    assert read_labels(path, options=UNKNOWN).dense().tolist() == DENSE


def test_unlisted_classes_are_never_guessed(path: Path) -> None:
    with pytest.raises(OptionNeeded, match="--unlisted unknown"):
        read_labels(write(path, CSV))
    assert read_labels(path, options=ABSENT).count(A) == 6


@pytest.mark.parametrize(
    "cells",
    [
        ['"cat,dog"', "fox"],
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
    write(path, "image,labels\na,\"['cat']\"\n")
    with pytest.raises(DataError, match=r"line 2: column 'labels' must hold JSON lists"):
        read_labels(path, options=UNKNOWN)


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
    assert table.notes[0].startswith("1 image ids stand in more than one record; their labels")
    assert "1 of them have different labels there, the first is" in table.notes[0]


def test_an_image_in_two_equal_rows_is_not_said_to_differ(path: Path) -> None:
    text = "image,labels\na,cat;dog\nb,dog\na,dog;cat;dog\n"
    table = read_labels(write(path, text), options=UNKNOWN)
    assert table.notes == ("1 image ids stand in more than one record; their labels are merged.",)


def test_uncertain_columns_are_asked_for(path: Path) -> None:
    write(path, "id,image,labels,tags\n1,a,cat,dog\n")
    with pytest.raises(OptionNeeded, match="--image-column with one of id, image"):
        read_labels(path, options=UNKNOWN)
    with pytest.raises(OptionNeeded, match="--label-column with one of labels, tags"):
        read_labels(path, options=ReadOptions(unlisted="unknown", image_column="image"))
    both = ReadOptions(unlisted="unknown", image_column="image", label_column="tags")
    assert read_labels(path, options=both).labels_of(0) == ("dog",)


@pytest.mark.parametrize("text", [CSV, JSONL])
def test_a_wrong_column_name_is_a_fault(path: Path, text: str) -> None:
    options = ReadOptions(unlisted="unknown", label_column="lables")
    with pytest.raises(DataError, match=r"'lables'. Did you mean 'labels'\?"):
        read_labels(write(path, text), options=options)


def test_a_class_list_closes_and_orders_the_classes(path: Path, tmp_path: Path) -> None:
    names = write(tmp_path / "names.txt", "red fox\ndog\ncat\nemu\n")
    options = ReadOptions(unlisted="unknown", classes=names)
    assert read_labels(write(path, CSV), options=options).classes == (
        "red fox",
        "dog",
        "cat",
        "emu",
    )
    write(names, "cat\n")
    with pytest.raises(DataError) as caught:
        read_labels(path, options=options)
    assert str(caught.value).splitlines() == [
        f"{path}, line 2: class 'dog' is not in the class list (1 names).",
        f"{path}, line 4: class 'red fox' is not in the class list (1 names).",
    ]


def test_class_numbers_need_a_class_list(tmp_path: Path) -> None:
    names = write(tmp_path / "names.txt", "cat\ndog\n")
    path = write(tmp_path / "t.jsonl", '{"id": 7, "labels": [1, 0]}\n{"id": 8, "labels": [2]}\n')
    with pytest.raises(OptionNeeded, match=r"holds class numbers. Pass --classes"):
        read_labels(path, options=UNKNOWN)
    options = ReadOptions(unlisted="unknown", classes=names)
    with pytest.raises(DataError, match=r"line 2: 'labels' holds 2, which is no number of a class"):
        read_labels(path, options=options)
    write(path, '{"id": 7, "labels": [1]}\n{"id": 8, "labels": []}\n')
    table = read_labels(path, options=options)
    assert table.images.to_pylist() == ["7", "8"]
    assert table.dense().tolist() == [[U, P], [U, U]]


def test_empty_names_are_faults(path: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 2: a class name is empty"):
        read_labels(write(path, "image,labels\na,cat;;dog\n"), options=UNKNOWN)
    parquet = tmp_path / "t.parquet"
    pq.write_table(pa.table({"image": ["a"], "labels": [["cat", None]]}), parquet)
    with pytest.raises(DataError, match="line 1: a class name is empty"):
        read_labels(parquet, options=UNKNOWN)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"image": "x"}', "line 2: the key 'labels' is missing"),
        ('{"image": "x", "labels": 1.5}', "line 2: 'labels' must be a list of names, but is 1.5"),
        ('{"image": "x", "labels": {}}', "line 2: 'labels' must be a list of names, but is {}"),
        ('{"image": "x", "labels": ["a", 1]}', 'list of names, but is \\["a", 1\\]'),
        ('{"image": "x", "labels": "cat"}', "line 2: 'labels' is text here, but not on other"),
        ('{"image": "", "labels": []}', "line 2: 'image' must be a name"),
        ('{"image": ["x"], "labels": []}', "line 2: 'image' must be a name, but is"),
        ('{"image": "x", "labels": [], "labels": ["a"]}', "line 2: .*'labels' stands twice"),
        ('{"image": "x", "labels": ["\\ud800"]}', "line 2: a name holds half a character"),
        ('{"image": "x", "labels": [', "line 2: this is not a JSON object"),
        ('["x"]', "line 2: expected a JSON object, but got"),
        ("[" * 100_000, "line 2: this JSON cannot be used"),
        ("9" * 5000, "line 2: this JSON cannot be used"),
    ],
)
def test_broken_json_lines_are_faults(tmp_path: Path, line: str, message: str) -> None:
    good = '{"image": "a", "labels": ["cat"]}'
    with pytest.raises(DataError, match=message):
        read_labels(write(tmp_path / "t.jsonl", f"{good}\n{line}\n"), options=UNKNOWN)


def test_columns_of_another_type_are_faults(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    for labels in ([1.5], [[1.5]], [{"a": 1}]):
        pq.write_table(pa.table({"image": ["a"], "labels": labels}), path)
        with pytest.raises(DataError, match="column 'labels' must hold lists of names, but holds"):
            read_labels(path, options=UNKNOWN)


def test_parquet_text_that_is_not_utf8_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    raw = pa.array([b"\xff"], pa.binary())
    pq.write_table(
        pa.table({"image": ["a"], "labels": pa.Array.from_buffers(pa.string(), 1, raw.buffers())}),
        path,
    )
    with pytest.raises(DataError, match=r"this Parquet file cannot be read: .*Invalid UTF8"):
        read_labels(path, options=UNKNOWN)


def test_spaces_around_column_names_do_not_matter(path: Path) -> None:
    table = read_labels(write(path, "image, labels\na, cat;dog\n"), options=UNKNOWN)
    assert table.labels_of(0) == ("cat", "dog")


def test_a_line_break_in_a_cell_is_a_fault(path: Path) -> None:
    write(path, 'image,labels\na,"cat\nb,dog"\n')
    with pytest.raises(DataError, match="line 2: column 'labels' holds a line break"):
        read_labels(path, options=UNKNOWN)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_round_trip_keeps_every_state(small: LabelTable, tmp_path: Path, name: str) -> None:
    write_labels(small, tmp_path / name, format="list_column")
    assert read_labels(tmp_path / name, options=UNKNOWN) == small
    unknown = assemble(
        small.images, small.classes, [0, 1, 1, 2], [0, 1, 0, 2], [P, P, U, U], unlisted=A
    )
    write_labels(unknown, tmp_path / name, format="list_column")
    assert read_labels(tmp_path / name, options=ABSENT) == unknown


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
@pytest.mark.parametrize(
    "classes",
    [
        ("a;b", "c|d"),
        ("[a", "b"),
        (" a", "b"),
        ("a, b", "c"),
        ("red fox", "z"),
        ("a|b", "c"),
        ('a"b', "c\nd"),
    ],
)
@pytest.mark.parametrize("columns", [[0, 1], [0, 0]])
def test_round_trip_keeps_awkward_names(
    tmp_path: Path, name: str, classes: tuple[str, str], columns: list[int]
) -> None:
    used = tuple(sorted({classes[column] for column in columns}))
    rows = [0, 0] if len(used) == 2 else [0, 1]
    table = assemble(
        ["x", "y"], used, rows, [used.index(classes[c]) for c in columns], P, unlisted=U
    )
    write_labels(table, tmp_path / name, format="list_column")
    assert read_labels(tmp_path / name, options=UNKNOWN) == table


def test_written_json_lines_are_plain_records(small: LabelTable, tmp_path: Path) -> None:
    write_labels(small, tmp_path / "t.jsonl")
    records = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert records[0] == {"image": "a.jpg", "labels": ["dog"], "absent": ["cat"]}


def test_classes_nobody_has_cannot_be_written(path: Path) -> None:
    table = assemble(["a"], ["cat", "dog"], [0], [0], P, unlisted=U)
    with pytest.raises(DataError, match="cannot express 1 classes that no image has"):
        write_labels(table, path, format="list_column")
    write_labels(table, path, format="list_column", lossy=True)
    assert read_labels(path, options=UNKNOWN).classes == ("cat",)


@pytest.mark.parametrize(
    "text",
    [
        "image,class,state\na,cat,present\n",
        "ImageID,Source,LabelName,Confidence\na,verification,/m/01,1\n",
        "image,cat,dog\na,1,0\n",
        "image,id,labels,annotator,annotation_id\na,1,cat,1,1\n",
        '{"images": [], "annotations": [], "categories": []}',
        '{"image": 1, "labels"',
        "[1]",
        "",
        "\x00\xff",
    ],
)
def test_other_formats_are_not_taken_for_a_list_column(path: Path, text: str) -> None:
    assert not list_column.fits(Source(write(path, text)))
    assert not list_column.fits(Source(path.parent))


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", 'image,labels,absent\na,cat;dog,fox\n"b,c",,\nd,fox,cat\n'),
        ("t.csv", 'image,labels\na,"[""cat"", ""dog""]"\nb,[]\nc,"[""fox""]"\n'),
        ("t.jsonl", JSONL),
        ("t.jsonl", '{"id": 1, "tags": "cat|dog"}\n{"id": 2, "tags": null}\n'),
    ],
)
def test_damaged_files_end_in_a_table_or_in_words(
    tmp_path: Path, count: int, name: str, text: str
) -> None:
    tables, faults = survives(write(tmp_path / name, text), count, "list_column", UNKNOWN)
    assert tables + faults == count
    assert tables
    assert faults
