"""Several models' scores as one: each counts as far as it tells something about the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hilltop.calibration import Belief, believe

_MOST_ENTRIES = 1_000_000
_NEWTON_STEPS = 12
_RIDGE = 1.0


@dataclass(frozen=True, eq=False)
class Consensus:
    """Scores of several models as one.

    Attributes:
        logits: ``(N, C)``.
        belief: What they say of missing labels.
        apart: Calibrated logits of the first model less those of the second; None for one model.
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
    beliefs = [believe(one, labels, observed=confirmed) for one in logits]
    if len(logits) == 1:
        return Consensus(logits[0], beliefs[0], None)
    moved = [belief.model.calibration(one) for belief, one in zip(beliefs, logits, strict=True)]
    weights = blend_weights(torch.stack(moved), labels)
    mean = sum(weight * one for weight, one in zip(weights.tolist(), moved, strict=True))
    assert isinstance(mean, Tensor)
    return Consensus(mean, believe(mean, labels, observed=confirmed), moved[0] - moved[1])


def blend_weights(logits: Tensor, labels: Tensor) -> Tensor:
    """Weights of a logistic regression of the labels on all scores, none below 0; they add up to 1.

    Args:
        logits: By each model ``(models, N, C)``.
        labels: 1 for labelled, 0 for not labelled, NaN for a pair that takes no part.
    """
    known = ~labels.isnan()
    every = max(1, int(known.sum()) // _MOST_ENTRIES)
    features = logits[:, known][:, ::every].double().clamp(-12, 12)
    targets = labels[known][::every].double()
    features = torch.cat([features, torch.ones_like(features[:1])])
    place = torch.zeros(len(features), dtype=torch.float64)
    place[:-1] = 1 / len(logits)
    for _ in range(_NEWTON_STEPS):
        probs = torch.sigmoid(place @ features)
        information = features * (probs * (1 - probs)) @ features.T
        information += _RIDGE * torch.eye(len(features), dtype=torch.float64)
        step = torch.linalg.solve(information, features @ (targets - probs))
        place = place + step.clamp(-1.0, 1.0)
    weights = place[:-1].clamp(min=0)
    return weights / weights.sum() if weights.any() else torch.full_like(weights, 1 / len(weights))
