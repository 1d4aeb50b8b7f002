"""How probable the labels are at each keep rate: a curve for every class.

Scores are those of classifiers that never saw the labels they are asked about. If every true label
was written down with probability c, labels follow c times a calibrated probability: where a class
is certain, the share of labels saturates at c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor

from hilltop.calibration.arrays import Floats
from hilltop.calibration.scaling import SHIFT_SPREAD, SLOPE_SPREAD, Calibration, class_levels

LOG_KEEP: Floats = np.linspace(0.0, -3.0, 21)
"""Logarithms of the keep rates that are tried: 1 ("nothing is missing"), 0.86, ... 0.05."""
_MOST_ENTRIES = 1_000_000
_FURTHEST = 30.0
_MOST_STEPS, _LEAST_GAIN, _SHORTEST = 12, 1e-3, 1e-3
_STEEPEST = 4.0


@dataclass(frozen=True)
class Shapes:
    """How far log odds of a class may differ from a straight line with the common slope.

    Where scores are weak, a curve that is bent a little looks as if labels were missing.

    Attributes:
        slope: Standard deviation of the logarithm of its slope.
        bend: Standard deviation of what its slope gains above the middle, as a share.
        worth: As many labels tell as much of keep rates as any number of them: more of them make
            the noise of a curve smaller, but not what is wrong with its form.
    """

    slope: float
    bend: float
    worth: float

    def evidence(self, labels: float) -> float:
        """Power of a likelihood of so many labels (a coarsened posterior)."""
        return self.worth / (self.worth + labels)


@dataclass(frozen=True)
class Profile:
    """Cost of the labels at every keep rate.

    Attributes:
        costs: Negative log likelihood of the labels of each class ``(rates, C)``.
        slopes: Slope of the calibration at each rate ``(rates,)``.
        shifts: Its shift for each class, about the level of the class ``(rates, C)``.
        levels: What logits of each class are stretched about ``(C,)``.
    """

    costs: Floats
    slopes: Floats
    shifts: Floats
    levels: Tensor

    def calibration(self, at: int) -> Calibration:
        """The calibration at one of the rates, by its number."""
        shift = torch.from_numpy(self.shifts[at]).float()
        return Calibration.about(self.levels, float(self.slopes[at]), shift)


def profile(
    logits: Tensor,
    targets: Tensor,
    *,
    observed: Tensor | None = None,
    shapes: Shapes | None = None,
) -> Profile:
    """Find the cost of the labels at every keep rate, with scores calibrated anew at each.

    Args:
        logits: Scores that never saw these labels ``(N, C)``; about a million are looked at.
        targets: 1 for labelled, 0 for not labelled, NaN for unknown.
        observed: True where a person confirmed that a pair is absent.
        shapes: How far the curves of classes may differ from a common one; by nothing without it.
    """
    every = max(1, -(-logits.numel() // _MOST_ENTRIES))
    scores = _Scores.of(logits[::every], targets[::every], observed, every)
    place = torch.zeros(logits.shape[1] + 2, dtype=torch.float64)
    before, costs, slopes, shifts = place, [], [], []
    for number, log_keep in enumerate(LOG_KEEP.tolist()):
        # From the second rate on, places move on about as they did before.
        start = 2 * place - before if number > 1 else place
        before, (place, cost) = place, _fisher_scoring(scores, log_keep, start)
        if shapes is not None:
            cost = cost - _shape_gain(scores, log_keep, place, shapes)
        costs.append(every * cost.numpy())
        slopes.append(math.exp(place[0]))
        shifts.append((place[1] + place[2:]).numpy())
    return Profile(np.array(costs), np.array(slopes), np.array(shifts), scores.levels)


@dataclass(frozen=True)
class _Scores:
    """Scores with their labels; places are log slope, common shift, and a shift for each class."""

    centred: Tensor
    levels: Tensor
    targets: Tensor
    known: Tensor
    absent: Tensor | None

    @classmethod
    def of(cls, logits: Tensor, targets: Tensor, observed: Tensor | None, every: int) -> _Scores:
        targets = targets.float()
        known = ~targets.isnan()
        targets = targets.nan_to_num()
        absent = None if observed is None else observed[::every] & (targets == 0)
        levels = class_levels(logits, known)
        return cls(logits.float() - levels, levels, targets, known.float(), absent)

    def moved(self, place: Tensor, log_keep: float) -> tuple[Tensor, Tensor]:
        """Calibrated logits, and those of a true label that was not kept."""
        log_lost = torch.full((), math.log(-math.expm1(log_keep)) if log_keep < 0 else -math.inf)
        if self.absent is not None:
            log_lost = torch.where(self.absent, -math.inf, log_lost)
        shift = (place[1] + place[2:]).float() + self.levels
        moved = (self.centred * math.exp(place[0]) + shift).clamp_(-_FURTHEST, _FURTHEST)
        return moved, moved + log_lost

    def cost(self, moved: Tensor, hidden: Tensor, place: Tensor, log_keep: float) -> Tensor:
        """Negative log likelihood by class, with the prior of its shift."""
        # -log of c p for a label, of 1 - c p for none; no matter how small 1 - c is.
        labelled = self.targets * (moved + log_keep)
        cost = F.softplus(moved) - labelled - (1 - self.targets) * F.softplus(hidden)
        prior = (place[2:] / SHIFT_SPREAD).square() / 2
        # What the slope's prior costs is shared out, so that curves of classes add up to the whole.
        slope = (place[0] / SLOPE_SPREAD).square() / 2 / len(prior)
        return (cost * self.known).sum(dim=0, dtype=torch.float64) + prior + slope


def _shape_gain(scores: _Scores, log_keep: float, place: Tensor, shapes: Shapes) -> Tensor:
    r"""What a slope and a bend of its own gain each class, on the mean over their prior.

    .. math:: U^T (I + \Lambda)^{-1} U / 2 - \log |1 + I \Lambda^{-1}| / 2

    U is the gradient and I the information that is left beside the shift of the class.
    """
    moved, hidden = scores.moved(place, log_keep)
    grad, weight = _grad_and_weight(scores, moved, hidden, log_keep)
    total = weight.sum(dim=0).clamp_(min=1e-9)
    apart = scores.centred * math.exp(place[0])
    apart = apart - (weight * apart).sum(dim=0) / total
    features = torch.stack([shapes.slope * apart, shapes.bend * apart.clamp(min=0)])
    features = features - ((weight * features).sum(dim=1) / total)[:, None]
    gradient = (features * grad).sum(dim=1, dtype=torch.float64).T
    information = torch.einsum("fnc,nc,gnc->cfg", features, weight, features).double()
    information += torch.eye(2, dtype=torch.float64)
    step = torch.linalg.solve(information, gradient)
    gain: Tensor = ((gradient * step).sum(dim=1) - torch.logdet(information)) / 2
    return gain


def _fisher_scoring(scores: _Scores, log_keep: float, place: Tensor) -> tuple[Tensor, Tensor]:
    """The place at which the labels are most probable, and the cost of each class there."""
    moved, hidden = scores.moved(place, log_keep)
    cost = scores.cost(moved, hidden, place, log_keep)
    for _ in range(_MOST_STEPS):
        direction = _direction(scores, moved, hidden, place, log_keep)
        length = 1.0
        while length >= _SHORTEST:
            tried = place - length * direction
            tried[0].clamp_(-_STEEPEST, _STEEPEST)
            moved, hidden = scores.moved(tried, log_keep)
            found = scores.cost(moved, hidden, tried, log_keep)
            if found.sum() <= cost.sum():
                break
            length /= 2
        else:
            break
        gain = float(cost.sum() - found.sum())
        place, cost = tried, found
        if gain < _LEAST_GAIN:
            break
    return place, cost


def _direction(
    scores: _Scores, moved: Tensor, hidden: Tensor, place: Tensor, log_keep: float
) -> Tensor:
    """Inverse Fisher information times the gradient: an arrow matrix, solved block by block."""
    grad, weight = _grad_and_weight(scores, moved, hidden, log_keep)
    by_slope = scores.centred * math.exp(place[0])  # derivative of the logit by the log slope

    def sums(values: Tensor) -> Tensor:
        return values.sum(dim=0, dtype=torch.float64)

    grads, weights, crossed = sums(grad), sums(weight), sums(weight * by_slope)
    own_grad = grads + place[2:] / SHIFT_SPREAD**2
    own_weight = weights + SHIFT_SPREAD**-2
    slope_grad = sums(grad * by_slope).sum() + place[0] / SLOPE_SPREAD**2
    slope_weight = sums(weight * by_slope.square()).sum() + SLOPE_SPREAD**-2
    border = torch.stack([crossed, weights])  # (2, C): shared numbers against shifts of classes
    corner = torch.stack([slope_weight, crossed.sum(), crossed.sum(), weights.sum()]).view(2, 2)
    corner = corner - border / own_weight @ border.T
    corner += 1e-9 * (1 + corner.trace()) * torch.eye(2, dtype=corner.dtype)
    shared = torch.linalg.solve(
        corner, torch.stack([slope_grad, grads.sum()]) - border / own_weight @ own_grad
    )
    shared[0].clamp_(-1.0, 1.0)
    return torch.cat([shared, (own_grad - border.T @ shared) / own_weight])


def _grad_and_weight(
    scores: _Scores, moved: Tensor, hidden: Tensor, log_keep: float
) -> tuple[Tensor, Tensor]:
    """Derivative of the cost by each logit, and the information of one label about it."""
    probs, keep = torch.sigmoid(moved), math.exp(log_keep)
    grad = (probs - scores.targets - (1 - scores.targets) * torch.sigmoid(hidden)) * scores.known
    # (d c p / d x)^2 / (c p (1 - c p)).
    weight = keep * probs * (1 - probs).square() / (1 - keep * probs).clamp_(min=1e-12)
    return grad, weight * scores.known
