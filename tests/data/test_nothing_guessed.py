# ruff: noqa: E501 (files as they are)
"""Nasty label files: each is read in the one way that it can be meant, or asked about, or refused.

A table says by image what is present; a text is part of the question or error.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import Ambiguous, LabelTable, ReadOptions, State, detect, read_labels
from hilltop.errors import ArgumentTypeError, DataError

Said = dict[str, str] | str
Files = str | bytes | dict[str, Any]

TEXTS: dict[str, tuple[Files, dict[str, Any], Said]] = {
    # Rows
    "an image called n": ("image,cat,dog\na,1,0\nb,0,1\nn,1,1\n", {}, {"a": "cat", "b": "dog", "n": "cat dog"}),
    "an image without labels at the end": ("a.jpg,cat;dog\nb.jpg,dog\nc.heic,\n", {}, {"a.jpg": "cat dog", "b.jpg": "dog", "c.heic": ""}),
    "sums of 0 and 1": ("image,cat,dog\na,1,0\nb,0,1\nTotal,1,1\n", {}, "row 4 ('Total')"),
    "sums that are images": ("image,cat,dog\na,1,0\nTotal,1,1\n", {"skip_rows": "none"}, {"a": "cat", "Total": "cat dog"}),
    "sums without a name": ("image,cat,dog\na,1,0\nb,1,0\n,2,0\n", {}, "Row 4 alone holds '2'"),
    "a header in between": ("image,tags\na.jpg,cat\nimage,tags\nb.jpg,dog\n", {}, "row 3 ('image')"),
    "a header in between, classes": ("image,cat\na.jpg,1\nimage,cat\nb.jpg,0\n", {}, "--skip-rows 3"),
    "a comment below the header": ("image,cat\n# by Ann\na.jpg,1\nb.jpg,0\n", {"skip_rows": "2"}, {"a.jpg": "cat", "b.jpg": ""}),
    "a row that is not there": ("image,cat\na.jpg,1\nb.jpg,0\n", {"skip_rows": "7"}, "there is no row 7"),
    "a remark": ("image,cat\na,1\nb,1\nchecked by Ann,\n", {}, "row 4 ('checked by Ann')"),
    "a title with a year": ("My labels, 2024\nimage,cat,dog\na.jpg,x,\nb.jpg,,x\n", {}, "--header-row"),
    "that is left out": ("My labels, 2024\nimage,cat,dog\na.jpg,x,\nb.jpg,,x\n", {"header_row": "2"}, {"a.jpg": "cat", "b.jpg": "dog"}),
    "a title": ("My birds\nimage,cat,dog\na,1,0\n", {}, {"a": "cat"}),
    "a row too long": ("image,cat,dog\na,1,0\nb,1,0,1\n", {}, "row 3 has 4 cells"),
    "a row too short": ("image,cat,dog\na,1,0\nb,1\n", {}, "row 3 has 2 cells"),
    "trailing commas": ("image,cat,dog,\na,1,0,\nb,1,1,\n", {}, {"a": "cat", "b": "cat dog"}),
    "an image in two rows": ("image,tags\na,cat\n\"a \",dog\n", {}, "'a' in rows 2, 3"),
    "an empty name": ("image,tags\na,cat\n,dog\n", {}, "line 3: the image name is empty"),
    "a line end in a name": ('image,tags\n"a\nb",cat\nc,dog\n', {}, {"a\nb": "cat", "c": "dog"}),
    "remarks in the last row": ("image,cat,dog,notes\na,1,0,\nb,0,1,blurry\n", {}, "Pass --ignore-columns"),
    "remarks without a name": ("image,cat,dog,\na,1,0,\nb,0,1,blurry\n", {"ignore_columns": "column 3"}, {"a": "cat", "b": "dog"}),
    "rows of labels": ("a.jpg,cat,dog\nb.jpg,dog\nc.jpg\n", {"label_columns": "1:"}, {"a.jpg": "cat dog", "b.jpg": "dog", "c.jpg": ""}),
    "a class twice": ("image,cat,cat\na,1,0\nb,0,1\n", {}, "--ignore-columns"),
    "one of them left out": ("image,cat,cat\na,1,0\nb,0,1\n", {"ignore_columns": "2"}, {"a": "cat", "b": ""}),
    # Headers
    "classes called 0 and 1": ("image,0,1\na,1,0\nb,0,1\n", {}, {"a": "0", "b": "1"}),
    "a header behind #": ("# image,cat,dog\na,1,0\nb,0,1\n", {}, "--header-row 1"),
    "data behind #": ("#1.jpg,cat\nb.jpg,dog\n", {}, "Row 1 begins with '#'"),
    "that is said": ("# image,cat,dog\na,1,0\nb,0,1\n", {"header_row": "1"}, {"a": "cat", "b": "dog"}),
    "no header, one value a row": ("a.jpg,0\nb.jpg,1\n", {}, "--class-columns"),
    "no header, class numbers": ("a.jpg,0\nb.jpg,1 3\n", {}, {"a.jpg": "0", "b.jpg": "1 3"}),
    "no header, values": ("a.jpg,0,1\nb.jpg,1,0\n", {}, {"a.jpg": "column 2", "b.jpg": "column 1"}),
    "no row": ("image,cat,dog\n", {}, {}),
    "nothing": ("\n \n", {}, "the file is empty"),
    "names alone": ("cat\ndog\n", {}, "matches no known format"),
    # Values
    "all four values": ("image,cat,dog\na,1,0\nb,-1,\n", {}, "--zero and --empty and --minus-one"),
    "0 and empty cells": ("image,cat,dog\na,1,0\nb,,1\n", {}, "--zero and --empty"),
    "true and false": ("image,cat,dog\na,TRUE,False\nb,false,True\n", {}, {"a": "cat", "b": "dog"}),
    "x": ("image,cat,dog\na,x,\nb,,X\n", {}, {"a": "cat", "b": "dog"}),
    "a typing error": ("image,cat,dog\na,1,0\nb,0,l\n", {}, "column 'dog' hold 'l' (row 3)"),
    "a class column in other words": ("image,cat,dog\na,1,ja\nb,0,nein\n", {}, "ja=present,nein=absent"),
    "ticks and crosses": ("image,cat,dog\na,\u2713,\u2717\nb,\u2713,\u2713\n", {}, "--values"),
    "commas in decimals": ("image;cat;dog\na;0,9;0,1\nb;0,2;1,0\n", {}, "--label-threshold"),
    "a class column with other words": ("image,cat,dog\na,1,0\nb,foo,1\nc,bar,0\nd,baz,1\n", {}, "'foo'"),
    "texts beside empty cells": ("image,cat,notes\na,1,\nb,0,blurry\nc,1,dark\nd,1,night\n", {}, "--ignore-columns"),
    "texts in every row": ("image,cat,notes\na,1,sharp\nb,0,blurry\n", {}, {"a": "cat", "b": ""}),
    "numbers of rows": ("id,image,cat\n1,a,1\n2,b,0\n", {}, {"a": "cat", "b": ""}),
    "one column that is empty": ("image,cat\na,\nb,\n", {"empty": "absent"}, "--class-columns"),
    "no name above 0 and 1": ("image,cat,\na,1,0\nb,0,1\n", {}, "1 column has no name"),
    "numbers of rows without a name": (",image,cat\n0,a,1\n1,b,0\n", {}, {"a": "cat", "b": ""}),
    "rows left out up to no end": ("image,cat\na,1\nb,0\n", {"skip_rows": "3-999999999"}, {"a": "cat"}),
    # Labels
    "a stray semicolon": ("image,tags\na,\"cat, dog\"\nb,\"cat, dog\"\nc,cat;\n", {}, "one label or several"),
    "a stray bar among lists": ('image,tags\na,"[""cat""]"\nb,cat|dog\n', {}, "'cat|dog'"),
    "a semicolon in a class": ("image,class\na,cat;dog\nb,dog\n", {}, "one label or several"),
    "a part that comes alone": ("image,tags\na,\"food, arts and crafts\"\nb,\"arts and crafts, music\"\nc,crafts\n", {}, {"a": "arts and crafts+food", "b": "arts and crafts+music", "c": "crafts"}),
    "zeros before a number": ("image,tags\na,0001\nb,1000\n", {}, {"a": "0001", "b": "1000"}),
    "0 and 1 with commas": ('image,tags\na,"0,0,1"\nb,"0,1,0"\n', {}, "a 0 or 1 per class"),
    "0 and 1 with spaces": ("image,tags\na,0 1\nb,1 0\n", {}, "a 0 or 1 per class"),
    "values of classes": ("image,tags\na,0 1\nb,1 0\n", {"delimiter": "multi-hot"}, {"a": "1", "b": "0"}),
    "numbers of classes": ("image,tags\na,0 1\nb,1 0\n", {"delimiter": "space"}, {"a": "0 1", "b": "0 1"}),
    "a slash": ("image,tags\na,AC/DC\nb,AC\nc,DC\n", {}, {"a": "AC/DC", "b": "AC", "c": "DC"}),
    "null in a list": ("image,tags\na,null\nb,cat;nan\n", {}, "'null' (row 2), 'nan' (row 3)"),
    "errors of a spreadsheet": ("image,tags\na,#N/A\nb,cat;dog\nc,#REF!\n", {}, "'#n/a' (row 2), '#ref!' (row 4)"),
    "three spellings": ("image,tag\na,Fox\nb,FOX\nc,fox\n", {}, {"a": "Fox", "b": "FOX", "c": "fox"}),
    "two spellings in Unicode": ("image,tag\na,caf\u00e9\nb,cafe\u0301\n", {}, "--merge-names"),
    "one of them": ("image,tag\na,caf\u00e9\nb,cafe\u0301\n", {"merge_names": True}, {"a": "caf\u00e9", "b": "caf\u00e9"}),
    "a space without width": ("image,tag\na,cat\u200b\nb,cat\n", {}, "look the same"),
    "ids that look alike": ("image,tag\ncaf\u00e9,cat\ncafe\u0301,dog\n", {}, "Make them one in the file"),
    "numbered columns": ("image,Species 1,Species 2\na,cat,dog\nb,bird,\n", {}, {"a": "cat dog", "b": "bird"}),
    "numbered columns, the first without a number": ("image,Label,Label 2\na,cat,dog\nb,bird,\n", {}, {"a": "cat dog", "b": "bird"}),
    "two columns of labels of one name": ("image,tags,tags\na,cat,dog\nb,bird,\n", {}, {"a": "cat dog", "b": "bird"}),
    "a dash among labels": ("image,tags\na,cat\nb,-\n", {}, "'-' (row 3)"),
    "an index without a name": (",tags\na.jpg,cat;dog\nb.jpg,dog\n", {}, {"a.jpg": "cat dog", "b.jpg": "dog"}),
    "names in brackets without quotes": ('image,tags\na,"[cat, dog]"\nb,[dog]\n', {}, "Correct such cells"),
    "line ends in cells": ('image,tags\na,"cat\ndog"\nb,"dog\ncat"\n', {}, {"a": "cat dog", "b": "cat dog"}),
    "no name above labels": ("image,tags,\na,cat,dog\nb,cat,\n", {}, "Column 2 has no name, but holds 'dog' in row 2"),
    "rows numbered beside labels": (",image,tags\n0,a,cat\n1,b,dog\n", {}, {"a": "cat", "b": "dog"}),
    "numbers as names above names": (",0,1\na,1,0\nb,0,1\n", {"header_row": "1", "image_column": "column 0"}, {"a": "0", "b": "1"}),
    "units": ("image,cat,dog\n,count,count\na,1,0\n", {"skip_rows": "2"}, {"a": "cat"}),
    "a mark of direction": ("image,tag\na,cat\u200e\nb,cat\n", {}, "--merge-names"),
    "a hard space": ("image,tag\na,red\u00a0fox\nb,red fox\n", {"delimiter": "none"}, "look the same"),
    # Encodings
    "two columns that may be states": ("image,label,score,confidence\na,cat,1,0.2\nb,dog,0,0.9\n", {}, "--state-column"),
    "a column that says what is present": ("image,label,is_present\na,cat,yes\na,dog,no\n", {"zero": "absent"}, {"a": "cat"}),
    "rows of class numbers": ("a.jpg,0,3\nb.jpg,4\n", {}, "--label-columns 1:"),
    "a split of a table": ("image,cat,split\na,1,train\nb,0,val\n", {"split": "val"}, "--split does not choose rows by the column 'split'"),
    "a mark at the start": ("\ufeffimage,cat\na,1\n", {}, {"a": "cat"}),
    "UTF-16": ("image,cat\na,1\n".encode("utf-16"), {}, {"a": "cat"}),
    "UTF-16 without a mark": ("image,cat\na,1\nb,0\n".encode("utf-16-le"), {}, "--encoding utf-16-le"),
    "a line separator of Unicode in UTF-16": ("image,tags\r\na,cat\u2028dog\r\nb,cat\r\n".encode("utf-16"), {}, {"a": "cat\u2028dog", "b": "cat"}),
    "Latin 1": ("image,tags\na,caf\u00e9\nb,na\u00efve\n".encode("latin-1"), {}, "--encoding"),
    # JSON
    "a key twice": ('{"image":"a","tags":["x"],"tags":["y"]}\n', {}, "'tags' stands twice"),
    "null among labels": ('{"image":"a","tags":["x",null]}\n', {}, "list of row 1"),
    "half a character": ('{"image":"\\ud800","tags":["x"]}\n', {}, "half a character"),
    "objects as labels": ('{"image":"a","tags":[{"name":"cat"}]}\n', {}, "which is no label"),
    "a line that breaks off": ('{"image":"a","tags":["x"]}\n{"ima', {}, "line 2"),
    "states by class": ('{"image":"a","labels":{"cat":1,"dog":0}}\n', {}, {"a": "labels.cat"}),
    # Formats
    "tasks, the first without annotations": ('[{"id":1,"data":{"image":"a"}},{"id":2,"data":{"image":"b"},"annotations":[]}]', {}, "record 1"),
    "tasks with predictions": ('[{"id":1,"data":{"image":"a"},"predictions":[]}]', {}, "no list of 'annotations'"),
    "answers of another kind": (json.dumps([{"id": 1, "data": {"image": "a"}, "annotations": [{"result": [{"from_name": "t", "type": "taxonomy", "value": {"taxonomy": [["x"]]}}]}]}]), {}, "results of type taxonomy alone"),
    "images and tracks": ('<annotations><track id="0" label="cat"><box frame="0" outside="0"/></track><image id="0" name="a"/></annotations>', {}, "Export them apart"),
    "a number of a class as text": (json.dumps({"images": [{"id": 1, "file_name": "a"}], "categories": [{"id": 7, "name": "cat"}], "annotations": [{"id": 1, "image_id": 1, "category_id": "7"}]}), {}, "category_id '7'"),
    "YOLO, two images of one name": ({"data.yaml": "names: [cat, dog]\n", "labels/train/a.txt": "0 .5 .5 1 1\n", "images/train/a.jpg": "", "images/train/a.png": ""}, {}, "would share the labels in a.txt"),
    "YOLO, two folders in a list": ({"data.yaml": "names: [cat, dog]\n", "train.txt": "./x/a.jpg\n./y/a.jpg\n", "labels/train/a.txt": "0 .5 .5 1 1\n"}, {}, "would share the labels in a.txt"),
    "YOLO, classes called yes and 010": ({"data.yaml": "names: [yes, 010]\n", "labels/a.txt": "0 .5 .5 1 1\n1 .5 .5 1 1\n"}, {}, {"a": "yes 010"}),
    "YOLO, an image called train": ({"data.yaml": "names: [cat, dog]\n", "labels/train.txt": "0 .5 .5 1 1\n", "labels/b.TXT": "1 .5 .5 1 1\n"}, {}, {"b": "dog", "train": "cat"}),
    "VOC, an ending in capitals": ({f"{n}": f"<annotation><object><name>{c}</name></object></annotation>" for n, c in (("a.xml", "cat"), ("b.XML", "dog"))}, {}, {"a": "cat", "b": "dog"}),
    "VOC, files in a folder within": ({f"{n}": f"<annotation><object><name>{c}</name></object></annotation>" for n, c in (("a.xml", "cat"), ("more/b.xml", "dog"))}, {}, "XML files here and in 'more'"),
    "tags, an ending in capitals": ({"a.jpg": "", "a.TXT": "cat, dog", "b.jpg": "", "b.txt": "dog"}, {}, {"a.jpg": "cat dog", "b.jpg": "dog"}),
    "tags in Latin 1": ({"a.jpg": "", "a.txt": "caf\u00e9".encode("latin-1")}, {"encoding": "latin-1"}, {"a.jpg": "caf\u00e9"}),
    "class folders, a picture of another kind": ({"cat/a.jpg": "", "dog/b.heic": "", "fox/c.jpg": ""}, {}, "dog/b.heic is no image that is read"),
    "class folders, a folder within": ({"cat/a.jpg": "", "dog/b.jpg": "", "dog/more/c.jpg": ""}, {}, "dog/more/c.jpg"),
    "tags, two images of one name": ({"a.jpg": "", "a.png": "", "a.txt": "cat, dog", "b.jpg": "", "b.txt": "dog"}, {}, "would share the tags in a.txt"),
}  # fmt: skip


def present(table: LabelTable) -> dict[str, str]:
    names = [table.labels_of(row) for row in range(len(table))]
    spaced = any(" " in name and not name.startswith("column") for one in names for name in one)
    lists = [("+" if spaced else " ").join(one) for one in names]
    return dict(zip(table.images.to_pylist(), lists, strict=True))


def check(source: Any, options: dict[str, Any], said: Said) -> None:
    if isinstance(said, str):
        with pytest.raises(DataError) as caught:
            read_labels(source, **options)
        assert said in str(caught.value)
    else:
        assert present(read_labels(source, **options)) == said


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_is_read_as_it_is_meant_or_not_at_all(name: str, tmp_path: Path) -> None:
    files, options, said = TEXTS[name]
    start = "" if isinstance(files, dict) else files[:1]
    ending = {"{": ".jsonl", "[": ".json", "<": ".xml"}.get(str(start), ".csv")
    path = tmp_path / (f"labels{ending}" if not isinstance(files, dict) else "set")
    if '"categories"' in str(files):
        path = path.with_suffix(".json")
    for place, content in (files if isinstance(files, dict) else {"": files}).items():
        target = path / place if place else path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    open_ = {} if said in ("--zero and --empty", "--zero and --empty and --minus-one") else {"unlisted": "unknown"}  # fmt: skip
    check(path, {**open_, **options}, said)


COLUMNS: dict[str, tuple[dict[str, Any], Said]] = {
    "lists": ({"image": ["a", "b"], "tags": [["x", "cat"], []]}, {"a": "cat x", "b": ""}),
    "no list": ({"image": ["a", "b"], "tags": pa.array([["cat"], None])}, {"a": "cat", "b": ""}),
    "null in a list": ({"image": ["a"], "tags": pa.array([[1, None]])}, "list of row 1"),
    "codes": ({"image": ["a"], "tags": pa.array(["cat"]).dictionary_encode()}, {"a": "cat"}),
    "booleans": ({"image": ["a", "b"], "cat": [True, False]}, {"a": "cat", "b": ""}),
    "0 and 1 as lists": ({"image": ["a", "b"], "tags": [[1, 0, 1], [0, 0, 1]]}, "--delimiter"),
    "true and false as lists": ({"image": ["a", "b"], "tags": [[True, False], [False, True]]}, "--delimiter"),
    "large lists": ({"image": ["a"], "tags": pa.array([["cat"]], pa.large_list(pa.large_string()))},
        {"a": "cat"}),
    "an object": ({"image": ["a"], "o": [{"tags": ["cat"]}]}, {"a": "cat"}),
    "lists of objects": ({"image": ["a"], "tags": [[{"name": "cat"}]]}, "no label"),
    "maps": ({"image": ["a"], "tags": pa.array([[("cat", 1)]], pa.map_(pa.string(), pa.int64()))},
        "no label"),
    "numbers as ids": ({"image": [1, 2], "tags": [["cat"], ["dog"]]}, {"1": "cat", "2": "dog"}),
    "pictures as ids": ({"image": [b"\x89PNG", b"x"], "tags": ["cat", "dog"]}, "holds binary"),
    "half numbers": ({"image": ["a", "b"], "cat": pa.array([1.0, 0.0]).cast(pa.float16())}, {"a": "cat", "b": ""}),
    "no id": ({"image": ["a", None], "tags": ["cat", "dog"]}, "line 2: the image name is empty"),
    "labels at a time": ({"image": ["a"], "tags": ["cat"], "when": [datetime.date(2020, 1, 1)]},
        {"a": "cat"}),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_parquet(name: str, tmp_path: Path) -> None:
    columns, said = COLUMNS[name]
    pq.write_table(pa.table(columns), tmp_path / "labels.parquet")
    check(tmp_path / "labels.parquet", {"unlisted": "unknown"}, said)


def test_two_columns_of_one_name_in_parquet(tmp_path: Path) -> None:
    columns = [pa.array(["a"]), pa.array([1]), pa.array([1])]
    pq.write_table(pa.table(columns, names=["image", "cat", "cat"]), tmp_path / "labels.parquet")
    check(tmp_path / "labels.parquet", {"unlisted": "unknown"}, "are called 'cat'")


def frames() -> dict[str, tuple[Any, dict[str, Any], Said]]:
    pandas = pytest.importorskip("pandas")
    numpy = pytest.importorskip("numpy")
    make, index = pandas.DataFrame, pandas.MultiIndex.from_tuples
    ids = {"image": ["a", "b"]}
    yes = pandas.array([1, None], dtype="Int64")
    return {
        "arrays": (make({**ids, "tags": [numpy.array(["cat", "dog"]), numpy.array([])]}), {}, {"a": "cat dog", "b": ""}),
        "tuples and sets": (make({**ids, "tags": [("cat",), {"dog"}]}), {}, {"a": "cat", "b": "dog"}),
        "lists and NaN": (make({**ids, "tags": [["cat"], float("nan")]}), {}, {"a": "cat", "b": ""}),
        "lists and NA": (make({**ids, "tags": [["cat"], pandas.NA]}), {}, {"a": "cat", "b": ""}),
        "categories": (make({**ids, "tags": pandas.Categorical(["cat", None])}), {}, {"a": "cat", "b": ""}),
        "numbers that may lack": (make({**ids, "cat": yes}), {}, {"a": "cat", "b": ""}),
        "an index of two levels": (make({"cat": [1, 0]}, index=index([("s", "x"), ("s", "y")], names=["set", "image"])), {"image_column": "image", "class_columns": "cat"}, {"x": "cat", "y": ""}),
        "an index of names": (make({"cat": [1, 0]}, index=["a", "b"]), {"image_column": "index"}, {"a": "cat", "b": ""}),
        "rows that were chosen": (make({"image": ["a", "b", "c"], "tags": ["cat", "x", "dog"]}).iloc[[0, 2]], {}, {"a": "cat", "c": "dog"}),
        "columns called by number": (make({**ids, 0: [1, 0], 1: [0, 1]}), {}, {"a": "0", "b": "1"}),
        "two columns of one name": (make([["a", 1, 0]], columns=["image", "cat", "cat"]), {}, "two columns are called 'cat'"),
        "bytes": (make({**ids, "tags": [b"cat", b"dog"]}), {}, "b'cat' in row 1"),
        "a row of nothing": (make({"image": ["a", None], "tags": ["cat", None]}), {}, "line 2: the image name is empty"),
        "no column": (make(), {}, "no columns of images and labels"),
        "no row": (make({"image": [], "tags": []}), {}, {}),
    }  # fmt: skip


def test_frames() -> None:
    for frame, options, said in frames().values():
        check(frame, {"unlisted": "unknown", **options}, said)


def test_spaces_around_the_names_of_columns_are_part_of_them() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({" id ": ["a"], " cat ": [1], "tag, x": ["dog"]})
    table = LabelTable.from_dataframe(frame, image=" id ", classes=[" cat "], zero="absent")
    assert table.dense().tolist() == [[State.PRESENT]]
    table = LabelTable.from_dataframe(
        frame, image=" id ", label="tag, x", delimiter="none", unlisted="absent"
    )
    assert present(table) == {"a": "dog"}


def test_a_lazy_frame_is_refused_without_running_it(recwarn: pytest.WarningsRecorder) -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(ArgumentTypeError, match="LazyFrame"):
        read_labels(polars.LazyFrame({"image": ["a"], "tags": ["cat"]}))
    assert not recwarn.list


def test_cells_merged_across_columns_are_asked_about(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["My list", None, None], ["image", "cat", "dog"], ["a", 1, 1], ["b", None, None]):
        book.active.append(row)
    book.active.merge_cells("A1:C1")
    book.save(tmp_path / "a.xlsx")
    check(tmp_path / "a.xlsx", {"unlisted": "unknown"}, {"a": "cat dog", "b": ""})
    book.active.merge_cells("B3:C4")
    book.save(tmp_path / "a.xlsx")
    check(tmp_path / "a.xlsx", {"unlisted": "unknown"}, "rows 3-4 are merged across columns")
    said = {"skip_rows": "none", "unlisted": "unknown"}
    check(tmp_path / "a.xlsx", said, {"a": "cat", "b": ""})


def test_a_header_of_two_rows_is_asked_about(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    rows = [["image", "Animals", None], [None, "cat", "dog"], ["a", "x", None], ["b", None, "x"]]
    for row in rows:
        book.active.append(row)
    book.active.merge_cells("B1:C1")
    book.active.merge_cells("A1:A2")
    book.save(tmp_path / "labels.xlsx")
    found = detect(tmp_path / "labels.xlsx", ReadOptions(unlisted="unknown"))
    assert isinstance(found, Ambiguous)
    assert found.answers == {"header_row": "2"}
    check(
        tmp_path / "labels.xlsx",
        {"unlisted": "unknown", "header_row": "2"},
        {"a": "cat", "b": "dog"},
    )


def test_numbers_that_a_spreadsheet_rounds_are_refused(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "cat"], [10000000000000001, 1], [10000000000000003, 0]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    check(tmp_path / "a.xlsx", {"unlisted": "unknown"}, "line 2: the number 10000000000000000 has")


def test_a_text_without_an_image_is_named(tmp_path: Path) -> None:
    for name in ("a.jpg", "a.txt", "z.txt"):
        (tmp_path / name).write_text("cat")
    table = read_labels(tmp_path, unlisted="unknown")
    assert table.notes == ("1 text file has no image and is left out: 'z.txt' is first.",)


def test_an_empty_workbook_says_so(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    openpyxl.Workbook().save(tmp_path / "a.xlsx")
    check(tmp_path / "a.xlsx", {}, "it holds no table")


ASKED = {
    "a header in between": ("image,cat,dog\na.jpg,1,0\nimage,cat,dog\nb.jpg,0,1\n", {"skip_rows": "3"}),
    "a typing error": ("image,cat,dog\na.jpg,1,0\nb.jpg,0,l\n", {"values": "l=unknown"}),
    "a typing error in one of many": ("image,a,b,c\n1.jpg,1,0,1\n2.jpg,0,l,1\n3.jpg,1,1,1\n", {"values": "l=unknown"}),
    "a column of counts": ("image,a,b,n\n1.jpg,1,0,1\n2.jpg,1,1,2\n3.jpg,1,1,2\n", {"ignore_columns": "n"}),
    "a row too short": ("image,cat,dog\na.jpg,1,0\n# b\nc.jpg,0,1\n", {"skip_rows": "3"}),
    "units right below the header": ("image,cat,dog\n,count,count\na,1,0\n", {"skip_rows": "2"}),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_the_answers_that_are_proposed_lose_no_image(name: str, tmp_path: Path) -> None:
    text, answers = ASKED[name]
    (tmp_path / "labels.csv").write_text(text)
    found = detect(tmp_path / "labels.csv", ReadOptions(unlisted="unknown"))
    assert isinstance(found, Ambiguous)
    assert found.answers == answers
