"""Precision and nDCG of the first k tags of each image, plain and scored by propensity.

Where labels are missing, a hit on a label that is rarely written down counts for more: dividing by
the propensity, the probability that a true label is written down, makes sums over labels unbiased
(Jain, Prabhu and Varma 2016). It corrects what was found, and needs to know the propensities; for
intervals, and where these are unknown, see :mod:`hilltop.missing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.checks import check_number, check_same_shape, check_whole
from hilltop.errors import ArgumentError
from hilltop.metrics.arrays import Floats


def precision_at_k(scores: Any, targets: Any, k: int, *, propensity: Any = None) -> float:
    r"""Share of the first k tags of each image that are labelled.

    .. math:: PSP@k = \frac{1}{N k} \sum_i \sum_{c \in top_k(i)} \frac{y_{ic}}{q_c}

    Args:
        scores: ``(N, C)``; of equal ones the earlier class is first.
        targets: ``(N, C)``, 1 for labelled; 0 and NaN are no hit.
        k: Number of tags.
        propensity: Probability that a true label of each class is written down ``(C,)``, see
            :func:`propensities`; None for plain precision. Scored by propensity, the value is not
            divided by the best one that can be had and may exceed 1.

    Example:
        >>> precision_at_k([[0.9, 0.8, 0.1], [0.1, 0.2, 0.3]], [[1, 0, 1], [0, 0, 1]], 1)
        1.0
    """
    hits = _hits(scores, targets, k, propensity)
    return float(hits.sum() / max(1, hits.size))


def ndcg_at_k(scores: Any, targets: Any, k: int, *, propensity: Any = None) -> float:
    r"""Discounted gain of the first k tags, over that of k hits or as many as there are labels.

    .. math::
        nDCG@k = \frac{\sum_{r \leq k} y_r / (q_r \log_2 (r + 1))}
        {\sum_{r \leq \min(k, |y|)} 1 / \log_2 (r + 1)}

    Args:
        scores: As for :func:`precision_at_k`; images without labels are left out.
        targets: As there.
        k: As there.
        propensity: As there.

    Example:
        >>> round(ndcg_at_k([[0.9, 0.8, 0.1]], [[0, 1, 0]], 2), 4)
        0.6309
    """
    hits = _hits(scores, targets, k, propensity)
    discount = 1 / np.log2(np.arange(2, hits.shape[1] + 2))
    labels = (np.asarray(targets) == 1).sum(axis=1)
    best = np.concatenate([[0.0], np.cumsum(discount)])[np.minimum(labels, hits.shape[1])]
    there = best > 0
    return float(((hits @ discount)[there] / best[there]).mean()) if there.any() else float("nan")


def propensities(counts: Any, images: int, *, a: float = 0.55, b: float = 1.5) -> Floats:
    r"""Propensities of classes by their number of labels, as extreme classification assumes them.

    .. math:: q_c = \frac{1}{1 + C e^{-a \log(n_c + b)}}, \qquad C = (\log N - 1)(b + 1)^a

    Args:
        counts: Labels of each class in the training data.
        images: Number of its images.
        a: As fitted on Wikipedia; 0.6 on Amazon.
        b: The same; 2.6 on Amazon.

    Example:
        >>> propensities([1, 10_000], 100_000).round(2).tolist()
        [0.09, 0.9]
    """
    check_whole("images", images, low=3)
    check_number("a", a, low=0)
    check_number("b", b, low=0)
    labels = np.asarray(counts, dtype=np.float64)
    scale = (np.log(images) - 1) * (b + 1) ** a
    found: Floats = 1 / (1 + scale * np.exp(-a * np.log(labels + b)))
    return found


def _hits(scores: Any, targets: Any, k: int, propensity: Any) -> Floats:
    """Gain of each of the first k tags of each image ``(N, k)``, the first one first."""
    values: npt.NDArray[Any] = np.asarray(scores)
    labels = np.asarray(targets)
    check_same_shape("targets", labels.shape, "scores", values.shape)
    check_whole("k", k, low=1)
    if values.ndim != 2 or k > values.shape[1]:
        raise ArgumentError(
            f"k must be at most the number of classes, but got {k} and scores of {values.shape}."
        )
    order = np.argsort(-values, axis=1, kind="stable")[:, :k]
    hits: Floats = np.take_along_axis(labels == 1, order, axis=1).astype(np.float64)
    if propensity is None:
        return hits
    given = np.asarray(propensity, dtype=np.float64)
    check_same_shape("propensity", given.shape, "the classes", values.shape[1:])
    if not ((given > 0) & (given <= 1)).all():
        raise ArgumentError("propensity must be greater than 0 and at most 1 for every class.")
    weighted: Floats = hits / given[order]
    return weighted
