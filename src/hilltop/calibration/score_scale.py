"""Anybody's scores in units of logits: margins, similarities and counts have units of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hilltop.calibration.intervals import Z_90
from hilltop.calibration.scaling import calibrate
from hilltop.errors import ArgumentError
from hilltop.losses.likelihood import scar_nll

LIKE_LOGITS = 1.0
"""Scores are left as they are if the factor is no further from 1 than this, in logarithms."""
FAR_OFF, FAR_OFF_SPREADS = 8.0, 4.0
"""Logits of a class lie about 0: no further from it, between labelled and other pairs, than this
number and so many times their spread. Scores that do are shifted, class by class."""
_SURELY, _FURTHEST = 3 * Z_90, 20.0


@dataclass(frozen=True)
class ScoreScale:
    """Turns scores into logits, about.

    Attributes:
        factor: What scores are multiplied by; 1 for scores that are logits.
        offset: What is added afterwards, for each class; 0 for scores that are logits.
    """

    factor: float
    offset: Tensor

    def __call__(self, scores: Tensor) -> Tensor:
        """Return logits, about."""
        return scores * self.factor + self.offset


def score_scale(scores: Tensor, targets: Tensor) -> ScoreScale:
    """Find what turns scores into logits, about.

    Args:
        scores: Higher ones for more probable labels ``(N, C)``.
        targets: 1 for labelled, 0 for not labelled, NaN for pairs that take no part.

    Raises:
        ArgumentError: Labels are clearly where scores are low.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> logits = 3 * torch.randn(1000, 2, generator=generator)
        >>> targets = (torch.rand(1000, 2, generator=generator) < torch.sigmoid(logits)).float()
        >>> score_scale(logits, targets)
        ScoreScale(factor=1.0, offset=tensor([0., 0.]))
        >>> found = score_scale(logits / 1000 + 50, targets)
        >>> round(found.factor, -2), bool((found(logits / 1000 + 50) - logits).abs().mean() < 0.5)
        (1000.0, True)
    """
    known = ~targets.isnan()
    number = known.sum(dim=0).clamp(min=1)
    scores = torch.where(known, scores, 0.0)
    mean = scores.double().sum(dim=0) / number  # float32 loses small differences far from 0
    centred = torch.where(known, scores - mean, 0.0).float()
    spread = float(centred.double().square().sum().div(known.sum().clamp(min=1)).sqrt())
    nothing = torch.zeros(scores.shape[1])
    if not spread > 1e-6 * float(mean.abs().max()):
        return ScoreScale(1.0, -mean.float())
    _check_direction(centred / spread, targets)
    slope = float(calibrate(scar_nll(1.0), centred / spread, targets).slope)
    factor = slope / spread
    factor = 1.0 if abs(math.log(factor)) <= LIKE_LOGITS else factor
    labelled = targets == 1
    above = torch.where(labelled, centred, 0.0).sum(dim=0) / labelled.sum(dim=0).clamp(min=1)
    middle = (mean + above / 2)[labelled.any(dim=0)] * factor
    if float(middle.abs().max()) <= FAR_OFF + FAR_OFF_SPREADS * spread * factor:
        return ScoreScale(factor, nothing)
    start = _shift_to_labels(centred * factor, targets)
    return ScoreScale(factor, (start - mean * factor).float())


def _shift_to_labels(logits: Tensor, targets: Tensor) -> Tensor:
    """What brings the sum of probabilities of each class to the number of its labels."""
    known = ~targets.isnan()
    share = (targets.nansum(dim=0) + 0.5) / (known.sum(dim=0) + 1)
    low = torch.full_like(share, -1.0) * (logits.abs().amax() + _FURTHEST)
    high = -low
    for _ in range(50):
        middle = (low + high) / 2
        probs = torch.sigmoid(logits + middle).mul(known).sum(dim=0) / known.sum(dim=0).clamp(min=1)
        low, high = (
            torch.where(probs > share, low, middle),
            torch.where(probs > share, middle, high),
        )
    return (low + high) / 2


def _check_direction(scores: Tensor, targets: Tensor) -> None:
    """Scores of labelled pairs must not lie clearly below the mean of their class."""
    labelled = scores[targets == 1].double()
    if len(labelled) and float(labelled.sum()) < -_SURELY * math.sqrt(len(labelled)):
        raise ArgumentError(
            f"scores are lower where labels are, by {-float(labelled.mean()):.2f} standard"
            " deviations; higher scores must mean more probable labels: pass -scores."
        )
