"""Rows that an estimator sets aside, and how good its scores are on labels that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import average_precision_score
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.metrics import classification_report
from hilltop.models import FeatureHead


def set_aside(rows: int, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Return the rows to learn from and the rows to score by, drawn from a seed.

    Example:
        >>> learn, aside = set_aside(10, 0.2, seed=0)
        >>> len(learn), len(aside)
        (8, 2)
    """
    aside = round(share * rows)
    if not 0 < aside < rows:
        raise ArgumentError(
            f"validation_fraction {share:g} of {rows} rows leaves nothing to learn or to judge by;"
            " use another one, or early_stopping=False."
        )
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    return order[aside:].sort().values, order[:aside].sort().values


def map_scorer(features: Tensor, targets: Tensor) -> Callable[[FeatureHead], float]:
    """Return a scorer of heads: mAP on these rows, by the labels as they are.

    Missing labels lower the mAP of all heads in about the same way, so that heads can be compared.

    Args:
        features: Of the rows.
        targets: 1 for labelled, 0 for not labelled, NaN for unknown.
    """
    truth = targets.numpy()
    if not (truth == 1).any():
        raise ArgumentError(
            f"None of the {len(truth)} rows set aside has a label; raise validation_fraction, or"
            " use early_stopping=False."
        )
    return lambda head: classification_report(torch.sigmoid(head(features)), truth).mAP


def known_map(
    scores: npt.NDArray[Any], truth: npt.NDArray[np.float32], sample_weight: Any = None
) -> float:
    """Return mAP over known entries; classes without a label are left out.

    Example:
        >>> known_map(np.array([[0.9], [0.8], [0.1]]), np.array([[1], [np.nan], [0]]))
        1.0
        >>> known_map(np.array([[0.9], [0.8]]), np.array([[0], [1]]), [1, 3])
        0.75
    """
    if sample_weight is None:
        return classification_report(scores, truth).mAP
    weight = _check_sample_weight(sample_weight, scores, ensure_non_negative=True)
    precisions = []
    for column, present in zip(scores.T, truth.T, strict=True):
        known = ~np.isnan(present) & (weight > 0)
        if (present[known] == 1).any():
            chosen = {"sample_weight": weight[known]}
            precisions.append(average_precision_score(present[known], column[known], **chosen))
    return float(np.mean(precisions)) if precisions else float("nan")
