"""Scores of several models as one: each counts as far as it tells something about the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilltop.checks import pluralize
from hilltop.missing import priors
from hilltop.missing.logistic import Counts, Floats, Prior, as_floats, fit_logistic

_MAX_ENTRIES = 1_000_000
_MAX_LOGIT = 12.0


def combine_scores(
    logits: Sequence[Any], targets: Any, *, primary: bool = False
) -> tuple[Floats, Floats]:
    r"""Combine scores by a logistic regression of the labels, with weights of each class.

    .. math:: x'_{ij} = \sum_m (w_m + w_{mj}) \, x_{mij} + b_j, \qquad w \ge 0

    Weights of classes are shrunk to common ones. Where ``primary``, those of further scores are
    lowered by 1.5 standard errors, so that scores without use, such as shuffled ones, do no harm.

    Args:
        logits: By each model ``(N, C)``; NaN where a model has none.
        targets: 1 labelled, 0 not labelled, NaN for entries that take no part.
        primary: Whether the first model is trusted and the others have to earn their weight.

    Returns:
        Combined logits, and how many logits one standard deviation of the last model is worth in
        each class where ``primary``; else the sum of the common weights.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> own, other = rng.normal(size=(2, 3000, 1))
        >>> labels = rng.random((3000, 1)) < 1 / (1 + np.exp(-own - 2 * other))
        >>> _, weight = combine_scores([own, other], labels, primary=True)
        >>> bool(1.7 < weight[0] < 2.3)
        True
        >>> _, weight = combine_scores([own, rng.permutation(other)], labels, primary=True)
        >>> bool(weight[0] < 0.1)
        True
    """
    labels = as_floats(targets)
    values = [as_floats(one) for one in logits]
    there = np.stack([(~np.isnan(one)).any(axis=0) for one in values[1:]])
    if primary:
        values = [values[0], *(_standardised(one) for one in values[1:])]
    values = [np.clip(np.nan_to_num(one), -_MAX_LOGIT, _MAX_LOGIT) for one in values]
    every = max(1, -(-labels.size // _MAX_ENTRIES))
    some = labels[::every]
    known = ~np.isnan(some)
    yes, none = (some == 1).astype(np.float64), np.zeros_like(some)
    counts = Counts(none, none, none, yes, known & (some == 0))
    features = np.stack([*(one[::every] for one in values), np.ones_like(some)])
    others = len(values) - 1
    mean = np.array([1.0, *[0.0] * others, 0.0]) if primary else _even(len(values))
    own = np.array([np.inf, *[priors.EXTRA_SCORE_SD**-2] * others, priors.SHAPE_SD**-2])
    if not primary:
        own[:-1] = np.inf
    fit = fit_logistic(
        features, 0.0, counts, Prior(mean, np.array([*[1.0] * len(values), 1e-6]), own)
    )
    weights = (fit.shared[:, None] + fit.by_class)[:-1]
    shift = fit.shared[-1] + fit.by_class[-1]
    if primary:
        information = np.diagonal(fit.information, axis1=1, axis2=2)[:, 1:-1].T
        error = (information + priors.EXTRA_SCORE_SD**-2) ** -0.5
        weights[1:] -= priors.EXTRA_SCORE_DOUBT * error
        weights[1:] *= there
    weights = np.maximum(weights, 0.0)
    weights = weights if weights.any() else np.full_like(weights, 1 / len(weights))
    combined = sum(weight * one for weight, one in zip(weights, values, strict=True)) + shift
    return combined, weights[-1] if primary else weights[:, 0].sum()


def describe_weights(weights: Floats) -> str:
    """Say for how many classes extra scores count; see :func:`combine_scores`."""
    used = int((weights > 0.05).sum())
    if not used:
        return "the extra scores are of no use for any class"
    return f"the extra scores count for {used} of {pluralize(len(weights), 'class', 'classes')}"


def _even(number: int) -> Floats:
    return np.array([*[1 / number] * number, 0.0])


def _standardised(scores: Floats) -> Floats:
    """Each class with mean 0 and variance 1; 0 where there is no score."""
    there = ~np.isnan(scores)
    count = np.maximum(there.sum(axis=0), 1)
    away = np.where(there, scores - np.nansum(scores, axis=0) / count, 0.0)
    std = np.sqrt((away**2).sum(axis=0) / count)
    return away / np.where(std > 0, std, 1.0)
