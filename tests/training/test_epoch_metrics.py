"""Epochs on incomplete validation labels: comparable while training, estimated at its end."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from hilltop.cli.main import main
from hilltop.data import LabelTable, write_labels
from hilltop.metrics.epochs import best_epoch, is_estimated
from hilltop.missing import MissingLabelModel
from hilltop.training.calibration import evaluate_scores, lists_positives_alone
from hilltop.training.run_folder import RunFolder


def test_tables_with_absent_entries_judge_by_themselves() -> None:
    open_table = LabelTable.from_lists(["a", "b"], [["x"], []], ["x", "y"], unlisted="unknown")
    closed = LabelTable.from_lists(["a", "b"], [["x"], []], ["x", "y"], unlisted="absent")
    assert lists_positives_alone(open_table)
    assert not lists_positives_alone(closed)


def test_estimates_cover_the_truth_and_few_labels_give_none() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(-2, 3, (500, 5))
    probs = 1 / (1 + np.exp(-logits))
    true = rng.random(probs.shape) < probs
    labels = (true & (rng.random(probs.shape) < 0.5)).astype(np.float32)
    truth = MissingLabelModel.fit(logits, labels)
    found = evaluate_scores(labels, probs, truth)
    tags = truth.probs(logits) > truth.thresholds().thresholds
    exact = 2 * (tags & true).sum() / (tags.sum() + true.sum())
    assert found["OF1"].low < exact < found["OF1"].high
    assert evaluate_scores(labels[:20], probs[:20], truth) == {}


def test_a_run_shows_labels_as_they_are_by_epoch_and_estimates_at_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(500, 8)).astype(np.float32)
    there = (features @ rng.normal(size=(8, 3)) > 1) & (rng.random((500, 3)) < 0.6)
    images = [f"{row}.jpg" for row in range(500)]
    np.savez(tmp_path / "features.npz", ids=np.array(images), X=features)
    tags = [[name for name, one in zip("abc", row, strict=True) if one] for row in there]
    table = LabelTable.from_lists(images, tags, list("abc"), unlisted="unknown")
    write_labels(table, tmp_path / "labels.parquet")
    words = ["train", "--labels", tmp_path / "labels.parquet"]
    words += ["--features", tmp_path / "features.npz", "--epochs", "3", "--loss", "bce"]
    assert main([str(word) for word in [*words, "--out", tmp_path / "run"]]) == 0
    rows = RunFolder(tmp_path / "run").recorded()
    assert not is_estimated(rows[0]) or best_epoch(rows)["epoch"] == 1
    assert is_estimated(rows[-1])
    assert rows[-1]["mAP_low"] <= rows[-1]["mAP_estimate"] <= rows[-1]["mAP_high"]
    assert all(not math.isnan(row["mAP"]) for row in rows)
    said = capsys.readouterr()
    assert "by the labels as they are" in said.err + said.out
    assert "OF1" not in rows[0]
