"""Drawn gradients against closed forms, written from the equations of the paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes

from hilltop.losses import HillNegative, ShiftedFocalNegative
from hilltop.report.paper_figures import (
    draw_asl_gradients,
    draw_focal_margin_gradients,
    draw_negative_gradients,
    gradient_by_logit,
)


def curve(axes: Axes, name: str) -> tuple[np.ndarray, np.ndarray]:
    (line,) = [line for line in axes.lines if line.get_label() == name]
    probs, gradient = line.get_xydata().T
    return probs, gradient


def peak(probs: np.ndarray, gradient: np.ndarray) -> float:
    return float(probs[gradient.argmax()])


def focal_peak_without_margin() -> float:
    """Where (1-q)^3 - 2q(1-q)^2 log q is highest: the zero of 5(1-q) + (2-6q) log q."""
    low, high = 0.01, 0.3
    while high - low > 1e-12:
        middle = (low + high) / 2
        if 5 * (1 - middle) + (2 - 6 * middle) * math.log(middle) < 0:
            low = middle
        else:
            high = middle
    return low


def asl_gradient(p: float, gamma: int, shift: float) -> float:
    """Product and chain rule on -q^g log(1-q), q = p - m, dp/dx = p(1-p)."""
    q = p - shift
    if q <= 0:
        return 0.0
    by_p = -gamma * q ** (gamma - 1) * math.log(1 - q) + q**gamma / (1 - q)
    return by_p * p * (1 - p)


def test_bce_curve_is_the_probability() -> None:
    probs, gradient = curve(draw_negative_gradients().axes[0], "BCE")
    np.testing.assert_allclose(gradient, probs, atol=1e-12)


def test_focal_curve_is_its_closed_form() -> None:
    probs, gradient = curve(draw_negative_gradients().axes[0], "Focal")
    expected = [p**3 - 2 * p**2 * (1 - p) * math.log(1 - p) for p in probs]
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_mse_curve_is_its_closed_form() -> None:
    probs, gradient = curve(draw_negative_gradients().axes[0], "MSE")
    np.testing.assert_allclose(gradient, 2 * probs**2 * (1 - probs), atol=1e-12)
    assert peak(probs, gradient) == pytest.approx(2 / 3, abs=1e-3)


def test_hill_curve_is_its_closed_form_and_turns_at_one_half() -> None:
    probs, gradient = curve(draw_negative_gradients().axes[0], "Hill")
    np.testing.assert_allclose(gradient, 3 * probs**2 * (1 - probs) ** 2, atol=1e-12)
    assert peak(probs, gradient) == pytest.approx(0.5, abs=1e-9)
    assert gradient.max() == pytest.approx(3 / 16)


@pytest.mark.parametrize("lam", [1.0, 1.25, 1.5, 2.0, 4.0])
def test_hill_turns_where_its_second_derivative_vanishes(lam: float) -> None:
    # d/dp of p^2 (1-p) (2 lam - 3p), divided by p, is 12p^2 - (6 lam + 9)p + 4 lam.
    half_sum = 6 * lam + 9
    turn = (half_sum - math.sqrt(half_sum**2 - 192 * lam)) / 24
    probs = turn + np.linspace(-0.01, 0.01, 2001)
    gradient = gradient_by_logit(HillNegative(lam=lam), probs)
    assert peak(probs, gradient) == pytest.approx(turn, abs=2e-5)
    expected = probs**2 * (1 - probs) * (2 * lam - 3 * probs)
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_hill_is_below_mse_from_one_third_on() -> None:
    axes = draw_negative_gradients().axes[0]
    (probs, hill), (_, mse) = curve(axes, "Hill"), curve(axes, "MSE")
    inside = (probs > 1e-5) & (probs < 1 - 1e-5)
    np.testing.assert_array_equal((hill < mse)[inside], (probs > 1 / 3)[inside])


@pytest.mark.parametrize("margin", [0.0, 0.5, 1.0, 2.0])
def test_focal_margin_curve_is_focal_moved_by_the_margin(margin: float) -> None:
    axes = draw_focal_margin_gradients([margin]).axes[0]
    probs, gradient = curve(axes, f"$m = {margin:g}$")
    shifted = [1 / (1 + (1 - p) / p * math.exp(margin)) for p in probs]
    expected = [(1 - q) ** 3 - 2 * q * (1 - q) ** 2 * math.log(q) for q in shifted]
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_focal_margin_peaks_move_by_the_margin_on_the_logit_scale() -> None:
    margins = (0.0, 0.5, 1.0, 2.0)
    axes = draw_focal_margin_gradients(margins).axes[0]
    start = focal_peak_without_margin()
    odds = [start / (1 - start) * math.exp(margin) for margin in margins]
    expected = [value / (1 + value) for value in odds]
    peaks = [peak(*curve(axes, f"$m = {margin:g}$")) for margin in margins]
    np.testing.assert_allclose(peaks, expected, atol=1e-3)
    dots = [line.get_xydata()[0] for line in axes.lines if line.get_marker() == "o"]
    np.testing.assert_allclose([dot[0] for dot in dots], expected, atol=1e-3)


def test_positive_bce_curve_is_one_minus_the_probability() -> None:
    probs, gradient = curve(draw_focal_margin_gradients().axes[0], "BCE")
    np.testing.assert_allclose(gradient, 1 - probs, atol=1e-12)


@pytest.mark.parametrize("gamma", [1, 2, 3, 4])
def test_asl_curves_are_their_closed_form_and_zero_below_the_shift(gamma: int) -> None:
    axes = draw_asl_gradients((gamma,), shifts=(0.05, 0.2)).axes[0]
    for shift in (0.05, 0.2):
        probs, gradient = curve(axes, f"$m = {shift:g}$")
        expected = [asl_gradient(p, gamma, shift) for p in probs]
        np.testing.assert_allclose(gradient, expected, atol=1e-12)
        assert not gradient[probs < shift].any()
        assert (gradient[(probs > shift + 1e-9) & (probs < 0.999)] > 0).all()


def test_asl_peaks_lie_between_0_79_and_0_90_as_the_paper_says() -> None:
    figure = draw_asl_gradients()
    assert [axes.get_title("left")[:3] for axes in figure.axes] == ["(a)", "(b)", "(c)", "(d)"]
    for gamma, axes in zip((1, 2, 3, 4), figure.axes, strict=True):
        grid = [number / 10_000 for number in range(1, 10_000)]
        dots = [line.get_xydata()[0, 0] for line in axes.lines if line.get_marker() == "o"]
        for shift, dot in zip((0.05, 0.1, 0.2, 0.3), dots, strict=True):
            highest = max(grid, key=lambda p: asl_gradient(p, gamma, shift))
            assert dot == pytest.approx(highest, abs=1e-3)
            assert 0.79 <= dot <= 0.901


def test_asl_curve_in_the_comparison_has_the_constants_of_the_paper() -> None:
    probs, gradient = curve(draw_negative_gradients().axes[0], "ASL")
    np.testing.assert_allclose(gradient, [asl_gradient(p, 4, 0.05) for p in probs], atol=1e-12)


def test_gradient_is_there_inside_no_grad() -> None:
    with torch.no_grad():
        gradient = gradient_by_logit(ShiftedFocalNegative(gamma=1, shift=0.1), [0.05, 0.6])
    assert gradient[0] == 0
    assert gradient[1] == pytest.approx(asl_gradient(0.6, 1, 0.1), abs=1e-12)


def test_asl_panels_share_a_scale_that_holds_every_curve() -> None:
    figure = draw_asl_gradients((4, 1, 2), shifts=(0.0, 0.3))
    shown = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == 3
    highest = max(line.get_ydata().max() for axes in shown for line in axes.lines)
    assert highest > 1.2
    assert {axes.get_ylim() for axes in shown} == {(0.0, 1.4)}


def test_panels_without_one_below_carry_the_probabilities() -> None:
    figure = draw_asl_gradients((1, 2, 4))
    figure.canvas.draw()
    names = [axes.get_xlabel() for axes in figure.axes[:3]]
    assert [bool(name) for name in names] == [False, True, True]
    marks = [any(text.get_visible() for text in axes.get_xticklabels()) for axes in figure.axes[:3]]
    assert marks == [False, True, True]
