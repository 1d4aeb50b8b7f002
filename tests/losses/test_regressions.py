"""Faults that were found once and must not come back."""

from __future__ import annotations

import math
import threading
import types

import pytest
import torch
from torch import Tensor, nn

from hilltop.errors import ArgumentTypeError, HilltopWarning
from hilltop.losses import (
    Correction,
    FocalPositive,
    HillNegative,
    LogNegative,
    LogPositive,
    MultiLabelLoss,
    NegativeTerm,
    PairBatch,
    SelfPacedCorrection,
    bce,
    build,
    hill,
    splc,
)
from hilltop.losses.engine import kernel
from tests.losses.conftest import batch, label_stats


def value_and_gradient(loss: nn.Module, logits: Tensor, *rest: Tensor, **options: Tensor) -> Tensor:
    leaf = logits.clone().requires_grad_()
    value = loss(leaf, *rest, **options)
    value.sum().backward()
    assert leaf.grad is not None
    return torch.cat([value.detach().double().flatten(), leaf.grad.double().flatten()])


@pytest.mark.parametrize("name", ["hill", "splc", "asl"])
def test_wide_rows_with_weights_observed_and_unknown_agree_with_float64(name: str) -> None:
    """More classes than one block of the kernel holds."""
    logits, targets = batch(9, 600)
    targets[torch.rand_like(targets) < 0.1] = float("nan")
    verified = torch.rand(9, 1200)[:, ::2] < 0.5  # not contiguous
    loss = build(name, class_weight=torch.rand(600), pos_weight=2 * torch.rand(600))
    loss.set_epoch(2)
    exact = value_and_gradient(loss, logits.double(), targets.double(), verified=verified)
    actual = value_and_gradient(loss, logits, targets, verified=verified)
    torch.testing.assert_close(actual, exact, rtol=1e-4, atol=1e-8)


def test_threads_see_their_own_part_of_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, targets = batch(50, 7)
    verified = torch.rand(50, 7) < 0.5
    loss = splc(start_epoch=0)
    expected = value_and_gradient(loss, logits, targets, verified=verified)
    monkeypatch.setattr(kernel, "_ENTRIES_PER_THREAD", 16)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    actual = value_and_gradient(loss, logits, targets, verified=verified)
    torch.testing.assert_close(actual, expected)


needs_kernel = pytest.mark.skipif(kernel.library() is None, reason="no C compiler, no kernel")


@needs_kernel
def test_a_fault_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no memory")

    monkeypatch.setattr(kernel, "_ENTRIES_PER_THREAD", 16)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    broken = types.SimpleNamespace(hilltop_loss_and_grad=fail)
    monkeypatch.setattr(kernel, "library", lambda: broken)
    with pytest.raises(MemoryError):
        hill()(*batch(50, 7))


def test_losses_in_many_threads_do_not_disturb_each_other() -> None:
    """The parameters of a loss must live as long as the kernel reads them."""
    logits, targets = torch.zeros(1000, 1000), torch.zeros(1000, 1000)
    stop = threading.Event()

    def others() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            hill(lam=2 + number * 1e-3)(torch.zeros(1, 1), torch.zeros(1, 1))

    thread = threading.Thread(target=others)
    thread.start()
    try:
        results = {hill()(logits, targets).item() for _ in range(40)}
    finally:
        stop.set()
        thread.join()
    assert results == {0.25}


def test_parts_and_weights_set_later_count() -> None:
    logits, targets = batch()
    loss = bce(reduction="none")
    plain = loss(logits, targets)
    loss.class_weight = torch.tensor(3.0).expand(5)  # a view without memory of its own
    torch.testing.assert_close(loss(logits, targets), 3 * plain)
    corrected = splc(start_epoch=0)
    assert isinstance(corrected.correction, SelfPacedCorrection)
    corrected.correction.tau = 1.0
    torch.testing.assert_close(corrected(logits, targets), build("focal_margin")(logits, targets))


def test_one_weight_for_all_classes_as_in_torch() -> None:
    logits, targets = batch()
    expected = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))(logits, targets)
    for weight in (3.0, [3.0], torch.tensor(3.0)):
        torch.testing.assert_close(bce(pos_weight=weight)(logits, targets), expected)


class TenfoldHill(HillNegative):
    """Overrides forward alone: the kernel does not know of it."""

    def forward(self, logits: Tensor) -> Tensor:
        return 10 * super().forward(logits)


class NeverCorrect(SelfPacedCorrection):
    """Overrides forward alone."""

    def forward(self, batch: PairBatch, loss_neg: Tensor) -> tuple[Tensor, Tensor]:
        return torch.ones_like(batch.logits), torch.zeros_like(batch.logits)


def test_a_subclass_that_overrides_forward_is_heard() -> None:
    zeros = torch.zeros(2, 3)
    loss = MultiLabelLoss(positive=LogPositive(), negative=TenfoldHill())
    assert loss(zeros, zeros).item() == pytest.approx(2.5)
    quiet = bce().with_correction(NeverCorrect(tau=0.0, start_epoch=0))
    assert quiet(zeros, zeros).item() == pytest.approx(math.log(2))


def test_forward_hooks_on_halves_are_heard() -> None:
    zeros = torch.zeros(2, 3)
    loss = hill()
    loss.negative.register_forward_hook(lambda module, inputs, output: 2 * output)
    assert loss(zeros, zeros).item() == pytest.approx(0.5)


class Softmax(NegativeTerm):
    """Not entry by entry, against the contract."""

    def forward(self, logits: Tensor) -> Tensor:
        return torch.softmax(logits, dim=-1)


def test_without_reduction_a_half_that_mixes_entries_keeps_its_gradient() -> None:
    logits = torch.tensor([[0.5, -1.0, 2.0]], requires_grad=True)
    loss = MultiLabelLoss(positive=LogPositive(), negative=Softmax(), reduction="none")
    loss(logits, torch.zeros(1, 3))[0, 0].backward()
    assert logits.grad is not None
    expected = torch.autograd.functional.jacobian(
        lambda x: torch.softmax(x, dim=-1)[0, 0], logits.detach()
    )
    torch.testing.assert_close(logits.grad, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("logit", [float("nan"), -float("inf"), float("inf")])
def test_an_unknown_entry_is_left_out_whatever_its_logit(dtype: torch.dtype, logit: float) -> None:
    logits = torch.tensor([[0.5, logit]], dtype=dtype)
    targets = torch.tensor([[0.0, float("nan")]])
    for name in ("bce", "hill", "asl", "splc"):
        both = value_and_gradient(build(name), logits, targets)
        assert both.isfinite().all(), name
        assert both[-1] == 0


def test_the_loss_does_not_take_global_defaults() -> None:
    logits, targets = batch()
    torch.set_default_dtype(torch.float64)
    try:
        assert hill()(logits, targets).dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        assert hill()(logits, targets).device.type == "cpu"


def test_the_mean_in_float64_has_its_precision() -> None:
    logits, targets = (part.double() for part in batch(7, 11))
    leaf, other = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    bce()(leaf, targets).backward()
    nn.BCEWithLogitsLoss()(other, targets).backward()
    assert leaf.grad is not None
    assert other.grad is not None
    torch.testing.assert_close(leaf.grad, other.grad, rtol=1e-12, atol=0)


def test_batchmean_of_more_dimensions_divides_by_all_images() -> None:
    logits, targets = batch(6, 5)
    flat = hill(reduction="batchmean")(logits, targets)
    shaped = hill(reduction="batchmean")(logits.view(2, 3, 5), targets.view(2, 3, 5))
    torch.testing.assert_close(shaped, flat)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_gamma_below_one_is_safe_where_the_weight_underflows(dtype: torch.dtype) -> None:
    logits = torch.tensor([[-1e4, 1e4]], dtype=dtype)
    both = value_and_gradient(build("focal", gamma=0.5), logits, torch.tensor([[0.0, 1.0]]))
    assert both.isfinite().all()


@needs_kernel  # without it 1 - p is that of single precision: gradients below 1e-11 are lost
def test_the_gradient_of_hill_does_not_cancel_near_one() -> None:
    logits = torch.tensor([[12.0, 15.0, 17.0]])
    actual = value_and_gradient(hill(reduction="sum"), logits, torch.zeros(1, 3))[1:]
    exact = value_and_gradient(hill(reduction="sum"), logits.double(), torch.zeros(1, 3))[1:]
    torch.testing.assert_close(actual, exact, rtol=1e-5, atol=0)


def test_parts_in_the_wrong_place_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="positive must be a PositiveTerm, but got HillN"):
        MultiLabelLoss(positive=HillNegative(), negative=LogNegative())  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="negative must be a NegativeTerm, but got str"):
        MultiLabelLoss(positive=FocalPositive(), negative="hill")  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="base must be a hilltop loss made of terms"):
        splc(nn.BCEWithLogitsLoss())  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"margin must be a number, but got"):
        hill(margin="0.5")  # type: ignore[arg-type]


@needs_kernel
def test_a_kernel_that_cannot_be_loaded_is_said_and_done_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(path: str) -> None:
        raise OSError("file too short")

    monkeypatch.setattr(kernel.ctypes, "CDLL", broken)
    with pytest.warns(HilltopWarning, match="file too short. The plain formulas run instead"):
        assert kernel.library.__wrapped__() is None


def test_a_model_loads_a_state_saved_with_another_criterion() -> None:
    before, after = nn.ModuleDict({"head": nn.Linear(2, 2)}), nn.ModuleDict()
    before["criterion"] = nn.BCEWithLogitsLoss()
    after["head"], after["criterion"] = nn.Linear(2, 2), hill()
    after.load_state_dict(before.state_dict())


def corrections() -> list[type[Correction]]:
    """Every correction of the package that can be built by itself."""
    found = [Correction]
    for kind in found:
        found += kind.__subclasses__()
    needs_more = {"Correction", "SelectiveCorrection", "EmaTeacher", "AbsentWeights", "_LargeLoss"}
    own = [kind for kind in found if kind.__module__.startswith("hilltop.")]
    return [kind for kind in own if kind.__name__ not in needs_more]


@pytest.mark.parametrize("kind", corrections())
def test_every_correction_leaves_verified_entries_alone(kind: type[Correction]) -> None:
    logits, targets = batch()
    everything = torch.ones_like(targets, dtype=torch.bool)
    correction, index = kind(), torch.arange(len(logits))
    correction.prepare(label_stats(logits.shape[1]))
    loss = bce().with_correction(correction)
    loss.set_epoch(10)
    corrected = loss(logits, targets, verified=everything, index=index)
    torch.testing.assert_close(corrected, bce()(logits, targets))
    epoch = torch.tensor(10)
    pairs = PairBatch(logits.requires_grad_(), targets, index=index, epoch=epoch)
    keep, pseudo = correction(pairs, logits)
    assert not keep.requires_grad
    assert not pseudo.requires_grad
