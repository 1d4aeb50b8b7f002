"""From scores and incomplete labels to what is probably true, whatever the scale of the scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hilltop.calibration import believe
from hilltop.calibration.profile import LOG_KEEP, Shapes, profile
from hilltop.metrics import mean_average_precision
from hilltop.metrics.incomplete import IncompleteTest
from hilltop.metrics.incomplete.class_scales import scale_by_class
from hilltop.metrics.incomplete.from_labels import truth_from_labels
from hilltop.metrics.incomplete.truth_posterior import expit
from tests.metrics.incomplete.made_up import Array, simulated

FLAT = np.array([0.1, 0.3, 1.0, 2.0, 0.1])


def rescaled(seed: int) -> tuple[Array, Array, Array]:
    """Every class has scores in a unit of its own, as heads that are held back give them."""
    probs, labels, true = simulated(seed, images=600)
    return expit(FLAT * (np.log(probs) - np.log1p(-probs)) - 2), labels, true


def test_slopes_of_classes_are_found_where_labels_are_missing() -> None:
    probs, labels, _ = simulated(0, images=4000)
    odds = np.log(probs) - np.log1p(-probs)
    scaled = scale_by_class(torch.from_numpy(FLAT * odds - 2), torch.from_numpy(1.0 * labels))
    slopes = [np.polyfit(odds[:, at], scaled[:, at].numpy(), 1)[0] for at in range(5)]
    assert slopes == pytest.approx(np.ones(5), abs=0.3)


def test_pairs_that_take_no_part_change_no_scale() -> None:
    probs, labels, _ = simulated(0)
    logits = torch.from_numpy(np.log(probs) - np.log1p(-probs))
    whole = torch.from_numpy(1.0 * labels)
    more = torch.cat([whole, torch.full((50, 5), torch.nan)])
    far = torch.cat([logits, torch.full((50, 5), 9.0)])
    assert torch.allclose(scale_by_class(far, more)[:400], scale_by_class(logits, whole), atol=0.02)


def test_estimates_hardly_depend_on_the_units_of_scores() -> None:
    off = []
    for seed in range(4):
        probs, labels, true = rescaled(seed)
        found = IncompleteTest([probs], labels).report().metrics["mAP"]
        exact = mean_average_precision(probs, true)
        off.append(found.estimate - exact)
        assert found.low < exact < found.high
    assert np.abs(np.mean(off)) < 0.06


def test_a_bent_curve_is_no_evidence_of_missing_labels() -> None:
    rng = np.random.default_rng(0)
    odds = rng.normal(-2, 1.5, (6000, 6))
    bent = odds + 0.5 * np.maximum(odds + 2, 0)  # scores rise faster than truth at the top
    labels = torch.from_numpy(1.0 * (rng.random(odds.shape) < expit(odds)))
    logits = torch.from_numpy(bent)
    plain, shaped = (
        profile(logits, labels, shapes=shapes).costs.sum(axis=1)
        for shapes in (None, Shapes(slope=0.3, bend=0.4, worth=100.0))
    )
    assert plain[0] - plain.min() > 2 * (shaped[0] - shaped.min()) + 10


def test_more_labels_than_they_are_worth_are_no_more_evidence() -> None:
    shapes = Shapes(slope=0.3, bend=0.4, worth=100.0)
    assert 1e6 * shapes.evidence(1e6) == pytest.approx(100, rel=1e-3)
    assert shapes.evidence(1.0) == pytest.approx(0.99, abs=0.001)


def test_where_everybody_stopped_at_one_label_any_number_may_be_missing() -> None:
    rng = np.random.default_rng(0)
    probs = np.full((400, 8), 0.1) + 0.1 * rng.random((400, 8))
    one = np.zeros((400, 8))
    one[np.arange(400), rng.integers(0, 8, 400)] = 1
    apart = 1.0 * (rng.random((400, 8)) < 1 / 8)
    widths = []
    for labels in (one, apart):
        truth, _ = truth_from_labels([probs], labels)
        widths.append(np.linalg.inv(truth.shared[:2, :2])[1, 1] ** 0.5)
    assert widths[0] > 1.2 * widths[1]


def test_the_more_is_missing_the_steeper_are_slopes() -> None:
    logits = np.random.default_rng(0).normal(-2, 3, (2000, 4))
    rng = np.random.default_rng(1)
    true = rng.random(logits.shape) < expit(logits)
    labels = torch.from_numpy(1.0 * (true & (rng.random(logits.shape) < 0.5)))
    found = believe(torch.from_numpy(logits), labels)
    assert found.slopes is not None
    assert found.slopes[np.abs(LOG_KEEP - np.log(0.5)).argmin()] > found.slopes[0] + 0.2
    truth, _ = truth_from_labels([expit(logits)], labels.numpy())
    covariance = np.linalg.inv(truth.shared[:2, :2])
    assert covariance[0, 1] > 0
