"""What the tests of FusedLinearLoss share: a small head, a batch and the loss as a whole."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hilltop.losses import FusedLinearLoss, MultiLabelLoss
from tests.losses.conftest import batch

INPUTS, CLASSES, ROWS = 4, 11, 7


def head(loss: MultiLabelLoss, dtype: torch.dtype = torch.float64) -> FusedLinearLoss:
    torch.manual_seed(0)
    fused = FusedLinearLoss(INPUTS, CLASSES, loss).to(dtype)
    with torch.no_grad():
        fused.linear.weight.mul_(5)
    return fused


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(ROWS, INPUTS, generator=generator, dtype=dtype)
    return features.requires_grad_(), batch(ROWS, CLASSES)[1]


def gradients(loss: Tensor, module: nn.Module, features: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, [features, *module.parameters()]))


def as_a_whole(
    fused: FusedLinearLoss, features: Tensor, targets: Tensor, **options: Tensor
) -> Tensor:
    value: Tensor = fused.loss(fused.linear(features), targets, **options)
    return value
