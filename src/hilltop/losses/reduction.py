"""Reductions: from the loss of every entry to what ``backward`` is called on."""

from __future__ import annotations

import math
from typing import Literal, get_args

from torch import Tensor

Reduction = Literal["mean", "sum", "batchmean", "none"]
REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)


def divisor(
    targets: Tensor, reduction: Reduction, *, known: int | None = None
) -> Tensor | float | None:
    """What the sum over entries is divided by, None for nothing.

    It is at least 1, so that an empty batch gives 0.

    Args:
        targets: NaN marks entries that ``"mean"`` does not count.
        reduction: Name of the reduction.
        known: Number of targets that are not NaN, where it has been counted already.
    """
    if reduction == "mean":
        if known is not None or not targets.dtype.is_floating_point:
            return float(max(1, targets.numel() if known is None else known))
        return (targets == targets).sum().clamp(min=1)
    if reduction == "batchmean":
        return float(max(1, math.prod(targets.shape[:-1])))
    return None


def reduce(entries: Tensor, targets: Tensor, reduction: Reduction) -> Tensor:
    """Reduce the losses of all entries, of which those with a NaN target are 0."""
    if reduction == "none":
        return entries
    total, parts = entries.sum(), divisor(targets, reduction)
    return total if parts is None else total / parts
