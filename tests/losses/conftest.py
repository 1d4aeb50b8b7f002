"""The lists that shared checks run over: registering a name enrols it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from hilltop.losses import (
    LOSSES,
    AbsentWeights,
    AdaptiveSelfPacedCorrection,
    AsymmetricPseudoLabels,
    CountLikelihood,
    LabelStats,
    Loss,
    MultiLabelLoss,
    build,
)
from hilltop.losses.engine import kernel


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
    """Build a loss that is used as in training, and is its equation from the first step."""
    loss = build(name, **{"safe_start": False, **options})
    loss.prepare(label_stats(5))  # what it declares may depend on the labels
    loss.register_forward_pre_hook(AsTrained(), with_kwargs=True)
    return loss


REMEMBERING = ["em_apl", "ll_cp", "role"]  # what they remember belongs to single rows


def counts_labels(loss: Loss) -> bool:
    """Whether a loss takes hard targets alone."""
    return isinstance(loss, CountLikelihood)


def sees_whole_batch(loss: Loss) -> bool:
    """Whether the loss of an image depends on other images of its batch."""
    correction = getattr(loss, "correction", None)
    own = (AbsentWeights, AsymmetricPseudoLabels, AdaptiveSelfPacedCorrection)
    return not loss.independent_rows and not isinstance(correction, own)


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


ENGINES = [*(["kernel"] if kernel.library() else []), "torch"]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a check with the compiled kernel and with the plain formula."""
    if request.param == "torch":
        monkeypatch.setattr(kernel, "library", lambda: None)
    return str(request.param)


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
