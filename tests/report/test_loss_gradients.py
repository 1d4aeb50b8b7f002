"""Gradients of whole losses, as the pages of the methods draw them."""

from __future__ import annotations

import numpy as np
import pytest

from hilltop.errors import HilltopError
from hilltop.losses import bce, hill, scar_likelihood, splc, splc_released, wan
from hilltop.losses.methods.large_loss import ll_r
from hilltop.report.gradient_figures import draw_loss_gradients, loss_gradient

P = np.clip(np.linspace(0, 1, 1001), 1e-6, 1 - 1e-6)


@pytest.mark.parametrize(
    ("loss", "wanted"),
    [
        (bce(), P),
        (hill(), 3 * P**2 * (1 - P) ** 2),
        (wan(), P / 79),
        (scar_likelihood(label_frequency=0.4), 0.4 * P * (1 - P) / (1 - 0.4 * P)),
    ],
    ids=["bce", "hill", "wan", "scar_likelihood"],
)
def test_unlabelled_pairs_have_the_gradient_of_the_equation(loss, wanted) -> None:
    np.testing.assert_allclose(loss_gradient(loss, 0), wanted, atol=1e-9)


def test_splc_turns_the_gradient_round_above_its_threshold() -> None:
    gradient = loss_gradient(splc("bce", tau=0.6), 0)
    np.testing.assert_allclose(gradient[P < 0.6], P[P < 0.6], atol=1e-9)
    np.testing.assert_allclose(gradient[P > 0.601], P[P > 0.601] - 1, atol=1e-9)


def test_drawing_changes_nothing_in_the_loss() -> None:
    loss = splc_released()
    draw_loss_gradients(loss, "splc_released")
    assert (loss.reduction, int(loss.epoch)) == ("mean", 0)


def test_a_loss_that_looks_at_whole_batches_has_no_such_gradient() -> None:
    with pytest.raises(HilltopError, match="looks at more than one entry"):
        draw_loss_gradients(ll_r(), "ll_r")


def test_both_panels_show_bce_for_comparison() -> None:
    figure = draw_loss_gradients(hill(), "hill")
    curves = [[line.get_ydata() for line in axes.get_lines()] for axes in figure.axes]
    np.testing.assert_allclose(curves[0][0], 1 - P, atol=1e-9)
    np.testing.assert_allclose(curves[1][0], P, atol=1e-9)
