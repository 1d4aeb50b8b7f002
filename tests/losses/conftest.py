"""The lists that shared checks run over: registering a name enrols it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.torch_version import TorchVersion

from hilltop.losses import LOSSES, LabelStats, Loss, MultiLabelLoss, build
from hilltop.losses.deferred import TargetChecks
from hilltop.losses.engine import count_device, device, kernel


class AsTrained:
    """Does what the trainer does: statistics before the first step, row numbers with a batch."""

    def __init__(self) -> None:
        self.classes: int | None = None

    def __call__(
        self, loss: nn.Module, args: tuple[Tensor, ...], options: dict[str, Tensor]
    ) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
        shape = args[0].shape
        if self.classes != shape[-1]:
            self.classes = shape[-1]
            assert isinstance(loss, Loss)
            loss.prepare(label_stats(shape[-1]))
        if options.get("index") is None:
            rows = torch.arange(shape[:-1].numel()).view(shape[:-1])
            options = {**options, "index": rows}
        return args, options


def label_stats(classes: int, *, images: int = 500, epochs: int = 10) -> LabelStats:
    """What is known of a small data set, a label for every image."""
    positives = torch.full((classes,), images // max(1, classes))
    return LabelStats(images, positives, torch.tensor([0, images]), epochs)


def takes(name: str, option: str) -> bool:
    """Whether a loss has an option."""
    return option in LOSSES.options(name)


def ready(name: str, **options: object) -> Loss:
    """Build a loss that is used as in training."""
    loss = build(name, **options)
    loss.prepare(label_stats(5))  # what it declares may depend on the labels
    loss.register_forward_pre_hook(AsTrained(), with_kwargs=True)
    return loss


def names_of(*, whole_batch: bool | None = None, rows: bool | None = None) -> list[str]:
    """Losses that see whole batches, or do not; that remember rows, or do not."""
    made = {name: ready(name) for name in LOSSES}
    return [
        name
        for name, loss in made.items()
        if whole_batch in (None, loss.sees_whole_batch) and rows in (None, loss.remembers_rows)
    ]


@pytest.fixture(params=list(LOSSES))
def loss_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(loss_name: str) -> Callable[..., MultiLabelLoss]:
    """Build the loss under test, at an epoch in which corrections are active."""

    def make_loss(**options: object) -> MultiLabelLoss:
        loss = ready(loss_name, **options)
        loss.set_epoch(3)
        return loss

    return make_loss


ENGINES = [
    *(["kernel"] if kernel.library() else []),
    "torch",
    pytest.param("triton", marks=pytest.mark.slow),
]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a check with the compiled kernel, with torch alone and with the kernels for a GPU."""
    if request.param == "torch":
        monkeypatch.setattr(kernel, "library", lambda: None)
    if request.param == "triton":
        interpret_kernels(monkeypatch)
    return str(request.param)


def interpret_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernels for a GPU run on the CPU, and look at the targets of every batch."""
    version = pytest.importorskip("triton").__version__
    if TorchVersion(version) < "3.3" and TorchVersion(np.__version__) >= "2.4":
        pytest.skip("the interpreter of Triton 3.2 and earlier needs NumPy below 2.4")
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("Triton's interpreter is off, since there is a GPU")
    from triton.runtime.interpreter import InterpretedFunction

    as_it_is = InterpretedFunction.__call__

    def call_at_once(function: Any, *args: Any, **options: Any) -> Any:
        """Call what a kernel calls, without making all of Triton's language ready once more."""
        if function.fn.__module__.startswith("hilltop."):
            return function.rewrite()(*args, **options)
        return as_it_is(function, *args, **options)

    monkeypatch.setattr(InterpretedFunction, "__call__", call_at_once)
    monkeypatch.setattr(device, "runs_on", lambda logits: takes_dtype(logits) and logits.numel())
    reads = count_device.lanes_can_be_read()
    monkeypatch.setattr(count_device, "_usable", lambda where: reads)  # no trial before the first
    monkeypatch.setattr(TargetChecks, "after", lambda self, _: self.raise_errors())


class Spied:
    """A kernel that says when it is launched."""

    def __init__(self, kernel: Any, name: str, names: list[str]) -> None:
        self.kernel, self.name, self.names = kernel, name, names

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        self.names.append(self.name)
        return self.kernel[grid]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels that were launched, which is allowed on the CPU."""
    interpret_kernels(monkeypatch)
    from hilltop.losses.engine import triton_count, triton_kernel

    names: list[str] = []
    for module, name in (
        (triton_kernel, "loss_kernel"),
        (triton_kernel, "finish_kernel"),
        (triton_kernel, "scale_kernel"),
        (triton_count, "count_kernel"),
    ):
        monkeypatch.setattr(module, name, Spied(getattr(module, name), name, names))
    return names


def takes_dtype(logits: Tensor) -> bool:
    """Whether the kernels for a GPU take logits of this kind."""
    return logits.dtype in (torch.float32, torch.float16, torch.bfloat16)


def batch(rows: int = 7, classes: int = 5, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits of a trained model's spread, and sparse hard targets."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, classes, generator=generator) - 1
    targets = (torch.rand(rows, classes, generator=generator) < 0.3).float()
    return logits, targets


def value_and_gradient(
    loss: Loss, logits: Tensor, targets: Tensor, **options: Tensor
) -> tuple[Tensor, Tensor]:
    leaf = logits.clone().requires_grad_()
    value = loss(leaf, targets, **options)
    value.sum().backward()
    assert leaf.grad is not None
    return value.detach(), leaf.grad


def assert_entries(actual: Tensor, expected: list[list[float]], rtol: float = 1e-9) -> None:
    wanted = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(actual.double(), wanted, rtol=rtol, atol=1e-12)
