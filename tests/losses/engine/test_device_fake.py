"""A step on a GPU that is not there: tensors without values, on which waiting is an error."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.torch_version import TorchVersion
from torch.utils._python_dispatch import TorchDispatchMode

from hilltop.losses import LOSSES, FusedLinearLoss, Loss, base, bce, build, hill
from hilltop.losses.deferred import TargetChecks
from hilltop.losses.engine import linear_parts, one_pass
from hilltop.losses.engine.columns import SparseColumns
from hilltop.losses.engine.linear_parts import FeatureBatch, evaluate
from hilltop.losses.engine.one_pass import OnePass
from tests.losses.conftest import label_stats

pytest.importorskip("triton")
if TorchVersion(torch.__version__) < "2.7" and not torch.cuda.is_available():
    pytest.skip("tensors without values of torch 2.6 ask for a driver", allow_module_level=True)
FREE = {"aten.empty.memory_format", "aten.new_empty.default", "aten.detach.default"}
"""Operators that launch nothing, beside views."""
FEW = ["bce", "hill", "splc", "ll_r", "kept_independently", "kept_by_count"]
"""Losses of the default run, one of each kind; a long one has all of them."""


class Recorder(TorchDispatchMode):
    """Writes down every operator, and how many bytes are added at once."""

    def __init__(self) -> None:
        super().__init__()
        self.launching: list[str] = []
        self.now = self.peak = 0
        self._storages: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = (one for one in args if isinstance(one, Tensor))
        self._storages |= {one.untyped_storage()._cdata for one in given}  # they were there before
        result = func(*args, **(kwargs or {}))
        name = str(func)
        views = func.is_view if hasattr(func, "is_view") else False
        if not (views or name in FREE or name.startswith("prim.")):
            self.launching.append(name)
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, Tensor):
                self._hold(tensor)
        return result

    def _hold(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._storages:
            return
        self._storages.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._storages.discard(key)
        self.now -= size


@pytest.fixture
def mode(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTensorMode]:
    """Tensors without values; the engine of autograd would ask a real GPU for its streams."""

    def without_engine(entries: Any, logits: Tensor, needs_grad: bool) -> tuple[Tensor, Tensor]:
        return entries(logits.detach().requires_grad_()).detach(), torch.empty_like(logits)

    monkeypatch.setattr(base, "grad_by_autograd", without_engine)
    monkeypatch.setattr(one_pass, "_kept", lambda: False)  # as within an ordinary backward
    with FakeTensorMode(allow_non_fake_inputs=True) as fake:
        yield fake


def on_gpu(name: str, **options: Any) -> Loss:
    """A loss in training, moved to the GPU that is not there."""
    with torch._subclasses.fake_tensor.unset_fake_temporarily():
        loss = build(name, **options)
        loss.prepare(label_stats(80))
        loss.set_epoch(3)
    return loss.to("cuda")


def fake_batch(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    logits = torch.empty(128, 80, device="cuda", dtype=dtype, requires_grad=True)
    targets = torch.empty(128, 80, device="cuda")
    return logits, targets, {"index": torch.arange(128, device="cuda")}


@pytest.mark.parametrize("reduction", ["mean", pytest.param("none", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in LOSSES],
)
def test_no_step_waits_for_the_device(mode: FakeTensorMode, name: str, reduction: str) -> None:
    loss = on_gpu(name, reduction=reduction)
    logits, targets, options = fake_batch()
    for _ in range(12):  # beyond the tenth, at which training is looked at
        value = loss(logits, targets, **options)
    assert value.is_cuda
    if isinstance(value.grad_fn, OnePass._backward_cls):
        OnePass.backward(value.grad_fn, torch.empty_like(value))


def test_a_wait_would_be_an_error(mode: FakeTensorMode) -> None:
    logits, *_ = fake_batch()
    with pytest.raises(DataDependentOutputException):
        bool((logits > 0).any())


@pytest.mark.parametrize(("check", "looks"), [(False, 1), (True, 3)])
def test_targets_are_looked_at_once_unless_every_batch_is_checked(
    mode: FakeTensorMode, monkeypatch: pytest.MonkeyPatch, check: bool, looks: int
) -> None:
    seen: list[torch.device] = []
    monkeypatch.setattr(TargetChecks, "_raise_for", lambda self, device, hint: seen.append(device))
    loss = bce(check=check).to("cuda")
    logits, targets, _ = fake_batch()
    for _ in range(3):
        loss(logits, targets)
    assert len(seen) == looks


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "name", ["bce", "hill", "splc_released", "asl", "kept_independently", "kept_by_count"]
)
def test_a_step_is_two_launches_and_one_and_keeps_one_tensor(
    mode: FakeTensorMode, name: str, dtype: torch.dtype
) -> None:
    loss = on_gpu(name)
    logits, targets, _ = fake_batch(dtype)
    loss(logits, targets)  # what is made once
    with Recorder() as forward:
        value = loss(logits, targets)
    operator = "count_loss_and_grad" if loss.counts_labels else "loss_and_grad"
    assert forward.launching == [f"hilltop.{operator}.default"]  # two, test_device.py counts
    size = logits.numel() * logits.element_size()
    assert size <= forward.peak <= size + 64
    grad_loss = torch.empty_like(value)
    with torch.no_grad(), Recorder() as backward:
        OnePass.backward(value.grad_fn, grad_loss)
    assert backward.launching == ["hilltop.scale_grad.default"]  # one
    assert backward.peak == 0


def test_the_plain_formula_launches_a_chain(mode: FakeTensorMode) -> None:
    """What the kernel saves: the same loss as torch operators."""
    loss = hill().to("cuda")
    logits, targets, _ = fake_batch()
    batch = loss.batch(logits, targets)
    with Recorder() as formula:
        loss.entries(batch).sum()
    assert len(formula.launching) > 15


def test_a_fused_head_waits_for_nothing_and_adds_one_part_of_the_logits(
    mode: FakeTensorMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, features, classes, part = 32, 16, 50_000, 1_000
    monkeypatch.setattr(linear_parts, "_ENTRIES_ON_DEVICE", rows * part)
    with torch._subclasses.fake_tensor.unset_fake_temporarily():
        head = FusedLinearLoss(features, classes, loss=hill(watch=False))
    head = head.to("cuda")
    labels = sorted(range(0, classes, 700))
    index = torch.empty(len(labels), dtype=torch.long, device="cuda")
    ones = torch.ones(len(labels), device="cuda")
    targets = SparseColumns(index, index, ones, (rows, classes), labels, ones=True)
    batch = FeatureBatch(head.loss, torch.empty(rows, features, device="cuda"), targets, None)
    with torch.no_grad(), Recorder() as recorder:
        evaluate(batch, head.linear, wanted=[True, True, True])
    kept = 4 * (classes * (features + 1) + rows * features)  # the gradients
    assert recorder.peak < kept + 6 * 4 * rows * part
    assert recorder.launching.count("hilltop.loss_and_grad.default") == classes // part
    assert "hilltop.scale_grad.default" not in recorder.launching
