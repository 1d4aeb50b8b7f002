"""Anybody's scores in units of logits: margins, similarities and counts have units of their own."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from hilltop.calibration.intervals import Z_90
from hilltop.calibration.scaling import calibrate
from hilltop.errors import ArgumentError
from hilltop.losses.likelihood.summed import summed_independently

LIKE_LOGITS = 1.0
"""Scores are left as they are if the factor is no further from 1 than this, in logarithms."""
_SURELY = 3 * Z_90


def score_scale(scores: Tensor, targets: Tensor) -> float:
    """Return the factor that turns scores into logits, about; 1 for scores that are logits.

    Args:
        scores: Higher ones for more probable labels ``(N, C)``.
        targets: 1 for labelled, 0 for not labelled, NaN for pairs that take no part.

    Raises:
        ArgumentError: Labels are clearly where scores are low.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> logits = 3 * torch.randn(1000, 2, generator=generator)
        >>> targets = (torch.rand(1000, 2, generator=generator) < torch.sigmoid(logits)).float()
        >>> score_scale(logits, targets), round(score_scale(logits / 1000, targets), -2)
        (1.0, 1000.0)
    """
    known = ~targets.isnan()
    number = known.sum(dim=0).clamp(min=1)
    scores = torch.where(known, scores, 0.0)
    centred = torch.where(known, scores - scores.sum(dim=0) / number, 0.0)
    spread = float(centred.double().square().sum().div(known.sum().clamp(min=1)).sqrt())
    if not spread > 0:
        return 1.0
    _check_direction(centred / spread, targets)
    slope = float(calibrate(summed_independently(1.0), centred / spread, targets).slope)
    factor = slope / spread
    return 1.0 if abs(math.log(factor)) <= LIKE_LOGITS else factor


def _check_direction(scores: Tensor, targets: Tensor) -> None:
    """Scores of labelled pairs must not lie clearly below the mean of their class."""
    labelled = scores[targets == 1].double()
    if len(labelled) and float(labelled.sum()) < -_SURELY * math.sqrt(len(labelled)):
        raise ArgumentError(
            f"scores are lower where labels are, by {-float(labelled.mean()):.2f} standard"
            " deviations; higher scores must mean more probable labels: pass -scores."
        )
