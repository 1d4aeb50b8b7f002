"""VGG Image Annotator: JSON and CSV."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilltop.data import LabelTable, ReadOptions, State, assemble, read_labels, write_labels
from hilltop.data.formats import LabelSource, recognise
from hilltop.errors import DataError, OptionNeeded
from tests.data.conftest import write
from tests.data.formats.fuzz import survives
from tests.data.formats.patched import PatchCase, check_patch

P, U = State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")
BOX = {"name": "rect", "x": 1, "y": 2, "width": 3, "height": 4}
IMAGES: dict[str, Any] = {
    "a.jpg100": {
        "filename": "a.jpg",
        "size": 100,
        "regions": [
            {"shape_attributes": BOX, "region_attributes": {"animal": "cat"}},
            {"shape_attributes": BOX, "region_attributes": {"animal": "cow"}},
        ],
        "file_attributes": {},
    },
    "b.jpg7": {
        "filename": "b.jpg",
        "size": 7,
        "regions": [
            {"shape_attributes": BOX, "region_attributes": {"animal": {"dog": True, "cow": False}}}
        ],
        "file_attributes": {},
    },
    "c.jpg9": {"filename": "c.jpg", "size": 9, "regions": {}, "file_attributes": {}},
}
HEADER = (
    "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,"
    "region_attributes\n"
)
CSV = HEADER + (
    'a.jpg,100,"{}",2,0,"{""name"":""rect""}","{""animal"":""cat""}"\n'
    'a.jpg,100,"{}",2,1,"{""name"":""rect""}","{""animal"":""cow""}"\n'
    'b.jpg,7,"{}",1,0,"{""name"":""rect""}","{""animal"":{""dog"":true}}"\n'
    'c.jpg,9,"{}",0,0,"{}","{}"\n'
)


def project(images: dict[str, Any], options: list[str]) -> str:
    attribute = {"type": "dropdown", "options": dict.fromkeys(options, "")}
    attributes = {"region": {"animal": attribute}, "file": {}}
    return json.dumps(
        {"_via_settings": {}, "_via_img_metadata": images, "_via_attributes": attributes}
    )


@pytest.fixture(params=["annotations.json", "project.json", "regions.csv"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    texts = {
        "annotations.json": json.dumps(IMAGES),
        "project.json": project(IMAGES, ["cat", "cow", "dog"]),
        "regions.csv": CSV,
    }
    return write(tmp_path / request.param, texts[request.param])


def message(path: Path, options: ReadOptions = UNKNOWN) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format="via", options=options)
    return str(caught.value)


def test_attributes_of_regions_are_labels(file: Path) -> None:
    assert recognise(LabelSource(file)).name == "via"
    table = read_labels(file, options=UNKNOWN)
    assert table.classes == ("cat", "cow", "dog")
    assert table.images.to_pylist() == ["a.jpg", "b.jpg", "c.jpg"]
    assert table.dense().tolist() == [[P, P, U], [U, U, P], [U, U, U]]
    with pytest.raises(OptionNeeded, match="--unlisted"):
        read_labels(file)


def test_several_attributes_are_asked_about(tmp_path: Path) -> None:
    images = json.loads(json.dumps(IMAGES))
    images["c.jpg9"]["file_attributes"] = {"scene": "barn", "caption": ""}
    path = write(tmp_path / "via.json", json.dumps(images))
    with pytest.raises(OptionNeeded, match="--label-column with one of animal, scene, caption"):
        read_labels(path, options=UNKNOWN)
    options = ReadOptions(unlisted="unknown", label_column="scene")
    assert read_labels(path, options=options).classes == ("barn",)
    options = ReadOptions(unlisted="unknown", label_column="scenes")
    assert "there is no attribute 'scenes'" in message(path, options)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("[]", "expected VIA's images"),
        ('{"a": {"size": 1}}', "expected VIA's images"),
        ('{"a": {"filename": "a", "regions": [3]}}', "image 'a': its regions or attributes"),
        ('{"a": {"filename": 3, "regions": []}}', "image 'a': its regions or attributes"),
        ('{"a": {"filename": "a", "regions": []}}', "no file or region has an attribute"),
        (HEADER + "a.jpg,1\n", "line 2: expected 7 cells and a filename, but got 2"),
        (HEADER + "a.jpg,1,{,0,0,{},{}\n", "line 2: file_attributes must be a JSON object"),
    ],
)
def test_faults_are_named(tmp_path: Path, content: str, text: str) -> None:
    assert text in message(write(tmp_path / "via.json", content))


def test_round_trip(tmp_path: Path) -> None:
    table = assemble(["b", "a.jpg"], ["dog", 'the "cat"', "cow"], [0, 1], [1, 0], P, unlisted=U)
    write_labels(table, tmp_path / "out.json", format="via")
    assert recognise(LabelSource(tmp_path / "out.json")).name == "via"
    assert read_labels(tmp_path / "out.json", options=UNKNOWN) == table


def test_what_cannot_be_written_is_said(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 pair that is absent"):
        write_labels(small, tmp_path / "out.json", format="via")


def test_a_patch_ticks_labels_and_keeps_regions(tmp_path: Path) -> None:
    images = json.loads(json.dumps(IMAGES))
    images["b.jpg7"]["regions"] = []
    text = project(images, ["cat", "cow", "dog"]).replace(
        '"file_attributes"', '\n"file_attributes"'
    )
    old = '"file_attributes": {}}, "c.jpg9": {"filename": "c.jpg", "size": 9, "regions": {}, \n'
    new = old.replace("{}", '{"animal": {"dog": true}}', 1)
    case = PatchCase("regions", "via", text, [f"- {old}", f"+ {new}"], absents=False)
    check_patch(case, tmp_path)


@pytest.mark.parametrize("count", [200, pytest.param(5_000, marks=pytest.mark.slow)])
def test_damaged_files_end_in_a_table_or_in_words(file: Path, count: int) -> None:
    tables, faults = survives(file, count, "via", UNKNOWN)
    assert tables > 0
    assert faults > 0
