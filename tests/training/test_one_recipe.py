"""The command, the estimator and the advisor train the same head from the same labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from hilltop.data import LabelTable, State, write_labels
from hilltop.integrations import HilltopClassifier
from hilltop.losses import LOSSES
from hilltop.metrics import classification_report
from hilltop.studies.advise.trial import _scores
from hilltop.training import ModelConfig, TrainConfig, cross_validate, load_run, train
from hilltop.training.predict import TrainedModel
from tests.sample import of_losses

ROWS, FEATURES, CLASSES = 200, 16, 5


@pytest.fixture(scope="module")
def material() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((ROWS, FEATURES)).astype(np.float32)
    true = features @ rng.standard_normal((FEATURES, CLASSES)) > 1.5
    return features, true & (rng.random(true.shape) < 0.6)


def table_of(labels: np.ndarray, *, unlisted: State = State.UNKNOWN) -> LabelTable:
    images = [f"{row:03}.jpg" for row in range(len(labels))]
    classes = [f"class {number}" for number in range(labels.shape[1])]
    return LabelTable.from_coo(
        images, classes, *np.nonzero(labels), State.PRESENT, unlisted=unlisted
    )


def by_command(
    folder: Path,
    features: np.ndarray,
    labels: np.ndarray,
    loss: str,
    model: ModelConfig,
    epochs: int = 20,
) -> TrainedModel:
    table = table_of(labels)
    np.savez(folder / "features.npz", ids=np.array(table.images.to_pylist()), X=features)
    write_labels(table, folder / "labels.parquet")
    # Complete ones: an estimate of the true mAP after every epoch has no part in what is learned.
    write_labels(table_of(labels, unlisted=State.ABSENT), folder / "val.parquet")
    config = TrainConfig(
        labels=folder / "labels.parquet",
        val_labels=folder / "val.parquet",
        allow_overlap=True,
        features=folder / "features.npz",
        loss=loss,
        epochs=epochs,
        seed=3,
        report=False,
        model=model,
    )
    return load_run(train(config, folder / "run"), which="last")


@pytest.mark.parametrize("loss", of_losses(("auto", "role")))
def test_command_estimator_and_advisor_give_equal_scores(
    loss: str, material: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    features, labels = material
    inputs = torch.from_numpy(features)
    run = by_command(tmp_path, features, labels, loss, ModelConfig())
    estimator = HilltopClassifier(loss, random_state=3).fit(features, labels.astype(int))
    with torch.no_grad():
        commanded = torch.sigmoid(run.model(inputs))
        estimated = torch.sigmoid(estimator.head_(inputs))
        assert run.truth is not None
        true = torch.sigmoid(run.truth.calibration(run.model(inputs)))
    torch.testing.assert_close(
        torch.from_numpy(estimator.predict_proba(features)).float(), true, rtol=0, atol=1e-4
    )
    advised = _scores(loss, table_of(labels), inputs, inputs, seed=3)
    torch.testing.assert_close(estimated, commanded, rtol=0, atol=1e-6)
    torch.testing.assert_close(advised, commanded, rtol=0, atol=1e-6)


def test_a_hidden_layer_is_the_same_by_command_and_estimator(
    material: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    features, labels = material
    chosen = ModelConfig(model="mlp", hidden=8)
    model = by_command(tmp_path, features, labels, "hill", chosen, epochs=3).model
    estimator = HilltopClassifier("hill", hidden=8, epochs=3, random_state=3)
    estimator.fit(features, labels.astype(int))
    torch.testing.assert_close(dict(estimator.head_.state_dict()), dict(model.state_dict()))


def test_heads_of_the_audit_rank_as_well_as_heads_trained_alone(
    material: tuple[np.ndarray, np.ndarray],
) -> None:
    features, labels = material
    inputs, targets = torch.from_numpy(features), torch.from_numpy(labels).float()
    together = cross_validate(
        inputs, targets, LOSSES.build("bce", reduction="sum"), folds=2, repeats=1, seed=3
    ).logits
    order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(3)) % 2
    alone = np.zeros_like(labels, dtype=np.float64)
    for fold in range(2):
        learn, scored = (order != fold).numpy(), (order == fold).numpy()
        head = HilltopClassifier("bce", random_state=3)
        head.fit(features[learn], labels[learn].astype(int))
        alone[scored] = head.predict_proba(features[scored])
    apart = [classification_report(scores, labels).mAP for scores in (together.numpy(), alone)]
    assert apart[0] == pytest.approx(apart[1], abs=0.02)
