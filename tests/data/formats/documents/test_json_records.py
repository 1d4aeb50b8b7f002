"""JSON documents: lists of objects, and objects from images to labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilltop.data import ReadOptions, State, assemble, read_labels, write_labels
from hilltop.data.formats import LabelSource, recognise
from hilltop.errors import DataError
from tests.data.conftest import write
from tests.data.formats.fuzz import survives

UNKNOWN = ReadOptions(unlisted="unknown")
NAMED = [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}]
DOCUMENTS: list[Any] = [
    [{"image": "a", "labels": ["cat", "dog"]}, {"image": "b", "labels": []}],
    {"a": ["cat", "dog"], "b": []},
    [{"file_name": "a", "tags": NAMED}, {"file_name": "b", "tags": []}],
    {"a": NAMED, "b": []},
    [
        {"name": "a", "size": 3, "labels": [{"category": "cat"}, {"category": "dog"}] * 2},
        {"name": "b", "size": 4, "labels": []},
    ],
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_of_others_are_recognised_and_read(tmp_path: Path, document: Any) -> None:
    path = write(tmp_path / "labels.json", json.dumps(document, indent=1))
    assert recognise(LabelSource(path)).name == "json_records"
    table = read_labels(path, options=UNKNOWN)
    assert table.images.to_pylist() == ["a", "b"]
    assert table.classes == ("cat", "dog")
    assert (table.labels_of(0), table.labels_of(1)) == (("cat", "dog"), ())


def test_keys_may_be_named(tmp_path: Path) -> None:
    document = [{"what": "a", "seen": ["cat"]}, {"what": "b", "seen": ["dog"]}]
    path = write(tmp_path / "labels.json", json.dumps(document))
    options = ReadOptions(unlisted="unknown", image_column="what", label_column="seen")
    assert read_labels(path, options=options).labels_of(1) == ("dog",)


@pytest.mark.parametrize("document", [{"a": ["x"], "b": {"c": 1}}, [{"a": 1}], [1, 2], [], {}])
def test_other_documents_are_left_alone(tmp_path: Path, document: Any) -> None:
    path = write(tmp_path / "labels.json", json.dumps(document))
    with pytest.raises(DataError):
        recognise(LabelSource(path))


def test_a_round_trip_keeps_absents(tmp_path: Path) -> None:
    states = [State.PRESENT, State.ABSENT, State.PRESENT]
    table = assemble(
        ["ä.jpg", "b"], ["x", "y"], [0, 0, 1], [0, 1, 1], states, unlisted=State.UNKNOWN
    )
    write_labels(table, tmp_path / "out.json", format="json_records")
    assert read_labels(tmp_path / "out.json", options=UNKNOWN) == table


def test_a_wrong_entry_is_named(tmp_path: Path) -> None:
    document = [{"image": "a", "labels": ["cat"]}, {"image": "b", "labels": 3.5}]
    path = write(tmp_path / "labels.json", json.dumps(document))
    with pytest.raises(DataError, match=r"entry 2: 'labels' must be a list of names, but is 3\.5"):
        read_labels(path, options=UNKNOWN)


def test_damage_gets_a_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "labels.json", json.dumps(DOCUMENTS[0]))
    tables, faults = survives(path, 200, "json_records", UNKNOWN)
    assert tables > 5
    assert faults > 50
