"""Class activations boosted before pooling: the equation, and models that have no such place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from hilltop.cli.main import main
from hilltop.data.scores import ScoreTable
from hilltop.errors import ArgumentError
from hilltop.inputs.synthetic import write_dataset
from hilltop.losses.init import last_bias
from hilltop.models import build_image_model, classifier_parameters
from hilltop.models.boosted import BoostedLinear


def boosted_logit(weight: list[float], maps: list[list[float]], bias: float, alpha: float) -> float:
    """One class as a scalar loop: ``maps`` has a list of places for each channel."""
    places = list(zip(*maps, strict=True))
    total = 0.0
    for channels in places:
        activation = sum(w * f for w, f in zip(weight, channels, strict=True))
        total += activation * (alpha if activation > 0 else 1.0)
    return total / len(places) + bias


@pytest.mark.parametrize("alpha", [1.0, 5.0])
def test_logits_agree_with_the_scalar_reference(alpha: float) -> None:
    classifier, maps = BoostedLinear(3, 2, alpha=alpha), torch.randn(4, 3, 2, 5)
    logits = classifier(maps)
    for row in range(4):
        for number in range(2):
            expected = boosted_logit(
                classifier.weight[number].tolist(),
                maps[row].flatten(1).tolist(),
                classifier.bias[number].item(),
                alpha,
            )
            assert logits[row, number].item() == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", ["test_resnet", "test_efficientnet"])
def test_a_boosted_model_keeps_its_weights_and_their_names(name: str) -> None:
    options = {"weights": "none", "image_size": 32, "silent": False}
    plain = build_image_model(name, 5, **options).eval()
    boosted = build_image_model(name, 5, boost=5.0, **options).eval()
    boosted.load_state_dict(plain.state_dict())
    pixels = torch.rand(3, 3, 64, 64)
    assert not torch.allclose(plain(pixels), boosted(pixels))
    boosted.get_classifier().alpha = 1.0
    torch.testing.assert_close(plain(pixels), boosted(pixels))
    assert last_bias(boosted.get_classifier()) is classifier_parameters(boosted)[1]


@pytest.mark.parametrize("name", ["test_vit", "mobilenetv3_small_050", "test_convnext"])
def test_a_model_that_ends_otherwise_is_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="boost needs a model that pools its last map"):
        build_image_model(name, 5, weights="none", image_size=160, silent=False, boost=5.0)


@pytest.mark.parametrize("block", [None, "layer3"])
def test_a_run_with_boosted_activations_predicts_as_it_validated(
    tmp_path: Path, block: str | None
) -> None:
    write_dataset(tmp_path / "pictures", images=40, size=64, seed=0)
    images, run = tmp_path / "pictures" / "images", tmp_path / "run"
    words = ["train", "--labels", tmp_path / "pictures" / "labels.parquet", "--images", images]
    words += ["--model", "test_resnet", "--image-size", 64, "--epochs", 1, "--workers", 0]
    words += ["--boost", 5, "--loss", "hill", "--out", run]
    words += ["--train-from", block] if block else []
    assert main([str(word) for word in words]) == 0
    scores = tmp_path / "scores.npy"
    assert main(["predict", str(run), "--images", str(images), "--out", str(scores)]) == 0
    table, val = ScoreTable.load(scores), ScoreTable.load(run / "val_scores.npy")
    np.testing.assert_allclose(table.aligned(val.images, val.classes), val.values, atol=2e-3)
