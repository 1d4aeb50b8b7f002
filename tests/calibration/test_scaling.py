"""The calibration that is found is the best one, under the prior that its docstring states."""

from __future__ import annotations

import math

import pytest
import torch

from hilltop.calibration import calibrate
from hilltop.calibration.scaling import class_levels
from hilltop.losses.likelihood import scar_nll


def test_likelihood_and_prior_pull_equally_at_what_is_found() -> None:
    r"""At the minimum of L + a^2 / 2 + 2 sum d_c^2 each pull of L is that of the prior."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(30, 4, generator=generator)
    targets = (torch.rand(30, 4, generator=generator) < torch.tensor([0.05, 0.2, 0.4, 0.7])).float()
    loss = scar_nll(0.8)
    made = calibrate(loss, logits, targets)
    levels = class_levels(logits, torch.ones_like(logits, dtype=torch.bool))
    log_slope = torch.tensor(math.log(made.slope), requires_grad=True)
    shift = made.shift_about(levels).requires_grad_()
    loss((logits - levels) * log_slope.exp() + levels + shift, targets).backward()
    apart = (shift - shift.mean()).detach()
    assert apart.abs().min() > 0.1, "every class is held back"
    torch.testing.assert_close(shift.grad, -4 * apart, rtol=0.02, atol=0.02)
    assert log_slope.grad is not None
    assert abs(math.log(made.slope)) > 0.1
    assert float(log_slope.grad) == pytest.approx(-math.log(made.slope), abs=0.02)


def test_a_rare_class_stays_rare_where_heads_were_held_back() -> None:
    """Scores of half the size: a common slope of 2 must not make a rare class impossible."""
    generator = torch.Generator().manual_seed(0)
    spread = 2 * torch.randn(3000, 12, generator=generator)
    spread[:, 0] *= 0.5  # told apart less well than the others
    bias = torch.full((12,), -1.5)
    bias[0] = -6.0
    true = (torch.rand(3000, 12, generator=generator) < torch.sigmoid(spread + bias)).float()
    assert 0 < true[:, 0].sum() < 30
    held_back = spread / 2 + bias
    made = calibrate(scar_nll(1.0), held_back, true)
    assert made.slope > 1.7
    expected = torch.sigmoid(made(held_back)).sum(dim=0)
    assert 0.6 < float(expected[0] / true[:, 0].sum()) < 1.6


def test_levels_are_means_weighted_by_how_uncertain_scores_are() -> None:
    logits = torch.tensor([[-2.0], [0.0], [1.0], [50.0]])
    known = torch.tensor([[True], [True], [False], [True]])
    weight = 1 / (1 + math.exp(2)) / (1 + math.exp(-2))
    expected = -2 * weight / (weight + 0.25)
    assert float(class_levels(logits, known)) == pytest.approx(expected, rel=1e-5)


def test_the_loss_of_a_calibration_is_the_likelihood_without_the_prior() -> None:
    targets = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    loss = scar_nll(1.0)
    made = calibrate(loss, torch.zeros(3, 2), targets)
    assert made.loss == pytest.approx(float(loss(made(torch.zeros(3, 2)), targets)))
