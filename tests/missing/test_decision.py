"""Thresholds and what is expected of them, from incomplete labels alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit

from hilltop.errors import ArgumentError
from hilltop.metrics import classification_report, fit_thresholds
from hilltop.missing import Calibrator, ExpectedCounts, Goal, MissingLabelModel, decide
from hilltop.missing.decision import GRID
from hilltop.missing.logistic import Floats

Drawn = tuple[Floats, Floats, Floats]


def drawn(frequency: float, *, rows: int = 3000, seed: int = 0) -> Drawn:
    """Clear scores, true labels and those that were recorded."""
    rng = np.random.default_rng(seed)
    logits = 4 * rng.normal(size=(rows, 6)) + np.linspace(-5, 0, 6)
    true = (rng.random(logits.shape) < expit(logits)).astype(float)
    return logits, true, true * (rng.random(logits.shape) < frequency)


def counted(log_odds: Floats) -> ExpectedCounts:
    """Counts of entries that are as probable as their log odds say."""
    counts = ExpectedCounts.of(log_odds, np.ones_like(log_odds), expit(log_odds)[None])
    return ExpectedCounts(counts.accepted, counts.hits, counts.present, len(log_odds))


@pytest.fixture(scope="module")
def half() -> Drawn:
    return drawn(0.5)


@pytest.fixture(scope="module")
def fitted(half: Drawn) -> MissingLabelModel:
    return MissingLabelModel.fit(half[0], half[2])


@pytest.mark.parametrize("frequency", [1.0, 0.5, 0.3])
def test_thresholds_are_nearly_as_good_as_those_fitted_to_complete_labels(frequency: float) -> None:
    logits, _, labels = drawn(frequency)
    other, truth, _ = drawn(frequency, seed=1)
    calibrator = Calibrator().fit(logits, labels)
    ours = classification_report(
        calibrator.transform(other), truth, calibrator.decision_.thresholds
    )
    best = classification_report(other, truth, fit_thresholds(other, truth))
    assert ours.CF1 > best.CF1 - 0.02
    assert ours.OF1 > best.OF1 - 0.02


def test_expectations_hold_on_other_rows_and_their_intervals_are_not_idle(
    fitted: MissingLabelModel,
) -> None:
    other, truth, _ = drawn(0.5, seed=2)
    decision = fitted.thresholds("f1")
    report = classification_report(fitted.probs(other), truth, decision.thresholds)
    expected = decision.expected
    pairs = zip(
        (report.OP, report.OR, report.OF1),
        (expected.precision, expected.recall, expected.f1),
        strict=True,
    )
    for value, found in pairs:
        assert found.low < value < found.high
        assert found.value == pytest.approx(value, abs=0.08)
        assert found.high - found.low < 0.6


@pytest.mark.parametrize("wanted", [0.6, 0.9])
def test_a_wanted_precision_or_recall_is_reached_by_each_class(wanted: float) -> None:
    logits, true, _ = drawn(1.0)
    model = MissingLabelModel.fit(logits, true, verified=true == 0)
    other, truth, _ = drawn(1.0, seed=3)
    precise = model.thresholds("precision", wanted=wanted)
    report = classification_report(model.probs(other), truth, precise.thresholds)
    assert wanted - 0.05 < report.OP < wanted + 0.15
    recalled = model.thresholds("recall", wanted=wanted)
    report = classification_report(model.probs(other), truth, recalled.thresholds)
    assert wanted - 0.07 < report.OR < wanted + 0.1
    assert (recalled.by_class[1] >= wanted - 1e-9).all()


def test_a_number_of_tags_per_image_is_met(fitted: MissingLabelModel) -> None:
    other, _, _ = drawn(0.5, seed=4)
    decision = fitted.thresholds("tags", wanted=1.2)
    tags = (fitted.probs(other) > decision.thresholds).sum(axis=1).mean()
    assert tags == pytest.approx(1.2, abs=0.1)
    assert decision.expected.tags == pytest.approx(1.2, abs=0.02)


def test_a_precision_that_no_threshold_reaches_means_never() -> None:
    decision = decide(counted(np.full((50, 1), -1.0)), "precision", wanted=0.9)
    assert np.isinf(decision.log_odds[0])
    assert decision.thresholds[0] == 1.0
    assert decision.expected.tags == 0
    assert decision.describe().endswith("which no class reaches: there are no tags")


def test_classes_that_never_reach_a_precision_are_named() -> None:
    odds = np.tile(np.array([[3.0, -3.0], [-3.0, -3.0]]), (50, 1))
    told = decide(counted(odds), "precision", wanted=0.905).describe()
    assert "a precision of at least 90.5%; expected: precision 95%" in told
    assert told.endswith("1 of 2 classes do not reach it and are never predicted")


def test_counts_agree_with_sorting_every_entry() -> None:
    odds = np.random.default_rng(0).normal(size=(200, 2))
    counts = counted(odds)
    for number in (60, 80, 95):
        above = odds > GRID[number]
        assert counts.accepted[:, number].tolist() == above.sum(axis=0).tolist()
        assert counts.hits[0, :, number] == pytest.approx((expit(odds) * above).sum(axis=0))


def test_balanced_thresholds_have_the_best_mean_of_both_f1(fitted: MissingLabelModel) -> None:
    def mean_of_both(goal: Goal) -> float:
        decision = fitted.thresholds(goal)
        return decision.expected.f1.value + float(decision.by_class[2].mean())

    best = mean_of_both("balanced_f1")
    assert best >= mean_of_both("f1") - 5e-3
    assert best >= mean_of_both("class_f1") - 5e-3


@pytest.mark.parametrize("goal", ["balanced_f1", "class_f1", "f1"])
def test_what_nothing_is_known_of_is_not_predicted_for_every_image(goal: Goal) -> None:
    # One image in twenty has the label, and no score tells which: always has the best F1.
    odds = -2.94 + 0.01 * np.random.default_rng(0).normal(size=(400, 3))
    counts = counted(odds)
    assert counts.f1().argmax(axis=1).max() < 60  # at thresholds that all images pass
    assert decide(counts, goal).expected.tags <= 3 * expit(odds).sum() / len(odds) + 0.01


def test_an_uncertain_number_of_labels_lowers_thresholds() -> None:
    """F1 loses more by too few tags than by too many: the mean over scenarios decides."""
    odds = np.random.default_rng(0).normal(-3, 1, (2000, 1))
    few, many = expit(odds), expit(odds + 3)
    total = np.ones_like(odds)
    thresholds = [
        decide(ExpectedCounts.of(odds, total, np.stack(probs)), "f1").log_odds[0]
        for probs in ([few, few], [few, many])
    ]
    assert thresholds[1] < thresholds[0] - 0.5


def test_weak_scores_with_many_labels_get_tags_enough() -> None:
    """Images with 12 of 40 labels of which 3 are recorded, and scores that hardly tell."""
    rng = np.random.default_rng(0)
    rates = np.linspace(0.05, 0.6, 40)
    hint = rng.normal(size=(500, 40))
    true = (rng.random(hint.shape) < expit(np.log(rates / (1 - rates)) + 0.4 * hint)).astype(float)
    labels = true * (rng.random(true.shape) < 0.25)
    share = labels.mean(axis=0)
    logits = np.log((share + 1e-3) / (1 - share)) + 0.3 * hint
    model = MissingLabelModel.fit(logits, labels)
    decision = model.thresholds()
    ours = classification_report(model.probs(logits), true, decision.thresholds).OF1
    best = max(
        classification_report(logits, true, one).OF1 for one in np.quantile(logits, (0.3, 0.5, 0.7))
    )
    assert ours > best - 0.05


def test_scores_in_any_unit_give_the_same_tags(half: Drawn) -> None:
    logits, _, labels = (values[:1000] for values in half)
    usual = Calibrator().fit(logits, labels)
    for moved in (logits / 1000, logits + 300, logits * 50 - np.arange(6) * 90.0):
        other = Calibrator().fit(moved, labels)
        assert np.abs(other.transform(moved) - usual.transform(logits)).mean() < 0.03


def test_probabilities_nan_and_verified_absent_entries_are_welcome(half: Drawn) -> None:
    logits, true, labels = (part[:800] for part in half)
    probs = expit(logits)
    known = np.where(np.random.default_rng(0).random(labels.shape) < 0.2, np.nan, labels)
    probs[3, 2] = np.nan
    verified = (true == 0) & (known == 0)
    calibrator = Calibrator(probabilities=True).fit(probs, known, verified=verified)
    made = calibrator.transform(probs)
    assert np.isnan(made[3, 2])
    assert np.isfinite(np.delete(made, 3, axis=0)).all()
    assert set(np.unique(calibrator.predict(probs))) == {0, 1}


@pytest.mark.parametrize(
    ("options", "scores", "message"),
    [
        ({"probabilities": True}, [[1.5]], "must lie between 0 and 1 .* got 1.5"),
        ({}, [1.0], "one row per image"),
        ({}, [[np.inf]], "must be finite"),
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
        Calibrator(**options).fit(scores, labels)  # type: ignore[arg-type]


def test_scikit_learn_can_clone_it() -> None:
    base = pytest.importorskip("sklearn.base")
    copied = base.clone(Calibrator(goal="recall", wanted=0.8))
    assert copied.get_params() == {"probabilities": False, "goal": "recall", "wanted": 0.8}
    with pytest.raises(ArgumentError, match="not fitted"):
        copied.transform([[0.0]])


def test_tensors_of_a_model_need_not_be_detached(half: Drawn) -> None:
    logits, _, labels = (torch.from_numpy(values[:200]) for values in half)
    assert Calibrator().fit(logits.clone().requires_grad_(), labels).predict(logits).any()


def test_scores_that_point_the_wrong_way_are_refused(half: Drawn) -> None:
    logits, _, labels = half
    with pytest.raises(ArgumentError, match="pass -scores"):
        Calibrator().fit(-logits, labels)


def test_entries_without_a_score_are_not_expected_to_be_tagged(half: Drawn) -> None:
    logits, _, labels = (values[:1000] for values in half)
    gaps = logits.copy()
    gaps[::2] = np.nan
    assert Calibrator().fit(gaps, labels).model_.counts.accepted[:, 0].max() <= 500
