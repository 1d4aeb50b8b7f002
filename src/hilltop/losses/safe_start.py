"""SafeStart: how a loss that can saturate begins where nobody called ``init_head``."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor, nn

if TYPE_CHECKING:
    from hilltop.losses.base import Loss, PairBatch

# Chosen on splits of training rows (reproduction/safe_start.py --choose), by the cells of COCO and
# the sets that end below cross-entropy and by the mean gain.
_PUSH = 3.0  # bound of the push, in label rates; of 0.3, 1, 3, 6, 10 and 20
_ENOUGH_TOP = 150  # most confident entries to see before anything is decided; of 50 to 300
_COMPLETE = 0.9  # labelled share of them from which on labels look complete; of 0.85 and 0.9
_TOP = 10  # one such entry for so many images of a batch
_WINDOW = 100.0  # how many of them are remembered
_CLOSE = 0.5  # distance of the mean logit from the label rate's at which it counts as there
_CLOSE_TO_BEGIN = 0.25  # the same in the first step, of a head that somebody initialised
_MOST_ABOVE_HALF = 2.0  # unlabelled entries above one half at the end, in label rates
_READ_EVERY = 32  # steps, on devices for which the host would have to wait
_NOT_BEGUN, _RUNNING, _OVER, _COMPLETE_LABELS = range(4)
_LOG = logging.getLogger(__name__)


class SafeStart(nn.Module):
    r"""Cross-entropy of shifted logits, until the head is at the label rate and labels are missing.

    .. math:: L = \mathrm{BCE}(x - \delta,\, y) + g\,(\bar x - b), \qquad
              \delta = \max(m - b,\, 0), \quad b = \log\frac{\pi}{1 - \pi}, \quad
              g = \min(\sigma(m) - \pi,\; 3\,\pi)

    :math:`\bar x` is the mean logit of the batch, m its moving average, and :math:`\pi` the share
    of labels so far. From torch's own start every class begins at probability one half. There a
    loss whose gradient vanishes near 1 can leave unlabelled entries that overshoot, and
    cross-entropy spends its gradient on bringing all logits down, which fills the second moments of
    Adam. Here entries are ranked as if the head had started at the label rate, and a small push
    brings the mean there.

    A loss that forgives confident negatives helps where labels are missing and hurts where they are
    complete. The labelled share of the most confident entries, one for ten images of every batch,
    tells which: cross-entropy ranks labels first, so that an unlabelled entry among them is
    probably a missing label. Once 150 of them were seen,

    - if 90% or more of the last 100 are labelled, labels look complete: the loss is
      cross-entropy for good, which a record of Python's ``logging`` under ``hilltop`` says;
    - otherwise, from the step on at which the mean logit is within 0.5 of b, at most twice the
      label rate of the unlabelled entries are above one half, both as moving averages, and still
      less than 90% of the most confident are labelled, the loss is its own equation, to the bit and
      for good.

    A model that :func:`init_head` prepared for this loss, or whose mean logit begins at the label
    rate's or lower, needs no safe start and gets none. The state is in buffers: it is saved,
    resumed and compiled with the loss. With many processes all see the sums over their batches and
    decide alike, so each of them has to call the loss in every training step.
    """

    stage: Tensor
    sums: Tensor

    def __init__(self) -> None:
        """Begin with the first training step."""
        super().__init__()
        self.register_buffer("stage", torch.tensor(_NOT_BEGUN))
        # Labels, known entries, moving mean logit; labelled, all and ever seen top entries; moving
        # share of unlabelled entries above one half.
        self.register_buffer("sums", torch.zeros(7))
        # As stage, and whether the loss is its equation: known without waiting for a device.
        self.known_stage, self.over = _NOT_BEGUN, False
        self._steps = 0
        self.register_load_state_dict_pre_hook(_over_if_unknown)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_post_hook(_read_stage)  # type: ignore[no-untyped-call]

    def restart(self) -> None:
        """Begin anew, for another run of training, unless it was left out."""
        if not self.sums.any():
            return
        self.sums.zero_()
        self.stage.fill_(_NOT_BEGUN)
        self.read_stage()

    def skip(self) -> None:
        """Leave the safe start out: the head was set to the label rate."""
        self.stage.fill_(_OVER)
        self.read_stage()

    def read_stage(self) -> None:
        """Note the stage, so that no step needs to ask for it."""
        before, self.known_stage = self.known_stage, int(self.stage)
        self.over = self.known_stage == _OVER
        if self.known_stage == _COMPLETE_LABELS != before:
            _LOG.warning(
                "Of the most confident predictions %.0f%% are labelled, so that labels look"
                " complete: this loss stays with cross-entropy. safe_start=False is its equation.",
                100 * float(self.sums[3] / self.sums[4].clamp(min=1)),
            )

    def forward(self, loss: Loss, batch: PairBatch) -> Tensor:
        """Return the loss of a batch, of the safe start or of the equation."""
        logits = batch.logits
        learns = torch.is_grad_enabled() and logits.requires_grad and self.training
        if not learns or not logits.numel() or torch._C._are_functorch_transforms_active():
            return loss.evaluate(batch)
        batch = batch._replace(complete=loss.check_targets(batch.targets))
        if self.known_stage == _COMPLETE_LABELS:
            return loss.reduce(loss.cross_entropy(batch), batch)
        mean = _mean_logit(batch)
        stage, rate = self._advance(batch)
        if not torch.compiler.is_compiling():
            self._steps += 1
            if logits.is_cpu or self._steps % _READ_EVERY == 0:
                self.read_stage()
            if self.over:
                return loss.evaluate(batch)
            if logits.is_cpu:
                return self._shifted_loss(loss, batch, mean, rate)
        shifted = self._shifted_loss(loss, batch, mean, rate)
        return torch.where(stage == _OVER, loss.evaluate(batch), shifted)

    @torch.no_grad()
    def _advance(self, batch: PairBatch) -> tuple[Tensor, Tensor]:
        """Count a batch, move to the next stage if it is time, and return stage and label rate."""
        counts = _count(batch)
        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            dist.all_reduce(counts)
        labels, known, logits, unlabelled, above, hits, top = counts.unbind()
        sums, now = (
            self.sums.clone(),
            (logits / known.clamp(min=1), above / unlabelled.clamp(min=1)),
        )
        first, kept = self.stage == _NOT_BEGUN, torch.exp(-top / _WINDOW)
        mean, above = (
            torch.where(first, new, old + 0.1 * (new - old))
            for new, old in zip(now, (sums[2], sums[6]), strict=True)
        )
        seen = sums[5] + top
        labels, known = sums[0] + labels, sums[1] + known
        hits, remembered = kept * sums[3] + hits, kept * sums[4] + top
        self.sums.copy_(torch.stack([labels, known, mean, hits, remembered, seen, above]))
        rate = (labels / known.clamp(min=1)).clamp(1e-6, 0.5)
        end = torch.logit(rate)

        enough, complete = seen >= _ENOUGH_TOP, hits >= _COMPLETE * remembered
        down = (mean < end + _CLOSE) & (above <= _MOST_ABOVE_HALF * rate)
        needless = first & (mean <= end + _CLOSE_TO_BEGIN)
        found_complete = enough & (sums[5] < _ENOUGH_TOP) & complete
        stage = torch.where(enough & ~complete & down, _OVER, _RUNNING)
        stage = torch.where(found_complete, _COMPLETE_LABELS, stage)
        stage = torch.where(needless, _OVER, stage)
        self.stage.copy_(torch.where(self.stage >= _OVER, self.stage, stage))
        return self.stage, rate

    def _shifted_loss(self, loss: Loss, batch: PairBatch, mean: Tensor, rate: Tensor) -> Tensor:
        """Return the equation of the class, reduced; without shift and push once labels look so."""
        running = (self.stage == _RUNNING).to(rate.dtype)
        end, here = torch.logit(rate), self.sums[2]
        shift = running * (here - end).clamp(min=0)
        strength = running * torch.minimum((torch.sigmoid(here) - rate).clamp(min=0), _PUSH * rate)
        push = strength * (mean - end)
        entries = loss.cross_entropy(batch.with_logits(batch.logits - shift))
        if not batch.complete:
            push = torch.where(batch.targets == batch.targets, push, 0.0)
        return loss.reduce(entries + push, batch)


def _count(batch: PairBatch) -> Tensor:
    """Return what :meth:`SafeStart._advance` adds up over processes and steps."""
    logits, targets = batch.logits.detach().float(), batch.targets
    known = targets == targets  # NaN differs from itself
    logits = torch.where(known, logits, 0.0)
    unlabelled = targets == 0
    top = max(1, logits.numel() // (max(1, logits.shape[-1] if logits.ndim else 1) * _TOP))
    ranked = torch.where(known, logits, -math.inf).flatten().topk(top).indices
    labelled = torch.where(known, targets, 0).float()
    return torch.stack([
        labelled.sum(),
        known.sum(),
        logits.sum(),
        unlabelled.sum(),
        (unlabelled & (logits > 0)).sum(),
        labelled.flatten()[ranked].sum(),
        torch.full((), top, device=logits.device),
    ])  # fmt: skip


def _mean_logit(batch: PairBatch) -> Tensor:
    """Return the mean logit of known entries, differentiable."""
    logits = batch.logits if batch.logits.dtype == torch.float64 else batch.logits.float()
    if batch.complete:
        return logits.mean()
    known = batch.targets == batch.targets
    return torch.where(known, logits, 0.0).sum() / known.sum().clamp(min=1)


def _over_if_unknown(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Take a safe start that a saved state does not know of for over: training was under way."""
    state.setdefault(f"{prefix}stage", torch.tensor(_OVER))
    state.setdefault(f"{prefix}sums", torch.zeros(7))


def _read_stage(module: nn.Module, _: object) -> None:
    assert isinstance(module, SafeStart)
    module.read_stage()
