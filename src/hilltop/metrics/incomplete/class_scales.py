"""Scores of each class in units of what labels tell of it: a slope and a shift of its own.

A head that is held back is too flat by more in rare classes than in others, and scores from
elsewhere have a scale of their own in every class. One slope for all of them would put missing
labels of a class far below the labels that are there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilltop.metrics.arrays import Floats
from hilltop.metrics.incomplete.answers import Flags
from hilltop.metrics.incomplete.truth_posterior import expit

SLOPES_APART = 0.5
"""How far the logarithms of the slopes of classes are expected to lie apart."""
STEEPEST = 3.0
"""Logarithm of the steepest slope, and of the flattest with a minus."""
KEEPS = (1.0, 0.75, 0.5, 0.3)
"""Keep rates that are tried."""
_LEAST_SHIFT_PRECISION = 1e-3  # holds the shift of a class in which all pairs are alike
_STEPS, _LEAST_GAIN, _LONGEST = 30, 0.01, 1.0
_MOST_ENTRIES = 1_000_000


def scale_by_class(logits: Tensor, labels: Tensor) -> Tensor:
    r"""Return logits of the truth, about, with slopes and shifts that fit the labels of each class.

    .. math::
        P(z_{ic}) = k \, \sigma(e^{a_c} x_{ic} + b_c), \qquad a_c \sim N(\mu, \tau)

    Of a few keep rates k the one that fits best is taken: with none, labels that are missing among
    the highest scores would make all slopes too flat.

    Args:
        logits: ``(N, C)``.
        labels: 1 for labelled, 0 for not labelled, NaN for a pair that takes no part.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> odds = rng.normal(0, 3, (2000, 2))
        >>> labels = torch.from_numpy((rng.random(odds.shape) < expit(odds)).astype(np.float32))
        >>> scaled = scale_by_class(torch.from_numpy(odds) * torch.tensor([0.1, 2.0]), labels)
        >>> bool((scaled - torch.from_numpy(odds)).abs().mean() < 0.5)
        True
    """
    every = max(1, logits.numel() // _MOST_ENTRIES)
    scores, targets = (one[::every].float().numpy() for one in (logits, labels))
    known = ~np.isnan(targets)
    centre = np.sum(scores, axis=0, where=known) / np.maximum(known.sum(axis=0), 1)
    centred, targets = scores - centre.astype(np.float32), np.nan_to_num(targets)
    share = (targets.sum(axis=0) + 0.5) / (known.sum(axis=0) + 1.0)
    found = _Fit(np.zeros(len(share)), np.log(share) - np.log1p(-share), np.inf)
    best = found
    for keep in KEEPS:
        found = _fit(centred, targets, known, keep, found)
        best = min(best, found, key=lambda one: one.cost)
    slope, shift = (torch.from_numpy(one).to(logits.dtype) for one in (best.slopes, best.shifts))
    return (logits - torch.from_numpy(centre).to(logits.dtype)) * slope.exp() + shift


@dataclass(frozen=True, eq=False)
class _Fit:
    """Log slopes and shifts of classes, and what labels cost there."""

    slopes: Floats
    shifts: Floats
    cost: float


def _fit(scores: Floats, targets: Floats, known: Flags, keep: float, start: _Fit) -> _Fit:
    """Fit by Fisher scoring, with the mean slope found beside."""
    slopes, shifts, cost = start.slopes, start.shifts, np.inf
    for _ in range(_STEPS):
        by_slope = scores * np.exp(slopes).astype(np.float32)  # derivative by the log slope
        probs = expit(by_slope + shifts.astype(np.float32))
        written = np.clip(keep * probs, 1e-6, 1 - 1e-6)
        loss = np.where(targets == 1, np.log(written), np.log1p(-written))
        # Derivatives of the cost by the logit, and the information of one label about it.
        residual = (written - targets) * (1 - probs) / (1 - written) * known
        weight = written * (1 - probs) ** 2 / (1 - written) * known
        corner = (weight * by_slope**2).sum(axis=0, dtype=np.float64)
        # The mean of slopes is told by classes as far as their labels tell of them.
        trust = corner / (corner + SLOPES_APART**-2)
        mean = (trust @ slopes) / max(float(trust.sum()), 1e-9)
        prior = (slopes - mean) / SLOPES_APART
        now = float((prior**2).sum() / 2 - loss.sum(where=known, dtype=np.float64))
        if now > cost - _LEAST_GAIN:
            break
        kept, cost = (slopes, shifts), now
        grad_slope = (residual * by_slope).sum(axis=0, dtype=np.float64) + prior / SLOPES_APART
        grad_shift = residual.sum(axis=0, dtype=np.float64)
        width = weight.sum(axis=0, dtype=np.float64) + _LEAST_SHIFT_PRECISION
        border = (weight * by_slope).sum(axis=0, dtype=np.float64)
        free = np.maximum(corner + SLOPES_APART**-2 - border**2 / width, SLOPES_APART**-2)
        step = np.clip((grad_slope - border * grad_shift / width) / free, -_LONGEST, _LONGEST)
        move = np.clip((grad_shift - border * step) / width, -2 * _LONGEST, 2 * _LONGEST)
        slopes, shifts = np.clip(slopes - step, -STEEPEST, STEEPEST), shifts - move
    return _Fit(*kept, cost)
