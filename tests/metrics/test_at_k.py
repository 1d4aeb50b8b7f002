"""Metrics at k against loops written from their equations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hilltop.errors import ArgumentError
from hilltop.metrics import ndcg_at_k, precision_at_k, propensities


def looped(
    scores: list[list[float]], labels: list[list[int]], k: int, q: list[float]
) -> tuple[float, float]:
    """Precision and nDCG at k, image by image."""
    precisions, gains = [], []
    for row, present in zip(scores, labels, strict=True):
        order = sorted(range(len(row)), key=lambda c: (-row[c], c))[:k]
        precisions.append(sum(present[c] / q[c] for c in order) / k)
        gain = sum(present[c] / (q[c] * math.log2(at + 2)) for at, c in enumerate(order))
        best = sum(1 / math.log2(at + 2) for at in range(min(k, sum(present))))
        if best:
            gains.append(gain / best)
    return sum(precisions) / len(precisions), sum(gains) / len(gains)


@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("scored", [False, True])
def test_metrics_at_k_equal_loops(k: int, scored: bool) -> None:
    rng = np.random.default_rng(k)
    scores = np.round(rng.random((40, 6)) * 8) / 8
    labels = (rng.random((40, 6)) < 0.3).astype(int)
    q = rng.uniform(0.1, 1, 6) if scored else None
    expected = looped(scores.tolist(), labels.tolist(), k, [1.0] * 6 if q is None else q.tolist())
    assert precision_at_k(scores, labels, k, propensity=q) == pytest.approx(expected[0])
    assert ndcg_at_k(scores, labels, k, propensity=q) == pytest.approx(expected[1])


def test_scored_by_propensity_incomplete_labels_give_the_true_precision() -> None:
    rng = np.random.default_rng(0)
    keep = np.array([0.2, 0.5, 0.9])
    scores, true = rng.random((50_000, 3)), rng.random((50_000, 3)) < 0.4
    kept = true & (rng.random(true.shape) < keep)
    exact = precision_at_k(scores, true, 2)
    assert precision_at_k(scores, kept, 2, propensity=keep) == pytest.approx(exact, rel=0.02)
    assert precision_at_k(scores, kept, 2) < 0.7 * exact


def test_propensity_grows_with_labels() -> None:
    found = propensities([0, 1, 10, 100, 1000], 5000)
    assert (np.diff(found) > 0).all()
    scale = (math.log(5000) - 1) * 2.5**0.55
    assert found[2] == pytest.approx(1 / (1 + scale * math.exp(-0.55 * math.log(11.5))))


def test_wrong_values_are_named() -> None:
    with pytest.raises(ArgumentError, match="k must be at most the number of classes, but got 3"):
        precision_at_k([[0.1, 0.2]], [[0, 1]], 3)
    with pytest.raises(ArgumentError, match="propensity must be greater than 0"):
        ndcg_at_k([[0.1, 0.2]], [[0, 1]], 1, propensity=[0.0, 1.0])
