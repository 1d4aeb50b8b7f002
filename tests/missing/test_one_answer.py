"""One question, one answer: every command and the Python interface say the same of one data set."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilltop.audit import AuditFolder, find_missing_labels
from hilltop.audit.review.session import Review
from hilltop.cli.main import main
from hilltop.data import LabelTable, State, Step, read_labels, write_labels
from hilltop.data.review_record import ReviewRecord, provenance_path, write_provenance
from hilltop.missing import Evaluation
from hilltop.training.calibration import load_model, load_truth
from hilltop.training.run_folder import RunFolder

CLASSES = list("abcdef")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Features, and half of the labels of 900 images to learn and 200 to judge by."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1100, 12)).astype(np.float32)
    odds = 3 * features @ rng.normal(size=(12, 6)) / np.sqrt(12) - 2
    true = rng.random(odds.shape) < 1 / (1 + np.exp(-2 * odds))
    there = true & (rng.random(true.shape) < 0.5)
    images = [f"{row:04}.jpg" for row in range(1100)]
    np.save(folder / "true.npy", true)
    np.savez(folder / "features.npz", ids=np.array(images), X=features)
    for name, rows in (("train", slice(900)), ("val", slice(900, None))):
        tags = [[CLASSES[at] for at in np.flatnonzero(row)] for row in there[rows]]
        table = LabelTable.from_lists(images[rows], tags, CLASSES, unlisted="unknown")
        write_labels(table, folder / f"{name}.parquet")
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: Any) -> Any:
    capsys.readouterr()
    assert main([*(str(word) for word in words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_training_audit_report_card_page_and_python_agree(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, features = files / "train.parquet", files / "features.npz"
    given = ("--labels", labels, "--features", features, "--allow-missing")
    audited = run(capsys, "audit", *given, "--out", tmp_path / "audit")
    trained = run(
        capsys, "train", *given, "--val-labels", files / "val.parquet", "--out", tmp_path / "run"
    )  # fmt: skip
    table = read_labels(labels)
    matrix = np.load(features)["X"][: len(table)]
    found = find_missing_labels(table, features=matrix)
    sentence, missing = found.describe(), found.missing.as_dict()
    assert "labels are missing" in sentence
    assert audited["missing"] == trained["missing"] == pytest.approx(missing)
    assert audited["summary"] == trained["summary"] == sentence
    classes = sum(one["missing"] for one in audited["classes"].values())
    assert classes == pytest.approx(missing["value"], abs=0.5)  # written with one decimal
    kept = load_truth(RunFolder(tmp_path / "run"), "last")
    assert kept is not None
    assert kept.describe() == sentence
    page = html.unescape((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    assert sentence in re.sub(r"\s+", " ", page)
    run(capsys, "export", tmp_path / "run", "--to", "safetensors", "--out", tmp_path / "model")
    assert sentence in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    review = Review(AuditFolder.read(tmp_path / "audit"))
    try:
        started: Any = review.start("Ann")
    finally:
        review.close()
    assert started["summary"] == sentence
    total = sum(one["expected"] for one in started["classes"])
    assert total == pytest.approx(missing["value"], abs=0.5)
    estimated = run(capsys, "estimate", tmp_path / "audit")
    assert estimated["missing"] == pytest.approx(missing)


def test_evaluation_and_audit_of_the_same_scores_agree(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, features = files / "val.parquet", files / "features.npz"
    learned = ("--labels", files / "train.parquet", "--features", features, "--allow-missing")
    run(capsys, "train", *learned, "--loss", "bce", "--epochs", 3, "--out", tmp_path / "run")
    scores = tmp_path / "scores.npy"
    run(capsys, "predict", tmp_path / "run", "--features", features, "--out", scores)
    judged = run(capsys, "evaluate", scores, labels, "--incomplete")
    audited = run(capsys, "audit", "--labels", labels, "--scores", scores, "--out", tmp_path / "a")
    assert judged["missing"] == pytest.approx(audited["missing"])
    assert judged["summary"] == audited["summary"]
    table = read_labels(labels)
    probs = np.load(scores)[900:]
    again = find_missing_labels(table, probabilities=probs)
    assert again.missing.as_dict() == pytest.approx(audited["missing"])
    targets, _ = table.batch()
    assert Evaluation([probs], targets).missing.as_dict() == pytest.approx(judged["missing"])


def reviewed(files: Path, folder: Path) -> Path:
    """The training labels after a review of 300 open pairs, with its answers beside the file."""
    table, true = read_labels(files / "train.parquet"), np.load(files / "true.npy")[:900]
    targets, _ = table.batch()
    rng = np.random.default_rng(1)
    open_pairs = np.argwhere(targets == 0)
    asked = open_pairs[rng.choice(len(open_pairs), 300, replace=False)]
    images, records = table.images.to_pylist(), []
    for row, column in asked:
        answer = "present" if true[row, column] else "absent"
        names = images[row], CLASSES[column]
        records.append(
            ReviewRecord(*names, answer, "Ann", "2026-01-31", 0.5, "ranked", answer)  # type: ignore[arg-type]
        )
    found = true[asked[:, 0], asked[:, 1]] == 1
    table = table.with_states(*asked[found].T, State.PRESENT, step=Step("review", {}))
    labels = folder / "reviewed.parquet"
    write_labels(table, labels)
    provenance_path(labels).write_text(write_provenance(records), encoding="utf-8")
    return labels


@pytest.mark.parametrize("loss", ["auto", "hill"])
def test_training_and_audit_agree_after_a_review(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], loss: str
) -> None:
    labels = reviewed(files, tmp_path)
    given = ("--labels", labels, "--features", files / "features.npz", "--allow-missing")
    audited = run(capsys, "audit", *given, "--out", tmp_path / "audit")
    learned = ("--val-labels", files / "val.parquet", "--out", tmp_path / "run", "--loss", loss)
    trained = run(capsys, "train", *given, *learned)
    assert audited["missing"] == pytest.approx(trained["missing"])
    assert audited["summary"] == trained["summary"]
    unreviewed = run(
        capsys, "audit", "--labels", files / "train.parquet", *given[2:], "--out", tmp_path / "b"
    )
    assert audited["missing"]["value"] < unreviewed["missing"]["value"]
    kept = load_model(AuditFolder.read(tmp_path / "audit").model)
    assert kept is not None
    assert kept.describe() == audited["summary"]


def test_a_random_sample_overrides_the_model_in_number_and_sentence(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--labels", files / "train.parquet", "--features", files / "features.npz")
    run(capsys, "audit", *given, "--allow-missing", "--out", tmp_path / "audit")
    queue, true = tmp_path / "queue.csv", np.load(files / "true.npy")
    words = ("--for", "measure", "--number", 200, "--out", queue)
    run(capsys, "queue", tmp_path / "audit", *words)
    with queue.open(newline="", encoding="utf-8") as file:
        drawn = list(csv.DictReader(file))
    with queue.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*drawn[0], "answer"])
        writer.writeheader()
        for pair in drawn:
            there = true[int(pair["image"][:4]), CLASSES.index(pair["class"])]
            writer.writerow(pair | {"answer": "yes" if there else "no"})
    run(capsys, "review", tmp_path / "audit", "--import", queue)
    found = run(capsys, "estimate", tmp_path / "audit")
    assert found["summary"].startswith("By 200 verified answers, about")
    missing = found["missing"]
    assert f"{missing['low']:,.0f} to {missing['high']:,.0f}" in found["summary"]
    truth = true[:900].sum() - (read_labels(files / "train.parquet").batch()[0] == 1).sum()
    assert missing["low"] < truth < missing["high"]
    review = Review(AuditFolder.read(tmp_path / "audit"))
    try:
        started: Any = review.start("Ann")
    finally:
        review.close()
    assert started["summary"] == found["summary"]
