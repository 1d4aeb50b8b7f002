"""What a run records about missing labels when it knows the truth."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from hilltop.data import LabelTable, State, drop_positives, read_labels, write_labels
from hilltop.errors import DataError
from hilltop.training import TrainConfig, train
from hilltop.training.pseudo_counts import BINS, KINDS, keep_histogram, read_histograms

CLASSES = ("ant", "bee", "cat")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> TrainConfig:
    """A short run with SPLC on labels of which some were left out."""
    folder = tmp_path_factory.mktemp("truth")
    rng = np.random.default_rng(4)
    values = rng.normal(size=(150, 6)).astype(np.float32)
    at, columns = np.nonzero(values @ rng.normal(size=(6, 3)) > 0.5)
    ids = [str(number) for number in range(150)]
    np.savez(folder / "x.npz", ids=np.array(ids), X=values)
    full = LabelTable.from_coo(ids, CLASSES, at, columns, State.PRESENT, unlisted=State.ABSENT)
    write_labels(full, folder / "full.parquet")
    write_labels(drop_positives(full, "1", seed=0).table, folder / "left.parquet")
    return TrainConfig(
        labels=folder / "left.parquet",
        val_labels=folder / "full.parquet",
        allow_overlap=True,
        true_labels=folder / "full.parquet",
        features=folder / "x.npz",
        loss="splc",
        epochs=5,
        batch_size=16,
        learning_rate=0.1,
        report=False,
    )


@pytest.fixture(scope="module")
def run(config: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(config, tmp_path_factory.mktemp("runs") / "splc")


def test_histograms_count_every_pair_of_every_epoch_once(config: TrainConfig, run: Path) -> None:
    found = read_histograms(run / "histograms.npz")
    assert found.counts.shape == (5, len(KINDS), BINS)
    full, left = read_labels(config.true_labels or Path()), read_labels(config.labels)
    labelled, total = left.count(State.PRESENT), full.count(State.PRESENT)
    assert labelled < total
    for epoch in range(5):
        sums = [found.of(kind, epoch).sum() for kind in KINDS]
        assert sums == [labelled, total - labelled, 150 * 3 - total]


def test_what_is_above_the_threshold_is_what_splc_turned_over(run: Path) -> None:
    precision, recall = read_histograms(run / "histograms.npz").above(0.6)
    with (run / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["pseudo_labels"]) == 0, "SPLC waits for the second epoch"
    turned = rows[1:]
    assert sum(float(row["pseudo_labels"]) for row in turned) > 20
    np.testing.assert_allclose(
        precision[1:], [float(row["pseudo_label_precision"]) for row in turned]
    )
    np.testing.assert_allclose(recall[1:], [float(row["pseudo_label_recall"]) for row in turned])


def test_recording_the_truth_does_not_change_the_run(
    config: TrainConfig, run: Path, tmp_path: Path
) -> None:
    plain = train(dataclasses.replace(config, true_labels=None), tmp_path / "plain")
    assert not (plain / "histograms.npz").exists()
    assert not (plain / "report.html").exists()
    assert (plain / "last.safetensors").read_bytes() == (run / "last.safetensors").read_bytes()


def test_an_epoch_that_is_repeated_replaces_what_came_after_it(tmp_path: Path) -> None:
    path = tmp_path / "histograms.npz"
    for epoch, value in ((0, 1.0), (1, 2.0), (2, 3.0), (1, 7.0)):
        keep_histogram(path, epoch, [0, 0, 0, *[value] * (len(KINDS) * BINS)])
    assert read_histograms(path).counts[:, 0, 0].tolist() == [1.0, 7.0]


def test_nothing_above_a_threshold_has_no_precision(tmp_path: Path) -> None:
    counts = np.zeros((len(KINDS), BINS))
    counts[1:, 10] = 5
    keep_histogram(tmp_path / "h.npz", 0, [0, 0, 0, *counts.ravel()])
    precision, recall = read_histograms(tmp_path / "h.npz").above(0.5)
    assert np.isnan(precision).all()
    assert recall.tolist() == [0.0]


def test_histograms_that_are_none_are_named(tmp_path: Path) -> None:
    (tmp_path / "h.npz").write_bytes(b"x")
    with pytest.raises(DataError, match=r"h\.npz: this file cannot be read, it is cut or damaged"):
        read_histograms(tmp_path / "h.npz")
