"""Some of the images instead of all: how far off their metrics are."""

from __future__ import annotations

import numpy as np
import pytest

from hilltop.calibration.intervals import Z_90
from hilltop.metrics import classification_report
from hilltop.metrics.incomplete import IncompleteTest, MetricEstimate
from hilltop.metrics.incomplete.ranked_column import RankedColumn
from hilltop.metrics.incomplete.row_sample import (
    average_precision_influence,
    row_errors,
    widened,
)
from tests.metrics.incomplete.made_up import simulated


def test_influence_is_what_one_more_image_like_it_changes() -> None:
    rng = np.random.default_rng(0)
    scores, times = rng.random(300), 20  # so many copies, that one more is a small change
    probs = rng.random(300) ** 3
    many, chances = np.repeat(scores, times), np.repeat(probs, times)
    before = RankedColumn(many).average_precision(chances[None])[0]
    influence = average_precision_influence(many + 1e-9 * np.arange(len(many)), chances)
    for at in (3, 100, 250):
        more = RankedColumn(np.append(many, scores[at] + 1e-6))
        moved = more.average_precision(np.append(chances, probs[at])[None])[0] - before
        mine = influence[at * times : (at + 1) * times].mean()
        assert moved == pytest.approx(mine, abs=0.1 * np.abs(influence).max())
    assert np.abs(influence.sum()) < 0.05 * np.abs(influence).sum()


def test_errors_are_those_of_drawing_rows() -> None:
    probs, _, true = simulated(0, images=4000)
    everything = classification_report(probs, true).as_dict()
    off = {name: [] for name in ("mAP", "CF1", "OF1")}
    for seed in range(60):
        rows = np.random.default_rng(seed).permutation(4000)[:400]
        found = classification_report(probs[rows], true[rows]).as_dict()
        for name, one in off.items():
            one.append(found[name] - everything[name])
    known = 1.0 * true[:400]
    test = IncompleteTest([probs[:400]], known, observed=np.ones(known.shape, dtype=bool))
    expected = row_errors(test, images=4000)
    for name, one in off.items():
        assert 0.7 < expected[name] / np.std(one) < 1.4
    assert row_errors(test, images=400) == dict.fromkeys(off, 0.0)


def test_intervals_become_wider_by_the_error_and_keep_their_middle() -> None:
    found = MetricEstimate(0.6, 0.55, 0.64)
    same, wide = widened(found, 0.0), widened(found, 0.1)
    assert (same.low, same.high) == pytest.approx((0.55, 0.64))
    assert wide.estimate == 0.6
    assert 0.6 - wide.low == pytest.approx(np.hypot(0.05, 0.1 * Z_90), abs=0.02)
    assert wide.high < 1
