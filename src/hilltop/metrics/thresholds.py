"""Decision thresholds for each class, fitted on validation data."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilltop.checks import check_number
from hilltop.metrics.arrays import Column, Floats, ScoredTargets


def fit_thresholds(
    scores: Any,
    targets: Any,
    *,
    precision: float | None = None,
    known: Any = None,
) -> Floats:
    """Find the threshold of every class that suits ``scores > threshold`` best.

    Use validation data that the model did not see and that the result is not reported on.

    Args:
        scores: ``(N, C)`` array or tensor.
        targets: ``(N, C)``, 1 for present, 0 for absent, NaN for unknown.
        precision: None for the best F1. A number asks for the lowest threshold whose precision
            is at least that, so for as many finds as that precision allows.
        known: ``(N, C)`` of bool; False leaves an entry out, like a NaN target.

    Returns:
        One threshold for each class, half-way between two scores. It is 0.5 for a class without
        positives, about which nothing was learnt, and infinity (predict nothing) where no
        threshold reaches the wanted precision.

    Example:
        >>> fit_thresholds([[0.9], [0.8], [0.4], [0.1]], [[1], [1], [0], [0]])
        array([0.6])
    """
    if precision is not None:
        check_number("precision", precision, low=0, high=1, low_open=True)

    def fit(column: Column) -> float:
        return _fit(column, precision)

    return np.array(ScoredTargets(scores, targets, known).each_class(fit))


def _fit(column: Column, wanted: float | None) -> float:
    if not column.present.any():
        return 0.5
    order = np.argsort(-column.scores, kind="stable")
    scores = column.scores[order].astype(np.float64)
    hits = np.cumsum(column.present[order])
    ends = np.flatnonzero(np.append(scores[1:] < scores[:-1], True))  # ties stay together
    found, count = hits[ends], ends + 1
    if wanted is None:
        best = int(np.argmax(2 * found / (count + hits[-1])))
    else:
        reaching = np.flatnonzero(found / count >= wanted)
        if reaching.size == 0:
            return float("inf")
        best = int(reaching[-1])
    return _between(scores[ends[best]], scores[ends[best + 1]] if best + 1 < ends.size else None)


def _between(score: float, below: float | None) -> float:
    """Return a number under ``score`` but not under ``below``, half-way where that is possible."""
    if below is None:
        # Everything is predicted. A small step, but one that float16 scores can tell too.
        return score - 1e-3 * max(1.0, abs(score))
    middle = score / 2 + below / 2
    return float(middle if below <= middle < score else below)
