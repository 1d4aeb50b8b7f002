"""What every registered loss does to autograd, with the compiled kernel and without it."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hilltop.errors import ArgumentError, HilltopError
from hilltop.losses import MultiLabelLoss
from tests.losses.conftest import batch, takes, value_and_gradient

Make = Callable[..., MultiLabelLoss]
pytestmark = pytest.mark.usefixtures("engine")


class Kept:
    """A tensor saved for backward."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def test_at_most_one_tensor_of_the_size_of_the_logits_is_saved(make: Make) -> None:
    logits, targets = batch(64, 40)
    loss = make()
    saved: list[weakref.ref[Kept]] = []

    def pack(tensor: Tensor) -> Kept:
        kept = Kept(tensor)
        saved.append(weakref.ref(kept))
        return kept

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.tensor):
        value = loss(logits.requires_grad_(), targets)
    still = [kept() for kept in saved]  # what the forward pass freed again is gone
    sizes = [kept.tensor.numel() for kept in still if kept is not None]
    learners = 1 + len(loss.parameter_groups())  # the logits, and estimates of the same size
    assert sum(size for size in sizes if size >= logits.numel()) == learners * logits.numel()
    assert sum(size for size in sizes if size < logits.numel()) <= len(logits)  # row numbers
    value.backward()


def test_backward_twice_gives_the_same_gradient_twice(make: Make) -> None:
    logits, targets = batch()
    logits.requires_grad_()
    value = make()(logits, targets)
    (once,) = torch.autograd.grad(value, logits, retain_graph=True)
    (twice,) = torch.autograd.grad(value, logits)
    assert torch.equal(once, twice)


def test_a_second_derivative_through_backward_raises_instead_of_being_wrong(make: Make) -> None:
    logits, targets = batch()
    logits.requires_grad_()
    (gradient,) = torch.autograd.grad(make()(logits, targets), logits, create_graph=True)
    with pytest.raises(HilltopError, match=r"second derivatives compute it under torch\.func"):
        gradient.sum().backward()


def test_gradients_reach_soft_targets_that_ask_for_them(make: Make, loss_name: str) -> None:
    logits, targets = batch()
    targets = targets.clamp(0.1, 0.9).requires_grad_()
    # How many labels there are differs below, and so would what a bounded correction takes over.
    options = {"per_label": 0.0} if takes(loss_name, "per_label") else {}
    loss = make(reduction="sum", **options)
    if loss.counts_labels:
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
