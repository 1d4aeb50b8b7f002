"""Calibration: one slope for all logits and a shift for each class, fitted to the labels.

Heads that are held back by a strong penalty, or scores from another loss, rank well within a class
but are not probabilities, and are not comparable between classes. The likelihood of the labels
that are there, at scores that never saw them, says how to stretch and shift them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hilltop.losses.likelihood.summed import Likelihood

SHIFT_SPREAD = 0.5
"""How far the shifts of classes are expected to lie apart; holds that of a rare class in place."""
SLOPE_SPREAD = 1.0
"""The same for the logarithm of the slope."""
_MOST_ENTRIES = 2_000_000
_FURTHEST = 20.0


@dataclass(frozen=True)
class Calibration:
    """Turns logits into logits of probabilities.

    Attributes:
        slope: Factor on every logit, or on those of each class.
        shift: What is added to the logits of each class.
        loss: Negative log likelihood of the labels it was fitted to.
    """

    slope: float | Tensor
    shift: Tensor
    loss: float = math.nan

    def __call__(self, logits: Tensor) -> Tensor:
        """Return calibrated logits."""
        return logits * self.slope + self.shift


def calibrate(
    loss: Likelihood,
    logits: Tensor,
    targets: Tensor,
    *,
    observed: Tensor | None = None,
    start: Calibration | None = None,
    steps: int = 60,
) -> Calibration:
    r"""Fit slope and shifts by the likelihood of the labels.

    .. math:: \min_{a, b, d} \; L(e^a x + b + d) + \frac{1}{2} a^2 + 2 \sum_c d_c^2

    Args:
        loss: The observation model, with the reduction "sum".
        logits: Scores that never saw these labels ``(N, C)``; about 2 million are looked at.
        targets: 1 for labelled, 0 for not labelled; with a keep rate of 1 also probabilities.
        observed: True where a person confirmed the target.
        start: A calibration that should be near.
        steps: At most so many; fewer give a rough value.

    Example:
        >>> from hilltop.losses.likelihood.summed import summed_independently
        >>> targets = torch.tensor([[1.0, 0.0]] * 50 + [[0.0, 0.0]] * 50)
        >>> logits = torch.zeros(100, 2)
        >>> made = calibrate(summed_independently(1.0), logits, targets)
        >>> [round(number, 1) for number in made(logits)[0].tolist()]
        [-0.2, -2.9]
    """
    every = max(1, logits.numel() // _MOST_ENTRIES)
    logits, targets = logits[::every], targets[::every]
    observed = None if observed is None else observed[::every]
    classes = logits.shape[1]
    numbers = torch.zeros(classes + 2)  # log slope, shift of all, shift of each class
    if start is not None:
        numbers[0] = math.log(start.slope)
        numbers[1] = start.shift.mean()
        numbers[2:] = start.shift - start.shift.mean()
    numbers.requires_grad_()
    search = torch.optim.LBFGS([numbers], max_iter=steps, line_search_fn="strong_wolfe")

    def apart() -> Calibration:
        slope = float(numbers[0].detach().clamp(-3.0, 3.0).exp())
        return Calibration(slope, (numbers[1] + numbers[2:]).detach())

    def value() -> float:
        search.zero_grad()
        slope = numbers[0].clamp(-3.0, 3.0).exp()
        moved = (logits * slope + numbers[1] + numbers[2:]).clamp(-_FURTHEST, _FURTHEST)
        likelihood = loss(moved, targets, observed=observed)
        prior = (numbers[0] / SLOPE_SPREAD).square() + (numbers[2:] / SHIFT_SPREAD).square().sum()
        total: Tensor = likelihood + prior / 2
        total.backward()  # type: ignore[no-untyped-call]
        return float(total.detach())

    search.step(value)  # type: ignore[no-untyped-call]
    found = apart()
    with torch.no_grad():
        fitted = float(loss(found(logits), targets, observed=observed)) * every
    return Calibration(found.slope, found.shift, fitted)
