"""A head that learns within its own forward pass."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.losses import FusedLinearLoss, FusedSgd, hill
from hilltop.losses.engine import fused_step, linear_parts
from hilltop.losses.engine.fused_step import round_at_random

CLASSES, LABELS = 40, [[3, 7], [39], []]


def fused(step: FusedSgd | None) -> tuple[FusedLinearLoss, Tensor]:
    torch.manual_seed(1)
    head = FusedLinearLoss(6, CLASSES, loss=hill(watch=False), step=step)
    return head, torch.randn(3, 6, requires_grad=True)


def test_a_fused_step_is_that_of_an_optimiser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_parts, "_ENTRIES", 3 * 7)  # several parts
    plain, features = fused(None)
    decayed = {"params": [plain.linear.weight], "weight_decay": 0.1}
    optimizer = torch.optim.SGD([decayed, {"params": [plain.linear.bias]}], lr=0.5)
    own, same = fused(FusedSgd(learning_rate=0.5, weight_decay=0.1))
    for _ in range(3):
        features.grad = same.grad = None
        loss = plain(features, LABELS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        other = own(same, LABELS)
        other.backward()
        torch.testing.assert_close(other, loss)
        torch.testing.assert_close(same.grad, features.grad)
        assert own.linear.weight.grad is None
    torch.testing.assert_close(own.linear.weight, plain.linear.weight)
    torch.testing.assert_close(own.linear.bias, plain.linear.bias)


def test_nothing_is_learned_in_evaluation_or_without_gradients() -> None:
    head, features = fused(FusedSgd(learning_rate=0.5))
    before = copy.deepcopy(head.linear.state_dict())
    with torch.no_grad():
        head(features, LABELS)
    head.eval()(features, LABELS)
    assert all(torch.equal(before[name], now) for name, now in head.linear.state_dict().items())
    head.train()(features.detach(), LABELS)
    assert not torch.equal(before["weight"], head.linear.weight)


def test_random_rounding_is_right_in_the_mean_and_leaves_what_fits() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.tensor([1.001, -3.14159, 1e-20, 0.1])
    mean = round_at_random(values.repeat(40_000, 1), generator).double().mean(dim=0)
    torch.testing.assert_close(mean, values.double(), rtol=1e-4, atol=0)
    exact = torch.tensor([0.0, 1.0, -2.5, torch.inf, -torch.inf])
    assert torch.equal(round_at_random(exact, generator).float(), exact)
    assert round_at_random(torch.tensor([torch.nan]), generator).isnan()


def test_small_steps_of_a_bfloat16_head_are_not_lost() -> None:
    weight = torch.ones(2000, 1, dtype=torch.bfloat16)
    step = FusedSgd(learning_rate=1e-4)  # to the nearest, 1 - 1e-4 is 1 for ever
    for _ in range(200):
        step.update(weight, torch.ones(2000, 1))
    assert weight.float().mean().item() == pytest.approx(0.98, abs=1e-3)


def test_several_processes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_step.dist, "is_initialized", lambda: True)
    monkeypatch.setattr(fused_step.dist, "get_world_size", lambda: 2)
    head, features = fused(FusedSgd(learning_rate=0.5))
    with pytest.raises(ArgumentError, match="the processes would drift apart"):
        head(features, LABELS)
