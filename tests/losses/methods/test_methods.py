"""The methods beside the paper's own, step by step against their scalar references."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import tests.reference_methods as ref
from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.losses import (
    AsymmetricPseudoLabels,
    EntropyNegative,
    GeneralisedNegative,
    GeneralisedPositive,
    LargeLossPermanent,
    Loss,
    bce,
    em_apl,
    gr,
    ll_cp,
    ll_ct,
    ll_r,
)
from tests.losses.conftest import assert_entries, batch, label_stats
from tests.reference import log_positive, sigmoid

GRID = [-30.0, -8.0, -3.0, -1.3, -0.4, 0.0, 0.3, 1.0, 2.2, 4.0, 9.0, 30.0]


def step(loss: Loss, logits: Tensor, targets: Tensor, **options: Tensor) -> Tensor:
    """Entries of a training step, which is remembered."""
    entries = loss(logits.clone().requires_grad_(), targets, **options)
    return entries.detach()


@pytest.mark.parametrize(("build_loss", "reject"), [(ll_r, True), (ll_ct, False)])
@pytest.mark.parametrize("epoch", [0, 1, 4])
def test_large_loss_agrees_with_the_reference(
    build_loss: Callable[..., Loss], reject: bool, epoch: int
) -> None:
    logits, targets = (part.double() for part in batch(9, 8))
    loss = build_loss(rate=0.05, reduction="none")
    loss.set_epoch(epoch)
    expected = ref.large_loss(logits.tolist(), targets.tolist(), epoch, reject=reject, rate="0.05")
    assert_entries(loss(logits, targets), expected)
    pseudo = loss.pseudo_labels(logits, targets)
    assert int(pseudo.sum()) == (0 if reject else math.ceil(72 * 0.05 * epoch - 1e-9))


def test_a_whole_number_of_pairs_is_not_rounded_up() -> None:
    logits, targets = torch.randn(20, 50), torch.zeros(20, 50)
    for epoch in range(1, 8):
        loss = ll_ct(rate=0.003)
        loss.set_epoch(epoch)
        assert int(loss.pseudo_labels(logits, targets).sum()) == 3 * epoch


def test_permanent_correction_agrees_with_the_reference_over_epochs() -> None:
    loss, reference = ll_cp(rate=0.05, reduction="none"), ref.Permanent("0.05")
    loss.prepare(label_stats(8, images=9))
    index = torch.arange(9)
    for epoch in range(4):
        logits, targets = batch(9, 8, seed=epoch)[0].double(), batch(9, 8)[1].double()
        loss.set_epoch(epoch)
        expected = reference.step(logits.tolist(), targets.tolist(), epoch)
        assert_entries(step(loss, logits, targets, index=index), expected)
        pseudo = loss.pseudo_labels(logits, targets, index=index)
        assert {(row, column) for row, column in pseudo.nonzero().tolist()} == reference.pseudo
        again = step(loss, logits, targets, index=index)  # the same epoch: nothing new
        assert_entries(again, expected)


def test_a_look_without_gradients_turns_nothing_over() -> None:
    loss, (logits, targets) = ll_cp(rate=0.1), batch()
    loss.prepare(label_stats(5, images=7))
    loss.set_epoch(1)
    with torch.no_grad():
        loss(logits.requires_grad_(), targets, index=torch.arange(7))
    loss.eval()(logits, targets, index=torch.arange(7))
    assert not loss.correction.memory.any()
    loss.train()(logits, targets, index=torch.arange(7))
    assert loss.correction.memory.any()


@pytest.mark.parametrize("epoch", [0, 3, 10])
@pytest.mark.parametrize("target", [0.0, 1.0, 0.3])
def test_gr_agrees_with_the_reference(epoch: int, target: float) -> None:
    loss = gr(reduction="none", epochs=10)
    loss.set_epoch(epoch)
    logits = torch.tensor([GRID], dtype=torch.float64)
    expected = [ref.gr(x, target, epoch, 10) for x in GRID]
    assert_entries(loss(logits, torch.full_like(logits, target)), [expected])


def test_gr_holds_pseudo_label_and_weight_constant() -> None:
    loss, logits = (
        gr(reduction="sum", epochs=10, safe_start=False),
        torch.tensor([[-2.0, 0.4, 3.0]]),
    )
    loss.set_epoch(5)
    logits = logits.double().requires_grad_()
    loss(logits, torch.zeros(1, 3)).backward()
    for x, grad in zip(logits[0].tolist(), logits.grad[0].tolist(), strict=True):
        p = sigmoid(x)
        k, v = sigmoid(p - 2), math.exp(-0.5 * ((p - 0.65) / 1.25) ** 2)
        expected = v * (-k * p**0.01 * (1 - p) + (1 - k) * p * (1 - p))
        assert grad == pytest.approx(expected, rel=1e-9)


def test_generalised_terms_lie_between_log_and_linear() -> None:
    logits = torch.tensor(GRID, dtype=torch.float64)
    torch.testing.assert_close(GeneralisedNegative(q=1.0)(logits), torch.sigmoid(logits))
    torch.testing.assert_close(GeneralisedPositive(q=1.0)(logits), torch.sigmoid(-logits))
    logs = torch.tensor([log_positive(x) for x in GRID], dtype=torch.float64)
    torch.testing.assert_close(GeneralisedPositive(q=1e-4)(logits), logs, rtol=2e-3, atol=0)


def test_the_entropy_term_agrees_with_the_reference_and_its_gradient_with_its_closed_form() -> None:
    logits = torch.tensor(GRID, dtype=torch.float64, requires_grad=True)
    value = EntropyNegative(alpha=0.3)(logits)
    value.sum().backward()
    expected = [ref.entropy_maximisation(x, 0.0, alpha=0.3) for x in GRID]
    torch.testing.assert_close(
        value.detach(), torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-12
    )
    probs = torch.sigmoid(logits.detach())
    torch.testing.assert_close(logits.grad, 0.3 * logits.detach() * probs * (1 - probs))


def test_soft_negatives_agree_with_the_reference_over_epochs() -> None:
    images, classes, epochs = 20, 6, 6
    loss, reference = em_apl(reduction="none"), ref.SoftNegatives(epochs, 3)
    loss.prepare(label_stats(classes, images=images, epochs=epochs))
    targets = batch(images, classes)[1].double()
    for epoch in range(epochs):
        loss.set_epoch(epoch)
        reference.begin(epoch, classes)
        loss.set_epoch(epoch)  # a resumed epoch begins twice
        logits = batch(images, classes, seed=epoch + 1)[0].double()
        expected = reference.step(logits.tolist(), targets.tolist())
        # Term of the rows at a time: the memory goes by row, not by batch.
        rows = torch.arange(images).chunk(2)
        terms = [step(loss, logits[at], targets[at], index=at) for at in rows]
        assert_entries(torch.cat(terms), expected, rtol=3e-3)  # float16 in memory
    unlabelled = int((targets == 0).sum())
    assert 0.7 * unlabelled < len(reference.soft) <= 0.9 * unlabelled  # whole pairs a class


def test_entropy_alone_needs_no_memory() -> None:
    loss = em_apl(theta=0)
    loss.prepare(label_stats(5))
    assert loss.describe() is None
    assert loss(*batch()).isfinite()


def test_permanent_correction_goes_over_any_base() -> None:
    loss = ll_cp("hill", rate=0.2)
    assert type(loss.negative).__name__ == "HillNegative"
    assert isinstance(loss.correction, LargeLossPermanent)
    with pytest.raises(ArgumentTypeError, match=r"ll_r\(base\) takes reduction from"):
        ll_r(bce(), reduction="sum")


def test_constants_out_of_range() -> None:
    with pytest.raises(ArgumentError, match=r"rate must be at least 0 and at most 1, but got 2"):
        ll_r(rate=2)
    with pytest.raises(ArgumentError, match=r"first and a last value, but got 0\.5"):
        gr(mu=0.5)
    with pytest.raises(ArgumentError, match="gr moves with the epochs of a run: pass epochs="):
        gr()(*batch())
    with pytest.raises(ArgumentError, match="theta must be at least 0 and at most 1"):
        AsymmetricPseudoLabels(theta=1.5)
