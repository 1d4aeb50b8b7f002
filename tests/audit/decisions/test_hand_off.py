"""What other tools get: corrected labels, and what is still open with its probability."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hilltop.audit.decisions.apply import LIKELY, apply_decisions, image_files
from hilltop.audit.decisions.store import Answer, DecisionStore
from hilltop.audit.folder import AuditFolder
from hilltop.cli.main import main
from hilltop.data import (
    FORMATS,
    LabelTable,
    ReadOptions,
    State,
    Step,
    read_labels,
    read_provenance,
    write_labels,
)
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
    done = apply_decisions(reviewed, out, format="label_studio", candidates=True)
    assert (done.path, done.added, done.unsaid) == (out, 2, 1)
    assert f"{tmp_path / 'tasks.xml'}: written beside it." in done.notes
    assert reviewed.images is not None
    assert f"LOCAL_FILES_DOCUMENT_ROOT={reviewed.images.resolve().parent} " in "".join(done.notes)
    options = ReadOptions(unlisted="unknown")
    known = labels_of(corrected_table(reviewed))
    assert labels_of(read_labels(out, options=options)) == known, "found back by its own ids"
    expected = likely(reviewed)
    assert expected
    for task in json.loads(out.read_text()):
        image = task["data"]["hilltop_image"]
        assert task["data"]["image"] == f"/data/local-files/?d={reviewed.images.name}/{image}"
        chances = expected.get(image, {})
        assert len(task["predictions"]) == bool(chances)
        for prediction in task["predictions"]:
            [result] = prediction["result"]
            assert set(result["value"]["choices"]) == known[image] | set(chances)
            assert prediction["score"] == pytest.approx(max(chances.values()), abs=1e-5)
            control = {"from_name": "choice", "to_name": "image", "type": "choices"}
            assert {key: result[key] for key in control} == control


def test_pictures_can_be_served_from_elsewhere(reviewed: AuditFolder, tmp_path: Path) -> None:
    out = tmp_path / "tasks.json"
    apply_decisions(
        reviewed, out, format="label_studio", candidates=True, image_prefix="https://host/a/"
    )
    for task in json.loads(out.read_text()):
        assert task["data"]["image"] == f"https://host/a/{task['data']['hilltop_image']}"


def test_the_label_studio_setup_offers_every_class_whatever_its_name(
    hostile: AuditFolder, tmp_path: Path
) -> None:
    done = apply_decisions(hostile, tmp_path / "tasks.json", format="label_studio", candidates=True)
    assert not done.provenance.exists(), "nobody has answered anything"
    root = ET.fromstring((tmp_path / "tasks.xml").read_text())
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
    path = apply_decisions(reviewed, tmp_path, format="fiftyone", candidates=True).path
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
    assert main(["apply", str(reviewed.path), "--format", to, "--out", str(out)]) == 0
    table = read_labels(out, format=to, options=ReadOptions(unlisted="unknown"))
    wanted = corrected_table(reviewed)
    assert labels_of(table) == labels_of(wanted)
    if to != "coco":
        assert table.count(State.ABSENT) == wanted.count(State.ABSENT) == 1


@pytest.mark.parametrize("to", [name for name, one in FORMATS.items() if one.hand_off])
def test_an_audit_without_answers_or_images_can_be_handed_off(
    hostile: AuditFolder, tmp_path: Path, to: str
) -> None:
    out = tmp_path / f"{to}.json"
    done = apply_decisions(hostile, out, format=to, candidates=True)
    assert out.is_file()
    assert (done.added, done.absent, done.patched) == (0, 0, False)
    assert "open candidates written as predictions." in done.notes[0]


def test_the_command_says_which_formats_take_candidates(
    reviewed: AuditFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["apply", str(reviewed.path), "--out", str(tmp_path / "new.json"), "--candidates"]
    assert main([*words, "--format", "coco"]) == 2
    assert "'coco' has no place for candidates" in capsys.readouterr().err
    assert main([*words, "--format", "lvis"]) == 2
    assert "these have one: label_studio, fiftyone." in capsys.readouterr().err
    assert main([*words, "--format", "fiftyone"]) == 0
    assert "open candidates written as predictions." in capsys.readouterr().out


def test_ids_without_endings_get_those_of_their_files(
    reviewed: AuditFolder, tmp_path: Path
) -> None:
    """In a format of files; the records of the review are about the new ids."""
    table = reviewed.table()
    names = table.images.to_pylist()
    bare = [name.removesuffix(".jpg") for name in names]
    renamed = table.with_images(bare, step=Step("rename"))
    assert image_files(reviewed, renamed) == names
    write_labels(renamed, reviewed.audited_labels, format="hilltop")
    store = DecisionStore(reviewed.decisions)
    said = Answer("x", "x", "Ben", "2026-02-01", bare[0], "unseen", "present", "ranked", 0.5)
    store.add([replace(said, class_name=table.classes[0])])
    store.close()
    out = tmp_path / "new.json"
    apply_decisions(reviewed, out, format="coco")
    again = read_labels(out, options=ReadOptions(unlisted="unknown"))
    assert again.images.to_pylist() == names
    [by_ben] = [record for record in read_provenance(out) if record.reviewer == "Ben"]
    assert by_ben.image == names[0]
    apply_decisions(reviewed, tmp_path / "new.parquet", format="hilltop")
    assert read_labels(tmp_path / "new.parquet").images.to_pylist() == bare
