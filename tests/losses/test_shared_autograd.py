"""What every registered loss does to autograd, with the compiled kernel and without it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from hilltop.errors import ArgumentError, HilltopError
from hilltop.losses import MultiLabelLoss
from tests.losses.conftest import batch, counts_labels, takes, value_and_gradient

Make = Callable[..., MultiLabelLoss]
pytestmark = pytest.mark.usefixtures("engine")


def test_backward_twice_gives_the_same_gradient_twice(make: Make) -> None:
    logits, targets = batch()
    logits.requires_grad_()
    value = make()(logits, targets)
    (once,) = torch.autograd.grad(value, logits, retain_graph=True)
    (twice,) = torch.autograd.grad(value, logits)
    assert torch.equal(once, twice)


def test_a_second_derivative_is_right_or_refused(make: Make, loss_name: str) -> None:
    logits, targets = batch()
    logits.requires_grad_()
    (gradient,) = torch.autograd.grad(make()(logits, targets), logits, create_graph=True)
    if loss_name in ("gr", "role", "focal_released", "asl_released"):
        return  # a part is held constant, so that the gradient is not that of the value
    if "_Final" in str(gradient.grad_fn):
        with pytest.raises(HilltopError, match="computes first derivatives only"):
            gradient.sum().backward()
        return
    (second,) = torch.autograd.grad(gradient.sum(), logits)
    step = 1e-4
    around = [
        value_and_gradient(make(), logits.detach().double() + d, targets)[1] for d in (step, -step)
    ]
    expected = (around[0] - around[1]) / (2 * step)
    torch.testing.assert_close(second.double(), expected, rtol=1e-2, atol=1e-4)


def test_gradients_reach_soft_targets_that_ask_for_them(make: Make, loss_name: str) -> None:
    logits, targets = batch()
    targets = targets.clamp(0.1, 0.9).requires_grad_()
    # How many labels there are differs below, and so would what a bounded correction takes over.
    options = {"per_label": 0.0} if takes(loss_name, "per_label") else {}
    loss = make(reduction="sum", **options)
    if counts_labels(loss):
        with pytest.raises(ArgumentError, match="targets must be 0, 1 or NaN"):
            loss(logits, targets)
        return
    loss(logits, targets).backward()
    if loss.parameter_groups():  # labels count for the model and for its estimates
        guesses = torch.logit(loss.estimates(targets.detach(), index=torch.arange(7)))
        both = torch.nn.functional.softplus(-logits) + torch.nn.functional.softplus(-guesses)
        torch.testing.assert_close(targets.grad, 0.5 * both)
        return
    positive = make(reduction="none", **options)(logits, torch.ones_like(logits))
    negative = make(reduction="none", **options)(logits, torch.zeros_like(logits))
    assert targets.grad is not None
    torch.testing.assert_close(targets.grad, positive - negative, rtol=1e-4, atol=1e-5)


def test_non_contiguous_input_gives_the_same_loss(make: Make) -> None:
    logits, targets = batch(6, 6)
    value, gradient = value_and_gradient(make(), logits, targets)
    leaf = logits.t().contiguous().t().detach().requires_grad_()
    other = make()(leaf, targets.t().contiguous().t())
    other.backward()
    torch.testing.assert_close(other.detach(), value)
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad, gradient)
