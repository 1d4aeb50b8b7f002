"""FiftyOne's labels.json: what it reads back, what its own exports look like, and damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.annotations import fiftyone
from hilltop.data.content import Source
from hilltop.data.format import Handoff
from hilltop.errors import DataError
from tests.data.fuzz import survives
from tests.data.patched import found_format

UNKNOWN = ReadOptions(unlisted="unknown")


@pytest.fixture
def positives() -> LabelTable:
    """Two labels, and an image and a class without any; a dot that is no ending."""
    names = ["a.jpg", "folder/b.png", "v1.5"]
    return LabelTable.from_coo(
        names, ["cat", "dog", "fox"], [0, 0], [2, 0], State.PRESENT, unlisted=State.UNKNOWN
    )


def put(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_a_table_comes_back_with_its_ids(positives: LabelTable, tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    write_labels(positives, path, format="fiftyone")
    assert found_format(path) == "fiftyone"
    assert read_labels(path, options=UNKNOWN) == positives
    assert list(json.loads(path.read_text())["labels"]) == ["a", "folder/b", "v1.5"]


def test_likely_labels_are_handed_off_and_not_read_as_labels(
    positives: LabelTable, tmp_path: Path
) -> None:
    files = ["a.jpg", "folder/b.png", "v1.5.jpg"]
    handoff = Handoff(files, folder=None, likely={1: [("dog", 0.75)]})
    assert fiftyone.hand_off(positives, tmp_path, handoff) == [tmp_path / "labels.json"]
    content = json.loads((tmp_path / "labels.json").read_text())
    likely = {"label": "dog", "confidence": 0.75, "attributes": {"missing": True}}
    assert content["labels"]["folder/b"] == [likely]
    assert read_labels(tmp_path / "labels.json", options=UNKNOWN) == positives


def test_what_fiftyone_writes_itself_is_read(tmp_path: Path) -> None:
    """One label or several, as names, numbers of classes or objects; null for none."""
    labels = {"a": "dog", "b": 0, "c": [{"label": "cat", "confidence": 0.5}, "dog"], "d": None}
    path = put(tmp_path / "labels.json", {"classes": ["cat", "dog"], "labels": labels})
    table = read_labels(path, options=UNKNOWN)
    assert table.images.to_pylist() == ["a", "b", "c", "d"]
    found = [table.labels_of(row) for row in range(4)]
    assert found == [("dog",), ("cat",), ("cat", "dog"), ()]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"labels": [1]}, "expected a JSON object with 'classes' and 'labels'"),
        ({"classes": "cat", "labels": {}}, "'classes' must be a list of names"),
        ({"classes": ["cat", "cat"], "labels": {}}, "a name stands twice among the 'classes'"),
        ({"classes": ["cat"], "labels": {"a": 1}}, "image 'a': its labels must be names"),
        ({"classes": ["cat"], "labels": {"a": [["x"]]}}, "image 'a': its labels must be names"),
        ({"classes": ["cat"], "labels": {"a": "dog"}}, "class 'dog' is not in the class list"),
    ],
)
def test_what_cannot_be_labels_is_named(tmp_path: Path, content: Any, said: str) -> None:
    path = put(tmp_path / "labels.json", content)
    with pytest.raises(DataError, match=rf"labels\.json: .*{said}"):
        read_labels(path, format="fiftyone", options=UNKNOWN)


def test_what_it_cannot_say_stops_the_writer(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot express 1 pair that is absent"):
        write_labels(small, tmp_path / "labels.json", format="fiftyone")
    ids = LabelTable.from_coo(["a.jpg", "a.png"], ["x"], [], [], [], unlisted=State.UNKNOWN)
    with pytest.raises(DataError, match="cannot express images that differ only in the ending"):
        write_labels(ids, tmp_path / "labels.json", format="fiftyone")


@pytest.mark.parametrize("text", ["", "[]", '{"labels": []}', '{"labels": {"a"', '{"classes": 1}'])
def test_other_files_are_not_taken_for_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "labels.json"
    path.write_text(text)
    assert not fiftyone.matches(Source(path))
    assert not fiftyone.matches(Source(tmp_path))


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damage_ends_in_a_table_or_an_error(
    positives: LabelTable, tmp_path: Path, count: int
) -> None:
    path = tmp_path / "labels.json"
    write_labels(positives, path, format="fiftyone")
    tables, errors = survives(path, count, "fiftyone", UNKNOWN)
    assert min(tables, errors) > count / 20


def test_numbers_are_named_by_the_class_list(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text('{"classes": null, "labels": {"a": ["1"], "b": ["0", "dog"]}}')
    classes = tmp_path / "names.txt"
    classes.write_text("cat\ndog\n")
    options = ReadOptions(unlisted="unknown", classes=classes)
    table = read_labels(path, format="fiftyone", options=options)
    assert [table.labels_of(row) for row in (0, 1)] == [("dog",), ("cat", "dog")]
