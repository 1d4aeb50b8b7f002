"""SafeStart: how a loss that can saturate begins where nobody called ``init_head``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from hilltop.losses.base import Loss, PairBatch

_PUSH = 20.0
"""Bound of the push, in label rates. Chosen among 3, 6, 10, 20, 30 and 100 on training rows alone
(``reproduction/safe_start.py --choose --push 10``): the smallest with which Hill and ASL end at
most 0.5 mAP below cross-entropy with Adam on COCO features. Smaller ones gain more at small
learning rates."""
_CLOSE = 0.5  # distance of the mean logit from its end at which it counts as there
_CLOSE_TO_BEGIN = 0.25  # the same for where init_head puts it
_MOST_ABOVE_HALF = 2.0  # unlabelled entries above one half at the end, in label rates
_READ_EVERY = 32  # steps, on devices for which the host would have to wait
_NOT_BEGUN, _RUNNING, _OVER = 0, 1, 2


class SafeStart(nn.Module):
    r"""Cross-entropy of centred logits, until the model has come down to the label rate.

    .. math:: L = \mathrm{BCE}(x - \bar x + b,\, y) + g\,(\bar x - b), \qquad
              b = \log\frac{\pi}{1 - \pi}, \qquad g = \min(\sigma(\bar x) - \pi,\; 20\,\pi)

    :math:`\bar x` is the mean logit of the batch, held constant in the first summand, and
    :math:`\pi` its share of labels. From torch's own start every class begins at probability one
    half. There a loss whose gradient vanishes near 1 can leave unlabelled entries that overshoot,
    and cross-entropy spends its gradient on bringing all logits down, which fills the second
    moments of Adam. Here entries are ranked as if the head had started at the label rate, and a
    bounded push brings the mean there. Once the mean logit is within 0.5 of b and at most twice the
    label rate of the unlabelled entries are above one half, the loss is its own equation, to the
    bit and for good. A model that begins where :func:`init_head` would put it, or lower, needs no
    safe start and gets none.

    The stage is a buffer: it is saved, resumed and compiled with the loss. With many processes each
    decides by its own batches.
    """

    stage: Tensor

    def __init__(self) -> None:
        """Begin with the first training step."""
        super().__init__()
        self.register_buffer("stage", torch.tensor(_NOT_BEGUN))
        self.begun = self.over = False  # the same as stage, known without waiting for a device
        self._steps = 0
        self.register_load_state_dict_pre_hook(_over_if_unknown)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_post_hook(_read_stage)  # type: ignore[no-untyped-call]

    def restart(self) -> None:
        """Begin anew, for another run of training."""
        self.stage.fill_(_NOT_BEGUN)
        self.read_stage()

    def skip(self) -> None:
        """Leave the safe start out: the head was set to the label rate."""
        self.stage.fill_(_OVER)
        self.read_stage()

    def read_stage(self) -> None:
        """Note the stage, so that no step needs to ask for it."""
        stage = int(self.stage)
        self.begun, self.over = stage != _NOT_BEGUN, stage == _OVER

    def forward(self, loss: Loss, batch: PairBatch) -> Tensor:
        """Return the loss of a batch, of the safe start or of the equation."""
        logits = batch.logits
        learns = torch.is_grad_enabled() and logits.requires_grad and self.training
        if not learns or not logits.numel() or torch._C._are_functorch_transforms_active():
            return loss.evaluate(batch)
        batch = batch._replace(complete=loss.check_targets(batch.targets))
        mean, rate = _mean_and_rate(batch)
        running = self._advance(loss, batch, mean.detach(), rate)
        if not torch.compiler.is_compiling():
            self._steps += 1
            if logits.is_cpu or self._steps % _READ_EVERY == 0:
                self.read_stage()
            if self.over:
                return loss.evaluate(batch)
            if logits.is_cpu:
                return _centred_loss(loss, batch, mean, rate)
        return torch.where(running, _centred_loss(loss, batch, mean, rate), loss.evaluate(batch))

    @torch.no_grad()
    def _advance(self, loss: Loss, batch: PairBatch, mean: Tensor, rate: Tensor) -> Tensor:
        """Return whether the safe start is running, and remember it."""
        end = torch.logit(rate)
        unlabelled = batch.targets == 0
        above = (unlabelled & (batch.logits > 0)).sum() / unlabelled.sum().clamp(min=1)
        running = (mean > end + _CLOSE) | (above > _MOST_ABOVE_HALF * rate)
        if not self.begun:
            needed = mean > torch.maximum(loss.start_logit(rate), end) + _CLOSE_TO_BEGIN
            running = torch.where(self.stage == _NOT_BEGUN, needed, running)
        running = running & (self.stage != _OVER)
        self.stage.copy_(torch.where(running, _RUNNING, _OVER))
        return running


def _centred_loss(loss: Loss, batch: PairBatch, mean: Tensor, rate: Tensor) -> Tensor:
    """Return the equation of :class:`SafeStart`, reduced."""
    end, here = torch.logit(rate), mean.detach()
    push = torch.minimum(torch.sigmoid(here) - rate, _PUSH * rate) * (mean - end)
    entries = loss.cross_entropy(batch.with_logits(batch.logits + (end - here)))
    if not batch.complete:
        push = torch.where(batch.targets == batch.targets, push, 0.0)
    return loss.reduce(entries + push, batch)


def _mean_and_rate(batch: PairBatch) -> tuple[Tensor, Tensor]:
    """Return the mean logit and the share of labels among known entries."""
    logits = batch.logits if batch.logits.dtype == torch.float64 else batch.logits.float()
    if batch.complete:
        return logits.mean(), batch.targets.to(logits.dtype).mean().clamp(1e-6, 0.5)
    known = batch.targets == batch.targets
    count = known.sum().clamp(min=1)
    labels = torch.where(known, batch.targets, 0).sum(dtype=logits.dtype)
    return torch.where(known, logits, 0.0).sum() / count, (labels / count).clamp(1e-6, 0.5)


def _over_if_unknown(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Take a safe start that a saved state does not know of for over: training was under way."""
    state.setdefault(f"{prefix}stage", torch.tensor(_OVER))


def _read_stage(module: nn.Module, _: object) -> None:
    assert isinstance(module, SafeStart)
    module.read_stage()
