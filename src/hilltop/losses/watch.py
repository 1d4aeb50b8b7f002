"""Says in words when training is going flat, early enough to start again."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from hilltop.errors import HilltopWarning

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
    every image gets the same numbers. It keeps nothing that belongs into a checkpoint.
    """

    looks = frozenset((10, 30, 100, 300, 1000))

    def __init__(self) -> None:
        """Start counting."""
        self.steps = 0
        self.warned = False

    def step(self, logits: Tensor, targets: Tensor) -> None:
        """Count a training step and, at some of them, look. Under ``torch.compile`` do nothing."""
        if torch.compiler.is_compiling() or not logits.requires_grad:
            return
        self.steps += 1
        if self.steps not in self.looks or self.warned:
            return
        if torch._C._are_functorch_transforms_active():
            return
        said = self._said(logits.detach(), targets)
        if said:
            self.warned = True
            said = f"Training is going flat: after {self.steps} steps {said}.{_REMEDY}"
            warnings.warn(said, HilltopWarning, stacklevel=4)

    def _said(self, logits: Tensor, targets: Tensor) -> str:
        """What is wrong with this batch, or nothing."""
        unlabelled = logits[targets == 0].float()
        if len(unlabelled) < _ENOUGH_PAIRS:
            return ""
        labelled = (targets > 0).sum() / (targets == targets).sum()
        shares = [(unlabelled > 2.2).float().mean(), (unlabelled > 0).float().mean()]
        density, sure, likely = torch.stack([labelled, *shares]).tolist()
        compared = f"where {density:.1%} of all pairs are labelled"
        # Labels that are missing account for a few times the labelled share, not for more.
        if sure > 0.05 + 3 * density:
            return f"{sure:.0%} of the unlabelled pairs are above probability 0.9, {compared}"
        if self.steps >= 30 and likely > 0.25 + 3 * density:
            return f"{likely:.0%} of the unlabelled pairs are above probability 0.5, {compared}"
        rows = logits.reshape(-1, logits.shape[-1]) if logits.ndim > 1 else logits.new_empty(0, 1)
        if self.steps >= 100 and len(rows) >= 8:
            spread = (rows.amax(dim=0) - rows.amin(dim=0)).max()
            if spread < 1e-3:
                return "every image gets the same probabilities"
        return ""
