"""Two models on one incompletely labelled test set: which is better, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hilltop.calibration.intervals import Z_90
from hilltop.metrics.arrays import Floats
from hilltop.metrics.incomplete.moments import MetricEstimate, Moments


@dataclass(frozen=True)
class ModelComparison:
    """How much better the first of two models is.

    Attributes:
        differences: Of each metric, first less second.
        first_better: Probability that the first has the higher mAP.
        answers_needed: How many more answers it takes until it is 95% sure which one is better, if
            the difference is what it seems; None if no number of answers would do.
    """

    differences: dict[str, MetricEstimate]
    first_better: float
    answers_needed: int | None


def compare_moments(
    names: Sequence[str], moments: Moments, gradient: Floats, probs: Floats
) -> ModelComparison:
    """Word a comparison.

    Args:
        names: Of the metrics, mAP first.
        moments: Of their differences.
        gradient: How much each open pair moves the difference in mAP.
        probs: Its probability.
    """
    mean, error = float(moments.mean[0]), float(moments.error[0])
    return ModelComparison(
        dict(zip(names, moments.differences(), strict=True)),
        _normal(mean / error) if error else float(mean > 0),
        _answers_needed(mean, error, gradient, probs),
    )


def _answers_needed(mean: float, error: float, gradient: Floats, probs: Floats) -> int | None:
    """Answers whose own estimate, added to what is known, is narrow enough."""
    wanted = abs(mean) / Z_90
    if error <= wanted:
        return 0
    if not wanted:
        return None
    # The variance that n answers leave is this over n, at best sampling probabilities.
    single = float((np.abs(gradient) * np.sqrt(probs * (1 - probs))).sum()) ** 2
    number = math.ceil(single * (wanted**-2 - error**-2))
    return min(number, len(gradient))


def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))
