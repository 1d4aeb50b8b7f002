"""HilltopClassifier: what scikit-learn asks of it, and what its own labels mean."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from hilltop.integrations import HilltopClassifier
from hilltop.losses import hill
from tests.integrations.conftest import Generated, generate
from tests.sample import of_losses

Quick = partial(HilltopClassifier, epochs=2, random_state=0)
# It skips unless an environment variable was set before scipy was imported; see the slow test.
ELSEWHERE = "check_array_api_input"
CHECKS = [
    (estimator, check)
    for estimator, check in estimator_checks_generator(HilltopClassifier(epochs=2))
    if check.func.__name__ != ELSEWHERE
]


@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=[check.func.__name__ for _, check in CHECKS]
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # theirs
def test_check_of_scikit_learn(estimator: HilltopClassifier, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
def test_the_whole_of_check_estimator_passes_with_the_usual_settings() -> None:
    code = (
        "from sklearn.utils.estimator_checks import check_estimator\n"
        "from hilltop.integrations import HilltopClassifier\n"
        "checks = check_estimator(HilltopClassifier(), on_fail='warn', on_skip=None)\n"
        "print(len(checks), {check['status'] for check in checks})\n"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    count, _, statuses = done.stdout.strip().partition(" ")
    assert int(count) == len(CHECKS) + 1
    assert statuses == "{'passed'}"


def test_weights_of_one_train_the_estimates_of_role_as_fast_as_no_weights() -> None:
    data = generate(rows=40)
    plain, weighted = (
        Quick("role").fit(data.X, data.Y, sample_weight=weight) for weight in (None, np.ones(40))
    )
    assert plain.loss_.moved.detach().abs().max() > 0.01
    torch.testing.assert_close(weighted.loss_.moved, plain.loss_.moved)


@pytest.mark.parametrize("name", of_losses(("gr", "count_likelihood", "splc")))
def test_every_loss_learns_with_and_without_weights(name: str) -> None:
    data = generate(120, keep=0.7)
    for weight in (None, np.ones(120)):
        model = Quick(name).fit(data.X, data.Y, sample_weight=weight)
        chance = data.truth.mean()
        assert model.score(data.X, data.truth) > chance + 0.3


@pytest.mark.parametrize("sort", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_labels_are_the_same_as_dense_ones(small: Generated, sort: Any) -> None:
    dense = Quick().fit(small.X, small.Y)
    thin = Quick().fit(small.X, sort(small.Y))
    np.testing.assert_array_equal(thin.decision_function(small.X), dense.decision_function(small.X))
    assert thin.score(small.X, sort(small.truth)) == dense.score(small.X, small.truth)


def test_nothing_is_learned_of_a_class_that_is_unknown_everywhere(small: Generated) -> None:
    labels = small.Y.astype(float)
    labels[:, 2] = np.nan
    scores = Quick("bce").fit(small.X, labels).decision_function(small.X)
    spread = np.ptp(scores, axis=0)
    assert spread[2] == 0
    assert (np.delete(spread, 2) > 0.01).all()


def test_unknown_beats_wrong() -> None:
    data = generate(400, keep=1.0)
    lost = np.random.default_rng(1).random(data.Y.shape) < 0.8
    lost &= data.X[:, :1] > 0  # where they are lost depends on a feature, so it can be learned
    wrong, unknown = data.Y * ~lost, np.where(lost, np.nan, data.Y)
    scores = [
        HilltopClassifier("bce", epochs=5, random_state=0).fit(data.X, y).score(data.X, data.truth)
        for y in (wrong, unknown)
    ]
    assert scores[1] > scores[0] + 0.02


def test_a_weight_of_two_counts_like_the_same_row_twice_and_zero_like_none(
    small: Generated,
) -> None:
    weight = np.arange(60) % 3
    labels = small.Y.astype(float)
    labels[::7, 1] = np.nan
    for loss in ("auto", "count_likelihood", "splc", "gr"):
        weighted = Quick(loss).fit(small.X, labels, sample_weight=weight)
        repeated = Quick(loss).fit(small.X.repeat(weight, 0), labels.repeat(weight, 0))
        # The heads are the same; what their scores mean is asked of folds, which are dealt by row.
        rows = torch.from_numpy(small.X)
        torch.testing.assert_close(weighted.head_(rows), repeated.head_(rows), rtol=1e-6, atol=1e-7)


def test_the_score_is_map_over_known_labels_and_knows_weights(small: Generated) -> None:
    model = Quick().fit(small.X, small.Y)
    truth, weight = small.truth.astype(float), np.arange(60) % 3
    truth[::5, 1] = np.nan
    truth[:, 3] = 0  # nothing to find
    scores = model.predict_proba(small.X)
    for given in (None, weight):
        precisions = [
            average_precision_score(
                truth[known, c],
                scores[known, c],
                sample_weight=None if given is None else given[known],
            )
            for c in (0, 1, 2, 4, 5)
            for known in [~np.isnan(truth[:, c])]
        ]
        ours = model.score(small.X, truth, sample_weight=given)
        assert ours == pytest.approx(np.mean(precisions))


def test_auto_believes_in_missing_labels_only_where_labels_can_be_missing(
    small: Generated,
) -> None:
    several, one = small.truth, np.eye(6, dtype=int)[np.arange(60) % 6]
    few = Quick().fit(small.X, several)
    assert few.loss_.correction is None
    assert "60 rows are too few" in few.loss_.describe()
    rng = np.random.default_rng(0)
    features = rng.standard_normal((600, 8)).astype(np.float32)
    true = features @ rng.standard_normal((8, 6)) > 1
    thin = HilltopClassifier(random_state=0).fit(features, true & (rng.random(true.shape) < 0.4))
    assert thin.loss_.correction is not None
    assert "of the true labels were recorded" in thin.loss_.describe()
    whole = HilltopClassifier(random_state=0).fit(features, true.astype(int))
    assert whole.loss_.correction is None
    complete = Quick(unlisted="absent").fit(small.X, several)
    column = Quick().fit(small.X, one.argmax(axis=1))
    plain = Quick("bce").fit(small.X, several)
    rows = torch.from_numpy(small.X)
    torch.testing.assert_close(complete.head_(rows), plain.head_(rows), rtol=1e-9, atol=0)
    assert type(column.loss_) is type(plain.loss_)


def test_every_loss_finds_the_missing_labels_though_scores_of_cross_entropy_are_low() -> None:
    data = generate(500, keep=0.4)
    models = [
        Quick(loss, epochs=20, weight_decay=0.1).fit(data.X, data.Y)
        for loss in ("scar_likelihood", "bce")
    ]
    missing = data.truth == 1
    low = [(model.head_(torch.from_numpy(data.X)) > 0).numpy()[missing].mean() for model in models]
    assert low[0] > low[1] + 0.2
    for model in models:
        assert model.predict(data.X)[missing].mean() > 0.8
        assert model.predict(data.X)[~missing].mean() < 0.2


def test_zeros_that_a_person_confirmed_are_not_corrected(small: Generated) -> None:
    unknown, absent = (
        Quick("scar_likelihood", unlisted=unlisted).fit(small.X, small.Y)
        for unlisted in ("unknown", "absent")
    )
    assert absent.predict_proba(small.X).mean() < unknown.predict_proba(small.X).mean() - 0.1


def test_early_stopping_keeps_the_best_epoch_and_stops_soon_after() -> None:
    data = generate(200)
    model = HilltopClassifier(
        "bce", epochs=20, early_stopping=True, validation_fraction=0.25, n_iter_no_change=3,
        learning_rate=0.1, random_state=0,
    )  # fmt: skip
    model.fit(data.X, data.Y)
    scores = model.validation_scores_
    best = int(np.argmax(scores))
    assert model.n_iter_ == len(scores) == best + 1 + 3 < 20
    again = clone(model).set_params(n_iter_no_change=40).fit(data.X, data.Y)
    assert again.validation_scores_[: len(scores)] == scores
    assert len(again.validation_scores_) == 20


def test_the_head_that_early_stopping_returns_is_that_of_the_best_epoch() -> None:
    data = generate(200)
    model = HilltopClassifier(
        "bce", early_stopping=True, n_iter_no_change=1, learning_rate=0.3, random_state=3
    )
    model.fit(data.X, data.Y)
    from hilltop.integrations.held_out import set_aside

    _, aside = set_aside(200, 0.1, seed=3)
    best = max(model.validation_scores_)
    assert model.validation_scores_[-1] < best
    assert model.score(data.X[aside], data.Y[aside]) == pytest.approx(best)


def test_a_search_over_losses_in_a_pipeline_with_unknown_labels() -> None:
    data = generate(120)
    labels = data.Y.astype(float)
    labels[::9, 0] = np.nan
    pipeline = make_pipeline(StandardScaler(), Quick())
    folds = KFold(3)
    search = GridSearchCV(pipeline, {"hilltopclassifier__loss": ["bce", "hill"]}, cv=folds)
    search.fit(data.X, labels)
    means = search.cv_results_["mean_test_score"]
    assert search.best_score_ == means.max()
    chosen = clone(search.best_estimator_)
    by_hand = [
        chosen.fit(data.X[learn], labels[learn]).score(data.X[judge], labels[judge])
        for learn, judge in folds.split(data.X)
    ]
    assert search.best_score_ == pytest.approx(np.mean(by_hand))
    out_of_fold = cross_val_predict(pipeline, data.X, data.Y, cv=3, method="predict_proba")
    assert out_of_fold.shape == data.Y.shape


@pytest.mark.parametrize("hidden", [None, 5])
def test_a_number_makes_it_repeatable_and_pickling_keeps_it(
    small: Generated, hidden: int | None
) -> None:
    model = Quick(hidden=hidden).fit(small.X, small.Y)
    expected = model.decision_function(small.X)
    again = Quick(hidden=hidden).fit(small.X, small.Y)
    np.testing.assert_array_equal(again.decision_function(small.X), expected)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.decision_function(small.X), expected)
    other = Quick(hidden=5).set_params(random_state=1).fit(small.X, small.Y)
    assert np.abs(other.decision_function(small.X) - expected).max() > 1e-6


def test_float32_features_are_computed_with_in_float32_and_half_precision_too(
    small: Generated,
) -> None:
    exact = Quick().fit(small.X, small.Y).predict_proba(small.X)
    assert exact.dtype == np.float64
    # Adam makes much of roundings in its first steps; how much depends on the processor.
    for dtype, tolerance in ((np.float32, 1e-3), (np.float16, 1e-2)):
        narrow = Quick().fit(small.X.astype(dtype), small.Y).predict_proba(small.X.astype(dtype))
        assert narrow.dtype == np.float32
        np.testing.assert_allclose(narrow, exact, atol=tolerance)


def test_a_loss_that_lifts_all_scores_predicts_at_its_own_threshold(small: Generated) -> None:
    model = Quick("role").fit(small.X[:19], small.Y[:19])  # too few to be calibrated
    assert model.threshold_ > 0.5
    above = model.predict_proba(small.X) > model.threshold_
    np.testing.assert_array_equal(model.predict(small.X), above)
    np.testing.assert_array_equal(model.decision_function(small.X) > 0, above)


def test_a_loss_may_be_given_as_it_is(small: Generated) -> None:
    named = Quick("hill", loss_options={"margin": 0.5}).fit(small.X, small.Y)
    criterion = hill(margin=0.5)
    given = Quick(criterion).fit(small.X, small.Y)
    np.testing.assert_array_equal(
        given.decision_function(small.X), named.decision_function(small.X)
    )
    assert criterion.reduction == "mean"  # a copy was trained with


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_features_give_what_dense_ones_give(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((150, 40)) * (rng.random((150, 40)) < 0.1)).astype(dtype)  # noqa: N806
    Y = (X[:, :3] > 0).astype(int)  # noqa: N806
    weight = np.where(np.arange(150) % 7, 1.0, 0.0)
    options = {"random_state": 0, "epochs": 2, "early_stopping": True}
    dense = HilltopClassifier(**options).fit(X, Y, sample_weight=weight)
    thin = HilltopClassifier(**options).fit(sparse.csr_matrix(X), Y, sample_weight=weight)
    np.testing.assert_array_equal(
        thin.predict_proba(sparse.csr_matrix(X)), dense.predict_proba(X), strict=True
    )
