"""ROLE: its two sides against the reference, the start of its estimates, its threshold."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import tests.reference_methods as ref
from hilltop.errors import ArgumentError
from hilltop.losses import role, role_threshold
from tests.losses.conftest import assert_entries, batch, label_stats


def test_role_agrees_with_the_reference() -> None:
    logits, targets = (part.double() for part in batch(6, 5))
    index = torch.tensor([5, 0, 9, 3, 7, 2])
    loss = role(labels_per_image=1.7, reduction="none").double()
    loss.prepare(label_stats(5, images=10))
    loss.moved.data.normal_()
    guesses = torch.logit(loss.estimates(targets, index=index).double())
    expected = ref.role(logits.tolist(), guesses.tolist(), targets.tolist(), 1.7)
    assert_entries(loss(logits, targets, index=index), expected, rtol=1e-5)


def test_estimates_start_where_they_should() -> None:
    loss = role(seed=3)
    loss.prepare(label_stats(40, images=300))
    targets = torch.zeros(300, 40)
    targets[:, 0] = 1
    verified = torch.zeros(300, 40, dtype=torch.bool)
    verified[:, 1] = True
    index = torch.arange(300)
    start = loss.estimates(targets, index=index, verified=verified)
    torch.testing.assert_close(start[:, 0], torch.full((300,), 0.995))
    torch.testing.assert_close(start[:, 1], torch.full((300,), 0.005))
    rest = start[:, 2:]
    assert 0.4 <= rest.min() < 0.402
    assert 0.598 < rest.max() <= 0.6
    assert rest.mean().item() == pytest.approx(0.5, abs=0.003)
    assert rest.std(dim=0).min() > 0.04  # uniform: 0.058
    assert rest.std(dim=1).min() > 0.03
    other = role(seed=4)
    other.prepare(label_stats(40, images=300))
    assert not torch.equal(other.estimates(targets, index=index)[:, 2:], rest)
    assert torch.equal(loss.estimates(targets[:5], index=index[:5])[:, 2:], rest[:5])


def test_each_side_of_role_learns_from_the_other_held_constant() -> None:
    logits, targets = (part.double() for part in batch(6, 5))
    logits.requires_grad_()
    loss = role(labels_per_image=1.0, reduction="sum").double()
    loss.prepare(label_stats(5, images=8))
    loss.moved.data = loss.moved.data.double()
    index = torch.arange(6)
    guesses = torch.logit(loss.estimates(targets, index=index).double())
    loss(logits, targets, index=index).backward()

    def grad(own: Tensor, other: Tensor) -> Tensor:
        """Of 1/2 [labels + cross-entropy + penalty], entry by entry."""
        p, q = torch.sigmoid(own), torch.sigmoid(other)
        mean = p.mean()
        penalty = 2 * (mean - 0.2) * p * (1 - p)  # in all 30 entries, a 30th each
        return 0.5 * (targets * (p - 1) + (p - q) + penalty)

    torch.testing.assert_close(logits.grad, grad(logits.detach(), guesses), rtol=1e-5, atol=1e-7)
    expected = grad(guesses, logits.detach())
    torch.testing.assert_close(loss.moved.grad[:6], expected, rtol=1e-5, atol=1e-7)
    assert not loss.moved.grad[6:].any()


def test_role_counts_labels_if_it_is_not_told_how_many_there_are() -> None:
    loss = role()
    loss.prepare(label_stats(5, images=500))  # one label for each image
    assert loss.share(torch.zeros(1, 5)) == pytest.approx(0.2)


def test_the_threshold_of_role_lies_half_way_from_the_lowest_score_to_one() -> None:
    assert role_threshold(torch.tensor([0.5, 0.2, float("nan")])) == pytest.approx(0.6)
    with pytest.raises(ArgumentError, match="at least one number"):
        role_threshold(torch.tensor([float("nan")]))
    with pytest.raises(ArgumentError, match=r"the lowest score must be at least 0.*-1\.5"):
        role_threshold(torch.tensor([-1.5, 0.5]))
