"""What share of the true labels was written down, from the labels alone or from a reviewed sample.

From labels alone: scores that never saw them saturate where a class is certain, and the share of
labels among the highest scores is the keep rate; a profile likelihood makes use of all scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from hilltop.calibration.intervals import Z_90
from hilltop.calibration.scaling import Calibration, calibrate
from hilltop.losses.likelihood.choose import Likelihood, summed_independently

_LOWEST, _HIGHEST = math.log(0.02 / 0.98), math.log(0.98 / 0.02)
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class KeepEstimate:
    """A keep rate with its 90% interval.

    Attributes:
        keep: Share of the true labels that was written down.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    keep: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return per cents."""
        return f"{self.keep:.0%} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True)
class Fitted:
    """An observation model with the calibration under which the labels are most probable."""

    loss: Likelihood
    calibration: Calibration


def estimate_keep(
    logits: Tensor, targets: Tensor, *, observed: Tensor | None = None
) -> tuple[KeepEstimate, Fitted]:
    r"""Estimate the keep rate from labels and scores that never saw them.

    .. math:: \max_{c} \; \max_{a, b} \; \log P(\text{labels} \mid c\,\sigma(a x + b))

    The interval is that of the likelihood, so it holds if every true label was kept independently
    with one probability, and scores are right up to slope and shifts.

    Args:
        logits: Scores that never saw these labels ``(N, C)``.
        targets: 1 for labelled, 0 for not labelled.
        observed: True where a person confirmed the target.

    Returns:
        The estimate, and the model at it.
    """
    found: dict[float, Fitted] = {}

    def value(place: float) -> float:
        if place not in found:
            keep = 1 / (1 + math.exp(-place))
            loss = summed_independently(keep)
            near = min(found, key=lambda other: abs(other - place), default=None)
            start = None if near is None else found[near].calibration
            made = calibrate(loss, logits, targets, observed=observed, start=start)
            found[place] = Fitted(loss, made)
        return found[place].calibration.loss

    best = _lowest(value)
    step = 0.25
    bend = (value(best - step) - 2 * value(best) + value(best + step)) / step**2
    reach = Z_90 / math.sqrt(bend) if bend > 0 else math.inf
    low, high = (1 / (1 + math.exp(-max(-30.0, best + sign * reach))) for sign in (-1, 1))
    return KeepEstimate(1 / (1 + math.exp(-best)), low, high), found[best]


def _lowest(value: Callable[[float], float]) -> float:
    """Where a function of the log odds of c is least: a coarse look, then golden section."""
    coarse = [_LOWEST + (_HIGHEST - _LOWEST) * number / 6 for number in range(7)]
    at = min(range(7), key=lambda number: value(coarse[number]))
    low, high = coarse[max(0, at - 1)], coarse[min(6, at + 1)]
    while high - low > 0.05:
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if value(left) <= value(right):
            high = right
        else:
            low = left
    return (low + high) / 2 if at not in (0, 6) else coarse[at]
