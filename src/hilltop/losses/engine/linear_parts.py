"""The work of FusedLinearLoss: from features to loss and gradients, some classes at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.engine.columns import Columns
from hilltop.losses.engine.partial import PartialLoss
from hilltop.losses.targets import compute_dtype

_ENTRIES = 1 << 19  # pairs in one part: a tensor of its size takes 2 MB, and four are needed


@dataclass(frozen=True)
class FeatureBatch:
    """Everything that the loss of a batch depends on, beside the weights."""

    loss: MultiLabelLoss
    features: Tensor
    targets: Columns
    observed: Columns | None

    def scale(self) -> float:
        """Return what the sum over pairs is multiplied by."""
        if self.loss.reduction == "sum":
            return 1.0
        by_pair = self.loss.reduction == "mean"
        return 1 / max(1, self.targets.known() if by_pair else len(self.features))

    def part(self, here: slice) -> tuple[Tensor, Tensor | None]:
        """Return targets and observed of some classes, dense."""
        observed = None if self.observed is None else self.observed.part(here)
        return self.targets.part(here), observed


class Gradients:
    """Gradients by features, weight and bias, and by what the loss learns itself, of a sum.

    The rows of weight and bias are written part by part; to all else the parts add.
    """

    def __init__(self, batch: FeatureBatch, weight: Tensor, wanted: Sequence[bool]) -> None:
        """Make room for those that are wanted, in this order."""
        self.inputs = batch.features.detach().to(_matmul_dtype(weight))
        self.learned = [number for number in batch.loss.parameters() if number.requires_grad]
        self.scale = batch.scale()
        # Half precision would lose what late parts add.
        exact = compute_dtype(batch.features)
        self.features = torch.zeros_like(batch.features, dtype=exact) if wanted[0] else None
        self.weight = torch.empty_like(weight) if wanted[1] else None
        self.bias = weight.new_empty(len(weight)) if wanted[2] else None
        self.own = [torch.zeros_like(number) for number in self.learned]

    def all(self) -> list[Tensor | None]:
        """Return them in the order of ``wanted``."""
        return [self.features, self.weight, self.bias, *self.own]

    def add(self, here: slice, rows: Tensor, total: Tensor, logits: Tensor) -> None:
        """Take in the classes ``here``: their weights, and a sum that depends on their logits."""
        grad, *own = torch.autograd.grad(total, [logits, *self.learned], allow_unused=True)
        for number, gradient in zip(self.own, own, strict=True):
            if gradient is not None:
                number.add_(gradient, alpha=self.scale)
        if self.bias is not None:
            self.bias[here] = grad.sum(dim=0) * self.scale
        grad, scale = _for_matmul(grad, rows.dtype, self.scale)
        if self.features is not None:
            _add_product(self.features, grad, rows, scale)
        if self.weight is not None:
            _write_product(self.weight[here], grad.t(), self.inputs, scale)


def evaluate(
    batch: FeatureBatch, weight: Tensor, bias: Tensor, *, wanted: Sequence[bool]
) -> tuple[Tensor, list[Tensor | None]]:
    """Return the loss, and those of its gradients that are wanted."""
    gradients, loss = Gradients(batch, weight, wanted), PartialLoss(batch.loss, len(weight))
    inputs, needs_grad = gradients.inputs, any(wanted)
    total = inputs.new_zeros((), dtype=compute_dtype(inputs))
    step = max(1, _ENTRIES // max(1, len(inputs)))
    with torch.autocast(inputs.device.type, enabled=False):
        for start in range(0, len(weight), step):
            here = slice(start, min(len(weight), start + step))
            rows, offsets = weight[here].to(inputs.dtype), bias[here].to(inputs.dtype)
            logits = (
                torch.addmm(offsets, inputs, rows.t()).to(total.dtype).requires_grad_(needs_grad)
            )
            with torch.set_grad_enabled(needs_grad):
                part = loss(here, logits, *batch.part(here))
            if needs_grad:
                gradients.add(here, rows, part, logits)
            total += part.detach()
    return total * gradients.scale, gradients.all()


def _matmul_dtype(weight: Tensor) -> torch.dtype:
    """What ``nn.Linear`` would compute in."""
    device = weight.device.type
    on = torch.is_autocast_enabled(device)
    return torch.get_autocast_dtype(device) if on else weight.dtype


def _for_matmul(grad: Tensor, dtype: torch.dtype, scale: float) -> tuple[Tensor, Tensor | float]:
    """The gradient in the dtype of the products, and the factor that these then need."""
    if dtype == grad.dtype:
        return grad, scale
    # Gradients of easy pairs are below what float16 holds; a GradScaler comes too late for them.
    largest = grad.abs().amax().clamp(min=torch.finfo(grad.dtype).tiny)
    return (grad / largest).to(dtype), largest * scale


def _add_product(out: Tensor, left: Tensor, right: Tensor, scale: Tensor | float) -> None:
    if isinstance(scale, Tensor):
        out += (left @ right).to(out.dtype) * scale
    else:
        out.addmm_(left, right, alpha=scale)


def _write_product(out: Tensor, left: Tensor, right: Tensor, scale: Tensor | float) -> None:
    if isinstance(scale, Tensor):
        out.copy_(left @ right).mul_(scale)
    else:
        torch.addmm(out, left, right, beta=0, alpha=scale, out=out)
