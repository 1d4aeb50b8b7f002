"""Runs the counted likelihood on a GPU by triton_count.py, as an operator that never waits for it.

Images with more classes than a block holds are left to torch, as on any other device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hilltop.losses.engine import device
from hilltop.losses.reduction import Reduction

if TYPE_CHECKING:
    from hilltop.losses.base import PairBatch
    from hilltop.losses.likelihood.count_rule import CountRule

MOST_CLASSES = 1024  # of an image whose states fit into the registers of a block
_LANES_PER_WARP = 128
_REGISTERS = 255  # all that a thread can have; left to choose, ptxas stops at 128 and spills
_forms: list[CountForm] = []
_numbers: dict[CountForm, int] = {}


class CountForm(NamedTuple):
    """A rule and its warm-up as the kernel knows them: numbers that the compiler sees."""

    keep_over: int
    keep_under: int
    restore_prob: float
    log_restore: float
    lost_prob: float
    warmup_epochs: int

    @classmethod
    def of(cls, rule: CountRule, warmup_epochs: int) -> CountForm:
        """Write a rule down."""
        restored = rule.restore_prob
        log_restore = math.log(restored) if restored else 0.0
        keep = rule.keep.numerator, rule.keep.denominator
        return cls(*keep, restored, log_restore, 1 - restored, warmup_epochs)


def counts_on(logits: Tensor) -> bool:
    """Whether the kernel can take these logits."""
    classes = logits.shape[-1] if logits.ndim else 1
    if classes > MOST_CLASSES or not device.runs_on(logits):
        return False
    return device.is_fake(logits) or _usable(logits.device)


@lru_cache
def _usable(where: torch.device) -> bool:
    return lanes_can_be_read() and device.can_launch(_count_once, where)


def lanes_can_be_read() -> bool:
    """Whether Triton lets a lane read another one, as that of torch 2.7 and later does."""
    import triton.language as tl

    return hasattr(tl, "gather")


def _count_once(where: torch.device) -> None:
    one, seen = torch.zeros(1, 1, device=where), torch.zeros(3, device=where)
    form = _form_number(CountForm(1, 2, 0.0, 0.0, 1.0, 0))
    torch.ops.hilltop.count_loss_and_grad(one, one, None, None, seen, form, 1.0, "mean", True)


def _form_number(form: CountForm) -> int:
    """Return a number that stands for a form: operators take numbers and tensors only."""
    if form not in _numbers:
        _forms.append(form)
        _numbers[form] = len(_forms) - 1
    return _numbers[form]


def count_loss_on_device(
    form: CountForm, batch: PairBatch, extremes: Tensor, reduction: Reduction, needs_grad: bool
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Return the reduced loss, its gradient, and what that is still to be multiplied by.

    ``extremes`` learns how far targets go below 0, the highest one and a soft one. A pair with any
    other target than 0, 1 and NaN makes the loss NaN and has no gradient.
    """
    logits, targets, observed = (
        None if part is None else part.detach().contiguous() for part in batch[:3]
    )
    epoch, share = None, 1.0
    if form.warmup_epochs:
        if batch.epoch.device == batch.logits.device:
            epoch = batch.epoch
        else:
            share = min(1.0, int(batch.epoch) / form.warmup_epochs)
    loss, scale, grad = torch.ops.hilltop.count_loss_and_grad(
        logits, targets, observed, epoch, extremes, _form_number(form), share, reduction, needs_grad
    )
    return loss, grad if needs_grad else None, scale


class CountEntries(torch.autograd.Function):
    """The loss of every entry, where the candidates of an image share theirs evenly."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        targets: Tensor,
        observed: Tensor | None,
        evaluate: Callable[[bool], tuple[Tensor, Tensor | None, Tensor]],
    ) -> Tensor:
        """Evaluate, and keep the gradient: what the candidates share has one by each of them."""
        entries, grad, _ = evaluate(ctx.needs_input_grad[0])
        if grad is not None:
            ctx.save_for_backward(grad, targets, observed)
            ctx.dtype = logits.dtype
        return entries

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor, None, None, None]:
        """Give every candidate the mean of what comes for all of its image."""
        grad, targets, observed = ctx.saved_tensors
        candidates = targets == 0 if observed is None else (targets == 0) & ~observed
        number = candidates.sum(dim=-1, keepdim=True).clamp(min=1)
        mean = torch.where(candidates, grad_loss, 0.0).sum(dim=-1, keepdim=True) / number
        gradient = grad * torch.where(candidates, mean, grad_loss)
        return gradient.to(ctx.dtype), None, None, None


def launch_options(classes: int) -> dict[str, Any]:
    """Return how the kernel is launched for so many classes: four lanes a thread, if there are."""
    block = max(16, 1 << (classes - 1).bit_length())
    warps = max(1, block // _LANES_PER_WARP)
    return {**device.LAUNCH, "block": block, "num_warps": warps, "maxnreg": _REGISTERS}


def _count_loss_and_grad(
    logits: Tensor,
    targets: Tensor,
    observed: Tensor | None,
    epoch: Tensor | None,
    extremes: Tensor,
    form: int,
    share: float,
    reduction: str,
    needs_grad: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    from hilltop.losses.engine import triton_count, triton_kernel

    loss, scale, grad = device.room(logits, reduction, needs_grad)
    classes = logits.shape[-1] if logits.ndim else 1
    rows = logits.numel() // classes
    partials = logits.new_empty(triton_count.FIELDS * rows, dtype=torch.float32)
    by_entry = reduction == "none"
    written = grad if needs_grad else None, loss if by_entry else None, partials
    total = scale if by_entry else loss  # nobody reads it where entries are wanted
    with device.launching_on(logits):
        triton_count.count_kernel[(rows,)](
            logits, targets, observed, epoch, *written, classes, rows, share,
            form=_forms[form], **launch_options(classes),
        )  # fmt: skip
        triton_kernel.finish_kernel[(1,)](
            partials, rows, device.divided_by(logits, reduction), total, scale, extremes,
            hard=True, block=triton_kernel.BLOCK, **device.LAUNCH,
        )  # fmt: skip
    return loss, scale, grad


def _fake(logits: Tensor, *given: Any) -> tuple[Tensor, Tensor, Tensor]:
    *_, reduction, needs_grad = given
    return device.room(logits, reduction, needs_grad)


_operators: Any = torch.library.Library("hilltop", "FRAGMENT")  # type: ignore[no-untyped-call]  # torch's
_operators.define(
    "count_loss_and_grad(Tensor logits, Tensor targets, Tensor? observed, Tensor? epoch,"
    " Tensor(a!) extremes, int form, float share, str reduction, bool needs_grad)"
    " -> (Tensor, Tensor, Tensor)"
)
_operators.impl("count_loss_and_grad", _count_loss_and_grad, "CompositeExplicitAutograd")
torch.library.register_fake("hilltop::count_loss_and_grad", _fake, lib=_operators)
