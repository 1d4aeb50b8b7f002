"""Corrections that select pairs: what the compiled kernel makes of them."""

import pytest
import torch
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.losses import LogPositive, bce, ll_cp, ll_ct
from hilltop.losses.base import PairBatch
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.corrections import SelectiveCorrection
from hilltop.losses.terms import FocalPositive, HillNegative
from tests.losses.conftest import batch, label_stats, value_and_gradient


class EveryOther(SelectiveCorrection):
    """Selects the candidates in even columns."""

    def __init__(self, *, adds_pseudo_labels: bool) -> None:
        super().__init__()
        self.adds_pseudo_labels = adds_pseudo_labels

    def select(self, batch: PairBatch, candidates: Tensor, *, learning: bool) -> Tensor:
        even = torch.arange(batch.logits.shape[-1]) % 2 == 0
        return candidates & even


def hard_batch(classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Labels, soft targets, unknown pairs and confirmed ones, all within each row."""
    logits, targets = batch(6, classes)
    targets[:, 1::5] = 0.3
    targets[:, 2::7] = torch.nan
    return logits, targets, torch.arange(classes).expand(6, -1) % 4 == 0


@pytest.mark.parametrize("adds_pseudo_labels", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("confirmed", [True, False])
def test_a_selected_pair_counts_as_a_label_or_not_at_all(
    engine: str, adds_pseudo_labels: bool, smoothing: float, confirmed: bool
) -> None:
    classes = 300  # more than one block of the kernel
    logits, targets, verified = hard_batch(classes)
    weights = torch.linspace(0.5, 2.0, classes)
    loss = MultiLabelLoss(
        positive=FocalPositive(margin=1.0),
        negative=HillNegative(),
        correction=EveryOther(adds_pseudo_labels=adds_pseudo_labels),
        pseudo_positive=LogPositive(),
        verified_negative=HillNegative(lam=2.0) if confirmed else None,
        label_smoothing=smoothing,
        class_weight=weights,
        pos_weight=3.0,
        watch=False,
        safe_start=False,
    )
    actual, grad = value_and_gradient(loss, logits, targets, verified=verified)
    leaf = logits.double().requires_grad_()
    expected = by_hand(leaf, targets.double(), verified, loss, adds_pseudo_labels, weights)
    expected.backward()
    torch.testing.assert_close(actual.double(), expected.detach(), rtol=2e-6, atol=0)
    torch.testing.assert_close(grad.double(), leaf.grad, rtol=2e-5, atol=1e-9)


def by_hand(
    logits: Tensor,
    targets: Tensor,
    verified: Tensor,
    loss: MultiLabelLoss,
    adds_pseudo_labels: bool,
    weights: Tensor,
) -> Tensor:
    """The same mean, written pair by pair from the definition."""
    total, known, eps = logits.new_zeros(()), 0, loss.label_smoothing
    for row in range(logits.shape[0]):
        for column in range(logits.shape[1]):
            x, y, seen = logits[row, column], targets[row, column], bool(verified[row, column])
            if y.isnan():
                continue
            known += 1
            negative = loss.negative(x)
            if seen and loss.verified_negative is not None:
                negative = loss.verified_negative(x)
            elif not seen and y < 1 and column % 2 == 0:
                negative = LogPositive()(x) if adds_pseudo_labels else 0 * x
            soft = y * (1 - 2 * eps) + eps
            pair = 3 * soft * loss.positive(x) + (1 - soft) * negative
            total = total + weights[column].double() * pair
    return total / known


def test_a_subclass_that_overrides_forward_is_heard() -> None:
    class Nothing(EveryOther):
        def forward(self, batch: PairBatch, loss_neg: Tensor) -> tuple[Tensor, Tensor]:
            return torch.ones_like(loss_neg), torch.zeros_like(loss_neg)

    logits, targets = batch()
    quiet = bce().with_correction(Nothing(adds_pseudo_labels=True))
    torch.testing.assert_close(quiet(logits, targets), bce()(logits, targets))


def test_an_extra_loss_is_heard() -> None:
    class Extra(EveryOther):
        def extra_loss(self, batch: PairBatch) -> Tensor:
            return torch.ones_like(batch.logits)

    logits = torch.zeros(2, 4)
    loss = bce(reduction="sum").with_correction(Extra(adds_pseudo_labels=False))
    rest = 4 * torch.log(torch.tensor(2.0))
    torch.testing.assert_close(loss(logits, torch.zeros(2, 4)), rest + 8)


def test_a_batch_that_is_refused_leaves_no_trace(engine: str) -> None:
    loss = ll_cp(rate=0.5)
    loss.prepare(label_stats(5, images=7))
    loss.set_epoch(1)
    logits, targets = batch()
    targets[3, 2] = 2.0
    with pytest.raises(ArgumentError):
        loss(logits.requires_grad_(), targets, index=torch.arange(7))
    assert not loss.correction.memory.any()


def test_half_precision_selects_what_single_precision_does(engine: str) -> None:
    logits, targets = batch(20, 30)
    logits = logits.bfloat16()
    loss = ll_ct(rate=0.05)
    loss.set_epoch(2)
    torch.testing.assert_close(loss(logits, targets), loss(logits.float(), targets))
