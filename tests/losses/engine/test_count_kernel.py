"""The compiled kernel of the counted likelihood against torch in float64."""

from __future__ import annotations

import math

import pytest
import torch

from hilltop.losses.engine import kernel
from tests.losses.conftest import batch
from tests.losses.likelihood.test_observation import RATIOS, count_likelihood, gradient


@pytest.mark.parametrize("r", RATIOS)
@pytest.mark.parametrize("scale", [1.0, 30.0, 3000.0])
@pytest.mark.parametrize(
    ("rows", "classes", "restore_prob"), [(30, 9, 0.0), (30, 9, 0.3), (19, 80, 0.0), (9, 600, 0.02)]
)
def test_the_count_kernel_agrees_with_torch(
    r: str, scale: float, rows: int, classes: int, restore_prob: float
) -> None:
    generator = torch.Generator().manual_seed(rows)
    logits = scale * (torch.randn(rows, classes, generator=generator) - 1)
    draws = torch.rand(3, rows, classes, generator=generator)
    targets = (draws[0] < 2.5 / classes).float()
    targets[draws[1] < 0.05] = float("nan")
    verified = draws[2] < 0.1
    for epoch in (0, 1, 4):
        loss = count_likelihood(r=r, restore_prob=restore_prob, reduction="sum", warmup_epochs=4)
        loss.set_epoch(epoch)
        value = loss(logits, targets, verified=verified)
        exact = loss(logits.double(), targets, verified=verified)
        torch.testing.assert_close(value.double(), exact, rtol=3e-6, atol=1e-5)
        torch.testing.assert_close(
            gradient(loss, logits, targets, verified=verified).double(),
            gradient(loss, logits.double(), targets, verified=verified),
            rtol=1e-4,
            atol=2e-6,
        )
        probable = loss.posterior(logits.double(), targets, verified=verified)
        sure = (probable - 0.5).abs() > 1e-5  # beside the limit rounding decides
        pseudo = loss.pseudo_labels(logits, targets, verified=verified)
        assert torch.equal(pseudo[sure], ((probable > 0.5) & (targets == 0))[sure])


def test_the_count_kernel_keeps_ends_of_spans_where_counts_are_wide() -> None:
    """Term of 300 classes expected: more states than the kernel keeps at once."""
    logits = torch.randn(3, 300, generator=torch.Generator().manual_seed(0))
    targets = torch.zeros(3, 300)
    targets[:, 7] = 1
    loss = count_likelihood(r=1, reduction="sum")
    torch.testing.assert_close(
        gradient(loss, logits, targets), gradient(loss, logits.double(), targets).float()
    )


def test_threads_of_the_count_kernel_give_the_same_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, targets = batch(301, 7)
    verified = torch.rand(301, 7) < 0.2
    loss = count_likelihood(reduction="sum")
    expected = gradient(loss, logits, targets, verified=verified)
    monkeypatch.setattr(kernel, "_ENTRIES_PER_THREAD", 16)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 5)
    actual = gradient(loss, logits, targets, verified=verified)
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-9)


def test_the_count_kernel_leaves_to_torch_what_no_double_holds() -> None:
    """Of 400 labels 319 were put back, at e^-4.6 each: weights differ by more than 1e308."""
    logits = torch.randn(2, 600, generator=torch.Generator().manual_seed(0))
    targets = torch.zeros(2, 600)
    targets[0, :400] = targets[1, :3] = 1
    loss = count_likelihood(r=0.8, restore_prob=0.01, reduction="sum")
    torch.testing.assert_close(
        gradient(loss, logits, targets), gradient(loss, logits.double(), targets).float()
    )
    exact = loss(logits.double(), targets)
    torch.testing.assert_close(loss(logits, targets).double(), exact, rtol=1e-5, atol=0.0)


def test_the_counted_loss_has_the_right_gradient_where_its_likelihood_underflows() -> None:
    """One label left at r = 0.8 allows three more; ten classes are all but certain."""
    logits = torch.full((1, 11), 500.0)
    targets = torch.zeros(1, 11)
    targets[0, 0] = 1
    grad = gradient(count_likelihood(r=0.8, reduction="sum"), logits, targets)
    torch.testing.assert_close(grad[0, 1:], torch.full((10,), 0.7))
    assert count_likelihood(r=0.8, reduction="sum")(logits, targets).item() == pytest.approx(
        7 * 500 - math.log(math.comb(10, 3) / 4)
    )
