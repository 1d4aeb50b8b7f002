"""A loss made of terms, computed by the compiled kernel where the kernel can express it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hilltop.losses.base import PairBatch
from hilltop.losses.engine import kernel
from hilltop.losses.engine.one_pass import Summed
from hilltop.losses.targets import check_values
from hilltop.losses.terms.base import fused_form, overrides_forward
from hilltop.losses.terms.correction import Correction, SelectiveCorrection

if TYPE_CHECKING:
    from hilltop.losses.compose import MultiLabelLoss


def kernel_form(loss: MultiLabelLoss, batch: PairBatch) -> kernel.FusedLoss | None:
    """Return a loss for the kernel, or None if the kernel cannot run it on such a batch."""
    logits = batch.logits
    if logits.dtype == torch.float64 or not logits.is_cpu or kernel.library() is None:
        return None
    classes = logits.shape[-1] if logits.ndim else 1
    terms: dict[str, Any] = loss._modules  # read straight: for a small batch, look-ups count
    positive = fused_form(terms["positive"], classes)
    negative = fused_form(terms["negative"], classes)
    pseudo = positive
    confirmed = None if loss.confirmed is None else fused_form(loss.confirmed, classes)
    if loss.correction is not None and loss.pseudo_positive is not None:
        pseudo = fused_form(loss.pseudo_positive, classes)
    pseudo_above = _pseudo_above(loss.correction, batch.epoch)
    if positive is None or negative is None or pseudo is None or pseudo_above is None:
        return None
    if loss.confirmed is not None and confirmed is None:
        return None
    if loss.pseudo_positive is not None and pseudo.by_class:
        return None
    adds_pseudo_labels = (
        isinstance(loss.correction, SelectiveCorrection) and loss.correction.adds_pseudo_labels
    )
    return kernel.FusedLoss(
        positive,
        negative,
        pseudo,
        confirmed,
        pseudo_above,
        loss.label_smoothing,
        adds_pseudo_labels,
    )


def _pseudo_above(correction: Correction | None, epoch: Tensor) -> float | None:
    """The logit above which pairs are pseudo labels; None if the kernel cannot run a correction."""
    if correction is None:
        return math.inf
    if type(correction).extra_loss is not Correction.extra_loss:
        return None
    if isinstance(correction, SelectiveCorrection):  # the kernel is told what was selected
        return math.inf if overrides_forward(correction, "select") else None
    simple = overrides_forward(correction, "pseudo_above")
    return correction.pseudo_above(int(epoch)) if simple else None


def sum_by_kernel(
    loss: MultiLabelLoss,
    form: kernel.FusedLoss,
    batch: PairBatch,
    weights: tuple[Tensor | None, Tensor | None],
    needs_grad: bool,
) -> Summed:
    """Return the sum of the loss and its gradient, found together."""
    logits, targets, observed, index, epoch = batch
    logits, targets = logits.float().contiguous(), targets.float().contiguous()
    observed = None if observed is None else observed.contiguous()
    batch = PairBatch(logits, targets, observed, index, epoch)
    selected = None
    if isinstance(loss.correction, SelectiveCorrection):
        check_values(targets)  # or wrong targets would be remembered
        selected = loss.correction.selected(batch, learning=needs_grad).contiguous()
    result = kernel.loss_and_grad(
        form,
        batch,
        selected,
        *weights,
        by_class=(
            loss.positive.by_class(logits) if form.positive.by_class else None,
            loss.negative.by_class(logits) if form.negative.by_class else None,
        ),
        want_entries=loss.reduction == "none",
        needs_grad=needs_grad,
    )
    if result.invalid:
        check_values(targets)
    return Summed(result.total, result.grad, result.entries, result.known)
