"""The path of the metrics for scores on a device, run on the CPU against the one for arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.metrics import (
    average_precision,
    classification_report,
    mean_average_precision,
    on_device,
)
from hilltop.metrics.arrays import ScoredTargets


@pytest.fixture
def as_on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors are taken to be on a device; arrays are not."""
    on = property(lambda judged: isinstance(judged._scores, Tensor))
    monkeypatch.setattr(ScoredTargets, "on_device", on)


def odd_scores(images: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Scores with ties and infinities, unknown targets, and a class without positives."""
    generator = torch.Generator().manual_seed(images)
    scores = torch.randn(images, classes, generator=generator, dtype=torch.float64)
    scores[:, 1] = scores[:, 1].round()
    scores[::3, 2], scores[1::3, 2] = -torch.inf, torch.inf
    targets = (torch.rand(images, classes, generator=generator) < 0.3).double()
    targets[torch.rand(images, classes, generator=generator) < 0.1] = torch.nan
    targets[:, 3] = 0
    return scores, targets, torch.rand(images, classes, generator=generator) < 0.8


@pytest.mark.usefixtures("as_on_device")
@pytest.mark.parametrize("images", [1, 7, 500])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
def test_average_precision_is_that_of_arrays(
    images: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_device, "_ENTRIES", 3 * images)  # more than one block
    scores, targets, known = odd_scores(images, 8)
    scores = scores.to(dtype)
    for options in ({}, {"known": known}):
        arrays = {name: part.numpy() for name, part in options.items()}
        expected = average_precision(scores.numpy(), targets.numpy(), **arrays)
        actual = average_precision(scores, targets, **options)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)


@pytest.mark.usefixtures("as_on_device")
def test_the_whole_report_is_that_of_arrays() -> None:
    scores, targets, known = odd_scores(300, 6)
    limits = np.linspace(-0.5, 0.7, 6)
    arrays = classification_report(
        scores.numpy(), targets.numpy(), limits, known=known.numpy(), cf1="harmonic"
    )
    here = classification_report(scores, targets, limits, known=known, cf1="harmonic")
    assert here.as_dict() == pytest.approx(arrays.as_dict(), abs=1e-9)
    assert here.empty_classes == arrays.empty_classes
    np.testing.assert_array_equal(here.per_class.predicted, arrays.per_class.predicted)


@pytest.mark.usefixtures("as_on_device")
@pytest.mark.parametrize(
    ("changed", "value", "message"),
    [
        ("scores", np.nan, "Class 'b': scores contain NaN."),
        ("targets", -1.0, "Class 'b': metrics need targets of 0, 1 or NaN, but got -1.0"),
        ("targets", 0.5, "Class 'b': metrics need targets of 0, 1 or NaN, but got 0.5"),
    ],
)
def test_what_cannot_be_is_refused_in_the_same_words(
    changed: str, value: float, message: str
) -> None:
    given: dict[str, Any] = {"scores": torch.rand(5, 2), "targets": torch.ones(5, 2)}
    given[changed][2, 1] = value
    with pytest.raises(ArgumentError, match=message):
        mean_average_precision(**given, class_names=["a", "b"])


def test_tensors_on_the_cpu_are_read_as_arrays() -> None:
    assert not ScoredTargets(torch.rand(2, 2), torch.ones(2, 2)).on_device
    on_meta = (torch.rand(2, 2, device="meta"), torch.ones(2, 2, device="meta"))
    assert ScoredTargets(*on_meta).on_device
    assert not ScoredTargets(on_meta[0], np.ones((2, 2))).on_device
