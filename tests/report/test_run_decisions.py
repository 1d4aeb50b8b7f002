"""What a run's page says about decisions."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image

from hilltop.data import LabelTable, write_labels
from hilltop.data.scores import ScoreTable
from hilltop.missing import MissingLabelModel
from hilltop.report import RunMeaning, write_run_report
from hilltop.report.run_report import next_steps

CLASSES = ("cat", "dog", "<b>sofa</b>")


@pytest.fixture(scope="module")
def truth() -> MissingLabelModel:
    generator = torch.Generator().manual_seed(0)
    logits = 5 * torch.randn(600, 3, generator=generator)
    true = torch.rand(logits.shape, generator=generator) < torch.sigmoid(logits)
    kept = true & (torch.rand(logits.shape, generator=generator) < 0.5)
    return MissingLabelModel.fit(logits, kept.float())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of one epoch with two validation images, one of which has a file."""
    (tmp_path / "config.yaml").write_text(
        "loss: auto\nlabels: my labels.csv\nfeatures: f.npz\nreading:\n  unlisted: unknown\n"
    )
    (tmp_path / "metrics.csv").write_text("epoch,loss,mAP\n1,0.5,0.8\n")
    images = ["a.jpg", "b.jpg"]
    table = LabelTable.from_lists(images, [["cat"], ["dog"]], CLASSES, unlisted="unknown")
    write_labels(table, tmp_path / "val_labels.parquet")
    values = np.array([[0.99, 0.98, 0.01], [0.9, 0.0001, 0.01]])
    ScoreTable(pa.array(images), CLASSES, values).save(tmp_path / "last_val_scores.npy")
    (tmp_path / "photos").mkdir()
    for name in images:
        Image.new("RGB", (900, 600), "teal").save(tmp_path / "photos" / name)
    return tmp_path


def text_of(page: Path) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8")).split())


def test_the_page_says_why_what_to_expect_and_what_next(
    folder: Path, truth: MissingLabelModel
) -> None:
    meaning = RunMeaning(truth, "last", "about 50% are missing: cross-entropy.")
    page = write_run_report(folder, meaning)
    text = text_of(page)
    assert "Loss: about 50% are missing" in text
    assert "of the tags are right (precision)" in text
    order = ["How good the tags will be", "Fewer and surer tags", "What was forgotten", "Next"]
    assert sorted(order, key=text.index) == order
    assert truth.describe() in html.unescape(text)
    assert "Tags learned from my labels" in text
    assert not re.search(r"nats|floor\(|logit|OF1", text)
    recall = truth.thresholds().expected.recall
    assert f"{recall.value:.0%} {100 * recall.low:.0f}\N{EN DASH}{recall.high:.0%}" in text
    assert f"hilltop predict {folder} --features FILE --out tags.csv" in text
    audit = "hilltop audit --labels 'my labels.csv' --unlisted unknown --features f.npz --out audit"
    assert audit in html.unescape(text)
    assert "<b>sofa</b>" not in page.read_text(encoding="utf-8")


def test_photographs_carry_known_found_and_doubtful_tags(
    folder: Path, truth: MissingLabelModel
) -> None:
    page = write_run_report(folder, RunMeaning(truth, "last", None, folder / "photos"))
    source = page.read_text(encoding="utf-8")
    kinds = re.findall(r'<span class="tag (\w+)">(cat|dog) \d+%', source)
    assert ("known", "cat") in kinds
    assert ("found", "dog") in kinds
    assert ("doubtful", "dog") in kinds
    assert source.count('alt="a.jpg"') == 1
    assert len(source) < 400_000  # photographs were made small


def test_without_photographs_there_are_no_examples(folder: Path, truth: MissingLabelModel) -> None:
    (folder / "none").mkdir()
    page = write_run_report(folder, RunMeaning(truth, "last", None, folder / "none"))
    assert "Examples" not in text_of(page)


def test_of_many_classes_the_worst_stand_first(folder: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 5 * torch.randn(600, 30, generator=generator)
    true = torch.rand(logits.shape, generator=generator) < torch.sigmoid(logits)
    model = MissingLabelModel.fit(logits, true.float())
    names = tuple(f"class {number}" for number in range(30))
    labels = LabelTable.from_lists(["a"], [["class 1"]], names, unlisted="unknown")
    write_labels(labels, folder / "val_labels.parquet")
    ScoreTable(pa.array(["a"]), names, np.full((1, 30), 0.5)).save(folder / "last_val_scores.npy")
    text = write_run_report(folder, RunMeaning(model, "last")).read_text(encoding="utf-8")
    worst, best, every = re.split("found worst:|found best:|All classes", text)[1:]
    shown = [
        [int(value) for value in re.findall(r">(\d+)%</td></tr>", part)] for part in (worst, best)
    ]
    assert [len(values) for values in shown] == [8, 8]
    assert shown == [sorted(shown[0]), sorted(shown[1], reverse=True)]
    assert every.count("<tr><td>class ") == 30


def test_an_image_that_could_not_be_read_takes_no_part(
    folder: Path, truth: MissingLabelModel
) -> None:
    values = np.array([[0.99, 0.98, 0.01], [np.nan] * 3])
    ScoreTable(pa.array(["a.jpg", "b.jpg"]), CLASSES, values).save(folder / "last_val_scores.npy")
    page = write_run_report(folder, RunMeaning(truth, "last", None, folder / "photos"))
    assert "nan" not in text_of(page)


def test_an_aim_that_no_class_reaches_is_not_called_a_precision_of_nothing(folder: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 0.2 * torch.randn(200, 3, generator=generator) - 2
    kept = torch.rand(logits.shape, generator=generator) < torch.sigmoid(logits)
    truth = MissingLabelModel.fit(logits, kept.float())
    text = text_of(write_run_report(folder, RunMeaning(truth, "last")))
    assert "precision 90% not reached \N{EN DASH} \N{EN DASH} 0.0" in text


def test_an_audit_of_the_same_labels_beside_the_run_is_the_next_thing_to_review(
    tmp_path: Path, truth: MissingLabelModel
) -> None:
    run, labels = tmp_path / "run", tmp_path / "labels.csv"

    def told() -> str:
        return str(next_steps(run, {"labels": str(labels)}, RunMeaning(truth)))

    audit = tmp_path / "audit" / "audit.json"
    audit.parent.mkdir()
    for content in ("", "[]", json.dumps({"labels": str(tmp_path / "others.csv")})):
        audit.write_text(content)
        assert "hilltop audit --labels" in told()
        assert "hilltop review" not in told()
    audit.write_text(json.dumps({"labels": str(labels)}))
    assert f"hilltop review {audit.parent}" in told()
    assert "hilltop audit --labels" not in told()
