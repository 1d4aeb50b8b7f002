"""Several models' scores as one: each counts as far as it tells something about the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import torch
from torch import Tensor

from hilltop.calibration import Belief, Calibration, believe, fit_observation

_MOST_ENTRIES = 1_000_000
_NEWTON_STEPS = 12
_RIDGE = 1.0
_REMEMBERED = 4


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


class CalibrationMemory:
    """Calibrations by scores and labels: who is compared with many others is fitted once."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[bytes, Calibration] = {}

    def calibration(self, logits: Tensor, labels: Tensor, confirmed: Tensor | None) -> Calibration:
        """Return the calibration of one model's scores; arguments as in :func:`reach_consensus`."""
        digest = blake2b()
        for part in (logits, labels) if confirmed is None else (logits, labels, confirmed):
            digest.update(part.numpy().tobytes())
        found = self._known.pop(digest.digest(), None)
        if found is None:
            found = fit_observation(logits, labels, observed=confirmed).calibration
        self._known[digest.digest()] = found  # the latest is last
        while len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        return found


def reach_consensus(
    logits: Sequence[Tensor],
    labels: Tensor,
    confirmed: Tensor | None,
    *,
    memory: CalibrationMemory,
) -> Consensus:
    """Blend the scores of models.

    Args:
        logits: By each model ``(N, C)``.
        labels: 1 for labelled, 0 for not labelled, NaN for a pair that takes no part.
        confirmed: True where a person confirmed the label.
        memory: Models that were calibrated before.
    """
    if len(logits) == 1:
        return Consensus(logits[0], believe(logits[0], labels, observed=confirmed), None)
    moved = [memory.calibration(one, labels, confirmed)(one) for one in logits]
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
