"""The work of FusedLinearLoss: from features to loss and gradients, some classes at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.engine.columns import Columns
from hilltop.losses.engine.fused_step import FusedSgd
from hilltop.losses.engine.partial import PartialLoss
from hilltop.losses.targets import compute_dtype

_ENTRIES = 1 << 19  # pairs in one part: a tensor of its size takes 2 MB, and four are needed
_ENTRIES_ON_DEVICE = 1 << 24  # 64 MB, which keep a GPU busy for longer than a launch takes


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

    def __init__(
        self, batch: FeatureBatch, head: nn.Linear, wanted: Sequence[bool], step: FusedSgd | None
    ) -> None:
        """Make room for those that are wanted, in this order."""
        weight = head.weight
        self.head, self.step = head, step
        self.inputs = batch.features.detach().to(_matmul_dtype(weight))
        self.learned = [number for number in batch.loss.parameters() if number.requires_grad]
        self.scale = batch.scale()
        # Half precision would lose what late parts add.
        self.batch, self.exact = batch, compute_dtype(batch.features)
        self.features = torch.zeros_like(batch.features, dtype=self.exact) if wanted[0] else None
        self.weight = torch.empty_like(weight) if wanted[1] else None
        self.bias = weight.new_empty(len(weight)) if wanted[2] else None
        self.own = [torch.zeros_like(number) for number in self.learned]

    def all(self) -> list[Tensor | None]:
        """Return them in the order of ``wanted``."""
        return [self.features, self.weight, self.bias, *self.own]

    def by_autograd(self, total: Tensor, logits: Tensor) -> Tensor:
        """Return the gradient of a sum by the logits, and add those by what the loss learns."""
        grad, *own = torch.autograd.grad(total, [logits, *self.learned], allow_unused=True)
        for number, gradient in zip(self.own, own, strict=True):
            if gradient is not None:
                number.add_(gradient, alpha=self.scale)
        return grad

    def add(self, here: slice, rows: Tensor, grad: Tensor) -> None:
        """Take in the classes ``here``: their weights, and the gradient by their logits."""
        if self.bias is not None:
            self.bias[here] = grad.sum(dim=0) * self.scale
        if self.step is not None:
            self.step.update(self.head.bias[here], grad.sum(dim=0) * self.scale)
        grad, scale = _for_matmul(grad, rows.dtype, self.scale)
        if self.features is not None:
            _add_product(self.features, grad, rows, scale)
        if self.weight is not None:
            _write_product(self.weight[here], grad.t(), self.inputs, scale)
        if self.step is not None:  # last: features learn from the weights as they were
            exact = (grad.t() @ self.inputs).to(self.exact) * scale
            self.step.update(self.head.weight[here], exact)

    def part(self, loss: PartialLoss, here: slice, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of the classes ``here``, and take in their gradients."""
        given = self.batch.part(here)
        found = loss.value_and_grad(here, logits, *given)
        if found is None:
            with torch.enable_grad():
                total = loss(here, logits, *given)
            found = total.detach(), self.by_autograd(total, logits)
        total, grad = found
        self.add(here, rows, grad)
        return total


def evaluate(
    batch: FeatureBatch,
    head: nn.Linear,
    *,
    wanted: Sequence[bool],
    step: FusedSgd | None = None,
) -> tuple[Tensor, list[Tensor | None]]:
    """Return the loss, and those of its gradients that are wanted; with a step, let it learn."""
    weight, bias = head.weight.detach(), head.bias.detach()
    gradients, loss = Gradients(batch, head, wanted, step), PartialLoss(batch.loss, len(weight))
    inputs, needs_grad = gradients.inputs, any(wanted) or step is not None
    total = inputs.new_zeros((), dtype=compute_dtype(inputs))
    entries = _ENTRIES if inputs.is_cpu else _ENTRIES_ON_DEVICE
    classes = max(1, entries // max(1, len(inputs)))
    with torch.autocast(inputs.device.type, enabled=False):
        for start in range(0, len(weight), classes):
            here = slice(start, min(len(weight), start + classes))
            rows, offsets = weight[here].to(inputs.dtype), bias[here].to(inputs.dtype)
            logits = (
                torch.addmm(offsets, inputs, rows.t()).to(total.dtype).requires_grad_(needs_grad)
            )
            if needs_grad:
                total += gradients.part(loss, here, logits, rows)
            else:
                with torch.no_grad():
                    total += loss(here, logits, *batch.part(here))
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
