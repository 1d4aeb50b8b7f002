# ruff: noqa: E501 (lines of files as they are)
"""Further shapes of label files found in the wild: recognised, counted, never a traceback."""

from __future__ import annotations

import bz2
import json
import lzma
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hilltop.data import ReadOptions, State, read_labels
from hilltop.errors import DataError, OptionNeeded
from tests.data.formats.shapes import OPEN, Shape, check_damaged, check_file, counts, lines

CLASSES = ("Fish", "Sugar")
FILES: dict[str, Shape] = {
    "image and class in one cell, a mask": ("id_class", "a.csv", "Image_Label,EncodedPixels\n" + "".join(f"{n}.jpg_{c},{'1 2 3 4' if n > 1 else ''}\n" for n in (1, 2, 3) for c in CLASSES), (3, 2, 4)),
    "image and class in one cell, 0 or 1": ("id_class", "a.csv", "ID,Label\n" + "".join(f"ID_{n}_{c},{int(c == 'Fish')}\n" for n in (1, 2) for c in CLASSES), (2, 2, 2)),
    "values without names": ("zero_one_list", "a.txt", "0 1 0\n0 1 1\n1 0 0\n", (3, 3, 4)),
    "values without names, commas": ("zero_one_list", "a.txt", "0,1,0\n0,1,1\n1,0,0\n", (3, 3, 4)),
    "plain ids and words": ("name_list", "a.txt", "1000 sky sun\n1001 sky\n1002 sun sea\n1003 sea\n1004 sky sea\n", (5, 3, 8)),
    "cloud import of boxes": ("name_list", "a.csv", "TRAIN,gs://b/a.jpg,cat,0.1,0.1,,,0.3,0.3,,\nTRAIN,gs://b/a.jpg,dog,0.1,0.1,,,0.3,0.3,,\nTEST,gs://b/b.jpg,dog,0.1,0.1,,,0.3,0.3,,\n", (2, 2, 3)),
    "boxes without a header": ("list_column", "a.csv", "a.jpg,10,20,30,40,cat\na.jpg,10,20,30,41,dog\nb.jpg,10,20,30,42,dog\nc.jpg,11,20,30,40,cat\n", (3, 2, 4)),
    "boxes, the class first": ("list_column", "a.csv", "cat,72,54,118,201,a.jpg,800,600\ndog,72,54,118,201,a.jpg,800,600\ndog,7,5,118,201,b.jpg,800,600\ncat,7,5,118,201,c.jpg,800,600\n", (3, 2, 4)),
    "class names with blanks beside class numbers": ("list_column", "a.csv", "image_id,class_name,class_id,rad_id\n1,No finding,14,R1\n2,Aortic enlargement,0,R1\n2,Nodule/Mass,8,R2\n", (2, 3, 3)),
    "separators behind the header": ("list_column", "a.csv", "Image Index,Finding Label,Bbox [x,y,w,h],,,\na.png,Mass,1.5,2.5,3.5,4.5\na.png,Effusion,1.5,2.5,3.5,4.5\nb.png,Mass,1.5,2.5,3.5,4.5\n", (2, 2, 3)),
    "an image column without a name": ("wide", "a.csv", "cat,dog,\n0,1,a.jpg\n1,1,b.jpg\n", (2, 2, 3)),
    "headings above the header": ("wide", "a.csv", ",Animals,,Vehicles,\nimage,cat,dog,car,bus\na.jpg,1,0,0,1\nb.jpg,0,0,0,1\n", (2, 4, 3)),
    "sums below": ("wide", "a.csv", "image,cat,dog\na.jpg,1,1\nb.jpg,1,0\nc.jpg,1,0\nTotal,3,1\n", (3, 2, 4)),
    "decimal commas": ("wide", "a.csv", "image;cat;dog\na.jpg;1,0;0,0\nb.jpg;1,0;1,0\n", (2, 2, 3)),
    "per cent": ("wide", "a.csv", "image,cat,dog\na.jpg,100%,0%\nb.jpg,100%,100%\n", (2, 2, 3)),
    "ja and nein": ("wide", "a.csv", "Bild;Katze;Hund\na.jpg;ja;nein\nb.jpg;ja;ja\n", (2, 2, 3)),
    "objects as text": ("list_column", "a.csv", "id,genres\n1,\"[{'id': 16, 'name': 'Drama'}, {'id': 3, 'name': 'Crime'}]\"\n2,\"[{'id': 16, 'name': 'Drama'}]\"\n3,[]\n", (3, 2, 3)),
    "attributes without names": ("celeba", "a.txt", "2\nimage_name  attribute_labels\nx/a.jpg  1 -1  1\nx/b.jpg -1  1 -1\n", (2, 3, 3)),
    "panoptic": ("coco", "a.json", json.dumps({"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [{"image_id": 1, "file_name": "a.png", "segments_info": [{"id": 5, "category_id": 2}, {"id": 6, "category_id": 3}]}], "categories": [{"id": 2, "name": "sky"}, {"id": 3, "name": "sea"}]}), (1, 2, 2)),
    "classes with their files": ("json_records", "a.json", json.dumps({"cat": ["1.jpg", "2.jpg"], "dog": ["2.jpg"]}), (2, 2, 3)),
    "files with a text": ("json_records", "a.json", json.dumps({"1.jpg": "cat,dog", "2.jpg": "dog", "3.jpg": "cat"}), (3, 2, 4)),
    "columns and rows": ("json_records", "a.json", json.dumps({"columns": ["image", "labels"], "index": [0, 1], "data": [["1.jpg", ["cat", "dog"]], ["2.jpg", ["cat"]]]}), (2, 2, 3)),
    "one image and its objects": ("json_records", "a.json", json.dumps({"_id": "6", "filename": "/a.jpg", "annotations": [{"id": "1", "label": "cat"}, {"id": "2", "label": "dog"}]}), (1, 2, 2)),
    "files with values by class": ("class_values", "a.json", json.dumps({"1.jpg": {"cat": 1, "dog": 0}, "2.jpg": {"cat": 1, "dog": 1}}), (2, 2, 3)),
    "names under tagName": ("json_records", "a.json", json.dumps([{"id": "1", "tags": [{"tagId": "7", "tagName": "cat"}]}, {"id": "2", "tags": [{"tagId": "7", "tagName": "cat"}, {"tagId": "8", "tagName": "dog"}]}]), (2, 2, 3)),
    "accepted options": ("prodigy", "a.jsonl", lines({"image": "1.jpg", "accept": ["CAT", "DOG"], "answer": "accept"}, {"image": "2.jpg", "accept": ["CAT"], "answer": "reject"}, {"image": "3.jpg", "accept": ["CAT"], "answer": "ignore"}), (3, 2, 2)),
    "one label accepted or rejected": ("prodigy", "a.jsonl", lines({"text": "a b", "label": "SPORT", "answer": "accept"}, {"text": "c", "label": "SPORT", "answer": "reject"}), (2, 1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("shape", FILES)
def test_a_file_of_a_found_shape_is_recognised_and_counted(shape: str, tmp_path: Path) -> None:
    check_file(FILES[shape], tmp_path)


@pytest.mark.parametrize("shape", FILES)
def test_a_damaged_file_of_a_found_shape_ends_in_a_table_or_in_words(
    shape: str, tmp_path: Path
) -> None:
    check_damaged(FILES[shape], tmp_path, 15)


def test_a_rejected_label_is_absent_and_a_rejected_choice_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(FILES["one label accepted or rejected"][2])
    assert read_labels(path, options=OPEN).count(State.ABSENT) == 1
    path.write_text(FILES["accepted options"][2])
    assert read_labels(path, options=OPEN).count(State.ABSENT) == 0


@pytest.mark.parametrize(
    ("content", "command"),
    [
        (
            "image,cat,dog\na.jpg,2,3\nb.jpg,0,2\nc.jpg,0,0\n",
            "--class-columns cat,dog --confidence-cut 1",
        ),
        (
            "image,a,b\n1.jpg,0.5,1\n2.jpg,0.25,0.75\n3.jpg,0,0\n",
            "--class-columns a,b --confidence-cut 0.5",
        ),
        (
            "ID;cat;dog\n7;2;9\n8;1;2\n9;1;1\n",
            "--class-columns cat,dog --values 2=absent,9=unknown",
        ),
        (
            "image,a,b\n1.jpg,+,-\n2.jpg,-,?\n3.jpg,?,+\n4.jpg,+,+\n",
            "--values +=present,-=absent,?=unknown",
        ),
    ],
)
def test_votes_shares_and_codes_are_asked_about_with_a_command(
    content: str, command: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(OptionNeeded) as error:
        read_labels(path)
    assert str(error.value).replace("'", "").endswith(command)


def test_the_cut_and_the_codes_say_what_cells_are(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,a,b\n1.jpg,3,1\n2.jpg,2,0\n")
    table = read_labels(path, options=ReadOptions(confidence_cut=2, zero="absent"))
    assert table.dense().tolist() == [
        [State.PRESENT, State.UNKNOWN],
        [State.PRESENT, State.ABSENT],
    ]
    path.write_text("image,a,b\n1.jpg,1,2\n2.jpg,9,1\n")
    table = read_labels(path, options=ReadOptions(values="2=absent,9=unknown"))
    assert table.dense().tolist() == [
        [State.PRESENT, State.ABSENT],
        [State.UNKNOWN, State.PRESENT],
    ]


@pytest.mark.parametrize("said", ["2", "2=perhaps", "=absent"])
def test_codes_that_are_not_pairs_are_refused(said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,a,b\n1.jpg,1,2\n")
    with pytest.raises(OptionNeeded, match="2=absent,9=unknown"):
        read_labels(path, options=ReadOptions(values=said))


def test_a_text_is_no_image_and_labels_are_not_taken_for_one(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    rows = "".join(f"is my order {n} at home\t{'ab'[n % 2]}_x\n" for n in range(20))
    path.write_text(f"text\tlabel\n{rows}")
    with pytest.raises(OptionNeeded, match=r"--image-column row-number --label-column label$"):
        read_labels(path)


def test_columns_of_yes_and_no_beside_the_labels_are_mentioned(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,labels,Fracture\na.jpg,x|y,YES\nb.jpg,y,NO\n")
    table = read_labels(path, options=OPEN)
    assert any("Fracture" in note and "--class-columns" in note for note in table.notes)


def test_masks_alone_are_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ImageId, EncodedPixels\n1.2.3,12 4 18 5\n1.2.4,-1\n1.2.5,13 4 18 5\n")
    with pytest.raises(OptionNeeded, match="where something is, but not what"):
        read_labels(path)


TABLE = "movieId,genres\n1,Drama|Crime\n2,Drama\n"


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_packed_tables_are_read_and_a_cut_one_is_said(pack: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv.xz"
    path.write_bytes(pack(TABLE.encode()))
    assert counts(path, OPEN) == (2, 2, 3)
    path.write_bytes(pack(TABLE.encode())[:-8])
    with pytest.raises(DataError, match="damaged"):
        read_labels(path, format="list_column", options=OPEN)


def test_the_only_file_of_an_archive_is_read_and_several_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("in/a.csv", TABLE)
        archive.writestr("__MACOSX/._a.csv", "x")
    assert counts(path, OPEN) == (2, 2, 3)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("b.csv", TABLE)
    with pytest.raises(DataError, match=r"holds in/a.csv, b.csv. Unpack it"):
        read_labels(path)


@pytest.mark.parametrize(
    ("encoding", "names"),
    [("cp1252", "Größe|Café"), ("gb18030", "猫|狗"), ("cp1251", "кошка|собака")],
)
def test_another_encoding_is_asked_for_and_then_read(
    encoding: str, names: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    first = names.partition("|")[0]
    path.write_bytes(f"image,labels\na.jpg,{names}\nb.jpg,{first}\n".encode(encoding))
    with pytest.raises(OptionNeeded, match=rf"--encoding {encoding}$"):
        read_labels(path)
    table = read_labels(path, options=ReadOptions(encoding=encoding, unlisted="unknown"))
    assert sorted(table.classes) == sorted(names.split("|"))
    with pytest.raises(OptionNeeded) as error:
        read_labels(path, options=ReadOptions(encoding=encoding))
    assert f"hilltop inspect {path} --encoding {encoding}" in str(error.value)
    with pytest.raises(OptionNeeded, match="Unknown encoding 'cp1'"):
        read_labels(path, options=ReadOptions(encoding="cp1"))


def test_the_format_that_was_named_is_named_again(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,cat\na.jpg,0\nb.jpg,1\n")
    with pytest.raises(OptionNeeded, match=r"--format wide$"):
        read_labels(path, format="wide")


def test_the_surest_file_of_a_folder_is_named_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1.jpg 7\n2.jpg 8\n")
    (tmp_path / "list_attr.txt").write_text("1\nSmiling Hat\n1.jpg 1 -1\n")
    with pytest.raises(OptionNeeded, match=r"inspect .*list_attr.txt$"):
        read_labels(tmp_path)
