# ruff: noqa: E501 (lines of files as they are)
"""Shapes of public label files, a third lot: as published, recognised, counted, and never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import ReadOptions, State, read_labels
from hilltop.errors import DataError, OptionNeeded
from tests.data.formats.shapes import (
    OPEN,
    FolderShape,
    Shape,
    check_damaged,
    check_file,
    check_folder,
    counts,
    counts_of,
    read_as_told,
)

VIDEO = """<?xml version="1.0" encoding="utf-8"?>
<annotations><version>1.1</version><meta><task><labels><label><name>car</name></label><label><name>bus</name></label></labels>
<start_frame>0</start_frame><stop_frame>3</stop_frame></task></meta>
<track id="0" label="car"><box frame="0" outside="0"/><box frame="1" outside="0"/><box frame="2" outside="1"/></track>
<track id="1" label="bus"><polygon frame="1" outside="0"/></track></annotations>
"""
WIDER = {"attribute_id_map": {"0": "Male", "1": "longHair", "2": "hat"}, "scene_id_map": {"0": "Parade"}, "images": [{"file_name": "a.jpg", "scene_id": 0, "targets": [{"attribute": [1, -1, -1], "bbox": [1, 2, 3, 4]}, {"attribute": [0, 1, -1], "bbox": [1, 2, 3, 4]}]}, {"file_name": "b.jpg", "scene_id": 0, "targets": [{"attribute": [-1, 0, 1], "bbox": [1, 2, 3, 4]}]}]}  # fmt: skip
VIA_3 = {"project": {"pid": "x"}, "config": {}, "attribute": {"1": {"aname": "animal", "type": 2, "options": {"0": "cat", "1": "dog"}}}, "file": {"1": {"fid": "1", "fname": "a.jpg"}, "2": {"fid": "2", "fname": "b.jpg"}}, "metadata": {"1_a": {"vid": "1", "z": [], "xy": [], "av": {"1": "0,1"}}, "2_b": {"vid": "2", "z": [], "xy": [2, 1, 1, 5, 5], "av": {"1": "1"}}}, "view": {"1": {"fid_list": ["1"]}, "2": {"fid_list": ["2"]}}}  # fmt: skip
FILES: dict[str, Shape] = {
    "pairs of a name and a list": ("json_records", "a.json", json.dumps([["a.jpg", ["cat", "dog"]], ["b.jpg", ["dog"]]]), (2, 2, 3)),
    "objects with values": ("object_values", "a.json", json.dumps(WIDER), (2, 3, 3)),
    "VIA 3": ("via_three", "a.json", json.dumps(VIA_3), (2, 2, 3)),
    "CUB's attributes, of which some lines are longer": ("triples", "a.txt", "1 1 0 3 27.7\n1 2 1 4 27.7\n2 1 1 3 7.7\n2 2 0 4 7.7\n3 1 1 4 0\n3 2 1 4 0 1.5\n".replace(" 0 1.5", " 5.1"), (3, 2, 4)),
    "qrels of Reuters": ("triples", "a.topics.qrels", "E11 2286 1\nECAT 2286 1\nC24 2287 1\nECAT 2287 1\n", (2, 3, 4)),
    "qrels of TREC": ("triples", "qrels.txt", "301 0 FB-1 1\n301 0 FB-2 0\n302 0 FB-1 1\n302 0 FB-2 1\n", (2, 2, 3)),
    "one class of VOC": ("voc", "cat_train.txt", "2008_08 -1\n2008_15  1\n2008_19  0\n", (3, 1, 1)),
    "CVAT video": ("cvat", "a.xml", VIDEO, (4, 2, 3)),
    "YAML from images to labels": ("json_records", "a.yaml", "a.jpg: [cat, dog]\nb.jpg:\n  - dog\nc.jpg: []\n", (3, 2, 3)),
    "YAML under a key": ("json_records", "a.yml", "version: 1\nimages:\n  - file: a.jpg\n    tags: [cat, dog]\n  - file: b.jpg\n    tags: [dog]\n", (2, 2, 3)),
    "more cells behind the last column": ("list_column", "a.tsv", "TRACK_ID\tPATH\tTAGS\nt1\t1/1.mp3\tgenre---punk\nt2\t1/2.mp3\tgenre---metal\tmood---sad\n", (2, 3, 3)),
    "commas that nobody quoted": ("list_column", "a.csv", "image,tags\na.jpg,cat,dog\nb.jpg,dog\n", (2, 2, 3)),
    "primary and secondary labels": ("label_columns", "a.csv", "primary_label,secondary_labels,type,filename\nasb,[],['call'],x/1.ogg\nasb,\"['mag', 'rob']\",['song'],x/2.ogg\n", (2, 3, 4)),
    "lists under an unknown name beside yes and no": ("list_column", "a.csv", "review_id,done,kinds\n1,True,\"[{'id': 4, 'name': 'Bus'}]\"\n2,False,\"[{'id': 4, 'name': 'Bus'}, {'id': 5, 'name': 'Guide'}]\"\n", (2, 2, 3)),
    "words behind a colon": ("name_list", "a.txt", "a.jpg: cat, dog\nb.jpg: dog\nc.jpg: red fox, cat\n", (3, 3, 5)),
    "words behind an arrow": ("name_list", "a.txt", "a.jpg -> cat dog\nb.jpg -> dog\n", (2, 2, 3)),
}  # fmt: skip

FOLDERS: dict[str, FolderShape] = {
    "DOTA": ("object_files", {"labelTxt/P0.txt": "imagesource:GoogleEarth\ngsd:0.14\n1.0 2 3 4 5 6 7 8 plane 0\n1 2 3 4 5 6 7 8 large-vehicle 0\n", "labelTxt/P1.txt": "1 2 3 4 5 6 7 8 plane 1\n", "labelTxt/P2.txt": ""}, (3, 2, 3)),
    "KITTI": ("object_files", {"train/label_2/0.txt": "Car 0.00 0 1.85 387.6 181.5 423.8 203.1 1.6 1.8 3.6 -16.5 2.3 58.4 1.57\n" * 2, "train/label_2/1.txt": "Truck 0.0 0 1 387.6 181.5 423.8 203.1 1.6 1.8 3.6 -16.5 2.3 58.4 1.57\n", "colors.txt": "Car 0\n"}, (2, 2, 2)),
    "brat": ("object_files", {"1.ann": "T1\tDrug 0 7\tAspirin\nT2\tSymptom 15 23\tpain\nR1\tCauses Arg1:T1 Arg2:T2\n", "1.txt": "Aspirin", "2.ann": "T1\tDrug 0 9\tx\n#1\tNotes T1\tsure\n", "2.txt": "x"}, (2, 2, 3)),
    "zeros and ones by class": ("value_files", {"Labels_airport.txt": "0\n0\n1\n", "Labels_animal.txt": "1\n0\n1\n"}, (3, 2, 3)),
    "zeros and ones by class, and a list of images": ("value_files", {"Groundtruth/AllLabels/Labels_sky.txt": "0\n1\n", "Groundtruth/AllLabels/Labels_sea.txt": "1\n1\n", "ImageList/Imagelist.txt": "a\\1.jpg\nb\\2.jpg\n"}, (2, 2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("shape", FILES)
def test_a_public_file_is_recognised_and_counted(shape: str, tmp_path: Path) -> None:
    check_file(FILES[shape], tmp_path)


@pytest.mark.parametrize("shape", FOLDERS)
def test_a_public_folder_is_recognised_and_counted(shape: str, tmp_path: Path) -> None:
    check_folder(FOLDERS[shape], tmp_path, 20)


@pytest.mark.parametrize("shape", FILES)
def test_a_damaged_public_file_ends_in_a_table_or_in_words(shape: str, tmp_path: Path) -> None:
    check_damaged(FILES[shape], tmp_path, 15)


def test_image_sets_alone_are_read_and_images_without_values_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "ImageSets" / "Main"
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text("1\n2\n3\n")
    (folder / "cat_train.txt").write_text("1 -1\n2  1\n")
    (folder / "dog_train.txt").write_text("1  1\n2 -1\n")
    for path in (folder, folder.parent, tmp_path):
        table = read_labels(path)
        assert (counts_of(table), table.count(State.ABSENT)) == ((2, 2, 2), 2)
        assert "1 image has no line in the files of classes" in table.notes[0]


def test_longer_lines_of_a_list_of_triples_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "image_attribute_labels.txt"
    path.write_text("1 1 0 3 1.5\n1 2 1 4 1.5\n2 1 1 3 7.7\n2 2 0 4 7.7\n" * 60 + "3 2 1 4 0 1.5\n")
    table = read_labels(path, options=OPEN)
    assert counts_of(table) == (3, 2, 3)
    assert any("1 line has another number of words" in note for note in table.notes)


def test_objects_in_parquet_are_names_paths_and_values(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pictures = [{"bytes": b"x", "path": "a.jpg"}, {"bytes": b"y", "path": "b.jpg"}]
    found = [
        [{"label": "cat", "score": 0.5}, {"label": "dog", "score": 0.3}],
        [{"label": "dog", "score": 0.4}],
    ]
    pq.write_table(pa.table({"image": pictures, "annotations": found}), path)
    table = read_labels(path, options=OPEN)
    assert (counts_of(table), table.images.to_pylist()) == ((2, 2, 3), ["a.jpg", "b.jpg"])
    values = [{"cat": True, "dog": False}, {"cat": True, "dog": True}]
    pq.write_table(pa.table({"image": ["a", "b"], "labels": values}), path)
    assert counts(path, OPEN) == (2, 2, 3)


def test_texts_of_zeros_and_ones_have_a_value_for_each_class(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text(
        "00011\tsome words of a text here\n01000\tmore words are in this\n00001\tand a third one\n"
    )
    table, said = read_as_told(path)
    assert (counts_of(table), len(said)) == ((3, 5, 4), 1)


def test_shares_in_an_array_are_asked_about_with_a_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, labels_cv=np.array([[1 / 3, 0, 1], [0, 2 / 3, 0]]))
    table, said = read_as_told(path)
    assert "(with 0.5: 2 of 6 cells)" in said[0]
    assert counts_of(table) == (2, 3, 2)


def test_what_no_object_of_an_image_has_is_minus_one(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(WIDER))
    table = read_labels(path, options=ReadOptions(zero="unknown", minus_one="absent"))
    assert table.dense().tolist() == [
        [State.PRESENT, State.PRESENT, State.ABSENT],
        [State.ABSENT, State.UNKNOWN, State.PRESENT],
    ]


def test_yaml_that_grows_is_refused_and_a_fault_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("x: &x [cat]\na.jpg: *x\n")
    with pytest.raises(DataError, match="repeats parts by name"):
        read_labels(path, format="json_records", options=OPEN)
    path.write_text("[" * 200)  # found before its end: of 20,000 of them that took half a minute
    with pytest.raises(DataError, match="nested too deeply"):
        read_labels(path, format="json_records", options=OPEN)
    path.write_text("a.jpg: [cat]\nb.jpg: [dog\n")
    with pytest.raises(DataError, match=r"line \d: this is not valid YAML"):
        read_labels(path, format="json_records", options=OPEN)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.xls", "<html><table></table></html>", "It is a web page. Open it in a spreadsheet"),
        ("a.ods", "PK", "It is an OpenDocument spreadsheet. Save it as .xlsx or CSV."),
        ("a.csv", "class,a.jpg,b.jpg\ncat,1,0\ndog,0,1\n", "Its first line names images"),
    ],
)
def test_files_that_are_not_read_are_answered_in_words(
    name: str, content: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(OptionNeeded, match=text):
        read_labels(tmp_path / name)


def test_of_files_that_are_equally_sure_the_largest_is_named(tmp_path: Path) -> None:
    empty = {"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [], "categories": []}
    full = {
        **empty,
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1}],
        "categories": [{"id": 1, "name": "cat"}],
    }
    (tmp_path / "image_info.json").write_text(json.dumps(empty))
    (tmp_path / "instances.json").write_text(json.dumps(full))
    with pytest.raises(OptionNeeded, match=r"hilltop inspect .*instances.json$"):
        read_labels(tmp_path)


def test_folders_of_classes_may_lack_a_class_in_one_part(tmp_path: Path) -> None:
    for name in ("test/cat/c.jpg", "train/cat/a.jpg", "train/dog/a.jpg", "train/dog/b.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    table, said = read_as_told(tmp_path)
    assert said[0].endswith("--split train")
    assert counts_of(table) == (2, 2, 3)


def test_options_name_several_columns_of_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,genre,mood\n1.jpg,rock,sad\n2.jpg,folk,\n3.jpg,rock,gay\n")
    options = ReadOptions(unlisted="unknown", label_column="genre,mood")
    assert counts(path, options) == (3, 4, 5)
