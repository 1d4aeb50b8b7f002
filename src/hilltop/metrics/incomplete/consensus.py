"""Several models' scores as one: each counts as far as it tells something about the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hilltop.calibration import Belief, believe
from hilltop.calibration.profile import Shapes
from hilltop.metrics.incomplete.class_scales import scale_by_class
from hilltop.metrics.incomplete.truth_posterior import BEND_ERROR, OWN_SLOPE_ERROR

SHAPES = Shapes(slope=OWN_SLOPE_ERROR, bend=BEND_ERROR, worth=100.0)
"""What is uncertain of probabilities of truth is so where scores tell keep rates, too."""
_MOST_ENTRIES = 1_000_000
_NEWTON_STEPS = 12
_ENOUGH = 1e-4
_RIDGE = 1.0
_FURTHEST = 12.0


@dataclass(frozen=True, eq=False)
class Consensus:
    """Scores of several models as one.

    Attributes:
        logits: ``(N, C)``.
        belief: What they say of missing labels.
        apart: Logits of the first model less those of the second, in the unit of what labels tell;
            None for one model.
    """

    logits: Tensor
    belief: Belief
    apart: Tensor | None


def reach_consensus(
    logits: Sequence[Tensor], labels: Tensor, confirmed: Tensor | None
) -> Consensus:
    """Blend the scores of models.

    Args:
        logits: By each model ``(N, C)``.
        labels: 1 for labelled, 0 for not labelled, NaN for a pair that takes no part.
        confirmed: True where a person confirmed the label.
    """
    scaled = [scale_by_class(one, labels) for one in logits]
    if len(scaled) == 1:
        belief = believe(scaled[0], labels, observed=confirmed, shapes=SHAPES)
        return Consensus(scaled[0], belief, None)
    near = torch.stack(scaled).clamp(-_FURTHEST, _FURTHEST)
    weights, shifts = blend_weights(near, labels)
    mean = torch.einsum("m,mnc->nc", weights, near) + shifts
    apart = weights.sum() * (near[0] - near[1])
    return Consensus(mean, believe(mean, labels, observed=confirmed, shapes=SHAPES), apart)


def blend_weights(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    r"""Fit a logistic regression of the labels on all scores, with a shift for each class.

    .. math:: \operatorname{logit} P(z_{ic}) = \sum_m w_m x_{mic} + b_c

    Models that say the same share their weight; none has less than 0.

    Args:
        logits: By each model ``(models, N, C)``.
        labels: 1 for labelled, 0 for not labelled, NaN for a pair that takes no part.

    Returns:
        Weights of the models, and shifts of the classes.
    """
    every = max(1, labels.numel() // _MOST_ENTRIES)
    features, targets = logits[:, ::every], labels[::every]
    known, targets = (~targets.isnan()).float(), targets.nan_to_num()
    prior = torch.full((len(logits),), 1 / len(logits), dtype=torch.float64)
    weights, shifts = prior, torch.zeros(labels.shape[1], dtype=torch.float64)
    for _ in range(_NEWTON_STEPS):
        moved = torch.einsum("m,mnc->nc", weights.float(), features) + shifts.float()
        probs = torch.sigmoid(moved)
        residual, variance = (probs - targets) * known, probs * (1 - probs) * known
        # Newton's method; the information is an arrow matrix, solved block by block.
        slopes = torch.einsum("mnc,nc->m", features, residual).double() + _RIDGE * (weights - prior)
        own = residual.sum(dim=0).double() + 1e-3 * shifts
        corner = torch.einsum("mnc,nc,knc->mk", features, variance, features).double()
        corner += _RIDGE * torch.eye(len(logits), dtype=torch.float64)
        border = torch.einsum("mnc,nc->mc", features, variance).double()
        width = variance.sum(dim=0).double() + 1e-3
        reduced = corner - border / width @ border.T
        step = torch.linalg.solve(reduced, slopes - border @ (own / width)).clamp(-1.0, 1.0)
        moves = ((own - step @ border) / width).clamp(-2.0, 2.0)
        weights, shifts = weights - step, shifts - moves
        if max(float(step.abs().max()), float(moves.abs().max())) < _ENOUGH:
            break
    weights = weights.clamp(min=0)
    weights = weights if weights.any() else prior
    return weights.float(), shifts.float()
