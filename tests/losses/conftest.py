"""The lists that shared checks run over: registering a name enrols it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hilltop.losses import LOSSES, MultiLabelLoss, build, kernel


@pytest.fixture(params=list(LOSSES))
def loss_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(loss_name: str) -> Callable[..., MultiLabelLoss]:
    """Build the loss under test, at an epoch in which corrections are active."""

    def make_loss(**options: object) -> MultiLabelLoss:
        loss = build(loss_name, **options)
        loss.set_epoch(3)
        return loss

    return make_loss


@pytest.fixture(params=["kernel", "torch"] if kernel.library() else ["torch"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a check with the compiled kernel and with torch alone."""
    if request.param == "torch":
        monkeypatch.setattr(kernel, "library", lambda: None)
    return str(request.param)


def batch(rows: int = 7, classes: int = 5, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits of a trained model's spread, and sparse hard targets."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, classes, generator=generator) - 1
    targets = (torch.rand(rows, classes, generator=generator) < 0.3).float()
    return logits, targets
