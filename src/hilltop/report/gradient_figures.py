"""Gradients of losses against the probability, taken from the losses themselves by autograd."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from hilltop.errors import ArgumentError
from hilltop.losses import (
    FocalNegative,
    FocalPositive,
    HillNegative,
    LabelStats,
    LogNegative,
    LogPositive,
    MseNegative,
    MultiLabelLoss,
    ShiftedFocalNegative,
)
from hilltop.losses.compose import check_separable
from hilltop.losses.terms import Term
from hilltop.report.paper_style import (
    COLUMN,
    INK,
    PAGE,
    SERIES,
    SMALL,
    SOFT,
    TEXT,
    finish,
    frame_grid,
    probability_axis,
    sheet,
)

Curve = npt.NDArray[np.float64]

# Not quite from 0 to 1, where logits are infinite.
_PROBS = np.clip(np.linspace(0, 1, 1001), 1e-6, 1 - 1e-6)
_BESIDE = r"gradient by logit $|\partial\mathcal{L}/\partial x|$"
_BELOW = r"probability $p$"


def gradient_by_logit(term: Term, probs: Sequence[float] | npt.NDArray[Any]) -> Curve:
    r"""Return the derivative of a term by the logit, at the logits of ``probs``.

    Args:
        term: Any positive or negative term; the derivative of a positive one is negative.
        probs: Probabilities between 0 and 1, both excluded.

    Example:
        >>> gradient_by_logit(HillNegative(), [0.25, 0.5]).tolist()
        [0.10546875, 0.1875]
    """
    logits = torch.logit(torch.as_tensor(np.asarray(probs, dtype=np.float64))).requires_grad_()
    with torch.enable_grad():
        (grad,) = torch.autograd.grad(term(logits).sum(), logits)
    return np.asarray(grad.numpy(), dtype=np.float64)


def loss_gradient(loss: MultiLabelLoss, target: int) -> Curve:
    """Return the gradient of a whole loss by the logit, at the end of training, for one target.

    What depends on the number of classes is drawn for 80, as in COCO.
    """
    whole = copy.deepcopy(check_separable(loss))
    whole.reduction, whole.watch, whole.safe_start = "sum", None, None
    classes, epochs = 80, 10
    whole.prepare(LabelStats.of(torch.eye(classes), epochs=epochs))
    whole.set_epoch(epochs - 1)
    logits = torch.logit(torch.as_tensor(_PROBS)).unsqueeze(1).repeat(1, classes).requires_grad_()
    with torch.enable_grad():
        (grad,) = torch.autograd.grad(whole(logits, torch.full_like(logits, target)), logits)
    return np.asarray(grad[:, 0].numpy(), dtype=np.float64)


def draw_loss_gradients(loss: MultiLabelLoss, name: str) -> Figure:
    """How hard a loss pushes labelled and unlabelled pairs towards their label, beside BCE.

    Below zero, an unlabelled pair is taken for a missing label and pushed the other way.

    Args:
        loss: A loss in which every pair stands for itself.
        name: What to call it.
    """
    figure = sheet(PAGE, 2.5)
    panels: Sequence[Axes] = list(figure.subplots(1, 2, sharey=True))
    bce = MultiLabelLoss(positive=LogPositive(), negative=LogNegative())
    drawn = [(bce, "BCE", SOFT, "--", 1.1), (loss, name, SERIES[1], "-", 2.0)]
    titles = {1: "labelled pairs, pushed up", 0: "unlabelled pairs, pushed down"}
    for axes, (target, title) in zip(panels, titles.items(), strict=True):
        sign = -1 if target else 1
        for one, word, colour, style, width in drawn:
            curve = sign * loss_gradient(one, target)
            axes.plot(_PROBS, curve, style, color=colour, linewidth=width, label=word)
        axes.axhline(0, color=SOFT, linewidth=0.6)
        probability_axis(axes)
        axes.set_title(title, fontsize=TEXT, color=INK, loc="left", pad=3)
    frame_grid(panels, 2, below=_BELOW, beside=r"push on the logit $x$")
    panels[0].legend(frameon=False, fontsize=SMALL, labelcolor=INK, loc="upper right")
    return finish(figure)


def draw_negative_gradients() -> Figure:
    """Gradients of the negative losses: BCE, Focal, ASL, MSE and Hill (paper, Fig. 3)."""
    figure = sheet(COLUMN, 2.35)
    axes = figure.subplots()
    # Where each name stands: at a probability, moved by points.
    named: Mapping[str, tuple[Term, str, str, float, tuple[float, float]]] = {
        "BCE": (LogNegative(), SOFT, "--", 0.42, (-12, 2)),
        "Focal": (FocalNegative(), SERIES[3], "-", 0.80, (-15, 4)),
        "ASL": (ShiftedFocalNegative(), SERIES[4], "-", 0.78, (-13, 0)),
        "MSE": (MseNegative(), SERIES[0], "-", 0.80, (4, 7)),
        "Hill": (HillNegative(), SERIES[1], "-", 0.71, (0, -9)),
    }
    for name, (term, colour, style, at, offset) in named.items():
        width = 2.0 if name == "Hill" else 1.3
        curve = _draw(axes, term, name, colour, style, width)
        axes.annotate(
            name, (at, float(np.interp(at, _PROBS, curve))), xytext=offset,
            textcoords="offset points", ha="center", va="center", fontsize=TEXT, color=colour,
            fontweight="bold" if name == "Hill" else "normal",
        )  # fmt: skip
    _finish_axes([axes])
    return finish(figure)


def draw_focal_margin_gradients(margins: Sequence[float] = (0.0, 0.5, 1.0, 2.0)) -> Figure:
    """Gradients of Focal margin for positives, beside BCE (paper, Fig. 4); a dot is the highest.

    Args:
        margins: The values of m; 0 is Focal loss.
    """
    figure = sheet(COLUMN, 2.35)
    axes = figure.subplots()
    _draw(axes, LogPositive(), "BCE", SOFT, "--", 1.1)
    _check_some("margins", margins)
    for margin, colour in zip(margins, _ramp(len(margins)), strict=True):
        curve = _draw(axes, FocalPositive(margin=margin), f"$m = {margin:g}$", colour, "-", 1.4)
        _mark_peak(axes, curve, colour)
    _finish_axes([axes])
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=INK, loc="upper right", handlelength=1.6)
    return finish(figure)


def draw_asl_gradients(
    gammas: Sequence[float] = (1, 2, 3, 4),
    *,
    shifts: Sequence[float] = (0.05, 0.1, 0.2, 0.3),
) -> Figure:
    """Gradients of ASL for negatives, a panel for each gamma (paper, Fig. 8); a dot is the highest.

    Args:
        gammas: The focusing parameters, one panel each.
        shifts: The values of m, one curve each.
    """
    _check_some("gammas", gammas)
    _check_some("shifts", shifts)
    columns = min(2, len(gammas))
    rows = -(-len(gammas) // columns)
    figure = sheet(COLUMN, 0.45 + 1.35 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for number, gamma in enumerate(gammas):
        axes = panels.flat[number]
        _draw_asl_panel(axes, gamma, shifts)
        title = rf"({chr(ord('a') + number)}) $\gamma = {gamma:g}$"
        axes.set_title(title, fontsize=TEXT, color=INK, loc="left", pad=3)
    _finish_axes(list(panels.flat[: len(gammas)]), columns)
    for axes in panels.flat[len(gammas) :]:
        axes.set_axis_off()
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=len(labels), frameon=False,
        fontsize=SMALL, labelcolor=INK, handlelength=1.1, columnspacing=0.9, handletextpad=0.4,
    )  # fmt: skip
    return finish(figure)


def _draw_asl_panel(axes: Axes, gamma: float, shifts: Sequence[float]) -> None:
    _draw(axes, LogNegative(), "BCE", SOFT, "--", 0.9)
    for shift, colour in zip(shifts, _ramp(len(shifts)), strict=True):
        term = ShiftedFocalNegative(gamma=gamma, shift=shift)
        curve = _draw(axes, term, f"$m = {shift:g}$", colour, "-", 1.2)
        _mark_peak(axes, curve, colour)


def _draw(axes: Axes, term: Term, name: str, colour: str, style: str, width: float) -> Curve:
    """Draw the size of a term's gradient and return it."""
    curve: Curve = np.abs(gradient_by_logit(term, _PROBS))
    axes.plot(_PROBS, curve, style, color=colour, linewidth=width, label=name)
    return curve


def _mark_peak(axes: Axes, curve: Curve, colour: str) -> None:
    top = int(curve.argmax())
    axes.plot(_PROBS[top], curve[top], "o", markersize=3, color=colour)


def _finish_axes(panels: Sequence[Axes], columns: int = 1) -> None:
    """Name and mark the axes of panels that share one scale."""
    steps = max(math.ceil(axes.dataLim.y1 / 0.2 - 1e-3) for axes in panels)
    ticks = [step / 5 for step in range(steps + 1)]
    for axes in panels:
        probability_axis(axes)
        axes.set_ylim(0, ticks[-1])
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    frame_grid(panels, columns, below=_BELOW, beside=_BESIDE)


def _ramp(count: int) -> list[str]:
    """Colours from dark to light, for curves that differ in one number."""
    ramp = mpl.colormaps["viridis"]
    return [to_hex(ramp(place)) for place in np.linspace(0.0, 0.82, count)]


def _check_some(name: str, values: Sequence[float]) -> None:
    if not len(values):
        raise ArgumentError(f"{name} must hold at least one number, but is empty.")
