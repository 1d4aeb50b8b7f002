"""How far metrics of some images are off those of all images that they were taken from."""

from __future__ import annotations

import numpy as np

from hilltop.calibration.intervals import Z_90
from hilltop.metrics.arrays import Floats
from hilltop.metrics.incomplete.estimation import IncompleteTest
from hilltop.metrics.incomplete.moments import MetricEstimate

_EDGE = 1e-4


def row_errors(test: IncompleteTest, *, images: int) -> dict[str, float]:
    r"""Standard errors of mAP, CF1 and OF1 of the first model.

    .. math:: (1 - n / N) \sum_i (\partial M / \partial w_i)^2

    w is how often an image counts; its derivative is what the image moves the metric by.

    Args:
        test: With n of the images.
        images: Number N of all of them.
    """
    model, truth = test.models[0], test.truth
    rows, classes = truth.odds.shape
    precision, f1, counted = np.zeros(rows), np.zeros(rows), 0
    hits, decided = np.zeros(rows), np.zeros(rows)
    for column in range(classes):
        probs = np.nan_to_num(truth.probs(column))
        predicted = model.predicted[:, column]
        both, either = probs * predicted, probs + predicted
        hits, decided = hits + both, decided + either
        if probs.sum() > 0:
            counted += 1
            precision += average_precision_influence(model.scores[:, column], probs)
            f1 += _ratio_influence(2 * both, either)
    left = max(0.0, 1 - rows / images)
    found = {
        "mAP": precision / max(1, counted),
        "CF1": f1 / max(1, counted),
        "OF1": _ratio_influence(2 * hits, decided),
    }
    return {name: float(np.sqrt(left * (moved**2).sum())) for name, moved in found.items()}


def widened(found: MetricEstimate, error: float) -> MetricEstimate:
    """Add a standard error to an interval, in log odds as intervals are made.

    Example:
        >>> print(widened(MetricEstimate(0.5, 0.4, 0.6), 0.06))
        50.0 (36.2 to 63.8)
    """
    middle, low, high = (_odds(one) for one in (found.estimate, found.low, found.high))
    inside = float(np.clip(found.estimate, _EDGE, 1 - _EDGE))
    more = Z_90 * error / (inside * (1 - inside))
    ends = middle - np.hypot(middle - low, more), middle + np.hypot(high - middle, more)
    low, high = (float(1 / (1 + np.exp(-end))) for end in ends)
    return MetricEstimate(found.estimate, min(low, found.low), max(high, found.high))


def average_precision_influence(scores: Floats, probs: Floats) -> Floats:
    """How much expected average precision grows if an image counts a little more ``(N,)``."""
    order = np.argsort(-scores, kind="stable")
    ranked, rank = probs[order], np.arange(1.0, len(probs) + 1)
    hits = np.cumsum(ranked) + 1 - ranked
    own = ranked * hits / rank
    positives = ranked.sum()
    value = own.sum() / positives
    # An image that counts more raises the hits and the rank of all that follow.
    more_hits, more_rank = (_after(one / rank) for one in (ranked, own))
    influence = np.empty(len(probs))
    influence[order] = (own + ranked * more_hits - more_rank - value * ranked) / positives
    return influence


def _after(values: Floats) -> Floats:
    """Sums of what follows."""
    sums: Floats = values.sum() - np.cumsum(values)
    return sums


def _ratio_influence(top: Floats, bottom: Floats) -> Floats:
    total = max(float(bottom.sum()), 1e-9)
    influence: Floats = (top - top.sum() / total * bottom) / total
    return influence


def _odds(share: float) -> float:
    inside = float(np.clip(share, _EDGE, 1 - _EDGE))
    return float(np.log(inside) - np.log1p(-inside))
