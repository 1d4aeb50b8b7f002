"""Metrics from incomplete labels: against definitions, without bias, with honest intervals."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics
from scipy.special import expit

from hilltop.errors import ArgumentError
from hilltop.metrics import classification_report, mean_average_precision, precision_at_k
from hilltop.missing import Evaluation, SampledAnswers
from hilltop.missing.answers import inclusion_probabilities, systematic_sample
from hilltop.missing.evaluation import _Scored, _sum_up
from hilltop.missing.ranked import RankedColumn
from hilltop.missing.truth import TruthPosterior, open_levels
from tests.missing.made_up import Array, answered, simulated


def posterior(odds: Array, error: tuple[float, float, float], own: float) -> TruthPosterior:
    """Log odds with these errors of slope, shift and bend, and of the shift of each class."""
    classes = odds.shape[1]
    start = np.concatenate([[1.0], np.zeros(classes + 2)])
    return TruthPosterior(
        odds,
        open_levels(odds),
        start,
        np.diag(np.array(error) ** -2.0),
        np.zeros((classes, 3)),
        np.full(classes, own**-2.0),
        odds,
    )


@pytest.mark.parametrize("levels", [0, 5])
def test_certain_probabilities_give_average_precision(levels: int) -> None:
    rng = np.random.default_rng(0)
    scores, present = rng.random(60), rng.random(60) < 0.3
    if levels:
        scores = np.round(scores * levels)
    found = RankedColumn(scores).average_precision(present[None].astype(np.float64))
    assert found[0] == pytest.approx(sklearn.metrics.average_precision_score(present, scores))


def test_expected_average_precision_is_the_mean_over_truths() -> None:
    rng = np.random.default_rng(0)
    scores, probs = np.round(rng.random(80) * 20), rng.random(80)
    column = RankedColumn(scores)
    draws = (rng.random((4000, 80)) < probs).astype(np.float64)
    mean = column.average_precision(draws).mean()
    assert column.average_precision(probs[None])[0] == pytest.approx(mean, abs=0.006)


def test_gradient_is_the_derivative() -> None:
    rng = np.random.default_rng(0)
    scores, probs = np.round(rng.random(12) * 6), rng.random(12)
    column, step = RankedColumn(scores), 1e-6
    moved = [
        np.subtract(*column.average_precision(probs + step * np.outer([1, -1], np.eye(12)[at])))
        for at in range(12)
    ]
    assert column.gradient(probs) == pytest.approx(np.array(moved) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("batches", [1, 2])
def test_corrections_are_unbiased_where_probabilities_are_wrong(batches: int) -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((60, 1))
    true = rng.random((60, 1)) < scores**2
    odds = np.full((60, 1), -2.0)  # says 0.12 of each, whatever the scores
    fixed = posterior(odds, (0.4, 1e-4, 1e-4), 1e-4)
    model = _Scored.of(scores, 0.5, np.ones((60, 1), dtype=bool))
    found = []
    for seed in range(300):
        answers = _drawn_in_batches(true, batches, np.random.default_rng(seed))
        truth = fixed.with_answers(answers)
        sums = _sum_up([model], truth, answers, truth.coefficients[None], None)
        found.append(sums.middle[0, 1:3] + sums.correction[0, 1:3])
    exact = np.array([true[scores > 0.5].sum(), true.sum()])
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - exact) < 3 * error).all()
    assert np.abs(60 * expit(np.array(-2.0)) - exact[1]) > 10 * error[1]  # the model alone is off


def _drawn_in_batches(true: Array, batches: int, rng: np.random.Generator) -> SampledAnswers:
    still, parts = np.arange(60), []
    for batch in range(batches):
        inclusion = inclusion_probabilities(1.0 + still % 3, 12)
        drawn = systematic_sample(inclusion, rng)
        parts.append((still[drawn], inclusion[drawn], np.full(len(drawn), batch)))
        still = np.delete(still, drawn)
    rows, sampled, numbers = (np.concatenate(part) for part in zip(*parts, strict=True))
    return SampledAnswers(rows, np.zeros_like(rows), true[rows, 0], sampled, numbers)


def even_odds() -> TruthPosterior:
    """A hundred pairs of one class, each as probable as not."""
    return posterior(np.zeros((100, 1)), (1.0, 1.0, 0.4), 1.0)


def test_answers_that_stand_for_many_pairs_tell_more() -> None:
    before = even_odds()
    rows, none = np.arange(40), np.zeros(40, dtype=np.int64)
    said = rows < 20

    def open_probability(sampled_with: Array) -> float:
        answers = SampledAnswers(rows, none, said, sampled_with, none)
        return float(before.with_answers(answers).probs(0)[99])

    assert open_probability(np.full(40, 0.1)) == pytest.approx(0.5, abs=1e-3)
    rare_no, rare_yes = (np.where(said == one, 0.4, 0.1) for one in (True, False))
    assert open_probability(rare_no) == pytest.approx(1 / 3, abs=0.02)  # 1 to 2, not 1 to 4
    assert open_probability(rare_yes) == pytest.approx(2 / 3, abs=0.02)


def test_weights_of_answers_are_worth_no_more_than_their_number() -> None:
    before = even_odds()
    rows, none = np.arange(40), np.zeros(40, dtype=np.int64)
    told = []
    for sampled_with in (np.full(40, 0.01), np.where(rows < 20, 0.5, 0.01)):
        answers = SampledAnswers(rows, none, rows % 2 == 0, sampled_with, none)
        after = before.with_answers(answers).class_precision[0]
        told.append(after - before.class_precision[0])
    assert told[0] == pytest.approx(10, rel=0.01)  # a quarter an answer
    assert 5 < told[1] < 8  # hardly more than the 20 that stand for many


def test_answers_to_everything_leave_nothing_to_estimate() -> None:
    probs, labels, true = simulated(0, images=60)
    test = Evaluation([probs], labels)
    everything = answered(test, true, 10_000)
    assert len(everything) == (~labels).sum()
    found = test.with_answers(everything).report()
    exact = classification_report(probs, true).as_dict()
    for name, value in exact.items():
        assert found.metrics[name].value == pytest.approx(value, abs=1e-9)
        assert found.metrics[name].high - found.metrics[name].low < 1e-6
    assert found.metrics["P@3"].value == pytest.approx(precision_at_k(probs, true, 3))


def test_answers_outvote_a_model_that_is_wrong() -> None:
    rng = np.random.default_rng(0)
    probs, _, true = simulated(0, images=1000)
    labels = true & (rng.random(true.shape) < 0.2 + 0.7 * (probs > 0.9))  # clear cases first
    test = Evaluation([probs], labels)
    found = test.with_answers(answered(test, true, 800)).report().metrics["OR"]
    exact = classification_report(probs, true).OR
    assert found.low <= exact <= found.high
    assert found.high - found.low < 0.16


def test_plans_have_their_size_and_leave_out_what_is_known() -> None:
    probs, labels, true = simulated(0)
    test = Evaluation([probs], labels)
    first = answered(test, true, 150)
    again = test.with_answers(first).plan(150, seed=1)
    assert len(first) == len(again.rows) == 150
    asked = set(zip(first.rows, first.columns, strict=True))
    assert not asked & set(zip(again.rows, again.columns, strict=True))
    assert not labels[again.rows, again.columns].any()


def test_sampling_probabilities_are_what_they_say() -> None:
    inclusion = inclusion_probabilities(np.array([100.0, 1, 2, 3, 4]), 3)
    assert inclusion == pytest.approx([1, 0.2, 0.4, 0.6, 0.8])
    rng = np.random.default_rng(0)
    drawn = np.concatenate([systematic_sample(inclusion, rng) for _ in range(4000)])
    assert len(drawn) == 12_000
    assert np.bincount(drawn) / 4000 == pytest.approx(inclusion, abs=0.03)


def test_the_better_of_two_models_is_found() -> None:
    probs, labels, true = simulated(3, images=800)
    noise = np.random.default_rng(0).normal(0, 2.5, probs.shape)
    worse = expit(np.log(probs) - np.log1p(-probs) + noise)
    compared = Evaluation([worse, probs], labels).compare()
    exact = mean_average_precision(worse, true) - mean_average_precision(probs, true)
    found = compared.differences["mAP"]
    assert compared.first_better < 0.05
    assert found.low < exact < found.high < 0
    assert compared.answers_needed == 0


def test_equal_models_need_more_answers_than_there_are() -> None:
    probs, labels, _ = simulated(3)
    compared = Evaluation([probs, probs], labels).compare()
    assert compared.differences["mAP"].value == pytest.approx(0, abs=1e-9)
    assert compared.answers_needed in (0, None)


def test_pairs_nobody_looked_for_take_no_part() -> None:
    probs, labels, _ = simulated(0)
    targets = labels.astype(np.float64)
    targets[:200, 0] = np.nan
    shuffled = probs.copy()
    shuffled[:200, 0] = np.random.default_rng(0).permutation(shuffled[:200, 0])
    one, other = (Evaluation([each], targets).report() for each in (probs, shuffled))
    assert one.average_precision[0].value == pytest.approx(
        other.average_precision[0].value, abs=0.01
    )


def test_where_nothing_is_predicted_precision_is_zero_and_inside() -> None:
    probs, labels, _ = simulated(0, images=60)
    found = Evaluation([probs], labels, threshold=1.0).report().metrics["OP"]
    assert found.low <= 0 == found.value


def test_answers_about_pairs_that_take_no_part_change_nothing() -> None:
    probs, labels, true = simulated(0, images=100)
    targets = labels.astype(np.float64)
    targets[:50, 0] = np.nan
    test, rows = Evaluation([probs], targets), np.arange(50)
    beside = SampledAnswers(rows, 0 * rows, true[:50, 0], np.full(50, 0.5), 0 * rows)
    assert test.with_answers(beside).report().metrics == test.report().metrics


def test_a_report_of_incomplete_labels_has_intervals() -> None:
    probs, labels, true = simulated(0)
    report = classification_report(probs, labels, incomplete=True)
    exact = classification_report(probs, true)
    assert report.intervals["OF1"].low < exact.OF1 < report.intervals["OF1"].high
    assert report.intervals["OF1"].value == report.OF1
    text = str(report)
    assert "P@3" in text
    assert not exact.intervals


def test_logits_are_refused_in_words() -> None:
    _, labels, _ = simulated(0, images=20)
    with pytest.raises(ArgumentError, match=r"must be probabilities.*but got 3.0.*sigmoid"):
        Evaluation([np.full(labels.shape, 3.0)], labels)
    with pytest.raises(ArgumentError, match="answers need incomplete=True"):
        classification_report(labels, labels, answers=SampledAnswers.none())


def test_labels_without_any_are_refused_instead_of_estimated_as_zero() -> None:
    probs, labels, _ = simulated(0, images=20)
    with pytest.raises(ArgumentError, match="None of the 20 rows has a label"):
        Evaluation([probs], np.zeros_like(labels))


def test_decisions_instead_of_probabilities_are_not_taken_as_certain() -> None:
    probs, labels, true = simulated(0)
    decided = (probs > 0.5).astype(np.float64)
    found = Evaluation([decided], labels).report().metrics["mAP"]
    assert found.low < mean_average_precision(decided, true) < found.high < 0.95


def test_each_model_may_have_its_own_thresholds() -> None:
    probs, labels, _ = simulated(0, images=100)
    test = Evaluation([probs, probs], labels, thresholds=[0.5, np.full(5, 0.9)])
    assert test.report(0).predicted.sum() > test.report(1).predicted.sum()


def test_the_number_of_missing_labels_is_the_models_and_then_that_of_answers() -> None:
    probs, labels, true = simulated(0, images=800)
    test = Evaluation([probs], labels)
    assert test.missing == test.model.missing.total
    assert test.describe() == test.model.describe()
    asked = test.with_answers(answered(test, true, 600))
    truth = int(true.sum() - labels.sum())
    assert asked.missing.low <= truth <= asked.missing.high
    assert asked.missing.high - asked.missing.low < test.missing.high - test.missing.low
    assert f"{asked.missing.value:,.0f} labels are missing" in asked.describe()


def test_found_labels_rule_out_that_none_is_missing() -> None:
    rng = np.random.default_rng(0)
    probs = np.full((1500, 4), 0.1) + 0.01 * rng.random((1500, 4))
    true = rng.random(probs.shape) < 0.2
    labels = true & (rng.random(probs.shape) < 0.5)
    test = Evaluation([probs], labels)
    assert "no sign" in test.describe()
    asked = test.with_answers(answered(test, true, 1000))
    assert asked.answers.present.sum() > 50
    assert "no sign" not in asked.describe()
    assert asked.missing.low <= true.sum() - labels.sum() <= asked.missing.high


def test_two_models_are_compared_by_the_labels_and_not_by_each_other() -> None:
    """A model that is too sure must not win because its own scores say what is true."""
    right = 0
    for seed in range(6):
        probs, labels, true = simulated(seed, images=600)
        noise = np.random.default_rng(seed + 100).normal(0, 1.5, probs.shape)
        odds = np.log(probs) - np.log1p(-probs)
        worse = expit(3 * (odds + noise))
        compared = Evaluation([worse, probs], labels).compare()
        exact = mean_average_precision(worse, true) - mean_average_precision(probs, true)
        found = compared.differences["mAP"]
        assert exact < 0
        right += compared.first_better < 0.5 and found.low <= exact <= found.high
    assert right >= 5
