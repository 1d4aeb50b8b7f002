"""A loss made of terms, computed by the compiled kernel where the kernel can express it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hilltop.losses.base import PairBatch
from hilltop.losses.engine import device, kernel
from hilltop.losses.engine.one_pass import Evaluated, Summed
from hilltop.losses.reduction import divisor
from hilltop.losses.targets import check_values
from hilltop.losses.terms.base import fused_form, overrides_forward
from hilltop.losses.terms.correction import Correction, PseudoAbove, SelectiveCorrection

if TYPE_CHECKING:
    from hilltop.losses.compose import MultiLabelLoss


_NEVER = PseudoAbove(math.inf)


def kernel_form(loss: MultiLabelLoss, batch: PairBatch) -> kernel.FusedLoss | None:
    """Return a loss for the kernels, or None if none of them can run it on such a batch."""
    logits = batch.logits
    on_device = device.runs_on(logits)
    on_cpu = logits.is_cpu and logits.dtype != torch.float64 and kernel.library() is not None
    if not on_cpu and not on_device:
        return None
    classes = logits.shape[-1] if logits.ndim else 1
    terms: dict[str, Any] = loss._modules  # read straight: for a small batch, look-ups count
    positive = fused_form(terms["positive"], classes)
    negative = fused_form(terms["negative"], classes)
    pseudo = positive
    correction, own_pseudo, own_confirmed = loss.correction, loss.pseudo_positive, loss.confirmed
    confirmed = None if own_confirmed is None else fused_form(own_confirmed, classes)
    if correction is not None and own_pseudo is not None:
        pseudo = fused_form(own_pseudo, classes)
    above = _pseudo_above(correction)
    if above is not None and not (on_device and batch.epoch.device == logits.device):
        above = _at(above, batch.epoch)
    if positive is None or negative is None or pseudo is None or above is None:
        return None
    if own_confirmed is not None and (confirmed is None or confirmed.by_class):
        return None
    if own_pseudo is not None and pseudo.by_class:
        return None
    adds_pseudo_labels = (
        isinstance(correction, SelectiveCorrection) and correction.adds_pseudo_labels
    )
    return kernel.FusedLoss(
        positive,
        negative,
        pseudo,
        confirmed,
        above.logit,
        loss.label_smoothing,
        adds_pseudo_labels,
        above.start_epoch,
    )


def _pseudo_above(correction: Correction | None) -> PseudoAbove | None:
    """The logit above which pairs are pseudo labels; None if no kernel can run a correction."""
    if correction is None:
        return _NEVER
    if type(correction).extra_loss is not Correction.extra_loss:
        return None
    if isinstance(correction, SelectiveCorrection):  # the kernel is told what was selected
        return _NEVER if overrides_forward(correction, "select") else None
    return correction.pseudo_above() if overrides_forward(correction, "pseudo_above") else None


def _at(above: PseudoAbove, epoch: Tensor) -> PseudoAbove:
    """What holds in an epoch, for a kernel that cannot compare it itself."""
    begun = above.start_epoch == 0 or int(epoch) >= above.start_epoch
    return PseudoAbove(above.logit) if begun else _NEVER


def sum_by_kernel(
    loss: MultiLabelLoss,
    form: kernel.FusedLoss,
    batch: PairBatch,
    weights: tuple[Tensor | None, Tensor | None],
    needs_grad: bool,
) -> Summed | Evaluated:
    """Return the sum of the loss and its gradient, found together; on a device reduced as well."""
    run = _on_device if device.runs_on(batch.logits) else _on_cpu
    return run(loss, form, batch, weights, needs_grad)


def _on_device(
    loss: MultiLabelLoss,
    form: kernel.FusedLoss,
    batch: PairBatch,
    weights: tuple[Tensor | None, Tensor | None],
    needs_grad: bool,
) -> Evaluated:
    selected = None
    if isinstance(loss.correction, SelectiveCorrection):
        exact = batch.with_values(batch.logits.float(), batch.targets.float())
        selected = loss.correction.selected(exact, learning=needs_grad).contiguous()
    seen = loss.checks.seen(batch.logits.device)
    by_class = _by_class(loss, form, batch.logits)
    return Evaluated(
        *device.loss_on_device(
            form, batch, selected, weights, by_class, seen, loss.reduction, needs_grad
        )
    )


def _by_class(
    loss: MultiLabelLoss, form: kernel.FusedLoss, logits: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """The numbers for each class of the positive and of the negative term, where they have such."""
    return (
        loss.positive.by_class(logits) if form.positive.by_class else None,
        loss.negative.by_class(logits) if form.negative.by_class else None,
    )


def _on_cpu(
    loss: MultiLabelLoss,
    form: kernel.FusedLoss,
    batch: PairBatch,
    weights: tuple[Tensor | None, Tensor | None],
    needs_grad: bool,
) -> Summed | Evaluated:
    batch = _plain(batch)
    logits, targets = batch.logits, batch.targets
    selected = None
    if isinstance(loss.correction, SelectiveCorrection):
        check_values(targets)  # or wrong targets would be remembered
        selected = loss.correction.selected(batch, learning=needs_grad).contiguous()
    reduction = loss.reduction
    parts = divisor(targets, reduction, known=targets.numel())
    scale = 1.0 if parts is None else 1 / float(parts)
    result = kernel.loss_and_grad(
        form,
        batch,
        selected,
        *weights,
        by_class=_by_class(loss, form, logits),
        want_entries=reduction == "none",
        needs_grad=needs_grad,
        grad_scale=scale,
    )
    if result.invalid:
        check_values(targets)
    if reduction == "none" or result.known < targets.numel():
        return Summed(result.total, result.grad, result.entries, result.known, scale)
    total = result.total if parts is None else result.total / float(parts)
    value = targets.new_full((), total, dtype=torch.float32)
    return Evaluated(value, result.grad, None)


def _plain(batch: PairBatch) -> PairBatch:
    """The batch as the kernel takes it; mostly it is so already."""
    logits, targets, observed, index, epoch = batch
    if logits.dtype != torch.float32 or targets.dtype != torch.float32:
        logits, targets = logits.float(), targets.float()
    observed = None if observed is None else observed.contiguous()
    return PairBatch(logits.contiguous(), targets.contiguous(), observed, index, epoch)
