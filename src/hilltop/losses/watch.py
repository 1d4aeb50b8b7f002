"""Says in words when training is going flat, early enough to start again."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from hilltop.errors import HilltopWarning
from hilltop.losses.deferred import Arriving

_REMEDY = (
    " Start the head where this loss is least, hilltop.losses.init_head(model, criterion, targets),"
    " or lower the learning rate; watch=False silences this warning."
)
_ENOUGH_PAIRS = 200  # fewer say little


class CollapseWatch:
    """Looks at a few batches of the first epochs and warns, once, if training is going flat.

    Losses that forgive confident negatives, or turn them over, have nothing that brings a pair
    back once it has got near probability 1 by mistake, as it does from a head at bias 0 and a
    brisk learning rate. The watch counts training steps. At steps 10, 30, 100, 300 and 1000 it
    looks at the unlabelled pairs: how many are above 0.9, how many are above 0.5 still, and whether
    every image gets the same numbers. No step waits for a device: what was seen there is said once
    it has arrived. It keeps nothing that belongs into a checkpoint.
    """

    looks = frozenset((10, 30, 100, 300, 1000))

    def __init__(self) -> None:
        """Start counting."""
        self.steps = 0
        self.warned = False
        self._look: tuple[int, Arriving] | None = None  # taken at a step, and not yet thought about

    def step(self, logits: Tensor, targets: Tensor) -> None:
        """Count a training step and, at some of them, look. Under ``torch.compile`` do nothing."""
        if torch.compiler.is_compiling() or not logits.requires_grad:
            return
        self.steps += 1
        if self.steps in self.looks and not torch._C._are_functorch_transforms_active():
            self._look = self.steps, Arriving(_measure(logits.detach(), targets))
        if self._look is None or self.warned or not self._look[1].arrived():
            return
        step, numbers = self._look
        self._look, said = None, _said(step, *numbers.read())
        if said:
            self.warned = True
            said = f"Training is going flat: after {step} steps {said}.{_REMEDY}"
            warnings.warn(said, HilltopWarning, stacklevel=4)


def _measure(logits: Tensor, targets: Tensor) -> Tensor:
    """What :func:`_said` asks for, after the step."""
    unlabelled, labelled, known = targets == 0, targets > 0, targets == targets
    count = unlabelled.sum()
    sure, likely = (((logits > limit) & unlabelled).sum() for limit in (2.2, 0.0))
    shares = labelled.sum() / known.sum(), sure / count, likely / count
    return torch.stack([count.float(), *shares, _spread(logits)])


def _spread(logits: Tensor) -> Tensor:
    """How far the numbers of different images lie apart; infinitely, if there are too few."""
    if logits.ndim < 2 or logits.shape[:-1].numel() < 8:
        return torch.full((), math.inf, device=logits.device)
    rows = logits.reshape(-1, logits.shape[-1]).float()
    return (rows.amax(dim=0) - rows.amin(dim=0)).max()


def _said(
    step: int, count: float, density: float, sure: float, likely: float, spread: float
) -> str:
    """What is wrong with a batch, or nothing."""
    if count < _ENOUGH_PAIRS:
        return ""
    compared = f"where {density:.1%} of all pairs are labelled"
    # Labels that are missing account for a few times the labelled share, not for more.
    if sure > 0.05 + 3 * density:
        return f"{sure:.0%} of the unlabelled pairs are above probability 0.9, {compared}"
    if step >= 30 and likely > 0.25 + 3 * density:
        return f"{likely:.0%} of the unlabelled pairs are above probability 0.5, {compared}"
    if step >= 100 and spread < 1e-3:
        return "every image gets the same probabilities"
    return ""
