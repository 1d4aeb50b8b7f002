"""Average precision, and counts at a threshold, of scores that are on a device and stay there.

Only what was found for each class is brought to the host, all at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from hilltop.errors import ArgumentError

if TYPE_CHECKING:
    from hilltop.metrics.arrays import Floats, ScoredTargets

_ENTRIES = 1 << 25  # sorted in one go; about ten tensors of this size are there at once


def measured_on_device(judged: ScoredTargets, thresholds: Floats) -> Floats:
    """Return average precision, hits, predictions and positives: four rows, one entry a class.

    Raises:
        ArgumentError: A score is NaN, or a target is none of 0, 1 and NaN.
    """
    columns = max(1, _ENTRIES // max(1, judged.images))
    blocks = [slice(at, at + columns) for at in range(0, judged.classes, columns)]
    limits = torch.from_numpy(thresholds)
    found = [_measure(*judged.tensors(block), limits[block]) for block in blocks]
    if not found:
        return np.zeros((4, 0))
    numbers: Floats = torch.cat(found, dim=1).cpu().numpy()
    *rows, without_score, wrong = numbers
    for number, name in enumerate(judged.names):
        if without_score[number]:
            raise ArgumentError(f"Class {name!r}: scores contain NaN.")
        if not np.isnan(wrong[number]):
            judged.refuse(number, float(wrong[number]))
    return np.stack(rows)


def _measure(scores: Tensor, targets: Tensor, known: Tensor | None, limits: Tensor) -> Tensor:
    """Six rows for some classes: the four, whether a score is NaN, and a target that cannot be."""
    scores, targets = scores.t().contiguous(), targets.t()
    there = targets == targets
    if known is not None:
        there = there & known.t().bool()
    present = (targets == 1) & there
    wrong = there & (targets != 0) & (targets != 1)
    broken = ((scores != scores) & there).any(dim=1)
    example = torch.where(wrong, targets.double(), torch.nan).nan_to_num(nan=-torch.inf).amax(dim=1)
    example = torch.where(wrong.any(dim=1), example, torch.nan)
    over = scores.double() > limits.to(scores.device).unsqueeze(1)
    counted = (present & over, there & over, present)
    counts = [flags.sum(dim=1).double() for flags in counted]
    precision = _average_precision(scores, present, there)
    return torch.stack([precision, *counts, broken.double(), example])


def _average_precision(scores: Tensor, present: Tensor, there: Tensor) -> Tensor:
    """Average precision of classes in rows, ties grouped; NaN without positives."""
    # Where a score stands among all and among the positives is all that precision needs. What does
    # not count is put last, and taken off again where scores are minus infinity themselves.
    at_least = _at_least(scores, there)
    hits = _at_least(scores, present)
    share = torch.where(present, hits.double() / at_least.clamp(min=1), 0.0)
    return share.sum(dim=1) / present.sum(dim=1)


def _at_least(scores: Tensor, counted: Tensor) -> Tensor:
    """For every score, how many of those that count in its row are not below it."""
    ranked = torch.where(counted, scores, -torch.inf).contiguous().sort(dim=1).values
    below = torch.searchsorted(ranked, scores)
    return (scores.shape[1] - below).minimum(counted.sum(dim=1, keepdim=True))
