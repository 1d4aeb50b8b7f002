"""Metrics against scikit-learn, against definitions, and on numbers worked by hand."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import sklearn.metrics
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hilltop.errors import ArgumentError
from hilltop.metrics import (
    EmptyClassWarning,
    average_precision,
    classification_report,
    fit_thresholds,
    mean_average_precision,
)

Array = npt.NDArray[Any]


def random_case(
    images: int = 200, classes: int = 19, *, seed: int = 0, levels: int | None = None
) -> tuple[Array, Array]:
    """Scores that know something about the targets; with few levels, full of ties."""
    rng = np.random.default_rng(seed)
    targets = rng.random((images, classes)) < 0.2
    targets[0] = True  # every class has a positive
    scores = rng.random((images, classes)) * 0.7 + 0.3 * targets
    if levels:
        scores = np.round(scores * levels) / levels
    return scores.astype(np.float32), targets.astype(np.int64)


@pytest.mark.parametrize("levels", [None, 4])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_average_precision_is_that_of_scikit_learn_with_ties(
    dtype: type, levels: int | None
) -> None:
    scores, targets = random_case(levels=levels)
    scores = scores.astype(dtype)
    expected = sklearn.metrics.average_precision_score(
        targets, scores.astype(np.float64), average=None
    )
    np.testing.assert_allclose(average_precision(scores, targets), expected, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1e30]), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_average_precision_of_any_short_list(pairs: list[tuple[float, bool]]) -> None:
    scores, targets = (np.array(column).reshape(-1, 1) for column in zip(*pairs, strict=True))
    (actual,) = average_precision(scores, targets)
    if not targets.any():
        assert np.isnan(actual)
    else:
        expected = sklearn.metrics.average_precision_score(targets[:, 0], scores[:, 0])
        assert actual == pytest.approx(expected, abs=1e-9)


def test_large_input_runs_in_threads_and_gives_the_same() -> None:
    scores, targets = random_case(6000, 40)
    together = average_precision(scores, targets)
    alone = [average_precision(scores[:, [c]], targets[:, [c]])[0] for c in range(40)]
    np.testing.assert_array_equal(together, alone)


def test_tensors_of_any_dtype_are_taken_where_they_are() -> None:
    scores, targets = random_case(levels=16)  # exact in bfloat16
    expected = average_precision(scores, targets)
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        tensor = torch.tensor(scores).to(dtype).requires_grad_()
        np.testing.assert_allclose(
            average_precision(tensor, torch.tensor(targets).bool()), expected, atol=1e-9
        )


def test_inputs_are_not_changed() -> None:
    scores, targets = random_case()
    for order in ("C", "F"):
        given_scores = np.array(scores, order=order)
        average_precision(given_scores, targets)
        np.testing.assert_array_equal(given_scores, scores)


def test_unknown_entries_are_left_out_everywhere() -> None:
    scores, targets = random_case()
    rng = np.random.default_rng(1)
    known = rng.random(targets.shape) < 0.6
    holes = np.where(known, targets, np.nan)
    garbage = np.where(known, targets, 1 - targets)
    by_nan = classification_report(scores, holes)
    by_mask = classification_report(scores, garbage, known=known)
    assert by_nan.as_dict() == by_mask.as_dict()
    expected = [
        sklearn.metrics.average_precision_score(
            targets[known[:, c], c], scores[known[:, c], c].astype(np.float64)
        )
        for c in range(targets.shape[1])
    ]
    np.testing.assert_allclose(by_nan.per_class.average_precision, expected, atol=1e-9)
    np.testing.assert_allclose(average_precision(scores, holes), expected, atol=1e-9)
    assert (
        pytest.approx(sklearn.metrics.precision_score(targets[known], scores[known] > 0.5))
        == by_nan.OP
    )
    np.testing.assert_array_equal(
        fit_thresholds(scores, holes), fit_thresholds(scores, garbage, known=known)
    )


def test_report_agrees_with_scikit_learn() -> None:
    scores, targets = random_case()
    report = classification_report(scores, targets)
    predicted = scores > 0.5
    for average, names in {"macro": ("CP", "CR", "CF1"), "micro": ("OP", "OR", "OF1")}.items():
        expected = sklearn.metrics.precision_recall_fscore_support(
            targets, predicted, average=average, zero_division=0
        )
        assert [getattr(report, name) for name in names] == pytest.approx(list(expected[:3]))


def test_the_two_kinds_of_cf1_by_hand() -> None:
    # Class 0: P = 1, R = 1/2, F1 = 2/3. Class 1: P = 1/2, R = 1, F1 = 2/3.
    targets = [[1, 1], [1, 0]]
    scores = [[0.9, 0.9], [0.1, 0.9]]
    assert pytest.approx(2 / 3) == classification_report(scores, targets).CF1
    assert pytest.approx(3 / 4) == classification_report(scores, targets, cf1="harmonic").CF1


def test_nothing_predicted_has_precision_zero() -> None:
    report = classification_report([[0.1], [0.2]], [[1], [0]])
    assert (report.CP, report.CF1, report.OP, report.OF1) == (0, 0, 0, 0)


def test_classes_without_positives_are_skipped_and_named_or_count_as_zero() -> None:
    scores, targets = [[0.9, 0.4], [0.1, 0.6]], [[1, 0], [0, 0]]
    names = ["cat", "dog"]
    report = classification_report(scores, targets, class_names=names)
    assert report.empty_classes == ("dog",)
    assert (report.mAP, report.CP, report.CR) == (1, 1, 1)
    assert pytest.approx(0.5) == report.OP, "its false alarms still count over all entries"
    assert "classes without positives: dog" in str(report)
    zero = classification_report(scores, targets, empty="zero")
    assert (zero.mAP, zero.CP) == (0.5, 0.5)
    with pytest.warns(EmptyClassWarning, match="1 of 2 classes has no positive .*: dog. Pass"):
        assert mean_average_precision(scores, targets, class_names=names) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mean_average_precision(scores, targets, empty="zero") == 0.5


def test_thresholds_may_differ_by_class_and_are_strict() -> None:
    scores, targets = np.full((1, 2), 0.5), np.ones((1, 2))
    assert classification_report(scores, targets).per_class.predicted.tolist() == [0, 0]
    report = classification_report(scores, targets, [0.4, 0.6])
    assert report.per_class.predicted.tolist() == [1, 0]


def f1_at(threshold: float, scores: Array, targets: Array) -> float:
    return float(sklearn.metrics.f1_score(targets, scores > threshold, zero_division=0))


@pytest.mark.parametrize("levels", [None, 5])
def test_fitted_thresholds_have_the_best_f1_of_all(levels: int | None) -> None:
    scores, targets = random_case(60, 6, levels=levels)
    for c, threshold in enumerate(fit_thresholds(scores, targets)):
        best = max(f1_at(t, scores[:, c], targets[:, c]) for t in [-1.0, *scores[:, c]])
        assert f1_at(threshold, scores[:, c], targets[:, c]) == pytest.approx(best)


def test_fitted_thresholds_reach_the_wanted_precision_with_most_recall() -> None:
    scores, targets = random_case(120, 8)
    fitted = fit_thresholds(scores, targets, precision=0.6)
    for c, threshold in enumerate(fitted):
        allowed = [
            t
            for t in scores[:, c]
            if sklearn.metrics.precision_score(targets[:, c], scores[:, c] >= t) >= 0.6
        ]
        if not allowed:
            assert threshold == np.inf
            continue
        assert (scores[:, c] > threshold).sum() == (scores[:, c] >= min(allowed)).sum()
    assert np.isfinite(fitted).any()


def test_thresholds_at_the_edges() -> None:
    assert fit_thresholds([[0.3]], [[0]]).tolist() == [0.5], "nothing learnt"
    assert fit_thresholds([[0.1], [0.9]], [[1], [0]], precision=0.9).tolist() == [np.inf]
    close = np.nextafter(0.5, 1)
    (threshold,) = fit_thresholds([[close], [0.5]], [[1], [0]])
    assert 0.5 <= threshold < close, "between neighbouring numbers"
    (all_positive,) = fit_thresholds([[0.2], [0.2]], [[1], [1]])
    assert all_positive < 0.2


@pytest.mark.parametrize(
    ("scores", "targets", "message"),
    [
        ([0.5], [1], r"scores must have two dimensions, images and classes, but got the shape"),
        ([[0.5]], [[1, 0]], r"targets must have the shape of scores \(1, 1\)"),
        ([[0.5]], [[-1]], r"Class '0': .* got -1.0. If -1 means absent, use 0"),
        ([[0.5]], [[0.3]], r"metrics need targets of 0, 1 or NaN, but got 0.3"),
        ([[float("nan")]], [[1]], r"Class '0': scores contain NaN"),
    ],
)
def test_wrong_input_is_an_error_in_words(scores: Any, targets: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        classification_report(scores, targets)


def test_options_out_of_range() -> None:
    with pytest.raises(ArgumentError, match="threshold must be one number or one for each of 1"):
        classification_report([[0.5]], [[1]], [0.1, 0.2])
    with pytest.raises(ArgumentError, match=r"cf1 must be one of 'mean', 'harmonic'"):
        classification_report([[0.5]], [[1]], cf1="median")
    with pytest.raises(ArgumentError, match="precision must be greater than 0 and at most 1"):
        fit_thresholds([[0.5]], [[1]], precision=0)
    with pytest.raises(ArgumentError, match="one name for each of 1 classes, but got 2"):
        classification_report([[0.5]], [[1]], class_names=["a", "b"])


def test_class_means_leave_out_classes_without_positives_but_not_their_false_alarms() -> None:
    # Class 1 has no positives and one false alarm: CF1 is that of class 0 alone.
    report = classification_report([[0.9, 0.9], [0.1, 0.2]], [[1, 0], [0, 0]])
    assert (report.CP, report.CR, report.CF1) == (1, 1, 1)
    assert classification_report([[0.9, 0.9]], [[1, 0]], empty="zero").CF1 == 0.5


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_threshold_that_predicts_everything_works_in_the_dtype_of_the_scores(dtype: type) -> None:
    scores = np.full((4, 1), 0.3, dtype=dtype)
    (threshold,) = fit_thresholds(scores, [[1], [1], [1], [0]])
    assert (scores > dtype(threshold)).all()


def test_large_whole_numbers_as_scores_keep_their_order() -> None:
    scores = np.array([[2**40], [2**40 + 1], [2**40 + 2]])
    assert average_precision(scores, [[1], [0], [0]]).tolist() == [1 / 3]


def test_memory_beyond_the_scores_stays_below_half_of_them() -> None:
    import tracemalloc

    scores, targets = random_case(20_000, 64)
    tracemalloc.start()
    try:
        average_precision(scores, targets)  # int64 targets, twice as large as the scores
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * scores.nbytes
