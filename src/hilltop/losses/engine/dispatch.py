"""A loss made of terms, computed by the compiled kernel where the kernel can express it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hilltop.losses.engine import kernel
from hilltop.losses.engine.one_pass import Evaluated
from hilltop.losses.reduction import divisor
from hilltop.losses.targets import check_values
from hilltop.losses.terms.base import fused_form, overrides_forward
from hilltop.losses.terms.correction import Correction, SelectiveCorrection

if TYPE_CHECKING:
    from hilltop.losses.compose import MultiLabelLoss


def kernel_form(loss: MultiLabelLoss, logits: Tensor) -> kernel.FusedLoss | None:
    """Return a loss for the kernel, or None if the kernel cannot run it on such logits."""
    if logits.dtype == torch.float64 or not logits.is_cpu or kernel.library() is None:
        return None
    classes = logits.shape[-1] if logits.ndim else 1
    positive, negative = fused_form(loss.positive, classes), fused_form(loss.negative, classes)
    recovered = positive
    confirmed = None if loss.confirmed is None else fused_form(loss.confirmed, classes)
    if loss.correction is not None and loss.recovered is not None:
        recovered = fused_form(loss.recovered, classes)
    flip_above = _flips_above(loss.correction, loss.epoch)
    if positive is None or negative is None or recovered is None or flip_above is None:
        return None
    if loss.confirmed is not None and confirmed is None:
        return None
    if loss.recovered is not None and recovered.by_class:
        return None
    adds_pseudo_labels = (
        isinstance(loss.correction, SelectiveCorrection) and loss.correction.adds_pseudo_labels
    )
    return kernel.FusedLoss(
        positive,
        negative,
        recovered,
        confirmed,
        flip_above,
        loss.label_smoothing,
        adds_pseudo_labels,
    )


def _flips_above(correction: Correction | None, epoch: Tensor) -> float | None:
    """The logit above which pairs are turned over; None if the kernel cannot run a correction."""
    if correction is None:
        return math.inf
    if type(correction).further is not Correction.further:
        return None
    if isinstance(correction, SelectiveCorrection):  # the kernel is told what was picked
        return math.inf if overrides_forward(correction, "pick") else None
    simple = overrides_forward(correction, "flips_above")
    return correction.flips_above(int(epoch)) if simple else None


def evaluate_by_kernel(
    loss: MultiLabelLoss,
    form: kernel.FusedLoss,
    logits: Tensor,
    targets: Tensor,
    observed: Tensor | None,
    index: Tensor | None,
    weights: tuple[Tensor | None, Tensor | None],
    needs_grad: bool,
) -> Evaluated:
    """Return the reduced loss and its slope, found together."""
    logits, targets = logits.float().contiguous(), targets.float().contiguous()
    picked = None
    if isinstance(loss.correction, SelectiveCorrection):
        check_values(targets)  # or wrong targets would be remembered
        picked = loss.correction.picked(
            logits,
            targets=targets,
            observed=observed,
            epoch=loss.epoch,
            index=index,
            learning=needs_grad,
        ).contiguous()
    result = kernel.loss_and_grad(
        form,
        logits,
        targets,
        None if observed is None else observed.contiguous(),
        picked,
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
    if result.entries is not None:
        return Evaluated(result.entries, result.slope, None)
    parts = divisor(targets, loss.reduction, known=result.known)
    total = result.total if parts is None else result.total / float(parts)
    value = logits.new_full((), total)
    return Evaluated(value, result.slope, None if parts is None else 1 / parts)
