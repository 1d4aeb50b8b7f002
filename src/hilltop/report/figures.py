"""Figures of a run as PNG: curves by epoch, and calibration. No global state is touched."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hilltop.metrics.epochs import is_estimated

Rows = Sequence[Mapping[str, Any]]
Probs = npt.NDArray[np.floating[Any]]

INK, SOFT, LINE = "#1d2530", "#5c6773", "#e1e5ea"
SERIES = ("#2464a8", "#d9730d", "#1a8a7d", "#8a4fb0", "#b3261e", "#6b7a12")
REFERENCE = "#5c6773"

_DPI = 160
_PANEL = (4.7, 3.0)  # inches; small, so that the text can be read on a phone too


def metric_panel(rows: Rows) -> bytes:
    """Metrics of one run by epoch."""
    sheet = _sheet(_PANEL)
    _draw_metrics(sheet.subplots(), rows)
    return _png(sheet)


def loss_panel(rows: Rows) -> bytes:
    """Training loss of one run by epoch."""
    sheet = _sheet(_PANEL)
    _draw_loss(sheet.subplots(), rows)
    return _png(sheet)


def metric_curves(rows: Rows) -> bytes:
    """Metrics and loss of one run by epoch, side by side."""
    sheet = _sheet((2 * _PANEL[0], _PANEL[1]))
    left, right = sheet.subplots(1, 2)
    _draw_metrics(left, rows)
    _draw_loss(right, rows)
    return _png(sheet)


def calibration_curve(probs: Probs, shares: Probs, counts: Probs) -> bytes:
    """Share of pairs that carry a label by the probability that they are true."""
    sheet = _sheet(_PANEL)
    axes = sheet.subplots()
    axes.plot([0, 100], [0, 100], ":", lw=1.4, color=REFERENCE)
    axes.plot(100 * probs, 100 * shares, "-", lw=1.9, color=SERIES[0], clip_on=False)
    sizes = 12 + 60 * np.sqrt(counts / max(1, counts.max()))
    axes.scatter(100 * probs, 100 * shares, s=sizes, color=SERIES[0], zorder=3, clip_on=False)
    _frame(axes, "labelled pairs, %", "probability of being true, %")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    return _png(sheet)


def _draw_metrics(axes: Axes, rows: Rows) -> None:
    names = [name for name in ("mAP", "OF1", "CF1") if name in rows[0]]
    epochs = [int(row["epoch"]) for row in rows]
    for name, colour in zip(names, SERIES, strict=False):
        estimated = is_estimated(rows[-1], name)
        title = f"{name} by the labels as they are" if estimated else name
        _curve(axes, epochs, [100 * float(row[name]) for row in rows], title, colour)
        if estimated:
            last = [100 * float(rows[-1][f"{name}_{end}"]) for end in ("estimate", "low", "high")]
            reach = [[last[0] - last[1]], [last[2] - last[0]]]
            title = f"{name} of the last epoch, estimated"
            axes.errorbar(epochs[-1:], last[:1], yerr=reach, fmt="o", color=REFERENCE, label=title)
    _frame(axes, "metrics on the validation images, %", "epoch")
    _whole_epochs(axes)
    # Below the axes, where it lies on no curve.
    axes.legend(
        frameon=False, fontsize=9, labelcolor=INK, ncols=2, columnspacing=1.2, handlelength=1.6,
        loc="upper center", bbox_to_anchor=(0.46, -0.17),
    )  # fmt: skip


def _draw_loss(axes: Axes, rows: Rows) -> None:
    epochs = [int(row["epoch"]) for row in rows]
    _curve(axes, epochs, [float(row["loss"]) for row in rows], "loss", INK)
    _frame(axes, "mean training loss", "epoch")
    _whole_epochs(axes)


def _curve(
    axes: Axes,
    epochs: Sequence[int],
    values: Sequence[float],
    name: str,
    colour: str,
) -> None:
    mark = "o" if len(epochs) <= 40 else ""
    axes.plot(epochs, values, marker=mark, ms=3.5, lw=1.9, color=colour, label=name)


def _frame(axes: Axes, title: str, below: str) -> None:
    """Light axes: no box, a faint grid, the title at the left instead of a turned axis label."""
    axes.set_title(title, loc="left", fontsize=11, color=INK, fontweight="bold")
    axes.set_xlabel(below, fontsize=10, color=SOFT)
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=SOFT, labelsize=10, length=0)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LINE)


def _whole_epochs(axes: Axes) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _sheet(inches: tuple[float, float]) -> Figure:
    sheet = Figure(figsize=inches, dpi=_DPI, layout="constrained")
    FigureCanvasAgg(sheet)
    return sheet


def _png(sheet: Figure) -> bytes:
    target = io.BytesIO()
    sheet.savefig(target, format="png")
    return target.getvalue()
