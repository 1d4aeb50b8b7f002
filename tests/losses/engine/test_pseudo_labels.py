"""Pseudo labels in the compiled kernel: in one go with the negatives, or gathered and put back."""

from __future__ import annotations

import copy

import pytest
import torch

from hilltop.losses import MultiLabelLoss, splc, splc_released
from hilltop.losses.engine import kernel
from tests.losses.conftest import batch, value_and_gradient

pytestmark = pytest.mark.skipif(kernel.library() is None, reason="no C compiler, no kernel")
# Mirrored terms: bce, focal, focal_margin, released. Others: asl (gammas), hill (kinds).
BASES = ["bce", "focal", "focal_margin", "asl", "hill", "released"]


def corrected(base: str, **options: float) -> MultiLabelLoss:
    name = {} if base == "released" else {"base": base}
    make = splc_released if base == "released" else splc
    return make(**name, start_epoch=0, reduction="none", safe_start=False, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("confirmed", [True, False])
@pytest.mark.parametrize("tau", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("base", BASES)
def test_pseudo_labels_are_those_of_float64(
    base: str, tau: float, confirmed: bool, smoothing: float
) -> None:
    logits, targets = batch(23, 29)  # more than two blocks
    logits[3, :4] = torch.tensor([-90.0, -5.0, 5.0, 90.0])
    targets[::3, 1::5], targets[:, 2::7] = 0.3, torch.nan
    verified = torch.arange(23 * 29).view(23, 29) % 3 == 0 if confirmed else None
    loss = corrected(base, tau=tau, label_smoothing=smoothing)
    exact = value_and_gradient(copy.deepcopy(loss), logits.double(), targets, verified=verified)
    found = value_and_gradient(loss, logits, targets, verified=verified)
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=5e-6, atol=1e-7)


@pytest.mark.parametrize("base", BASES)
def test_a_confirmed_negative_above_tau_is_no_pseudo_label(base: str) -> None:
    logits, absent = torch.full((1, 40), 3.0), torch.zeros(1, 40)
    every_second = torch.arange(40).view(1, 40) % 2 == 0
    never = corrected(base, tau=1.0)(logits, absent)
    found = corrected(base, tau=0.6)(logits, absent, verified=every_second)
    assert torch.equal(found[every_second], never[every_second])
    assert (found[~every_second] < never[~every_second]).all()
