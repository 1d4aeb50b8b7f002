# ruff: noqa: E501 (lines of files as they are)
"""Tables as people make them: read as they stand, or asked about in one go; never guessed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import (
    Ambiguous,
    LabelTable,
    Layout,
    ReadOptions,
    State,
    detect,
    read,
    read_labels,
)
from hilltop.data.content import Source
from hilltop.data.layout import read_options
from hilltop.errors import AmbiguousInputError, DataError

Counts = tuple[int, int, int]
"""Images, classes and labels."""

READ: dict[str, tuple[str, Counts]] = {
    "a last row that could be sums": ("image,cat,dog\na,1,0\nb,0,1\nn,1,1\n", (3, 2, 4)),
    "an image without a label at the end": ("a.jpg,cat;dog\nb.jpg,dog\nc.heic,\n", (3, 2, 3)),
    "names that hold 'and'": ('image,labels\na.jpg,"food, arts and crafts"\nb.jpg,food\nc.jpg,crafts\n', (3, 3, 4)),
    "several label columns": ("Photo,Species 1,Species 2,Species 3\na.jpg,bird,fox,\nb.jpg,fox,,\n", (2, 2, 3)),
    "primary and secondary": ("file,primary_label,secondary_labels\na.ogg,bird,\nb.ogg,fox,bird\n", (2, 2, 3)),
    "numbers for class names": ("image,0,1\na,1,0\nb,0,1\n", (2, 2, 2)),
    "brackets around a remark": ("movieId,title,genres\n1,Toy Story,Comedy|Drama\n2,Heat,(no genres listed)\n", (2, 3, 3)),
    "AC/DC": ("image,labels\na.jpg,AC/DC\nb.jpg,rock\n", (2, 2, 2)),
    "AC/DC and its parts, once": ("image,labels\na.jpg,AC/DC\nb.jpg,AC\nc.jpg,DC\n", (3, 3, 3)),
    "0001 is a name": ("image,labels\na.jpg,0001\nb.jpg,cat\n", (2, 2, 2)),
    "a title, a line of nothing": ("Photos of 2014\n\nPicture,Tags\na.jpg,cat;dog\nb.jpg,\nc.jpg,cat\n", (3, 2, 3)),
    "European, x marks, mixed case, a byte order mark": ("\ufeffDatei;Katze;Hund;\na.jpg;x;;\nb.jpg;X;x;\n;;;\n", (2, 2, 3)),
    "spaces behind commas": ("filename, cat, dog\na.jpg, 1, 0\nb.jpg, 1, 1\n", (2, 2, 3)),
    "Windows line ends": ("image,tags\r\na.jpg,cat|dog\r\nb.jpg,\r\n", (2, 2, 2)),
    "tabs": ("image\ttags\na.jpg\tcat,dog\n", (1, 2, 2)),
    "Python lists": ("image,labels\na.jpg,\"['cat', 'dog']\"\nb.jpg,[]\nc.jpg,['dog']\n", (3, 2, 3)),
    "JSON lists": ('image,labels\na.jpg,"[""cat"", ""dog""]"\nb.jpg,\n', (2, 2, 2)),
    "a delimiter at the end": ("image,tags\na.jpg,dog;cat;\nb.jpg,cat;\n", (2, 2, 3)),
    "columns that are no classes": ("Path,Sex,Age,cat,dog\na.jpg,F,68,1,0\nb.jpg,M,3,1,1\n", (2, 2, 3)),
    "no header, files": ("a.jpg,1,0\nb.jpg,1,1\n", (2, 2, 3)),
    "one class a row beside a box": ("image_name,label_name,x1,y1\n1.jpg,dog,0,1\n1.jpg,cat,1,2\n2.jpg,dog,0,0\n", (2, 2, 3)),
    "our own words": ("image,cat,dog\na.jpg,present,absent\nb.jpg,present,present\n", (2, 2, 3)),
    "line ends in cells": ('image,labels\na.jpg,"cat\ndog"\nb.jpg,dog\n', (2, 2, 3)),
    "numbers with spaces": ("Id,Target\nx,7 1 2\ny,5\n", (2, 4, 4)),
    "a comment above": ("# made in May\nimage,tags\na.jpg,cat;dog\n", (1, 2, 2)),
    "a quote behind a space": ('image, tags\na.jpg, "cat,dog"\n', (1, 2, 2)),
    "lines of JSON": ('{"image": "a.jpg", "labels": ["cat", "dog"]}\n{"image": "b.jpg", "labels": []}\n', (2, 2, 2)),
    "a list of JSON objects": ('[{"image": "a.jpg", "labels": ["cat"]}, {"image": "b.jpg", "labels": ["dog", "cat"]}]', (2, 2, 3)),
}  # fmt: skip

ASKED: dict[str, tuple[str, dict[str, str], str, Counts]] = {
    "a row too long": ("a.jpg,cat\nb.jpg,dog,some note\n", {"label_columns": "1:", "unlisted": "unknown"}, "row 2 has 3 cells", (2, 3, 3)),
    "no and yes": ("image,cat,dog\na,yes,no\nb,no,yes\n", {"unlisted": "unknown"}, "'no' is in 2 cells", (2, 2, 2)),
    "one stray semicolon": ("image,labels\n" + "".join(f'{n}.jpg,"cat, dog"\n' for n in range(9)) + "zz.jpg,cat;\n", {"delimiter": ",", "unlisted": "unknown"}, "one label or several", (10, 3, 19)),
    "a commented header": ("# image,cat,dog\na.jpg,1,0\nb.jpg,0,1\n", {"header_row": "1", "unlisted": "unknown"}, "Row 1 begins with '#'", (2, 2, 2)),
    "null, nan and #N/A": ("image,labels\na.jpg,null\nb.jpg,cat;nan\nc.jpg,#N/A\n", {"values": "null=empty,nan=empty,#n/a=empty", "unlisted": "unknown"}, r"'nan' (row 3)", (3, 1, 1)),
    "a class that is a list": ("image,class\na.jpg,cat;dog\nb.jpg,dog\n", {"delimiter": ";", "unlisted": "unknown"}, "one label or several", (2, 2, 3)),
    "tags separated by spaces": ("image,tags\na,haze primary\nb,clear primary\nc,primary\n", {"delimiter": "space", "unlisted": "unknown"}, "3 classes with --delimiter space", (3, 3, 5)),
    "names of two words": ("image,tags\na,red fox\nb,polar bear\n", {"delimiter": "none", "unlisted": "unknown"}, "2 with --delimiter none", (2, 2, 2)),
    "sums": ("image,cat,dog\na.jpg,1,1\nb.jpg,1,0\nTotal:,2,1\n", {"skip_rows": "4", "unlisted": "unknown"}, "row 4 ('Total:')", (2, 2, 3)),
    "a remark": ("image,cat,dog\na.jpg,1,0\nb.jpg,1,1\n* by Ann in May,,\n", {"skip_rows": "4", "unlisted": "unknown"}, "row 4", (2, 2, 3)),
    "a column of notes": ("image,cat,dog,notes\na.jpg,1,0,\nb.jpg,0,1,blurry\nc.jpg,1,1,\n", {"ignore_columns": "notes", "unlisted": "unknown"}, "'blurry' (row 3)", (3, 2, 4)),
    "votes": ("image,cat,dog\na.jpg,2,3\nb.jpg,0,2\nc.jpg,0,0\n", {"label_threshold": "1", "unlisted": "unknown"}, "--label-threshold", (3, 2, 3)),
    "shares": ("image,a,b\n1.jpg,0.5,1\n2.jpg,0.25,0.75\n3.jpg,0,0\n", {"label_threshold": "0.5", "unlisted": "unknown"}, "--label-threshold", (3, 2, 3)),
    "ja and nein": ("Bild;Katze;Hund\na.jpg;ja;nein\nb.jpg;ja;ja\n", {"values": "ja=present,nein=absent"}, "'ja', 'nein'", (2, 2, 3)),
    "a confidence a row": ("image,tag,confidence\na.jpg,cat,0.98\na.jpg,dog,0.12\nb.jpg,dog,0.77\n", {"label_threshold": "0.5", "unlisted": "unknown"}, "'confidence'", (2, 2, 2)),
    "an image in two rows": ("image,cat,dog\na.jpg,1,0\na.jpg,1,1\n", {"image_column": "image", "unlisted": "unknown"}, "'a.jpg' in rows 2, 3", (1, 2, 2)),
    "texts, class numbers and ids": ("I like it a lot\t27\teebbqej\nNow he is off\t27\ted00q6i\nWhy not\t2\teezlygj\nTo make her\t14,3\ted7ypvh\n", {"header_row": "none", "image_column": "column 2", "label_columns": "column 1", "unlisted": "unknown"}, "Which column holds the labels", (4, 4, 5)),
    "a header above the header": (",Animals,,Vehicles,\nimage,cat,dog,car,bus\na.jpg,1,0,0,1\nb.jpg,0,0,0,1\n", {"header_row": "2", "unlisted": "unknown"}, "--header-row", (2, 4, 3)),
    "two columns of labels": ("image,genre,mood\na.mp3,rock,sad\nb.mp3,pop,glad\n", {"unlisted": "unknown"}, "--unlisted", (2, 2, 2)),
    "all four values": ("image,a,b\n1.jpg,1,0\n2.jpg,,-1\n", {"zero": "absent", "empty": "unknown", "minus_one": "unknown"}, "--zero and --empty and --minus-one", (2, 2, 1)),
    "0 and 1 as lists": ('image,labels\na.jpg,"[0, 1, 1]"\nb.jpg,"[1, 0, 1]"\n', {"delimiter": "multi-hot", "unlisted": "unknown"}, "--delimiter multi-hot", (2, 3, 4)),
    "0 and 1 called labels": ("image,label\na,0\nb,1\n", {"label_columns": "label", "unlisted": "unknown"}, "--class-columns", (2, 2, 2)),
    "scores with decimal commas": ("Datei;Vogel;Score\na.jpg;Amsel;0,5\nb.jpg;Meise;0,1\n", {"label_columns": "Vogel", "label_threshold": "0.5", "unlisted": "unknown"}, "'0.5'", (2, 2, 1)),
    "labels behind tabs, the first row longest": ("a.jpg\tcat\tdog\nb.jpg\tdog\n", {"label_columns": "1:", "unlisted": "unknown"}, "row 2 has 2 cells", (2, 2, 3)),
    "percent": ("image,cat,dog\na.jpg,100%,0%\nb.jpg,20%,80%\n", {"label_threshold": "0.5", "unlisted": "unknown"}, "--label-threshold", (2, 2, 2)),
    "a header below the header": ("image,animals,animals\n,cat,dog\na.jpg,1,0\nb.jpg,0,1\n", {"header_row": "2", "unlisted": "unknown"}, "--header-row 2", (2, 2, 2)),
    "a row of words": ("image,cat,dog\na.jpg,1,0\nseen,by,me\nb.jpg,0,1\n", {"skip_rows": "3", "unlisted": "unknown"}, "Row 3 alone", (2, 2, 2)),
    "nein more often than ja": ("Bild;Katze;Hund\na.jpg;nein;nein\nb.jpg;ja;nein\n", {"values": "nein=absent,ja=present"}, "'nein', 'ja'", (2, 2, 1)),
    "a state that is none": ("image,class,state\na.jpg,cat,present\na.jpg,dog,maybe\n", {"values": "maybe=unknown", "unlisted": "unknown"}, "'maybe' (row 3)", (1, 2, 1)),
    "a ruler below the header": ("image|tags\n---|---\na.jpg|cat\n", {"skip_rows": "2", "unlisted": "unknown"}, "row 2 ('---')", (1, 1, 1)),
}  # fmt: skip


def counts_of(table: LabelTable) -> Counts:
    return len(table), len(table.classes), table.count(State.PRESENT)


def save(folder: Path, text: str) -> Path:
    path = folder / (
        "a.jsonl" if text.startswith("{") else "a.json" if text.startswith("[") else "a.csv"
    )
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("name", READ)
def test_what_is_clear_is_read_without_a_question(name: str, tmp_path: Path) -> None:
    text, counts = READ[name]
    assert counts_of(read_labels(save(tmp_path, text), unlisted="unknown")) == counts


@pytest.mark.parametrize("name", ASKED)
def test_what_is_open_is_asked_once_with_answers_to_try(name: str, tmp_path: Path) -> None:
    text, answers, fact, counts = ASKED[name]
    path = save(tmp_path, text)
    found = detect(path)
    assert isinstance(found, Ambiguous)
    assert found.answers == answers
    assert fact in str(found)
    said = read_options({**found.answers})
    if said.label_threshold is not None:
        said = read_options({"label_threshold": float(said.label_threshold)}, said)
    assert counts_of(read_labels(path, options=said)) == counts


@pytest.mark.parametrize(
    ("text", "line", "cell"),
    [
        ('image,labels\na.jpg,"[""cat""]"\nb.jpg,cat|dog\n', 3, "'cat|dog'"),
        ('image,labels\na.jpg,"{cat,dog}"\nb.jpg,{dog}\n', 2, "'{cat,dog}'"),
        ("image,labels\na.jpg,['dog']\nb.jpg,['dog' 'cat']\n", 3, "['dog' 'cat']"),
        ("image,labels\na.jpg,[0 1]\nb.jpg,[1 0]\n", 2, "'[0 1]'"),
    ],
)
def test_brackets_that_are_no_lists_are_named(
    text: str, line: int, cell: str, tmp_path: Path
) -> None:
    path = save(tmp_path, text)
    with pytest.raises(DataError, match=rf"line {line}: .*{re.escape(cell)}.* Correct such cells"):
        read_labels(path, unlisted="unknown")
    assert len(read_labels(path, unlisted="unknown", delimiter="none")) == 2


def test_the_layout_says_where_everything_is(tmp_path: Path) -> None:
    text = "Labels of May;;\n\nFile;Who;Tags\na.jpg;Ann;cat,dog\nb.jpg;Ben;\n"
    layout = detect(save(tmp_path, text), ReadOptions(unlisted="unknown"))
    assert isinstance(layout, Layout)
    assert layout.describe() == (
        "format list_column; header in row 3; rows left out: 1; image names in 'File';"
        " labels in 'Tags' separated by ','; unlisted is unknown; columns not read: Who"
    )
    assert Layout.from_json(json.loads(json.dumps(layout.to_json()))) == layout


def test_every_wrong_row_is_named(tmp_path: Path) -> None:
    path = save(tmp_path, "image,tags\na.jpg,cat\n,dog\nc.jpg\nd.jpg,cat\n")
    with pytest.raises(AmbiguousInputError, match="row 4 has 1"):
        read_labels(path, unlisted="unknown")
    with pytest.raises(DataError, match=r"line 3: the image name is empty.*--skip-rows 3"):
        read_labels(path, unlisted="unknown", skip_rows="4")
    table = read_labels(path, unlisted="unknown", skip_rows="3-4")
    assert table.images.to_pylist() == ["a.jpg", "d.jpg"]


def test_a_stored_layout_is_followed_and_nothing_else(tmp_path: Path) -> None:
    path = save(tmp_path, 'image,tags\na.jpg,"cat, dog"\n')
    layout = detect(path, ReadOptions(unlisted="unknown"))
    assert isinstance(layout, Layout)
    path.write_text('image,tags\na.jpg,"cat, dog"\nb.jpg,cat;dog\nTotal,[1]\n')
    table = read(path, layout)
    assert [table.labels_of(row) for row in range(3)] == [("cat", "dog"), ("cat;dog",), ("[1]",)]


def test_a_cell_without_a_meaning_is_an_error_when_the_layout_is_given(tmp_path: Path) -> None:
    path = save(tmp_path, "image,cat,dog\na,1,0\n")
    layout = detect(path, ReadOptions(zero="absent"))
    assert isinstance(layout, Layout)
    path.write_text("image,cat,dog\na,1,0\nb,,2\n")
    with pytest.raises(DataError, match=r"line 3: column 'cat' holds ''"):
        read(path, layout)


@pytest.mark.parametrize("said", ["2", "2=perhaps", "=absent"])
def test_values_that_are_not_pairs_are_refused(said: str, tmp_path: Path) -> None:
    with pytest.raises(AmbiguousInputError, match="2=absent,9=unknown"):
        read_labels(save(tmp_path, "image,a,b\n1.jpg,1,2\n"), values=said)


def test_threshold_and_values_say_what_cells_are(tmp_path: Path) -> None:
    path = save(tmp_path, "image,a,b\n1.jpg,3,1\n2.jpg,2,0\n")
    table = read_labels(path, label_threshold=2, zero="absent")
    assert table.dense().tolist() == [[1, 1], [1, 0]]  # a plain 1 stays present
    path = save(tmp_path, "image,a,b\n1.jpg,1,2\n2.jpg,9,1\n")
    assert read_labels(path, values="2=absent,9=unknown").dense().tolist() == [[1, 0], [2, 1]]
    path = save(tmp_path, "image,Cat,Dog\n1.jpg,Cat,\n2.jpg,Cat,Dog\n")
    assert read_labels(path, values="*=present", empty="unknown").dense().tolist() == [
        [1, 2],
        [1, 1],
    ]


def test_a_null_in_a_list_is_an_error_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"image": ["a", "b"], "labels": [[1, 2], [3, None]]}), path)
    with pytest.raises(DataError, match="null in the list of row 2"):
        read_labels(path, unlisted="unknown")
    path = save(tmp_path, '{"image": "a", "labels": ["x", null]}\n')
    with pytest.raises(DataError, match="None in the list of row 1"):
        read_labels(path, unlisted="unknown")


def test_a_key_that_is_twice_in_a_json_object_is_an_error(tmp_path: Path) -> None:
    path = save(tmp_path, '{"image": "a", "labels": ["x"], "labels": ["y"]}\n')
    with pytest.raises(DataError, match="the key 'labels' stands twice"):
        read_labels(path, unlisted="unknown")


def test_a_comment_in_a_class_file_is_no_class(tmp_path: Path) -> None:
    classes = tmp_path / "classes.txt"
    classes.write_text("# classes\ncat\ndog\n")
    path = save(tmp_path, "image,labels\na,0\nb,1 0\n")
    with pytest.raises(DataError, match=r"line 1: '# classes' begins like a comment"):
        read_labels(path, unlisted="unknown", classes=classes)


@pytest.mark.parametrize("heading", ["classes", "name", "Class_Name"])
def test_a_heading_does_not_shift_the_numbers_of_classes(heading: str, tmp_path: Path) -> None:
    path = save(tmp_path, "image,labels\na.jpg,0 2\n")
    names = tmp_path / "classes.txt"
    names.write_text(f"{heading}\ncat\ndog\nfox\n")
    with pytest.raises(DataError, match="looks like a heading"):
        read_labels(path, unlisted="unknown", classes=names)


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("0 cat\n1 dog\n2 red fox\n", ("cat", "dog", "red fox")),
        ("0: cat\n1: dog\n2: fox\n", ("cat", "dog", "fox")),
        ("3 wheeler\n5 wheeler\n7 wheeler\n", ("3 wheeler", "5 wheeler", "7 wheeler")),
    ],
)
def test_class_lists_may_number_their_lines(
    text: str, classes: tuple[str, ...], tmp_path: Path
) -> None:
    path = save(tmp_path, "image,labels\na.jpg,0 2\n")
    (tmp_path / "classes.txt").write_text(text)
    table = read_labels(path, unlisted="unknown", classes=tmp_path / "classes.txt")
    assert table.classes == classes
    assert table.labels_of(0) == (classes[0], classes[2])


def test_a_class_list_is_closed_and_gives_numbers_their_names(tmp_path: Path) -> None:
    classes = tmp_path / "classes.txt"
    classes.write_text("7,cat\n9,dog\n")
    path = save(tmp_path, "image,labels\na,7 9\nb,9 7\n")
    table = read_labels(path, unlisted="unknown", classes=classes)
    assert [table.labels_of(row) for row in range(2)] == [("cat", "dog")] * 2
    path = save(tmp_path, "image,labels\na,0001\nb,9 7\n")
    with pytest.raises(DataError, match="line 2: class '0001' is not in the class list"):
        read_labels(path, unlisted="unknown", classes=classes, delimiter="space")


@pytest.mark.parametrize(
    ("one", "other"), [("caf\u00e9", "cafe\u0301"), ("cat", "ca\u200bt"), ("cat", "cat\u2060")]
)
def test_names_that_look_alike_are_not_two(one: str, other: str, tmp_path: Path) -> None:
    path = save(tmp_path, f"image,labels\na.jpg,{one}\nb.jpg,{other}\nc.jpg,{one}\n")
    with pytest.raises(AmbiguousInputError, match="--merge-names"):
        read_labels(path, unlisted="unknown")
    assert read_labels(path, unlisted="unknown", merge_names=True).classes == (one,)
    path = save(tmp_path, f"image,labels\n{one}.jpg,fox\n{other}.jpg,fox\n")
    with pytest.raises(DataError, match=r"image names .* look the same"):
        read_labels(path, unlisted="unknown")


def test_the_commonest_spelling_stays(tmp_path: Path) -> None:
    names = ["Snowboard"] * 5 + ["SNOWBOARD"] + ["snowboard"] * 2
    text = "".join(f"{n}.jpg,{name}\n" for n, name in enumerate(names))
    path = save(tmp_path, f"image,labels\n{text}")
    table = read_labels(path, unlisted="unknown", merge_names=True)
    assert table.classes == ("Snowboard",)


def test_another_encoding_is_asked_for_and_then_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("image,labels\na.jpg,Gr\u00f6\u00dfe;Caf\u00e9\n".encode("cp1252"))
    found = detect(path, ReadOptions(unlisted="unknown"))
    assert isinstance(found, Ambiguous)
    assert found.answers == {"encoding": "cp1252"}
    table = read_labels(path, unlisted="unknown", encoding="cp1252")
    assert table.classes == ("Caf\u00e9", "Gr\u00f6\u00dfe")
    for encoding in ("utf-16", "utf-8-sig"):
        path.write_bytes("image,labels\na.jpg,Gr\u00f6\u00dfe;Caf\u00e9\n".encode(encoding))
        assert read_labels(path, unlisted="unknown") == table


def workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


NAMES = ["image", "cat", "dog"]


def test_the_only_sheet_with_a_table_is_read_and_several_are_asked_about(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["Week 1"], NAMES, ["a.jpg", "x", None], ["b.jpg", None, "x"]]
    path = workbook(tmp_path / "a.xlsx", About=[["How to fill this in"]], Labels=rows)
    layout = detect(path, ReadOptions(unlisted="unknown"))
    assert isinstance(layout, Layout)
    assert (layout.sheet, layout.header_row) == ("Labels", 2)
    assert counts_of(read(path, layout)) == (2, 2, 2)
    path = workbook(tmp_path / "a.xlsx", One=rows, Two=rows)
    with pytest.raises(AmbiguousInputError, match="2 sheets hold a table: 'One'"):
        read_labels(path, unlisted="unknown")
    assert counts_of(read_labels(path, unlisted="unknown", sheet="Two")) == (2, 2, 2)


def test_a_merged_cell_holds_for_all_rows_that_it_spans(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx",
        Tags=[["Photo", "class"], ["a.jpg", "cat"], [None, "dog"], ["b.jpg", "dog"]],
    )
    book = pytest.importorskip("openpyxl").load_workbook(path)
    book["Tags"].merge_cells("A2:A3")
    book.save(path)
    assert read_labels(path, unlisted="unknown").labels_of(0) == ("cat", "dog")


def test_the_separator_of_one_line_is_asked_for() -> None:
    source = Source(Path("a.csv"), content=b"a.jpg,cat;dog\n")
    found = detect(source, ReadOptions(unlisted="unknown"))
    assert isinstance(found, Ambiguous)
    assert "separator" in found.answers


def test_words_behind_a_file_are_read_with_a_separator(tmp_path: Path) -> None:
    path = save(tmp_path, "1.jpg dog cat\n2.jpg cat\n3.jpg\n")
    table = read_labels(path, unlisted="unknown", separator="space", label_columns="1:")
    assert counts_of(table) == (3, 2, 3)


def test_rows_without_names_have_numbers(tmp_path: Path) -> None:
    path = save(tmp_path, "A,B\n1,0\n0,0\n1,1\n")
    table = read_labels(path, unlisted="unknown", image_column="row-number", header_row="1")
    assert table.images.to_pylist() == ["0", "1", "2"]


def test_errors_and_unsaved_formulas_of_a_workbook_are_not_empty_cells(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["File", "Tags"], ["a.jpg", "cat"], ["b.jpg", "#N/A"]):
        book.active.append(row)
    path = tmp_path / "labels.xlsx"
    book.save(path)
    found = detect(path, ReadOptions(unlisted="unknown"))
    assert isinstance(found, Ambiguous)
    assert found.answers == {"values": "#n/a=empty"}
    assert counts_of(read_labels(path, unlisted="unknown", values="#n/a=empty")) == (2, 1, 1)
    book.active.append(["c.jpg", '=IF(TRUE,"cat","dog")'])
    book.save(path)
    with pytest.raises(DataError, match="cell B4 holds a formula whose value was not saved"):
        read_labels(path, unlisted="unknown", values="#n/a=empty")


def test_a_zero_byte_is_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(b"image,tags\na.jpg,cat\0\n")
    with pytest.raises(DataError, match="line 2: this is not text: it holds a zero byte"):
        read_labels(path, unlisted="unknown")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ""}, "--delimiter must not be empty"),
        ({"label_columns": "image"}, "'image' holds the image names"),
    ],
)
def test_options_that_cannot_be_are_said(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    path = save(tmp_path, "image,tags\na.jpg,cat;dog\n")
    with pytest.raises(DataError, match=message):
        read_labels(path, unlisted="unknown", **options)


def _settled(path: Path, **said: str) -> LabelTable:
    """What is read once every question has the answer that it proposes."""
    options = read_options({"unlisted": "unknown", **said})
    found = detect(path, options)
    assert isinstance(found, Ambiguous)
    return read_labels(path, options=read_options(found.answers, options))


@pytest.mark.parametrize(
    ("content", "present"),
    [
        ("image,class,value\na,cat,1\na,dog,0\n", 1),  # --unlisted does not settle a state of 0
        ("image,class,confidence\na,cat,0.9\na,dog,0.2\n", 1),  # the threshold comes as text
        ("Project:,Foo\nimage,cat,dog\na,1,1\nb,0,1\n", 3),  # the header sets the width of rows
        ("image,cat,dog\na,1,1\nb,0,1,1\n", 2),  # the cell of a skipped row makes no column
        ("image,labels\na,cat,dog\nb,dog\n", 3),  # unquoted lists
        ("image,cat,dog\na,1,1\nb,0,1\nSumme,1,2\n", 3),  # the last row alone holds a 2
        ("image,cat,dog,\na,1,1,1\nb,0,1,0\n", 3),  # a column without a name
        ("image,tags\na,\u732b\u3001\u72ac\nb,\u72ac\n", 3),  # an ideographic comma
        ("image cat dog\na 1 1\nb 0 1\n", 3),  # cells separated by spaces
    ],
)
def test_the_answer_that_a_question_proposes_settles_it(
    content: str, present: int, tmp_path: Path
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(content, encoding="utf-8")
    assert _settled(path).count(State.PRESENT) == present


def test_lists_of_zero_and_one_are_asked_about_in_every_container(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": 1, "labels": [0, 1, 1]}\n{"id": 2, "labels": [1, 0, 0]}\n')
    assert _settled(path).labels_of(0) == ("1", "2")
    assert read_labels(path, unlisted="unknown", delimiter="json").labels_of(0) == ("0", "1")


def test_lists_may_stand_beside_a_column_of_single_labels(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("image,primary_label,secondary_labels\na.ogg,cat,\"['dog']\"\nb.ogg,dog,[]\n")
    table = read_labels(path, unlisted="unknown", image_column="image")
    assert [table.labels_of(row) for row in range(2)] == [("cat", "dog"), ("dog",)]


def test_row_numbers_without_a_name_are_no_class(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(",image,cat\n0,a.jpg,1\n1,b.jpg,0\n")
    assert read_labels(path, unlisted="unknown").classes == ("cat",)


def test_values_are_described_in_the_words_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("image,cat,dog\na.jpg,yes,no\nb.jpg,no,yes\n")
    found = detect(path, read_options({"unlisted": "absent"}))
    assert isinstance(found, Layout)
    assert "yes is present; no is absent" in found.describe()
    assert "0 is" not in found.describe()
