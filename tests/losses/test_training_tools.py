"""Every loss under what training code does to it: mixing, masks, scaling, layouts, sharding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from timm.data import Mixup
from torch import Tensor, nn
from torch.torch_version import TorchVersion
from torchvision.transforms import v2

from hilltop.errors import ArgumentError
from hilltop.losses import MultiLabelLoss
from tests.forked import run_forked
from tests.losses.conftest import batch, counts_labels, sees_whole_batch, value_and_gradient
from tests.losses.fsdp_worker import NAMES, full_batch_gradients

Make = Callable[..., MultiLabelLoss]
MIXES = {"mixup": v2.MixUp(alpha=1.0), "cutmix": v2.CutMix(alpha=1.0)}


def mixed(name: str, targets: Tensor) -> Tensor:
    """Targets that torchvision mixed among the rows of a batch."""
    _, soft = MIXES[name](torch.rand(len(targets), 3, 8, 8), targets)
    assert ((soft > 0) & (soft < 1)).any()
    return soft


@pytest.mark.parametrize("mix", list(MIXES))
def test_mixed_targets_cost_the_mixture_of_both_terms(make: Make, mix: str) -> None:
    logits, targets = batch(8, 5)
    soft = mixed(mix, targets)
    if counts_labels(make()):
        with pytest.raises(ArgumentError, match="Use another loss, such as scar_likelihood"):
            make()(logits, soft)
        return
    value, gradient = value_and_gradient(make(reduction="none"), logits, soft)
    assert gradient.isfinite().all()
    if sees_whole_batch(make()):  # which entries are large depends on all targets
        assert value.isfinite().all()
        return
    positive = make(reduction="none")(logits, torch.ones_like(logits))
    negative = make(reduction="none")(logits, torch.zeros_like(logits))
    torch.testing.assert_close(value, soft * positive + (1 - soft) * negative)


def test_an_unknown_label_of_either_image_is_unknown_in_their_mixture(make: Make) -> None:
    logits, targets = batch(8, 5)
    targets[2, 3] = float("nan")
    soft = mixed("mixup", targets)
    unknown = soft.isnan()
    assert int(unknown.sum()) == 2
    if counts_labels(make()):
        soft = soft.round()  # it takes no soft targets
    _, gradient = value_and_gradient(make(), logits, soft)
    assert (gradient[unknown] == 0).all()
    assert gradient[~unknown].isfinite().all()


def test_timm_mixup_of_class_numbers_gives_targets_for_every_loss(make: Make) -> None:
    logits, _ = batch(8, 5)
    mix = Mixup(mixup_alpha=1.0, num_classes=5, label_smoothing=0.1)
    _, soft = mix(torch.rand(8, 3, 8, 8), torch.arange(8) % 5)
    if counts_labels(make()):
        with pytest.raises(ArgumentError, match="targets must be 0, 1 or NaN"):
            make()(logits, soft)
        return
    value, gradient = value_and_gradient(make(), logits, soft)
    assert value.isfinite()
    assert gradient.abs().sum() > 0


def half_precision_step(loss: MultiLabelLoss, scale: float) -> tuple[Tensor, Tensor, float]:
    """One step under autocast and GradScaler: gradient, weights after it, and the new scale."""
    torch.manual_seed(0)
    head = nn.Linear(4, 5)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    inputs, (_, targets) = torch.randn(7, 4), batch()
    with torch.autocast("cpu", dtype=torch.float16):
        value = loss(head(inputs), targets)
    scaler.scale(value).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert head.weight.grad is not None
    return head.weight.grad, head.weight.detach(), scaler.get_scale()


def test_a_grad_scaler_changes_the_step_by_rounding_alone(make: Make) -> None:
    gradient, _, _ = half_precision_step(make(), 1.0)
    scaled, weight, scale = half_precision_step(make(), 4096.0)
    assert scale == 4096.0
    torch.testing.assert_close(scaled, gradient, rtol=2e-2, atol=2e-5)
    torch.manual_seed(0)
    torch.testing.assert_close(weight, nn.Linear(4, 5).weight - 0.1 * scaled)


def test_a_grad_scaler_skips_a_step_that_overflows(make: Make) -> None:
    gradient, weight, scale = half_precision_step(make(), 2.0**127)
    assert not gradient.isfinite().all()
    torch.manual_seed(0)
    assert torch.equal(weight, nn.Linear(4, 5).weight)
    assert scale == 2.0**126


def test_channels_last_gives_the_same_loss_and_weights(make: Make) -> None:
    """Logits of a map, classes last: in one layout they are a view, in the other contiguous."""
    torch.manual_seed(0)
    pictures, targets = torch.randn(2, 3, 3, 4), (torch.rand(2, 3, 4, 5) < 0.3).float()
    found = []
    for layout in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(1)
        network = nn.Conv2d(3, 5, 1).to(memory_format=layout)
        logits = network(pictures.to(memory_format=layout)).permute(0, 2, 3, 1)
        assert logits.is_contiguous() == (layout is torch.channels_last)
        value = make()(logits, targets)
        value.backward()
        assert network.weight.grad is not None
        found.append((value.detach(), network.weight.grad.contiguous()))
    torch.testing.assert_close(found[1], found[0])


WORKER = Path(__file__).with_name("fsdp_worker.py")


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Tensor]]:
    """Gradients of a fully sharded model on two processes, by loss."""
    if TorchVersion(torch.__version__) < "2.7":
        pytest.skip("fully sharded models of torch 2.6 need a device")
    out = tmp_path_factory.mktemp("fsdp") / "gradients.pt"
    run_forked(WORKER, out, processes=2)
    gradients: dict[str, list[Tensor]] = torch.load(out)
    return gradients


@pytest.mark.distributed
@pytest.mark.parametrize("name", NAMES)
def test_a_fully_sharded_model_gets_the_gradient_of_the_whole_batch(
    sharded: dict[str, list[Tensor]], name: str
) -> None:
    torch.testing.assert_close(sharded[name], full_batch_gradients(name), rtol=1e-4, atol=1e-6)
