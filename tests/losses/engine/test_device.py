"""The kernels for a GPU, run by Triton's interpreter, against torch in float64."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from hilltop.errors import ArgumentError, HilltopWarning
from hilltop.losses import (
    LOSSES,
    Loss,
    MultiLabelLoss,
    bce,
    hill,
    kept_independently,
    splc_released,
)
from hilltop.losses.engine import count_device, device, dispatch
from hilltop.losses.reduction import REDUCTIONS
from tests.losses.conftest import batch, ready, takes, value_and_gradient

# Of the gradient. For bfloat16 it is rounded twice; the interpreter cuts off where a GPU rounds.
TOLERANCE = {torch.float32: 2e-5, torch.float16: 1e-3, torch.bfloat16: 1.6e-2}
FEW = ["asl", "hill", "kept_independently", "ll_r", "splc_released"]  # every kind of part
FEW_ROWS = 3  # of a loss that counts: the interpreter needs a second for an image
HERE = [pytest.param(name, marks=() if name in FEW else pytest.mark.slow) for name in LOSSES]


def odd_batch(rows: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Labels, soft targets, unknown and confirmed pairs; no multiple of any block."""
    logits, targets = batch(rows, classes)
    targets[::3, 1::5], targets[:, 2::7] = 0.3, torch.nan
    return logits, targets, torch.arange(rows * classes).view(rows, classes) % 4 == 0


def exact(loss: Loss, logits: Tensor, *given: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    """The same by torch, in double precision."""
    return value_and_gradient(copy.deepcopy(loss), logits.double(), *given, **options)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", HERE)
def test_value_and_gradient_are_those_of_float64(
    launched: list[str], name: str, dtype: torch.dtype
) -> None:
    logits, targets, observed = odd_batch(37, 31)  # more than one block
    logits = logits.to(dtype)
    loss = ready(name)
    loss.set_epoch(3)
    if loss.counts_labels:
        logits, targets, observed = (part[:FEW_ROWS] for part in (logits, targets, observed))
        targets[targets == 0.3] = 0
    wanted, wanted_grad = exact(loss, logits, targets, observed=observed)
    value, grad = value_and_gradient(loss, logits, targets, observed=observed)
    assert value.dtype == torch.float32
    assert grad.dtype == dtype
    torch.testing.assert_close(value.double(), wanted, rtol=2e-6, atol=1e-7)
    torch.testing.assert_close(grad.double(), wanted_grad, rtol=TOLERANCE[dtype], atol=6e-8)
    if loss.counts_labels and count_device.lanes_can_be_read():
        assert launched[-3:] == ["count_kernel", "finish_kernel", "scale_kernel"]
    elif isinstance(loss, MultiLabelLoss) and device_form(loss):
        assert launched == ["loss_kernel", "finish_kernel", "scale_kernel"]


def device_form(loss: MultiLabelLoss) -> bool:
    form = dispatch.kernel_form(loss, loss.batch(torch.zeros(2, 31), torch.zeros(2, 31)))
    return form is not None


@pytest.mark.slow
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("masked", ["nan", "observed", "neither"])
@pytest.mark.parametrize("targets_dtype", [torch.bool, torch.float32, torch.int64], ids=str)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", list(LOSSES))
def test_every_loss_dtype_mask_and_reduction(
    launched: list[str],
    name: str,
    dtype: torch.dtype,
    targets_dtype: torch.dtype,
    masked: str,
    reduction: str,
) -> None:
    logits, targets = batch(13, 11)
    logits, targets = logits.to(dtype), targets.to(targets_dtype)
    options: dict[str, Tensor] = {}
    if masked == "nan":
        if targets_dtype != torch.float32:
            return  # there is no NaN
        targets[2, 3] = targets[1] = torch.nan
    if masked == "observed":
        options["observed"] = torch.arange(13 * 11).view(13, 11) % 3 == 0
    loss = ready(name, reduction=reduction)
    loss.set_epoch(3)
    if loss.counts_labels:
        logits, targets = logits[:FEW_ROWS], targets[:FEW_ROWS]
        options = {name: mask[:FEW_ROWS] for name, mask in options.items()}
    wanted, wanted_grad = exact(loss, logits, targets, **options)
    value, grad = value_and_gradient(loss, logits, targets, **options)
    torch.testing.assert_close(value.double(), wanted, rtol=3e-6, atol=1e-6)
    torch.testing.assert_close(grad.double(), wanted_grad, rtol=TOLERANCE[dtype], atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (1, 1024), (3, 683), (2, 3, 7), (5,)])
def test_weights_find_their_class_in_any_shape(launched: list[str], shape: tuple[int, ...]) -> None:
    logits, targets = torch.randn(shape), (torch.rand(shape) < 0.3).float()
    weights = {"class_weight": torch.rand(shape[-1]), "pos_weight": 2 * torch.rand(shape[-1])}
    loss = hill(reduction="batchmean", label_smoothing=0.1, **weights)
    wanted, wanted_grad = exact(loss, logits, targets)
    value, grad = value_and_gradient(loss, logits, targets)
    torch.testing.assert_close(value.double(), wanted, rtol=2e-6, atol=0)
    torch.testing.assert_close(grad.double(), wanted_grad, rtol=2e-5, atol=1e-7)
    assert len(launched) == 3


def test_a_rate_for_each_class_reaches_both_terms(launched: list[str]) -> None:
    logits, targets, observed = odd_batch(9, 50)
    loss = kept_independently(keep=torch.linspace(0.2, 1.0, 50), warmup_epochs=4)
    for epoch in (0, 2, 5):
        loss.set_epoch(epoch)
        wanted, wanted_grad = exact(loss, 20 * logits, targets, observed=observed)
        value, grad = value_and_gradient(loss, 20 * logits, targets, observed=observed)
        torch.testing.assert_close(value.double(), wanted, rtol=2e-6, atol=0)
        torch.testing.assert_close(grad.double(), wanted_grad, rtol=1e-4, atol=1e-8)


def test_the_epoch_is_compared_on_the_device(launched: list[str]) -> None:
    """One form for all epochs, so that a captured graph follows the epoch."""
    logits, targets = batch(20, 9)
    loss, forms = splc_released(start_epoch=2), set()
    for epoch in (1, 2):
        loss.set_epoch(epoch)
        wanted, _ = exact(loss, logits, targets)
        torch.testing.assert_close(loss(logits, targets).double(), wanted, rtol=2e-6, atol=0)
        forms.add(dispatch.kernel_form(loss, loss.batch(logits, targets)))
    assert len(forms) == 1


def test_the_same_batch_gives_the_same_bits(launched: list[str]) -> None:
    logits, targets = batch(700, 13)
    assert torch.equal(hill()(logits, targets), hill()(logits, targets))


def test_a_wrong_target_is_nan_has_no_gradient_and_is_told_later(
    launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hilltop.losses.deferred import TargetChecks

    monkeypatch.setattr(TargetChecks, "after", lambda *_: None)
    logits, targets = batch()
    loss = bce(reduction="none")
    loss(logits, targets)
    loss.raise_deferred_errors()
    targets[2, 3], targets[4, 1] = -1.0, 1.5
    value, grad = value_and_gradient(loss, logits, targets)
    assert value.isnan().nonzero().tolist() == [[2, 3], [4, 1]]
    assert grad[2, 3] == grad[4, 1] == 0
    with pytest.raises(ArgumentError, match=r"but got -1\.0\. If -1 means .* check=True finds"):
        loss.set_epoch(1)
    loss.set_epoch(1)  # it is told once


def test_a_scaled_loss_loses_no_small_gradient_of_float16(launched: list[str]) -> None:
    """A GradScaler's factor comes in backward, too late for what float16 had rounded to 0."""
    logits = torch.full((4, 8), -20.0, dtype=torch.float16, requires_grad=True)
    (bce(reduction="sum")(logits, torch.zeros(4, 8)) * 65536).backward()
    wanted = 65536 * torch.sigmoid(torch.tensor(-20.0))
    torch.testing.assert_close(logits.grad, torch.full((4, 8), wanted.item()).half())


def test_strided_logits_and_targets_are_read_in_their_order(launched: list[str]) -> None:
    logits, targets = batch(8, 6)
    turned = logits.t().contiguous().t(), targets.t().contiguous().t()
    expected = value_and_gradient(hill(reduction="none"), logits, targets)
    torch.testing.assert_close(value_and_gradient(hill(reduction="none"), *turned), expected)


def test_backward_twice_scales_the_kept_gradient_anew(launched: list[str]) -> None:
    logits, targets = batch()
    logits.requires_grad_()
    value = 3 * hill()(logits, targets)
    (once,) = torch.autograd.grad(value, logits, retain_graph=True)
    (twice,) = torch.autograd.grad(value, logits)
    assert torch.equal(once, twice)


def test_losses_take_check_as_an_option() -> None:
    names = [name for name in LOSSES if takes(name, "class_weight")]
    assert all(takes(name, "check") for name in names)


def test_a_device_on_which_triton_fails_is_left_to_torch_with_a_warning(
    launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert device.works_on(torch.device("cpu"))
    assert launched == ["loss_kernel", "finish_kernel", "scale_kernel"]
    monkeypatch.setattr("hilltop.losses.engine.triton_kernel.loss_kernel", None)
    with pytest.warns(HilltopWarning, match="Triton cannot run on cpu: .* computed by torch there"):
        assert not device.works_on(torch.device("cpu"))
