"""Calibration: one slope for all logits, about the level of each class, and a shift for each class.

Heads that are held back by a strong penalty, or scores from another loss, rank well within a class
but are not probabilities, and are not comparable between classes. The likelihood of the labels
that are there, at scores that never saw them, says how to stretch and shift them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hilltop.losses.likelihood import Likelihood

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

    @classmethod
    def about(cls, levels: Tensor, slope: float, shift: Tensor) -> Calibration:
        """Return what stretches the logits of each class about its level, and then shifts them."""
        return cls(slope, shift + (1 - slope) * levels)

    def shift_about(self, levels: Tensor) -> Tensor:
        """The shift of each class, where logits are stretched about its level."""
        return self.shift - (1 - self.slope) * levels


def class_levels(logits: Tensor, known: Tensor) -> Tensor:
    r"""Where the logits of each class lie: those that are least certain count most.

    .. math:: m_j = \frac{\sum_i p_{ij} (1 - p_{ij}) \, x_{ij}}{\sum_i p_{ij} (1 - p_{ij})}

    Stretched about it, a rare class stays about as rare; about 0, twice the slope takes a class
    with one label in a hundred to one in ten thousand.

    Args:
        logits: Scores ``(N, C)``.
        known: Whether each takes part.
    """
    probs = torch.sigmoid(logits)
    weight = (probs * (1 - probs) * known).double()
    mean: Tensor = (weight * logits).sum(dim=0) / weight.sum(dim=0).clamp(min=1e-9)
    return mean.float()


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

    .. math:: \min_{a, b, d} \; L(e^a (x - m) + m + b + d) + \frac{1}{2} a^2 + 2 \sum_c d_c^2

    with the level m of each class.

    Args:
        loss: The observation model, with the reduction "sum".
        logits: Scores that never saw these labels ``(N, C)``; about 2 million are looked at.
        targets: 1 for labelled, 0 for not labelled; with a keep rate of 1 also probabilities.
        observed: True where a person confirmed the target.
        start: A calibration that should be near.
        steps: At most so many; fewer give a rough value.

    Example:
        >>> from hilltop.losses.likelihood import scar_nll
        >>> targets = torch.tensor([[1.0, 0.0]] * 50 + [[0.0, 0.0]] * 50)
        >>> logits = torch.zeros(100, 2)
        >>> made = calibrate(scar_nll(1.0), logits, targets)
        >>> [round(number, 1) for number in made(logits)[0].tolist()]
        [-0.2, -2.9]
    """
    every = max(1, logits.numel() // _MOST_ENTRIES)
    logits, targets = logits[::every], targets[::every]
    observed = None if observed is None else observed[::every]
    levels = class_levels(logits, ~targets.isnan())
    centred = logits - levels
    numbers = torch.zeros(logits.shape[1] + 2)  # log slope, shift of all, shift of each class
    if start is not None:
        shift = start.shift_about(levels)
        numbers[0] = math.log(start.slope)
        numbers[1] = shift.mean()
        numbers[2:] = shift - shift.mean()
    numbers.requires_grad_()
    search = torch.optim.LBFGS([numbers], max_iter=steps, line_search_fn="strong_wolfe")

    def apart() -> Calibration:
        slope = float(numbers[0].detach().clamp(-3.0, 3.0).exp())
        return Calibration.about(levels, slope, (numbers[1] + numbers[2:]).detach())

    def value() -> float:
        search.zero_grad()
        slope = numbers[0].clamp(-3.0, 3.0).exp()
        moved = centred * slope + levels + numbers[1] + numbers[2:]
        moved = moved.clamp(-_FURTHEST, _FURTHEST)
        likelihood = loss.evaluate(loss.batch(moved, targets, observed))
        prior = (numbers[0] / SLOPE_SPREAD).square() + (numbers[2:] / SHIFT_SPREAD).square().sum()
        total: Tensor = likelihood + prior / 2
        total.backward()  # type: ignore[no-untyped-call]
        return float(total.detach())

    search.step(value)  # type: ignore[no-untyped-call]
    found = apart()
    with torch.no_grad():
        fitted = float(loss.evaluate(loss.batch(found(logits), targets, observed))) * every
    return Calibration(found.slope, found.shift, fitted)
