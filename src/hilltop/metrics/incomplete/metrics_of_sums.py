"""All metrics as one differentiable function of the numbers of each class."""

from __future__ import annotations

import torch
from torch import Tensor

from hilltop.metrics.incomplete.class_sums import SUMS
from hilltop.metrics.incomplete.judged_model import TOP_KS

NAMES = ("mAP", "CP", "CR", "CF1", "OP", "OR", "OF1", *(f"P@{k}" for k in TOP_KS))


def metrics_of_sums(
    sums: Tensor, predicted: Tensor, counted: Tensor, *, images: int, harmonic: bool
) -> Tensor:
    """Return all metrics of one model, in the order of ``NAMES`` ``(..., metrics)``.

    Args:
        sums: Numbers of each class ``(..., C, 6)``.
        predicted: Predictions of each class ``(C,)``.
        counted: Which classes have positives ``(C,)``.
        images: Number of images.
        harmonic: Whether CF1 is the harmonic mean of CP and CR.
    """
    average_precision, hits, positives, *_ = sums.unbind(dim=-1)

    def mean(values: Tensor) -> Tensor:
        return (values * counted).sum(dim=-1) / counted.sum().clamp(min=1)

    precision, recall = hits / predicted.clamp(min=1), hits / positives.clamp(min=1e-9)
    cp, cr = mean(precision), mean(recall)
    f1 = 2 * hits / (predicted + positives).clamp(min=1e-9)
    op = hits.sum(dim=-1) / predicted.sum().clamp(min=1)
    or_ = hits.sum(dim=-1) / positives.sum(dim=-1).clamp(min=1e-9)
    classes = sums.shape[-2]
    top = [
        sums[..., 3 + at].sum(dim=-1) / max(1, images * min(k, classes))
        for at, k in enumerate(TOP_KS)
    ]
    cf1 = _harmonic(cp, cr) if harmonic else mean(f1)
    values = [mean(average_precision), cp, cr, cf1, op, or_, _harmonic(op, or_), *top]
    return torch.stack(values, dim=-1)


def sums_of_model(sums: Tensor, number: int) -> Tensor:
    """The numbers of one of several models."""
    return sums[..., number * SUMS : (number + 1) * SUMS]


def _harmonic(a: Tensor, b: Tensor) -> Tensor:
    return 2 * a * b / (a + b).clamp(min=1e-9)
