"""The bound on the pseudo labels of self-paced correction; its equation is in test_equations.py."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from hilltop.losses import MultiLabelLoss, splc, splc_bounded
from tests.losses.conftest import batch
from tests.reference_methods import bounded_self_paced


def pseudo_labels(loss: MultiLabelLoss, logits: Tensor, targets: Tensor) -> Tensor:
    loss.set_epoch(1)
    return loss.pseudo_labels(logits, targets)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("lift", [-2.0, 0.0, 3.0])
def test_it_agrees_with_the_scalar_reference(lift: float) -> None:
    logits, targets = batch(9, 7)
    logits, targets = logits + lift, torch.nan_to_num(targets).round()
    loss = splc_bounded(reduction="none")
    loss.set_epoch(1)
    expected = torch.tensor(bounded_self_paced(logits.tolist(), targets.tolist()))
    torch.testing.assert_close(loss(logits, targets), expected, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("per_label", [0.0, 0.5, 1.0, 2.5])
def test_the_highest_become_pseudo_labels_and_no_more_than_the_bound(per_label: float) -> None:
    logits, targets = batch(60, 7)
    pseudo = pseudo_labels(splc_bounded(per_label=per_label), logits + 3, targets)
    sure = pseudo_labels(splc(), logits + 3, targets)
    allowed = math.floor(per_label * targets.nansum().item() + 1e-3)
    assert pseudo.sum() == min(allowed, int(sure.sum()))
    assert not (pseudo & ~sure).any()
    left = sure & ~pseudo
    if pseudo.any() and left.any():
        assert logits[pseudo].min() > logits[left].max()


def test_below_the_bound_it_is_the_equation() -> None:
    logits, targets = batch(60, 7)
    bounded, equation = splc_bounded(), splc()
    expected = pseudo_labels(equation, logits - 2, targets)
    assert 0 < expected.sum() <= targets.nansum()
    assert torch.equal(pseudo_labels(bounded, logits - 2, targets), expected)
    torch.testing.assert_close(bounded(logits - 2, targets), equation(logits - 2, targets))


def test_equal_scores_never_exceed_the_bound() -> None:
    targets = torch.zeros(10, 8)
    targets[:, 0] = 1
    assert pseudo_labels(splc_bounded(), torch.full((10, 8), 5.0), targets).sum() == 0
    logits = torch.full((10, 8), 5.0)
    logits[:4, 3] = 6.0
    assert torch.equal(pseudo_labels(splc_bounded(), logits, targets), logits == 6.0)


def test_confirmed_and_unknown_pairs_do_not_use_up_the_bound() -> None:
    logits = torch.tensor([[9.0, 8.0, 7.0, 6.0, 5.0]])
    targets = torch.tensor([[1.0, 0.0, math.nan, 0.0, 0.0]])
    verified = torch.tensor([[False, True, False, False, False]])
    loss = splc_bounded()
    loss.set_epoch(1)
    pseudo = loss.pseudo_labels(logits, targets, verified=verified)
    assert pseudo.tolist() == [[False, False, False, True, False]]


def test_a_model_that_is_sure_of_everything_is_told_otherwise() -> None:
    """Without the bound every unlabelled pair is pushed further up, for good."""
    logits, targets = batch(60, 7)
    grads = {}
    for preset in (splc_bounded, splc):
        loss = preset("bce", reduction="sum", watch=False, safe_start=False)
        loss.set_epoch(1)
        scores = (logits + 12).requires_grad_()
        loss(scores, targets).backward()
        grads[preset] = scores.grad[targets == 0].sum()  # type: ignore[index]
    assert grads[splc_bounded] > 0 >= grads[splc]
