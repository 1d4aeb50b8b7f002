"""The calibration that is found is the best one, under the prior that its docstring states."""

from __future__ import annotations

import math

import pytest
import torch

from hilltop.calibration import calibrate
from hilltop.losses.likelihood.summed import summed_independently


def test_likelihood_and_prior_pull_equally_at_what_is_found() -> None:
    r"""At the minimum of L + a^2 / 2 + 2 sum d_c^2 each pull of L is that of the prior."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(30, 4, generator=generator)
    targets = (torch.rand(30, 4, generator=generator) < torch.tensor([0.05, 0.2, 0.4, 0.7])).float()
    loss = summed_independently(0.8)
    made = calibrate(loss, logits, targets)
    log_slope = torch.tensor(math.log(made.slope), requires_grad=True)
    shift = made.shift.clone().requires_grad_()
    loss(logits * log_slope.exp() + shift, targets).backward()
    apart = made.shift - made.shift.mean()
    assert apart.abs().min() > 0.1, "every class is held back"
    torch.testing.assert_close(shift.grad, -4 * apart, rtol=0.02, atol=0.02)
    assert log_slope.grad is not None
    assert abs(math.log(made.slope)) > 0.1
    assert float(log_slope.grad) == pytest.approx(-math.log(made.slope), abs=0.02)


def test_the_loss_of_a_calibration_is_the_likelihood_without_the_prior() -> None:
    targets = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    loss = summed_independently(1.0)
    made = calibrate(loss, torch.zeros(3, 2), targets)
    assert made.loss == pytest.approx(float(loss(made(torch.zeros(3, 2)), targets)))
