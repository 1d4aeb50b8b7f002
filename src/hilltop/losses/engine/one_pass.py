"""Computes a loss and its slope together, so that backward needs one saved tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hilltop.errors import HilltopError


class Evaluated(NamedTuple):
    """A reduced loss and what its gradient takes.

    The gradient of the loss by the logits is ``slope * scale``; ``slope`` is None if not wanted,
    ``scale`` is None for 1.
    """

    loss: Tensor
    slope: Tensor | None
    scale: Tensor | float | None


class OnePass(torch.autograd.Function):
    """A loss whose slope was found in the forward pass.

    Ordinary autograd keeps every intermediate result of the formula until backward (8 tensors of
    the size of the logits for the released Hill). Here only the slope is kept.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, evaluate: Callable[[Tensor], Evaluated]) -> Tensor:
        """Evaluate, keep the slope and return the loss."""
        evaluated = evaluate(logits)
        if evaluated.slope is not None:
            ctx.save_for_backward(evaluated.slope)
            ctx.scale, ctx.dtype = evaluated.scale, logits.dtype
        return evaluated.loss

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor, None]:
        """Scale the slope."""
        (slope,) = ctx.saved_tensors
        factor = grad_loss if ctx.scale is None else grad_loss * ctx.scale
        return scaled(slope, factor).to(ctx.dtype), None


def scaled(slope: Tensor, factor: Tensor) -> Tensor:
    """Return ``slope * factor``, inside a backward that saved the slope.

    A slope that is not needed again is scaled in place: new memory of that size costs more time
    than the multiplication, and for the weights of very many classes it may not be there.
    """
    if torch._C._autograd._get_current_graph_task_keep_graph():
        gradient = slope * factor
        if torch.is_grad_enabled():  # create_graph=True
            gradient = _Final.apply(gradient.detach().requires_grad_())
        return gradient
    if factor.is_cpu and factor.ndim == 0 and factor == 1:
        return slope
    return slope.mul_(factor)


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


def slope_by_autograd(
    entries: Callable[[Tensor], Tensor], logits: Tensor, needs_grad: bool
) -> tuple[Tensor, Tensor | None]:
    """Return ``entries(logits)`` and its slope; the intermediate results are freed at once."""
    if not needs_grad:
        return entries(logits), None
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        values = entries(leaf)
        (slope,) = torch.autograd.grad(values.sum(), leaf)
    return values.detach(), slope


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
    plain = (torch.Tensor, torch.nn.Parameter)
    tensors = [logits, *(other for other in others if other is not None)]
    if any(type(tensor) not in plain or tensor.is_neg() for tensor in tensors):
        return True
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors[1:])
