# ruff: noqa: E501 (lines of files as they are)
"""Shapes of label files found in the wild: recognised, counted, and never a traceback if damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hilltop.data import FORMATS, ReadOptions, State, read_labels
from hilltop.data.formats import Change, Original
from hilltop.errors import OptionNeeded
from tests.data.formats.fuzz import survives
from tests.data.formats.shapes import (
    OPEN,
    FolderShape,
    Shape,
    check_damaged,
    check_file,
    check_folder,
    lines,
)

ROWS = ReadOptions(unlisted="unknown", image_column="row-number")

FILES: dict[str, Shape] = {
    "words behind a file": ("name_list", "a.txt", "1.jpg dog cat\n2.jpg cat\n3.jpg\n", (3, 2, 3)),
    "class numbers behind a file": ("name_list", "a.txt", "x/a.jpg 0 5 12\nx/b.jpg 5\n", (2, 3, 4)),
    "cloud import": ("name_list", "a.csv", "TRAIN,gs://b/a.jpg,daisy,rose\nTEST,gs://b/b.jpg,rose\nTEST,gs://b/c.jpg\n", (3, 2, 3)),
    "numbered columns": ("label_columns", "a.csv", "image,label1,label2\na.jpg,cat,dog\nb.jpg,dog,\n", (2, 2, 3)),
    "fasttext": ("fasttext", "a.txt", "__label__a __label__b some text\n__label__b more\nnone\n", (3, 2, 3)),
    "manifest": ("ground_truth", "a.manifest", lines({"source-ref": "s3://b/1.jpg", "tags": [0, 2], "tags-metadata": {"class-map": {"0": "cat", "2": "dog"}}}, {"source-ref": "s3://b/2.jpg", "tags": [2], "tags-metadata": {"class-map": {"2": "dog"}}}), (2, 2, 3)),
    "manifest of boxes": ("ground_truth", "a.manifest", lines({"source-ref": "s3://b/1.jpg", "bb": {"annotations": [{"class_id": 0}, {"class_id": 0}]}, "bb-metadata": {"class-map": {"0": "cat"}}}), (1, 1, 1)),
    "manifest, a job a class": ("ground_truth", "a.manifest", lines({"source-ref": "1.jpg", "sun": 1, "sun-metadata": {"class-name": "sun"}, "sea": 1, "sea-metadata": {"class-name": "sea"}}, {"source-ref": "2.jpg", "sea": 1, "sea-metadata": {"class-name": "sea"}}), (2, 2, 3)),
    "labelbox": ("labelbox", "a.ndjson", lines({"data_row": {"id": "x", "external_id": "a.jpg"}, "projects": {"p": {"labels": [{"annotations": {"objects": [{"name": "car"}], "classifications": [{"name": "w", "checklist_answers": [{"name": "sunny"}]}, {"name": "d", "radio_answer": {"name": "yes"}}]}}]}}}, {"data_row": {"id": "y"}, "projects": {"p": {"labels": []}}}), (1, 3, 3)),
    "values by class": ("class_values", "a.jsonl", lines({"id": "1", "cats": {"A": 1.0, "B": 0.0}}, {"id": "2", "cats": {"A": 1.0, "B": 1.0}}), (2, 2, 3)),
    "datumaro": ("datumaro", "a.json", json.dumps({"info": {}, "categories": {"label": {"labels": [{"name": "cat"}, {"name": "dog"}]}}, "items": [{"id": "a", "annotations": [{"type": "label", "label_id": 1}]}, {"id": "b", "annotations": []}]}), (2, 1, 1)),
    "a list under a key": ("json_records", "a.json", json.dumps({"images": [{"url": "x", "imageId": "1"}], "annotations": [{"imageId": "1", "labelId": ["95", "66"]}, {"imageId": "2", "labelId": ["66"]}]}), (2, 2, 3)),
    "names, lists and nothing": ("json_records", "a.json", json.dumps([{"SourceFile": "a.jpg", "Keywords": ["dog", 2019]}, {"SourceFile": "b.jpg", "Keywords": "cat"}, {"SourceFile": "c.jpg"}]), (3, 3, 3)),
    "objects with lists of names": ("json_records", "a.json", json.dumps([{"image_id": 1, "objects": [{"names": ["clock"]}, {"names": ["road", "street"]}]}, {"image_id": 2, "objects": [{"names": ["clock"]}]}]), (2, 3, 4)),
    "regions with tags": ("json_records", "a.json", json.dumps({"name": "p", "assets": {"1": {"asset": {"name": "a.jpg"}, "regions": [{"tags": ["x", "y"]}, {"tags": ["x"]}]}, "2": {"asset": {"name": "b.jpg"}, "regions": []}}}), (2, 2, 2)),
    "keys of objects in a cell": ("list_column", "a.csv", "ecg_id,scp_codes\n1,\"{'NORM': 80.0, 'SR': 0.0}\"\n2,\"{'SR': 0.0}\"\n", (2, 2, 3)),
    "arrays as numpy prints them": ("list_column", "a.csv", "image,labels\na.jpg,['dog' 'cat']\nb.jpg,['cat']\nc.jpg,[]\n", (3, 2, 3)),
    "values in a cell": ("list_column", "a.csv", "image,labels\na.jpg,[0. 1. 0.]\nb.jpg,[1. 1. 0.]\n", (2, 3, 3)),
    "separators at the end": ("list_column", "a.csv", "image,tags\na.jpg,dog;cat;\nb.jpg,cat;\n", (2, 2, 3)),
    "boxes beside one class a row": ("list_column", "a.csv", "image_name,label_name,x1,y1\n1.jpg,dog,0,1\n1.jpg,cat,1,2\n2.jpg,dog,0,0\n", (2, 2, 3)),
    "yes and no": ("wide", "a.csv", "image,cat,dog\na.jpg,yes,no\nb.jpg,yes,yes\n", (2, 2, 3)),
    "crosses": ("wide", "a.csv", "image,cat,dog\na.jpg,x,\nb.jpg,x,x\n", (2, 2, 3)),
    "a title": ("wide", "a.csv", "Labels of 2023;;;\nimage;cat;dog;eel\na.jpg;1;0;1\nb.jpg;0;0;1\n", (2, 3, 3)),
}  # fmt: skip

FOLDERS: dict[str, FolderShape] = {
    "lists by class": ("class_lists", {"baby.txt": "1\n5\n", "bird.txt": "5\n7\n"}, (3, 2, 4)),
    "tags": ("tag_files", {"a.jpg": "", "a.txt": "solo, long hair", "b.jpg": "", "b.txt": "solo"}, (2, 2, 3)),
    "labelme": ("json_files", {f"{n}.json": json.dumps({"flags": {}, "imagePath": f"{n}.jpg", "shapes": [{"label": "dog"}, {"label": x}]}) for n, x in ("ad", "bc")}, (2, 3, 4)),
    "flags": ("json_files", {f"{n}.json": json.dumps({"flags": {"dog": True, "cat": n == "a"}, "imagePath": f"{n}.jpg", "shapes": []}) for n in "ab"}, (2, 2, 3)),
    "supervisely": ("json_files", {f"{n}.jpg.json": json.dumps({"tags": [], "objects": [{"classTitle": n}]}) for n in "ab"}, (2, 2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("shape", FILES)
def test_a_file_of_a_known_shape_is_recognised_and_counted(shape: str, tmp_path: Path) -> None:
    check_file(FILES[shape], tmp_path)


@pytest.mark.parametrize("shape", FOLDERS)
def test_a_folder_of_a_known_shape_is_recognised_and_counted(shape: str, tmp_path: Path) -> None:
    check_folder(FOLDERS[shape], tmp_path, 25)


@pytest.mark.parametrize("shape", FILES)
def test_damaged_files_of_these_shapes_end_in_a_table_or_a_sentence(
    shape: str, tmp_path: Path
) -> None:
    check_damaged(FILES[shape], tmp_path, 25)


def test_an_array_takes_names_from_the_array_beside_it(tmp_path: Path) -> None:
    np.save(tmp_path / "train_labels.npy", np.array([[1.0, 0, np.nan], [0, 1, 1]]))
    np.save(tmp_path / "train_images.npy", np.array(["a.jpg", "b.jpg"]))
    table = read_labels(tmp_path / "train_labels.npy", options=ReadOptions(zero="absent", blank="unknown"))  # fmt: skip
    assert table.images.to_pylist() == ["a.jpg", "b.jpg"]
    assert (table.count(State.PRESENT), table.count(State.ABSENT)) == (3, 2)
    survives(tmp_path / "train_labels.npy", 25, "matrix", OPEN)


def test_rows_without_names_have_numbers_and_are_patched(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("A,B\n1,0\n0,0\n1,1\n")
    with pytest.raises(OptionNeeded, match="--image-column row-number"):
        read_labels(path)
    assert read_labels(path, options=ROWS).images.to_pylist() == ["0", "1", "2"]
    original = Original(path, ROWS, read_labels(path, options=ROWS))
    patch = FORMATS["wide"].patch
    assert patch is not None
    patched = next(iter(patch(original, [Change(1, 1, "1", "B", State.PRESENT)])))
    assert patched.content == b"A,B\n1,0\n0,1\n1,1\n"


def test_a_folder_names_the_label_file_in_it(tmp_path: Path) -> None:
    for part in ("train", "valid"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "a.jpg").write_bytes(b"")
        (tmp_path / part / "_classes.csv").write_text("filename, cat, dog\na.jpg, 1, 0\n")
    with pytest.raises(
        OptionNeeded, match=r"holds train/_classes.csv, valid/_classes.csv.*hilltop"
    ):
        read_labels(tmp_path)


def test_zeros_of_a_long_table_are_asked_for_by_their_own_option(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,class,state\na.jpg,cat,1\na.jpg,dog,0\nb.jpg,cat,0\n")
    with pytest.raises(OptionNeeded, match="--zero absent"):
        read_labels(path)
    table = read_labels(path, options=ReadOptions(zero="absent", unlisted="unknown"))
    assert (table.count(State.PRESENT), table.count(State.ABSENT)) == (1, 2)
