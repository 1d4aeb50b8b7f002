"""The counted likelihood by the kernel for a GPU, run by Triton's interpreter, against float64."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from hilltop.errors import ArgumentError, HilltopWarning
from hilltop.losses import KeptByCount, kept_by_count
from hilltop.losses.deferred import TargetChecks
from hilltop.losses.engine import count_device, device
from tests.losses.conftest import batch, value_and_gradient
from tests.losses.likelihood.test_observation import RATIOS

triton = pytest.importorskip("triton")
if not count_device.lanes_can_be_read():
    pytest.skip("this Triton has no gather, see docs/gpu.md", allow_module_level=True)
BOTH = ["count_kernel", "finish_kernel", "scale_kernel"]


def images(rows: int, classes: int, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, labels, unknown and confirmed pairs."""
    generator = torch.Generator().manual_seed(classes)
    logits = scale * (torch.randn(rows, classes, generator=generator) - 1)
    draws = torch.rand(3, rows, classes, generator=generator)
    targets = (draws[0] < 2.5 / classes).float()
    targets[draws[1] < 0.05] = float("nan")
    return logits, targets, draws[2] < 0.1


def check(loss: KeptByCount, logits: Tensor, targets: Tensor, **options: Tensor) -> None:
    """Compare with torch in float64."""
    value, grad = value_and_gradient(loss, logits, targets, **options)
    exact, exact_grad = value_and_gradient(loss, logits.double(), targets, **options)
    torch.testing.assert_close(value.double(), exact, rtol=3e-7, atol=1e-6)
    torch.testing.assert_close(grad.double(), exact_grad, rtol=2e-7, atol=1e-10)


@pytest.mark.parametrize(
    ("r", "restore_prob", "scale"),
    [("0.8", 0.0, 1.0), ("0.8", 0.0, 3000.0), ("0.5", 0.02, 30.0), ("1", 0.0, 1.0)],
)
def test_the_count_kernel_of_a_device_is_exact(
    launched: list[str], r: str, restore_prob: float, scale: float
) -> None:
    logits, targets, observed = images(5, 9, scale)
    loss = kept_by_count(r=r, restore_prob=restore_prob, reduction="sum", watch=False)
    check(loss, logits, targets, observed=observed)
    assert launched == BOTH


@pytest.mark.slow
@pytest.mark.parametrize("r", RATIOS)
@pytest.mark.parametrize("scale", [1.0, 30.0, 3000.0])
@pytest.mark.parametrize("restore_prob", [0.0, 0.3])
@pytest.mark.parametrize(("rows", "classes"), [(8, 9), (2, 17), (1, 80)])
def test_the_count_kernel_of_a_device_is_exact_for_every_rule(
    launched: list[str], r: str, scale: float, restore_prob: float, rows: int, classes: int
) -> None:
    logits, targets, observed = images(rows, classes, scale)
    loss = kept_by_count(r=r, restore_prob=restore_prob, reduction="sum", watch=False)
    check(loss, logits, targets, observed=observed)


@pytest.mark.slow
def test_weights_that_no_double_holds_are_exact_on_a_device(launched: list[str]) -> None:
    """Of 60 labels 47 were put back, at e^-16 each."""
    logits = torch.randn(1, 100, generator=torch.Generator().manual_seed(0))
    targets = (torch.arange(100) < 60).float().unsqueeze(0)
    loss = kept_by_count(r=0.8, restore_prob=1e-7, reduction="sum", watch=False)
    check(loss, logits, targets)


def test_an_image_beyond_all_odds_is_exact_on_a_device(launched: list[str]) -> None:
    """One label left at r = 0.8 allows three more; ten classes are all but certain."""
    logits = torch.full((1, 11), 5000.0)
    targets = (torch.arange(11) == 0).float().unsqueeze(0)
    loss = kept_by_count(r=0.8, reduction="sum", watch=False)
    value, grad = value_and_gradient(loss, logits, targets)
    torch.testing.assert_close(grad[0, 1:], torch.full((10,), 0.7))
    assert value.item() == pytest.approx(7 * 5000 - math.log(math.comb(10, 3) / 4))


@pytest.mark.parametrize("reduction", ["mean", "batchmean"])
def test_the_warm_up_follows_the_epoch_on_a_device(launched: list[str], reduction: str) -> None:
    logits, targets = batch(2, 4)
    loss = kept_by_count(warmup_epochs=4, reduction=reduction, watch=False)
    for epoch in (0, 1, 9):
        loss.set_epoch(epoch)
        check(loss, logits, targets)


@pytest.mark.parametrize("confirmed", [True, False])
def test_entries_and_what_each_asks_for_are_exact(launched: list[str], confirmed: bool) -> None:
    logits, targets, observed = images(4, 9, 1.0)
    options = {"observed": observed} if confirmed else {}
    loss = kept_by_count(reduction="none", watch=False)
    asked = torch.rand(4, 9, generator=torch.Generator().manual_seed(1))
    found = []
    for given in (logits.requires_grad_(), logits.detach().double().requires_grad_()):
        entries = loss(given, targets, **options)
        (grad,) = torch.autograd.grad((entries * asked).sum(), given)
        found.append((entries.detach().double(), grad.double()))
    torch.testing.assert_close(*found, rtol=3e-7, atol=3e-7)
    assert launched == ["count_kernel", "finish_kernel"]


def test_without_a_gradient_the_value_is_the_same(launched: list[str]) -> None:
    logits, targets, observed = images(4, 9, 1.0)
    loss = kept_by_count(watch=False)
    value, _ = value_and_gradient(loss, logits, targets, observed=observed)
    torch.testing.assert_close(loss(logits, targets, observed=observed), value)
    assert launched == [*BOTH, "count_kernel", "finish_kernel"]


@pytest.mark.parametrize(("wrong", "words"), [(0.3, "0, 1 or NaN for a loss"), (2.0, "but got 2")])
def test_a_target_that_cannot_be_counted_is_nan_and_told_later(
    launched: list[str], monkeypatch: pytest.MonkeyPatch, wrong: float, words: str
) -> None:
    monkeypatch.setattr(TargetChecks, "after", lambda *_: None)
    logits, targets = batch(3, 4)
    targets[1, 2] = wrong
    loss = kept_by_count(watch=False)
    value, grad = value_and_gradient(loss, logits, targets)
    assert value.isnan()
    assert grad[1, 2] == 0
    assert grad.isfinite().all()
    with pytest.raises(ArgumentError, match=words):
        loss.set_epoch(1)


def test_a_logit_that_is_nan_shows_in_its_image_alone(launched: list[str]) -> None:
    logits, targets = batch(3, 4)
    targets[:] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    logits[1, 2] = torch.nan
    value, grad = value_and_gradient(kept_by_count(watch=False), logits, targets)
    assert value.isnan()
    assert grad[1, 1:].isnan().all()
    assert grad[[0, 2]].isfinite().all()


def test_more_classes_than_a_block_holds_are_left_to_torch(
    launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_device, "MOST_CLASSES", 3)
    logits, targets = batch(3, 4)
    check(kept_by_count(watch=False), logits, targets)
    assert launched == []


def test_a_device_on_which_the_count_kernel_fails_is_left_to_torch(
    launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = torch.device("cpu")
    assert device.can_launch(count_device._count_once, here)
    assert launched == ["count_kernel", "finish_kernel"]
    monkeypatch.setattr("hilltop.losses.engine.triton_count.count_kernel", None)
    with pytest.warns(HilltopWarning, match="Triton cannot run on cpu: .* computed by torch there"):
        assert not device.can_launch(count_device._count_once, here)
