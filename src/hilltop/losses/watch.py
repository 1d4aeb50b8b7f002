"""CollapseWatch: warns when training saturates, early enough to start again."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from hilltop.errors import HilltopWarning

_REMEDY = (
    " Start the head where this loss is least, hilltop.losses.init_head(model, criterion, targets),"
    " or lower the learning rate; watch=False silences this warning."
)
_ENOUGH_ENTRIES = 200  # fewer say little


class CollapseWatch:
    """Looks at a few batches of the first epochs and warns, once, if training saturates.

    The gradient of losses that forgive confident negatives vanishes near probability 1, so nothing
    brings an entry back that got there by mistake, and corrections confirm such entries. The watch
    counts training steps. At steps 10, 30, 100, 300 and 1000 it looks at the unlabelled entries:
    how many are above 0.9, how many are still above 0.5, and whether every image gets the same
    numbers. These are the only steps that wait for an accelerator. The watch keeps nothing that
    belongs into a checkpoint.
    """

    looks = frozenset((10, 30, 100, 300, 1000))

    def __init__(self) -> None:
        """Start counting."""
        self.steps = 0
        self.warned = False

    def step(self, logits: Tensor, targets: Tensor, *, starting: bool = False) -> None:
        """Count a training step and, at some of them, look. Under ``torch.compile`` do nothing.

        Args:
            logits: Raw model output.
            targets: As the loss gets them.
            starting: Whether the safe start is running, in which nothing can saturate. It should be
                over within 100 steps.
        """
        if torch.compiler.is_compiling() or not logits.requires_grad:
            return
        self.steps += 1
        if self.steps not in self.looks or self.warned or (starting and self.steps < 100):
            return
        if torch._C._are_functorch_transforms_active() or _has_no_values(logits):
            return
        problem = _problem(self.steps, *_measure(logits.detach(), targets).tolist())
        if problem:
            self.warned = True
            happens = "The head starts slowly" if starting else "Training saturates"
            message = f"{happens}: after {self.steps} steps {problem}.{_REMEDY}"
            warnings.warn(message, HilltopWarning, stacklevel=4)


def _has_no_values(logits: Tensor) -> bool:
    if logits.is_cuda and torch.cuda.is_current_stream_capturing():
        return True
    return logits.is_meta or isinstance(logits, torch._subclasses.FakeTensor)


def _measure(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the arguments of :func:`_problem` after the step."""
    unlabelled, labelled, known = targets == 0, targets > 0, targets == targets
    count = unlabelled.sum()
    sure, likely = (((logits > limit) & unlabelled).sum() for limit in (2.2, 0.0))
    shares = labelled.sum() / known.sum(), sure / count, likely / count
    return torch.stack([count.float(), *shares, _spread(logits)])


def _spread(logits: Tensor) -> Tensor:
    """Return how far the numbers of different images lie apart; infinity if there are too few."""
    if logits.ndim < 2 or logits.shape[:-1].numel() < 8:
        return torch.full((), math.inf, device=logits.device)
    rows = logits.reshape(-1, logits.shape[-1]).float()
    return (rows.amax(dim=0) - rows.amin(dim=0)).max()


def _problem(
    step: int, count: float, rate: float, sure: float, likely: float, spread: float
) -> str:
    """Return what is wrong with a batch, or an empty string."""
    if count < _ENOUGH_ENTRIES:
        return ""
    compared = f"where {rate:.1%} of all entries are labelled"
    # Missing labels account for a few times the labelled share, not for more.
    if sure > 0.05 + 3 * rate:
        return f"{sure:.0%} of the unlabelled entries are above probability 0.9, {compared}"
    if step >= 30 and likely > 0.25 + 3 * rate:
        return f"{likely:.0%} of the unlabelled entries are above probability 0.5, {compared}"
    if step >= 100 and spread < 1e-3:
        return "every image gets the same probabilities"
    return ""
