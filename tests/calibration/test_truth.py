"""Probabilities of truth and decisions, from incomplete labels alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from hilltop.calibration import (
    NOTHING_MISSING,
    TruthCalibrator,
    TruthModel,
    believe,
    decide,
    fit_truth,
)
from hilltop.calibration.decision import Goal
from hilltop.calibration.expected import GRID, ExpectedCounts
from hilltop.calibration.keep_posterior import KeepPosterior
from hilltop.calibration.profile import LOG_KEEP, Profile
from hilltop.calibration.truth_mean import mean_over_rates
from hilltop.errors import ArgumentError
from hilltop.metrics import classification_report, fit_thresholds

Drawn = tuple[Tensor, Tensor, Tensor]


def drawn(keep: float, *, rows: int = 3000, seed: int = 0) -> Drawn:
    """Clear scores, true labels and those that were kept."""
    generator = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(rows, 6, generator=generator) + torch.linspace(-5, 0, 6)
    true = (torch.rand(logits.shape, generator=generator) < torch.sigmoid(logits)).float()
    kept = true * (torch.rand(logits.shape, generator=generator) < keep)
    return logits, true, kept


@pytest.fixture(scope="module")
def half_kept() -> Drawn:
    return drawn(0.5)


@pytest.fixture(scope="module")
def fitted(half_kept: Drawn) -> TruthModel:
    logits, _, kept = half_kept
    return fit_truth(logits, kept)


def test_probabilities_are_those_of_truth_not_of_being_written_down(
    half_kept: Drawn, fitted: TruthModel
) -> None:
    logits, true, kept = half_kept
    probs = fitted.probs(logits)
    assert float(probs.mean()) == pytest.approx(float(true.mean()), rel=0.1)
    assert float((probs - torch.sigmoid(logits)).abs().mean()) < 0.02
    assert float(probs.mean()) > 1.6 * float(kept.mean())


def test_other_scores_are_calibrated_to_what_cross_entropy_found(half_kept: Drawn) -> None:
    logits, _, kept = half_kept
    belief = believe(logits, kept)
    stretched = 0.25 * logits + 2
    truth = fit_truth(stretched, kept, belief=belief, believed_logits=logits)
    assert float((truth.probs(stretched) - torch.sigmoid(logits)).abs().mean()) < 0.03


@pytest.mark.parametrize("keep", [1.0, 0.5, 0.3])
def test_thresholds_are_nearly_as_good_as_those_fitted_to_complete_labels(keep: float) -> None:
    logits, _, kept = drawn(keep)
    other, truth, _ = drawn(keep, seed=1)
    calibrator = TruthCalibrator().fit(logits, kept)
    probs = calibrator.transform(other)
    ours = classification_report(probs, truth, calibrator.decision_.thresholds)
    best = classification_report(other, truth, fit_thresholds(other, truth))
    assert ours.CF1 > best.CF1 - 0.015
    assert ours.OF1 > best.OF1 - 0.015


def test_expectations_hold_on_other_rows_and_their_intervals_are_not_idle(
    fitted: TruthModel,
) -> None:
    other, truth, _ = drawn(0.5, seed=2)
    decision = fitted.decide("f1")
    report = classification_report(fitted.probs(other), truth, decision.thresholds)
    measured = (report.OP, report.OR, report.OF1)
    expected = decision.expected
    for value, found in zip(
        measured, (expected.precision, expected.recall, expected.f1), strict=True
    ):
        assert found.low < value < found.high
        assert found.value == pytest.approx(value, abs=0.06)
        assert found.high - found.low < 0.5


@pytest.mark.parametrize("wanted", [0.6, 0.9])
def test_a_wanted_precision_or_recall_is_reached_by_each_class(
    fitted: TruthModel, wanted: float
) -> None:
    other, truth, _ = drawn(0.5, seed=3)
    precise = fitted.decide("precision", wanted=wanted)
    report = classification_report(fitted.probs(other), truth, precise.thresholds)
    assert wanted - 0.05 < report.OP < wanted + 0.15
    recalled = fitted.decide("recall", wanted=wanted)
    report = classification_report(fitted.probs(other), truth, recalled.thresholds)
    assert wanted - 0.07 < report.OR < wanted + 0.1
    assert (recalled.by_class[1] >= wanted - 1e-9).all()


def test_a_number_of_tags_an_image_is_met(fitted: TruthModel) -> None:
    other, _, _ = drawn(0.5, seed=4)
    decision = fitted.decide("tags", wanted=1.2)
    said = (fitted.probs(other).numpy() > decision.thresholds).sum(axis=1).mean()
    assert said == pytest.approx(1.2, abs=0.1)
    assert decision.expected.tags == pytest.approx(1.2, abs=0.01)


def test_a_precision_that_no_threshold_reaches_means_never() -> None:
    counts = ExpectedCounts.of(torch.full((50, 1), -1.0), (0.0, 0.0, 0.0))
    decision = decide(counts, "precision", wanted=0.9)
    assert np.isinf(decision.logits[0])
    assert decision.thresholds[0] == 1.0
    assert decision.expected.tags == 0


def test_classes_that_never_reach_a_precision_are_named() -> None:
    calibration = torch.tensor([[3.0, -3.0], [-3.0, -3.0]]).repeat(50, 1)
    counts = ExpectedCounts.of(calibration, (0.0, 0.0, 0.0))
    told = decide(counts, "precision", wanted=0.905).describe()
    assert "a precision of at least 90.5%; expected: precision 95%" in told
    assert told.endswith("1 of 2 classes do not reach it: never tagged")
    never = decide(counts, "precision", wanted=0.999).describe()
    assert never.endswith("99.9%, which no class reaches: there are no tags")


def test_where_every_pair_is_known_nothing_can_be_missing(half_kept: Drawn) -> None:
    logits, true, _ = (values[:1000] for values in half_kept)
    labels = true.clone()
    labels[::3, 0] = torch.nan
    truth = fit_truth(logits, labels, observed=labels == 0)
    assert truth.sentence == NOTHING_MISSING
    recall, open_recall = (
        one.decide().expected.recall for one in (truth, fit_truth(logits, labels))
    )
    assert recall.high - recall.low < min(0.2, open_recall.high - open_recall.low)
    assert float((truth.probs(logits) - torch.sigmoid(logits)).abs().mean()) < 0.02
    assert truth.counts.accepted[0, 0] < 700


def test_counts_agree_with_sorting_every_pair() -> None:
    logits = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    counts = ExpectedCounts.of(logits, (0.0, 0.0, 0.0))
    for number in (60, 80, 95):
        above = logits > GRID[number]
        assert counts.accepted[:, number].tolist() == above.sum(dim=0).tolist()
        hits = (torch.sigmoid(logits) * above).sum(dim=0)
        assert counts.hits[1][:, number].tolist() == pytest.approx(hits.tolist(), rel=1e-5)


def test_what_is_stored_decides_the_same(fitted: TruthModel) -> None:
    again = TruthModel.of_tensors(fitted.tensors(), fitted.sentence)
    assert np.array_equal(again.decide().logits, fitted.decide().logits)
    assert again.decide().describe() == fitted.decide().describe()


def test_probabilities_nan_and_confirmed_absent_pairs_are_welcome(half_kept: Drawn) -> None:
    logits, true, kept = (part[:800].double().numpy() for part in half_kept)
    probs = 1 / (1 + np.exp(-logits))
    labels = np.where(np.random.default_rng(0).random(kept.shape) < 0.2, np.nan, kept)
    observed = (true == 0) & (labels == 0)
    probs[3, 2] = np.nan
    calibrator = TruthCalibrator(probabilities=True).fit(probs, labels, observed=observed)
    made = calibrator.transform(probs)
    assert np.isnan(made[3, 2])
    assert np.isfinite(np.delete(made, 3, axis=0)).all()
    assert set(np.unique(calibrator.predict(probs))) == {0, 1}


@pytest.mark.parametrize(
    ("options", "scores", "message"),
    [
        ({"probabilities": True}, [[1.5]], "must lie between 0 and 1 .* got 1.5"),
        ({}, [1.0], "one row an image"),
        ({}, [[np.inf]], "must be finite"),
        ({}, [[1e300]], "must be finite"),
        ({}, [[np.nan]], "no 1 where there is a score"),
        ({}, [[1.0], [0.0], [0.0]], "1 wherever they are known"),
        ({"goal": "precision"}, [[1.0], [0.0]], "needs a number"),
        ({"goal": "f2"}, [[1.0], [0.0]], "goal must be one of"),
        ({"goal": "f1", "wanted": 0.4}, [[1.0], [0.0]], "does not belong"),
    ],
)
def test_bad_input_is_told(options: dict[str, object], scores: object, message: str) -> None:
    every = {1: [[1]], 2: [[1], [0]], 3: [[1], [np.nan], [np.nan]]}
    labels = every[len(np.asarray(scores))]
    with pytest.raises(ArgumentError, match=message):
        TruthCalibrator(**options).fit(scores, labels)  # type: ignore[arg-type]


def test_scikit_learn_can_clone_it() -> None:
    base = pytest.importorskip("sklearn.base")
    copied = base.clone(TruthCalibrator(goal="recall", wanted=0.8))
    assert copied.get_params() == {"probabilities": False, "goal": "recall", "wanted": 0.8}
    with pytest.raises(ArgumentError, match="not fitted"):
        copied.transform([[0.0]])


def test_scores_in_any_unit_give_the_same_tags(half_kept: Drawn) -> None:
    logits, _, kept = (values[:1000] for values in half_kept)
    usual = TruthCalibrator().fit(logits, kept)
    tiny = TruthCalibrator().fit(logits / 1000, kept)
    assert usual.scale_.factor == 1.0
    assert not bool(usual.scale_.offset.any())
    assert 100 < tiny.scale_.factor < 3000
    assert np.abs(tiny.transform(logits / 1000) - usual.transform(logits)).mean() < 0.02


@pytest.mark.parametrize("offset", [torch.tensor(100.0), torch.tensor([-300.0, 0, 0, 90, 50, 7])])
def test_scores_far_from_zero_give_the_same_tags(half_kept: Drawn, offset: Tensor) -> None:
    logits, _, kept = (values[:1000] for values in half_kept)
    usual, moved = TruthCalibrator().fit(logits, kept), TruthCalibrator().fit(logits + offset, kept)
    assert np.abs(moved.transform(logits + offset) - usual.transform(logits)).mean() < 0.02
    assert (moved.predict(logits + offset) == usual.predict(logits)).mean() > 0.98


def test_tensors_of_a_model_need_not_be_detached(half_kept: Drawn) -> None:
    logits, _, kept = (values[:200] for values in half_kept)
    tags = TruthCalibrator().fit(logits.clone().requires_grad_(), kept).predict(logits)
    assert tags.any()


def test_scores_that_point_the_wrong_way_are_refused(half_kept: Drawn) -> None:
    logits, _, kept = half_kept
    with pytest.raises(ArgumentError, match="pass -scores"):
        TruthCalibrator().fit(-logits, kept)


def test_pairs_without_a_score_are_not_expected_to_be_tagged(half_kept: Drawn) -> None:
    logits, _, kept = (values[:1000] for values in half_kept)
    gaps = logits.clone()
    gaps[::2] = torch.nan
    counts = TruthCalibrator().fit(gaps, kept).truth_.counts
    assert counts.accepted[:, 0].max() <= 500


def test_balanced_thresholds_have_the_best_mean_of_both_f1(fitted: TruthModel) -> None:
    def mean_of_both(goal: Goal) -> float:
        decision = fitted.decide(goal)
        return decision.expected.f1.value + float(decision.by_class[2].mean())

    best = mean_of_both("balanced_f1")
    assert best >= mean_of_both("f1") - 1e-3
    assert best >= mean_of_both("class_f1") - 1e-3


@pytest.mark.parametrize("goal", ["balanced_f1", "class_f1", "f1"])
def test_what_nothing_is_known_of_is_not_said_of_every_image(goal: Goal) -> None:
    # One image in twenty has the label, and no score tells which: saying it always has the best F1.
    logits = -2.94 + 0.01 * torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
    counts = ExpectedCounts.of(logits, (0.0, 0.0, 0.0))
    assert counts.f1().argmax(axis=1).max() < 60  # at thresholds that all images pass
    decided = decide(counts, goal)
    assert decided.expected.tags <= 3 * torch.sigmoid(logits).sum() / len(logits) + 0.01


def test_where_nothing_tells_keep_rates_apart_truth_is_their_mean() -> None:
    logits, targets = torch.zeros(400, 1), torch.zeros(400, 1)
    targets[:40] = 1
    rates = np.exp(LOG_KEEP)
    shifts = np.log(0.1 / rates / (1.001 - 0.1 / rates).clip(1e-3))[:, None]
    found = Profile(np.zeros((21, 1)), np.ones(21), shifts, torch.zeros(1))
    truth = mean_over_rates(logits, targets, found, KeepPosterior.of(found.costs))
    prob = float(torch.sigmoid(truth.calibration(logits))[0, 0])
    at_mean_rate = 0.1 / float(np.exp(LOG_KEEP.mean()))
    assert prob > 1.2 * at_mean_rate
