"""How labels were lost, found from scores: none, SCAR, by count, by class; and what follows."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit

from hilltop.errors import ArgumentError
from hilltop.missing import Interval, MissingCounts, MissingLabelModel
from hilltop.missing.logistic import Floats


def drawn(rows: int = 3000, classes: int = 8, *, seed: int = 0) -> tuple[Floats, Floats]:
    """Clear scores and true labels."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-2, 4, (rows, classes))
    return logits, (rng.random(logits.shape) < expit(logits)).astype(float)


def lose(true: Floats, frequency: float | Floats, *, seed: int = 1) -> Floats:
    return true * (np.random.default_rng(seed).random(true.shape) < frequency)


def one_label_each(logits: Floats, true: Floats) -> tuple[Floats, Floats, Floats]:
    """Scores, true labels and one of these, of images that have any."""
    rng = np.random.default_rng(2)
    some = true.any(axis=1)
    logits, true = logits[some], true[some]
    one = np.zeros_like(true)
    one[np.arange(len(true)), (true * rng.random(true.shape)).argmax(axis=1)] = 1
    return logits, true, one


def test_complete_labels_show_no_sign_of_missing_ones() -> None:
    model = MissingLabelModel.fit(*drawn())
    assert model.kind == "none"
    assert model.missing.total.value == model.missing.total.low == 0 < model.missing.total.high
    assert "no sign that any is missing" in model.describe()


@pytest.mark.parametrize("frequency", [0.3, 0.6])
def test_labels_that_were_lost_at_random_are_counted(frequency: float) -> None:
    logits, true = drawn()
    labels = lose(true, frequency)
    model = MissingLabelModel.fit(logits, labels)
    assert model.kind == "scar"
    assert model.missing.frequency.value == pytest.approx(frequency, abs=0.12)
    total = model.missing.total
    assert total.low < (true - labels).sum() < total.high
    assert f"About {total.value:,.0f} labels are missing" in model.describe()


def test_scores_may_be_stretched_and_shifted() -> None:
    logits, true = drawn()
    labels = lose(true, 0.4)
    for factor in (0.4, 5.0):
        model = MissingLabelModel.fit(factor * logits + np.linspace(-1, 1, 8), labels)
        assert model.missing.frequency.value == pytest.approx(0.4, abs=0.12)


@pytest.mark.parametrize("classes", [4, 400])
def test_many_labels_do_not_hide_that_some_are_missing(classes: int) -> None:
    logits, true = drawn(20_000 // classes * 40, classes)
    model = MissingLabelModel.fit(logits, lose(true, 0.4))
    assert model.missing.frequency.value == pytest.approx(0.4, abs=0.15)


def test_values_of_classes_add_up_to_the_total_and_lie_in_their_intervals() -> None:
    logits, true = drawn()
    missing = MissingLabelModel.fit(logits, lose(true, np.linspace(0.3, 0.9, 8))).missing
    value, low, high = missing.by_class
    assert value.sum() == pytest.approx(missing.total.value)
    assert ((low <= value) & (value <= high)).all()
    assert missing.of_class(2).value == value[2]


def test_probabilities_of_candidates_add_up_to_the_total() -> None:
    logits, true = drawn()
    for labels in (lose(true, 0.5), one_label_each(logits, true)[2][:500]):
        scores = logits[: len(labels)]
        model = MissingLabelModel.fit(scores, labels)
        open_probs = model.prob_present(scores, labels)[labels == 0]
        assert open_probs.sum() == pytest.approx(model.missing.total.value, rel=0.01)


def test_probabilities_tell_missing_labels_from_absent_ones() -> None:
    logits, true = drawn()
    labels = lose(true, 0.5)
    verified = (true == 0) & (np.random.default_rng(0).random(true.shape) < 0.3)
    labels[:5, 0] = np.nan
    model = MissingLabelModel.fit(logits, labels)
    present = model.prob_present(logits, labels, verified=verified)
    missing, absent = (true == 1) & (labels == 0), (true == 0) & (labels == 0) & ~verified
    assert present[missing].mean() > 0.6 > 0.25 > present[absent].mean()
    assert (present[labels == 1] == 1).all()
    assert (present[verified & (labels == 0)] == 0).all()
    assert present[:5, 0] == pytest.approx(model.probs(logits)[:5, 0])


def test_certain_scores_keep_their_order_whatever_their_class() -> None:
    """A class shift follows from uncertain entries; it must not reorder the certain ones."""
    rng = np.random.default_rng(0)
    logits = rng.normal(-3, 3, (4000, 6))
    logits[:, 0] += 2.0  # a class whose scores are too high throughout
    true = (rng.random(logits.shape) < expit(logits - [2, 0, 0, 0, 0, 0])).astype(float)
    labels = lose(true, 0.5)
    model = MissingLabelModel.fit(logits, labels)
    present, open_entries = model.prob_present(logits, labels), labels == 0
    surest = open_entries & (logits > 6)
    order = np.argsort(-present[surest], kind="stable")
    assert np.corrcoef(np.argsort(order), -logits[surest])[0, 1] > 0.8
    unsure = open_entries & (logits > -1) & (logits < 1)
    assert present[:, 0][unsure[:, 0]].mean() < present[:, 1:][unsure[:, 1:]].mean()


def test_a_rule_that_keeps_one_label_is_told_from_things_that_have_one() -> None:
    logits, true, one = one_label_each(*drawn(classes=6))
    model = MissingLabelModel.fit(logits, one)
    assert (model.kind, model.ratio) == ("count", "1")
    assert model.missing.total.low <= true.sum() - one.sum() <= model.missing.total.high
    rng = np.random.default_rng(2)
    single = np.eye(6)[rng.integers(6, size=2000)]
    clear = 8 * single - 4 + rng.normal(size=single.shape)
    assert MissingLabelModel.fit(clear, single).kind == "none"


def test_images_without_labels_hardly_change_a_count() -> None:
    logits, _, one = one_label_each(*drawn(1500, 6))
    few = MissingLabelModel.fit(logits, one)
    empty = np.concatenate([one, np.zeros((20, 6))])
    more = MissingLabelModel.fit(np.concatenate([logits, logits[:20]]), empty)
    assert few.kind == more.kind == "count"
    assert more.missing.total.value == pytest.approx(few.missing.total.value, rel=0.15)


def test_many_images_without_labels_are_evidence_against_a_count() -> None:
    logits, true = drawn(classes=6)
    assert MissingLabelModel.fit(logits, lose(true, 0.2)).kind == "scar"


def test_entries_that_nobody_was_asked_about_take_no_part() -> None:
    logits, true = drawn()
    labels = lose(true, 0.5)
    labels[np.random.default_rng(3).random(labels.shape) < 0.3] = np.nan
    model = MissingLabelModel.fit(logits, labels)
    assert model.missing.frequency.value == pytest.approx(0.5, abs=0.12)
    assert model.missing.labelled.sum() == (labels == 1).sum()


def test_where_every_entry_is_verified_none_can_be_missing() -> None:
    logits, true = drawn(1000)
    model = MissingLabelModel.fit(logits, true, verified=true == 0)
    assert model.kind == "complete"
    assert model.missing.total.high == 0
    assert "no label is missing" in model.describe()
    assert np.abs(model.probs(logits) - expit(logits)).mean() < 0.02


def test_answers_to_a_random_sample_outvote_scores_that_show_nothing() -> None:
    """Scores without information say that none is missing; found labels say how many are."""
    rng = np.random.default_rng(0)
    logits = 0.05 * rng.normal(size=(4000, 4)) - 2
    true = (rng.random(logits.shape) < 0.2).astype(float)
    labels = lose(true, 0.5)
    assert MissingLabelModel.fit(logits, labels).kind == "none"
    asked = (labels == 0) & (rng.random(true.shape) < 0.1)
    now = np.where(asked, true, labels)
    model = MissingLabelModel.fit(
        logits, now, verified=asked & (now == 0), restored=asked & (now == 1)
    )
    assert model.kind == "scar"
    assert model.missing.total.low <= (true - labels).sum() <= model.missing.total.high
    assert model.missing.total.value == pytest.approx((true - labels).sum(), rel=0.3)


def test_a_known_frequency_or_rule_is_taken_as_it_is() -> None:
    logits, true, one = one_label_each(*drawn(classes=6))
    known = MissingLabelModel.fit(logits, lose(true, 0.5), label_frequency=0.5)
    assert known.missing.frequency.value == pytest.approx(0.5, abs=0.03)
    assert MissingLabelModel.fit(logits, one, count_ratio="1").ratio == "1"
    with pytest.raises(ArgumentError, match="label_frequency must lie in"):
        MissingLabelModel.fit(logits, one, label_frequency=1.5)


def test_probabilities_are_those_of_truth_not_of_being_recorded() -> None:
    logits, true = drawn()
    labels = lose(true, 0.5)
    probs = MissingLabelModel.fit(logits, labels).probs(logits)
    assert probs.mean() == pytest.approx(true.mean(), rel=0.12)
    assert np.abs(probs - expit(logits)).mean() < 0.03


def test_scores_of_another_classifier_are_calibrated_to_the_same_truth() -> None:
    logits, true = drawn()
    labels = lose(true, 0.5)
    model = MissingLabelModel.fit(logits, labels)
    other = 0.25 * logits + 2
    calibrated = model.for_scores(other, logits, labels)
    assert calibrated.missing is model.missing
    assert calibrated.describe() == model.describe()
    assert np.abs(calibrated.probs(other) - model.probs(logits)).mean() < 0.03


def test_what_is_stored_says_and_decides_the_same() -> None:
    logits, true = drawn(1000)
    model = MissingLabelModel.fit(logits, lose(true, 0.5))
    again = MissingLabelModel.from_tensors(model.tensors(), model.note())
    assert again.describe() == model.describe()
    assert np.array_equal(again.thresholds().thresholds, model.thresholds().thresholds)
    tensor = torch.from_numpy(logits)
    assert torch.allclose(again.probs(tensor), torch.from_numpy(model.probs(logits)))
    assert pickle.loads(pickle.dumps(model)).describe() == model.describe()


def test_one_label_each_is_mentioned() -> None:
    rng = np.random.default_rng(0)
    one = np.eye(5)[rng.integers(5, size=600)]
    told = MissingLabelModel.fit(8 * one - 4 + rng.normal(size=one.shape), one).describe()
    assert "100% of the images have exactly one label" in told


def test_intervals_cover_by_class_and_in_total_and_are_not_idle() -> None:
    covered, totals, width = [], [], []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        logits = rng.normal(-3, 3, (1500, 10))
        true = (rng.random(logits.shape) < expit(logits)).astype(float)
        # Classes and sets differ, as they do for people.
        log_frequency = -0.8 + 0.25 * rng.normal() + 0.15 * rng.normal(size=10)
        labels = true * (rng.random(true.shape) < np.exp(np.minimum(log_frequency, 0)))
        missing = MissingLabelModel.fit(logits / 2 + 1, labels).missing
        truth = (true - labels).sum(axis=0)
        covered += ((missing.by_class[1] <= truth) & (truth <= missing.by_class[2])).tolist()
        totals.append(missing.total.low <= truth.sum() <= missing.total.high)
        width.append((missing.total.high - missing.total.low) / labels.sum())
    assert np.mean(covered) >= 0.85
    assert sum(totals) >= 14
    assert np.median(width) < 2.5


def test_shapes_that_do_not_fit_are_told() -> None:
    with pytest.raises(ArgumentError, match=r"same shape \(N, C\)"):
        MissingLabelModel.fit(np.zeros((3, 2)), np.zeros((3, 3)))


def test_a_data_frame_of_classes_keeps_their_names() -> None:
    pytest.importorskip("pandas")
    logits, true = drawn(500, 2)
    frame = MissingLabelModel.fit(logits, lose(true, 0.5)).to_pandas(["cat", "dog"])
    assert frame.index.tolist() == ["cat", "dog"]
    assert {"labelled", "missing", "low", "high", "label_frequency"} == set(frame.columns)


def test_what_a_review_put_back_is_no_longer_missing() -> None:
    logits, true = drawn()
    labels = lose(true, 0.5)
    asked = np.random.default_rng(3).random(true.shape) < 0.2
    now = np.where(asked, true, labels)
    restored = asked & (true == 1) & (labels == 0)
    model = MissingLabelModel.fit(logits, now, verified=asked, restored=restored)
    assert model.lost is not None
    still = (true - now).sum()
    assert model.missing.total.low < still < model.missing.total.high
    assert model.missing.labelled.sum() == now.sum()
    put_back = model.lost.total.value - model.missing.total.value
    assert put_back == pytest.approx(restored.sum())
    assert model.missing.by_class[0].sum() == pytest.approx(model.missing.total.value)


def test_no_more_are_missing_than_entries_are_open() -> None:
    model = MissingLabelModel.fit(*drawn())
    ends = np.full((3, 8), 6.0)
    lost = MissingCounts(Interval(48.0, 48.0, 48.0), ends, np.full(8, 5.0))
    pairs = np.array([2.0, *[50.0] * 7])
    left = replace(model, missing=lost).after_review(np.ones(8), np.full(8, 6.0), pairs).missing
    assert left.total == Interval(40.0, 40.0, 40.0)
    assert (left.by_class <= pairs).all()


def test_a_model_that_was_kept_ranks_entries_as_before() -> None:
    logits, true = drawn()
    model = MissingLabelModel.fit(logits, lose(true, 0.5))
    again = MissingLabelModel.from_tensors(model.tensors(), model.note())
    labels = lose(true, 0.5)
    before, after = (one.prob_present(logits, labels) for one in (model, again))
    assert np.array_equal(before, after)
    assert again.describe() == model.describe()
