"""Runs a loss on a GPU by the Triton kernels, as torch operators that never wait for the device.

Where they cannot run (no Triton, ROCm, a GPU older than those they are compiled for in the tests)
torch computes the same loss. As operators they are seen by fake tensors, profilers and graphs.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hilltop.errors import HilltopWarning
from hilltop.losses.reduction import Reduction

if TYPE_CHECKING:
    from hilltop.losses.base import PairBatch
    from hilltop.losses.engine.kernel import FusedLoss

OLDEST = (8, 0)  # compute capability
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
LAUNCH = {"num_warps": 4, "enable_fp_fusion": True}  # without the latter Triton 3.9 warns
_forms: list[FusedLoss] = []
_numbers: dict[FusedLoss, int] = {}


def runs_on(logits: Tensor) -> bool:
    """Whether the kernels can take these logits."""
    if not logits.is_cuda or logits.dtype not in _DTYPES or not logits.numel():
        return False
    return _usable(None if is_fake(logits) else logits.device.index)


def is_fake(tensor: Tensor) -> bool:
    """Whether a tensor has a shape and a device but no values."""
    return isinstance(tensor, torch._subclasses.FakeTensor)


@lru_cache
def _usable(index: int | None) -> bool:
    """Whether Triton runs on a device; None asks for Triton alone."""
    if torch.version.hip is not None:
        return False
    try:
        import triton  # noqa: F401 (asks whether it is there)
    except ImportError:
        return False
    if index is None:
        return True
    enough = torch.cuda.get_device_capability(index) >= OLDEST
    return enough and works_on(torch.device("cuda", index))


def works_on(device: torch.device) -> bool:
    """Launch every kernel of a sum over pairs once."""
    return can_launch(_launch_once, device)


def _launch_once(device: torch.device) -> None:
    from hilltop.losses.engine.kernel import FusedLoss
    from hilltop.losses.terms.base import FusedTerm

    term, one = FusedTerm("focal"), torch.zeros(1, 1, device=device)
    form = form_number(FusedLoss(term, term, term, None, math.inf, 0.0))
    masks_and_numbers = [None] * 7
    _, scale, grad = torch.ops.hilltop.loss_and_grad(
        one, one, *masks_and_numbers, torch.zeros(3, device=device), form, "mean", True
    )
    scale_grad(grad, scale, scale, torch.float32, in_place=False)


def can_launch(launch: Callable[[torch.device], None], device: torch.device) -> bool:
    """Whether a trial works: Triton also needs a C compiler, and versions that fit."""
    try:
        launch(device)
    except Exception as error:  # whatever Triton or the driver raise
        warnings.warn(
            f"Triton cannot run on {device}: {error}. Losses are computed by torch there, more"
            " slowly.",
            HilltopWarning,
            stacklevel=2,
        )
        return False
    return True


def form_number(form: FusedLoss) -> int:
    """Return a number that stands for a form: operators take numbers and tensors only."""
    if form not in _numbers:
        _forms.append(form)
        _numbers[form] = len(_forms) - 1
    return _numbers[form]


def loss_on_device(
    form: FusedLoss,
    batch: PairBatch,
    selected: Tensor | None,
    weights: tuple[Tensor | None, Tensor | None],
    by_class: tuple[Tensor | None, Tensor | None],
    extremes: Tensor,
    reduction: Reduction,
    needs_grad: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the reduced loss, its gradient, and what that is still to be multiplied by.

    ``extremes`` learns how far targets go below 0, and the highest one. An entry with a target
    outside of [0, 1] is NaN and has no gradient.
    """
    logits, targets, observed = (
        None if part is None else part.detach().contiguous() for part in batch[:3]
    )
    found = torch.ops.hilltop.loss_and_grad(
        logits,
        targets,
        observed,
        selected,
        *weights,
        *by_class,
        batch.epoch if form.start_epoch else None,
        extremes,
        form_number(form),
        reduction,
        needs_grad,
    )
    loss, scale, grad = found
    return loss, grad if needs_grad else None, None if reduction == "none" else scale


def kept_dtype(logits: Tensor) -> torch.dtype:
    """In which a gradient waits for backward.

    A float16 gradient waits in float32: the factor that a GradScaler brings comes in backward, too
    late for what float16 had lost by then.
    """
    return torch.float32 if logits.dtype == torch.float16 else logits.dtype


def room(logits: Tensor, reduction: str, needs_grad: bool) -> tuple[Tensor, Tensor, Tensor]:
    """New tensors for the loss, for what its gradient is still to be multiplied by, and for it."""
    loss = logits.new_empty(logits.shape if reduction == "none" else (), dtype=torch.float32)
    scale = logits.new_empty((), dtype=torch.float32)
    grad = logits.new_empty(logits.shape if needs_grad else 0, dtype=kept_dtype(logits))
    return loss, scale, grad


def _loss_and_grad(
    logits: Tensor,
    targets: Tensor,
    observed: Tensor | None,
    selected: Tensor | None,
    class_weight: Tensor | None,
    pos_weight: Tensor | None,
    constants: Tensor | None,
    rates: Tensor | None,
    epoch: Tensor | None,
    extremes: Tensor,
    form: int,
    reduction: str,
    needs_grad: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    from hilltop.losses.engine import triton_kernel as kernels

    loss, scale, grad = room(logits, reduction, needs_grad)
    size, by_entry = logits.numel(), reduction == "none"
    blocks = -(-size // kernels.BLOCK)
    partials = logits.new_empty(kernels.FIELDS * blocks, dtype=torch.float32)
    masks = observed, selected
    numbers = class_weight, pos_weight, constants, rates, epoch
    written = grad if needs_grad else None, loss if by_entry else None, partials
    shape = size, logits.shape[-1] if logits.ndim else 1, blocks
    with launching_on(logits):
        kernels.loss_kernel[(blocks,)](
            logits, targets, *masks, *numbers, *written, *shape,
            form=_forms[form], block=kernels.BLOCK, **LAUNCH,
        )  # fmt: skip
        total = scale if by_entry else loss  # nobody reads it where entries are wanted
        kernels.finish_kernel[(1,)](
            partials, blocks, divided_by(logits, reduction), total, scale, extremes,
            hard=False, block=kernels.BLOCK, **LAUNCH,
        )  # fmt: skip
    return loss, scale, grad


def divided_by(logits: Tensor, reduction: str) -> int:
    """What the sum is divided by, 0 for the number of known targets."""
    if reduction == "mean":
        return 0
    return max(1, math.prod(logits.shape[:-1])) if reduction == "batchmean" else 1


def scale_grad(
    grad: Tensor, factor: Tensor, scale: Tensor, dtype: torch.dtype, *, in_place: bool
) -> Tensor:
    """Return ``grad * factor * scale`` in one launch, in the memory of grad if that may go."""
    if in_place and dtype == grad.dtype:
        torch.ops.hilltop.scale_grad(grad, factor, scale, grad)
        return grad
    scaled = torch.empty_like(grad, dtype=dtype)
    torch.ops.hilltop.scale_grad(grad, factor, scale, scaled)
    return scaled


def _scale_grad(grad: Tensor, factor: Tensor, scale: Tensor, out: Tensor) -> None:
    from hilltop.losses.engine import triton_kernel as kernels

    blocks = -(-grad.numel() // kernels.BLOCK)
    with launching_on(grad):
        kernels.scale_kernel[(blocks,)](
            grad, factor, scale, out, grad.numel(), block=kernels.BLOCK, **LAUNCH
        )


def launching_on(tensor: Tensor) -> Any:
    """Triton launches on the current device, whatever the tensors are on."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else contextlib.nullcontext()


def _fake_loss_and_grad(logits: Tensor, *given: Any) -> tuple[Tensor, Tensor, Tensor]:
    *_, reduction, needs_grad = given
    return room(logits, reduction, needs_grad)


def _fake_scale_grad(*_: Tensor) -> None:
    return None


_operators: Any = torch.library.Library("hilltop", "DEF")  # type: ignore[no-untyped-call]  # torch's
_operators.define(
    "loss_and_grad(Tensor logits, Tensor targets, Tensor? observed, Tensor? selected,"
    " Tensor? class_weight, Tensor? pos_weight, Tensor? constants, Tensor? rates, Tensor? epoch,"
    " Tensor(a!) extremes, int form, str reduction, bool needs_grad) -> (Tensor, Tensor, Tensor)"
)
_operators.define("scale_grad(Tensor grad, Tensor factor, Tensor scale, Tensor(a!) out) -> ()")
_operators.impl("loss_and_grad", _loss_and_grad, "CompositeExplicitAutograd")
_operators.impl("scale_grad", _scale_grad, "CompositeExplicitAutograd")
torch.library.register_fake("hilltop::loss_and_grad", _fake_loss_and_grad, lib=_operators)
torch.library.register_fake("hilltop::scale_grad", _fake_scale_grad, lib=_operators)
