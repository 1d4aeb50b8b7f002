"""What other tools get: corrected labels, and what is still open with its probability."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hilltop.audit.decisions.export import EXPORTS, LIKELY, _files, export_audit
from hilltop.audit.decisions.store import Answer, DecisionStore
from hilltop.audit.folder import AuditFolder
from hilltop.cli.main import main
from hilltop.data import LabelTable, ReadOptions, State, read_labels
from tests.audit.made_up import corrected_table, unknown_pairs


@pytest.fixture
def reviewed(audit: AuditFolder) -> AuditFolder:
    """An audit of which the four most probable pairs are answered: yes, no, unsure, yes."""
    pairs = sorted(unknown_pairs(audit.table()), key=lambda pair: -pair[2])[:4]
    store = DecisionStore(audit.decisions)
    for number, (pair, word) in enumerate(
        zip(pairs, ("present", "absent", "unsure", "present"), strict=True)
    ):
        key = f"e{number}"
        store.add(
            [
                Answer(
                    key, key, "Ann", "2026-01-31T12:00:00+00:00", *pair[:2], word, "ranked", pair[2]
                )
            ]  # type: ignore[arg-type]
        )
    store.close()
    return audit


def likely(folder: AuditFolder) -> dict[str, dict[str, float]]:
    """Probable pairs that nobody has answered, by image."""
    ranked = sorted(unknown_pairs(folder.table()), key=lambda pair: -pair[2])
    found: dict[str, dict[str, float]] = {}
    for image, name, chance in ranked[4:]:
        if chance >= LIKELY:
            found.setdefault(image, {})[name] = chance
    return found


def labels_of(table: LabelTable) -> dict[str, set[str]]:
    return {image: set(table.labels_of(row)) for row, image in enumerate(table.images.to_pylist())}


def test_label_studio_gets_known_labels_as_annotations_and_likely_ones_as_predictions(
    reviewed: AuditFolder, tmp_path: Path
) -> None:
    out = tmp_path / "tasks.json"
    assert export_audit(reviewed, out, to="label_studio") == [out, tmp_path / "tasks.xml"]
    options = ReadOptions(unlisted="unknown", image_column="hilltop_image")
    known = labels_of(corrected_table(reviewed))
    assert labels_of(read_labels(out, options=options)) == known
    expected = likely(reviewed)
    assert expected
    for task in json.loads(out.read_text()):
        image = task["data"]["hilltop_image"]
        assert task["data"]["image"] == f"/data/local-files/?d={image}"
        chances = expected.get(image, {})
        assert len(task["predictions"]) == bool(chances)
        for prediction in task["predictions"]:
            [result] = prediction["result"]
            assert set(result["value"]["choices"]) == known[image] | set(chances)
            assert prediction["score"] == pytest.approx(max(chances.values()), abs=1e-5)
            control = {"from_name": "choice", "to_name": "image", "type": "choices"}
            assert {key: result[key] for key in control} == control


def test_the_label_studio_setup_offers_every_class_whatever_its_name(
    hostile: AuditFolder, tmp_path: Path
) -> None:
    _, setup = export_audit(hostile, tmp_path / "tasks.json", to="label_studio")
    root = ET.fromstring(setup.read_text())
    offered = [choice.attrib["value"] for choice in root.iter("Choice")]
    assert offered == list(hostile.table().classes)
    [choices], [image] = root.iter("Choices"), root.iter("Image")
    assert (choices.get("name"), choices.get("toName"), choices.get("choice")) == (
        "choice",
        image.get("name"),
        "multiple",
    )


def test_fiftyone_gets_several_classifications_an_image(
    reviewed: AuditFolder, tmp_path: Path
) -> None:
    [path] = export_audit(reviewed, tmp_path, to="fiftyone")
    assert path.name == "labels.json"
    content: dict[str, Any] = json.loads(path.read_text())
    known, expected = labels_of(corrected_table(reviewed)), likely(reviewed)
    assert content["classes"] == list(reviewed.table().classes)
    assert set(content["labels"]) == {image.removesuffix(".jpg") for image in known}
    for image, names in known.items():
        found = content["labels"][image.removesuffix(".jpg")]
        sure = {one["label"] for one in found if not one["attributes"]["missing"]}
        open_ = {one["label"]: one["confidence"] for one in found if one["attributes"]["missing"]}
        assert sure == names
        assert open_ == pytest.approx(expected.get(image, {}), abs=1e-5)


@pytest.mark.parametrize("to", ["coco", "lvis", "huggingface"])
def test_data_formats_hold_the_corrected_labels_under_file_names(
    reviewed: AuditFolder, tmp_path: Path, to: str
) -> None:
    out = tmp_path / ("metadata.jsonl" if to == "huggingface" else "labels.json")
    assert main(["apply", str(reviewed.path), "--export", to, "--out", str(out)]) == 0
    table = read_labels(out, format=to, options=ReadOptions(unlisted="unknown"))
    wanted = corrected_table(reviewed)
    assert labels_of(table) == labels_of(wanted)
    if to != "coco":
        assert table.count(State.ABSENT) == wanted.count(State.ABSENT) == 1


def test_an_audit_without_answers_or_images_can_be_exported(
    hostile: AuditFolder, tmp_path: Path
) -> None:
    for to in EXPORTS:
        out = tmp_path / ("metadata.jsonl" if to == "huggingface" else f"{to}.json")
        export_audit(hostile, out, to=to)
        assert out.is_file()


def test_ids_without_endings_get_those_of_their_files(reviewed: AuditFolder) -> None:
    table = reviewed.table()
    names = table.images.to_pylist()
    bare = pa.array([name.removesuffix(".jpg") for name in names])
    assert _files(reviewed, replace(table, images=bare)) == names
