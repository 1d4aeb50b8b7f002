"""Computes a loss and its gradient together, so that backward needs one saved tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from hilltop.errors import HilltopError
from hilltop.losses.engine import device
from hilltop.losses.reduction import Reduction, divisor

if TYPE_CHECKING:
    from hilltop.losses.base import PairBatch


_PLAIN: tuple[type, ...] = (torch.Tensor, torch.nn.Parameter)


class Summed(NamedTuple):
    """The sum of a loss over the pairs of a batch, before any reduction.

    Attributes:
        total: The sum.
        grad: Its gradient by the logits, None if it is not needed.
        entries: The loss of every pair, where the reduction is ``"none"``.
        known: Number of targets that are not NaN, where they have been counted.
        grad_scale: What the gradient has been multiplied by already.
    """

    total: Tensor | float
    grad: Tensor | None
    entries: Tensor | None = None
    known: int | None = None
    grad_scale: float = 1.0


class Evaluated(NamedTuple):
    """A reduced loss, of which the gradient is ``grad * scale``; a scale of None stands for 1."""

    loss: Tensor
    grad: Tensor | None
    scale: Tensor | float | None


def divide(summed: Summed, targets: Tensor, reduction: Reduction) -> Evaluated:
    """Reduce what was summed up."""
    total, grad, entries, known, done = summed
    if entries is not None:
        return Evaluated(entries, grad, None)
    parts = divisor(targets, reduction, known=known)
    if isinstance(total, Tensor):
        if isinstance(parts, Tensor):
            parts = parts.to(total.dtype)
        loss = total if parts is None else total / parts
    else:
        total = total if parts is None else total / float(parts)
        loss = targets.new_full((), total, dtype=torch.float32)
    if isinstance(parts, Tensor):
        return Evaluated(loss, grad, 1 / (parts * done))
    scale = 1.0 if parts is None else 1 / parts
    return Evaluated(loss, grad, None if scale == done else scale / done)


class OnePass(torch.autograd.Function):
    """A loss whose gradient was found in the forward pass.

    Ordinary autograd keeps every intermediate result of the formula until backward (8 tensors of
    the size of the logits for the released Hill). Here only the gradient is kept.
    """

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        sum_up: Callable[[bool], Summed | Evaluated],
        needs_grad: bool,
        reduced: tuple[PairBatch, Reduction],
    ) -> Tensor:
        """Sum up, reduce, keep the gradient and return the loss."""
        batch, reduction = reduced
        found = sum_up(needs_grad)
        if isinstance(found, Summed):
            found = divide(found, batch.targets, reduction)
        loss, grad, scale = found
        if grad is not None:
            ctx.save_for_backward(grad)
            ctx.scale, ctx.dtype = scale, logits.dtype
        return loss

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor, None, None, None]:
        """Scale the gradient."""
        (grad,) = ctx.saved_tensors
        scale, dtype = ctx.scale, ctx.dtype
        if isinstance(scale, Tensor) and device.runs_on(grad):
            gradient = device.scale_grad(grad, grad_loss, scale, dtype, in_place=not _kept())
            return _final(gradient), None, None, None
        gradient = scaled(grad, grad_loss if scale is None else grad_loss * scale)
        return gradient if gradient.dtype == dtype else gradient.to(dtype), None, None, None


def scaled(grad: Tensor, factor: Tensor) -> Tensor:
    """Return ``grad * factor``, inside a backward that saved the gradient.

    A gradient that is not needed again is scaled in place: new memory of that size costs more time
    than the multiplication, and for the weights of very many classes it may not be there.
    """
    if _kept():
        return _final(grad * factor)
    if factor.is_cpu and factor.ndim == 0 and factor.item() == 1:
        return grad
    return grad.mul_(factor)


def _kept() -> bool:
    """Whether backward may be called again, inside a backward."""
    kept: bool = torch._C._autograd._get_current_graph_task_keep_graph()
    return kept


def _final(gradient: Tensor) -> Tensor:
    """The gradient, which with create_graph=True must not be differentiated."""
    if not torch.is_grad_enabled():
        return gradient
    final: Tensor = _Final.apply(gradient.detach().requires_grad_())
    return final


class _Final(torch.autograd.Function):
    """Passes a gradient on and refuses to be differentiated, which would be silently wrong."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, grad_gradient: Tensor) -> Tensor:
        raise HilltopError(
            "This loss keeps only its first derivative. For second derivatives compute it under"
            " torch.func (grad, hessian, ...) or torch.compile."
        )


def grad_by_autograd(
    entries: Callable[[Tensor], Tensor], logits: Tensor, needs_grad: bool
) -> tuple[Tensor, Tensor | None]:
    """Return ``entries(logits)`` and the gradient of its sum; all between is freed at once."""
    if not needs_grad:
        return entries(logits), None
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        values = entries(leaf)
        (grad,) = torch.autograd.grad(values.sum(), leaf)
    return values.detach(), grad


def traced() -> bool:
    """Whether torch.compile or torch.func is at work, so that no value can be looked at."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def needs_graph(logits: Tensor, *others: Tensor | None) -> bool:
    """Whether torch has to trace the formula itself, rather than one opaque step.

    So it is under ``torch.compile`` (which fuses the formula), inside ``torch.func`` transforms,
    for tensor subclasses, and where something besides the logits wants a gradient.
    """
    if traced():
        return True
    plain = _PLAIN
    if logits.is_cuda and device.is_fake(logits):  # the operators of device.py know such tensors
        plain = (*plain, type(logits))
    if type(logits) not in plain or logits.is_neg():
        return True
    learning = torch.is_grad_enabled()
    for other in others:  # a plain loop: for a small batch, a generator counts
        if other is None:
            continue
        if type(other) not in plain or other.is_neg() or (learning and other.requires_grad):
            return True
    return False
