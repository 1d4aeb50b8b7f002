"""HilltopClassifier decides by the probability of truth, from incomplete labels alone."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from hilltop.integrations import HilltopClassifier
from tests.integrations.conftest import generate

Quick = partial(HilltopClassifier, epochs=2, random_state=0)


def test_it_decides_by_the_probability_of_truth_from_incomplete_labels() -> None:
    data = generate(600, keep=0.4)
    model = HilltopClassifier("bce", random_state=0).fit(data.X[:400], data.Y[:400])
    probs, said = model.predict_proba(data.X[400:]), model.predict(data.X[400:])
    truth = data.truth[400:]
    assert probs.mean() == pytest.approx(truth.mean(), abs=0.08)
    assert truth.mean() > 2 * data.Y.mean()
    np.testing.assert_array_equal(said, probs > model.decision_.thresholds)
    hits = (said * truth).sum()
    f1 = 2 * hits / (said.sum() + truth.sum())
    expected = model.decision_.expected.f1
    assert f1 > 0.75
    assert expected.low < f1 < expected.high


@pytest.mark.parametrize("hidden", [None, 8])
def test_rows_with_weights_are_decided_as_well_as_without(hidden: int | None) -> None:
    data = generate(600, keep=0.4)
    weight = np.random.default_rng(0).random(400) + 0.05
    model = HilltopClassifier("bce", random_state=0, hidden=hidden)
    tags = []
    for given in (None, weight):
        model.fit(data.X[:400], data.Y[:400], sample_weight=given)
        tags.append(model.predict(data.X[400:]))
        assert model.decision_.expected.tags == pytest.approx(tags[-1].sum(axis=1).mean(), rel=0.2)
    assert tags[1].mean() == pytest.approx(tags[0].mean(), rel=0.2)


def test_a_hidden_layer_decides_too() -> None:
    data = generate(200, keep=0.5)
    assert Quick("hill", hidden=8).fit(data.X, data.Y).decision_ is not None


def test_twenty_rows_are_enough_for_thresholds_of_their_own_and_fewer_are_not() -> None:
    data = generate(60, keep=0.5)
    few, enough = (Quick("bce").fit(data.X[:rows], data.Y[:rows]) for rows in (19, 20))
    assert few.missing_ is None
    assert enough.missing_ is not None
    # Cut at one half, a model of so few of the labels says next to nothing.
    assert enough.predict(data.X).sum() > few.predict(data.X).sum()
    np.testing.assert_array_equal(few.predict(data.X), few.predict_proba(data.X) > few.threshold_)
