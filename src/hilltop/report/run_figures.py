"""Figures of what training did: distributions of probabilities, and labels found by epoch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator, NullLocator

from hilltop.errors import ArgumentError
from hilltop.report.paper_style import (
    COLUMN,
    GREEN,
    GREY,
    INK,
    PAGE,
    RED,
    SERIES,
    SMALL,
    TEXT,
    Values,
    as_written,
    check_lengths,
    finish,
    frame,
    frame_grid,
    sheet,
    spread,
)

Groups = Mapping[str, tuple[Values, Values]]
Curves = Mapping[str, tuple[Values, Values, Values]]

_KINDS = {
    "positives": GREEN,
    "missing labels": RED,
    "true negatives": GREY,
    "negatives": GREY,
}
_PRECISION, _RECALL = SERIES[0], SERIES[1]
_STYLES = ("-", "--", ":", "-.")
_OTHERS = ("#0072b2", "#cc79a7", "#e69f00", "#56b4e9")  # far from green, red and grey
_FLOOR = 0.5  # below a single pair, where the logarithmic scale begins


def draw_histogram_panels(panels: Mapping[str, Groups]) -> Figure:
    """Distributions of probabilities side by side, as in the paper's Fig. 2 and 5.

    The number of pairs is on a logarithmic scale: where the curve of missing labels is above that
    of true negatives, a threshold finds missing labels with a precision of more than one half, and
    curves of equal shape are equal distributions.

    Args:
        panels: For each title its groups: for each kind of pair the edges of the bins and the
            number of pairs in each bin. Names with colours of their own: positives, missing labels,
            true negatives, negatives. Up to four panels fill one column of a page, more fill both.
            All share their axes.

    Raises:
        ArgumentError: There is no panel or group, or edges and counts do not fit together.

    Example:
        >>> bins = {"positives": ([0.0, 0.5, 1.0], [3, 40]), "negatives": ([0.0, 0.5, 1.0], [9, 5])}
        >>> draw_histogram_panels({"Hill": bins}).axes[0].get_ylabel()
        'number of pairs'
    """
    if not panels:
        raise ArgumentError("panels must hold at least one panel, but is empty.")
    for title, groups in panels.items():
        _check_groups(title, groups)
    wide = len(panels) > 4
    full_row = (3 if len(panels) in (5, 6, 9) else 4) if wide else 2
    columns = min(full_row, len(panels))
    rows = -(-len(panels) // columns)
    figure = sheet(PAGE if wide else COLUMN, 0.5 + (1.35 if len(panels) > 1 else 1.7) * rows)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    colours = _group_colours(panels)
    for number, (title, groups) in enumerate(panels.items()):
        axes = grid.flat[number]
        _draw_groups(axes, groups, colours)
        letter = f"({chr(ord('a') + number)}) " if len(panels) > 1 else ""
        as_written(axes.set_title(letter + title, fontsize=TEXT, color=INK, loc="left", pad=3))
    _share_axes(grid.flat[0], panels)
    shown = list(grid.flat[: len(panels)])
    frame_grid(shown, columns, below="probability", beside="number of pairs")
    _legend(figure, _keys(colours))
    return finish(figure)


def draw_pseudo_labels_by_epoch(
    curves: Curves, rectangles: Mapping[float, tuple[float, float]] | None = None
) -> Figure:
    """Precision and recall of the missing labels found, by epoch (paper, Fig. 7).

    Args:
        curves: For each method its epochs, and precision and recall as fractions; NaN leaves a
            gap, where nothing was found.
        rectangles: Precision and recall of pseudo labels for each threshold; two bands show the
            range that the thresholds span.

    Raises:
        ArgumentError: There is no curve, or the values of one are not equally many.

    Example:
        >>> found = {"SPLC": ([1, 2, 3], [0.9, 0.85, 0.8], [0.1, 0.3, 0.4])}
        >>> figure = draw_pseudo_labels_by_epoch(found, {0.4: (0.5, 0.3), 0.6: (0.8, 0.1)})
        >>> figure.axes[0].get_xlabel()
        'epoch'
    """
    if not curves:
        raise ArgumentError("curves must hold at least one method, but is empty.")
    figure = sheet(COLUMN, 2.5)
    axes = figure.subplots()
    frame(axes, below="epoch", beside="precision, recall")
    ends: list[tuple[float, str, str]] = []
    for number, (name, (epochs, precision, recall)) in enumerate(curves.items()):
        check_lengths(f"epochs, precision and recall of {name!r}", epochs, precision, recall)
        style = _STYLES[number % len(_STYLES)]
        for values, colour in ((precision, _PRECISION), (recall, _RECALL)):
            mark = "o" if len(epochs) <= 12 else ""
            axes.plot(epochs, values, style, marker=mark, markersize=2.5, color=colour, lw=1.4)
            ends += [(value, name, colour) for value in _last_finite(values)]
    bands = _draw_bands(axes, rectangles or {})
    _finish_epochs(axes, curves, ends)
    _legend(figure, [*_keys({"precision": _PRECISION, "recall": _RECALL}), *bands])
    return finish(figure)


def _check_groups(title: str, groups: Groups) -> None:
    if not groups:
        raise ArgumentError(f"The panel {title!r} must hold at least one group, but is empty.")
    for name, (edges, counts) in groups.items():
        if len(edges) != len(counts) + 1 or not len(counts):
            raise ArgumentError(
                f"The group {name!r} must have one more edge than counts, but got"
                f" {len(edges)} edges and {len(counts)} counts."
            )


def _group_colours(panels: Mapping[str, Groups]) -> dict[str, str]:
    """A colour for each group of any panel, in the order of their first appearance."""
    names = list(dict.fromkeys(name for groups in panels.values() for name in groups))
    unknown = [name for name in names if name not in _KINDS]
    others = dict(zip(unknown, itertools.cycle(_OTHERS), strict=False))
    return {name: _KINDS.get(name) or others[name] for name in names}


def _draw_groups(axes: Axes, groups: Groups, colours: Mapping[str, str]) -> None:
    for name, (edges, counts) in groups.items():
        # A logarithm has no zero: without a floor, an empty bin would break the outline.
        heights = np.maximum(np.asarray(counts, dtype=np.float64), _FLOOR)
        axes.stairs(heights, edges, baseline=_FLOOR, linewidth=1.3, color=colours[name], label=name)


def _share_axes(axes: Axes, panels: Mapping[str, Groups]) -> None:
    """One logarithmic scale for all panels, from below a single pair to above the fullest bin."""
    every = [counts for groups in panels.values() for _, counts in groups.values()]
    most = max(float(np.max(counts)) for counts in every)
    top = max(1, int(np.ceil(np.log10(max(most, 1) * 1.3))))
    axes.set_yscale("log")
    axes.set_ylim(_FLOOR, 10.0**top)
    step = 1 if top <= 4 else 2
    axes.yaxis.set_major_locator(FixedLocator([10.0**power for power in range(0, top + 1, step)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])


def _keys(colours: Mapping[str, str]) -> list[Line2D]:
    """A piece of line for each name, to explain its colour."""
    return [Line2D([], [], color=tone, linewidth=1.5, label=name) for name, tone in colours.items()]


def _legend(figure: Figure, handles: Sequence[Patch | Line2D]) -> None:
    legend = figure.legend(
        handles=list(handles), loc="outside upper center", ncols=4, frameon=False, fontsize=SMALL,
        labelcolor=INK, handlelength=1.2, handleheight=0.7, columnspacing=1.1, handletextpad=0.5,
    )  # fmt: skip
    for text in legend.get_texts():
        as_written(text)


def _last_finite(values: Values) -> list[float]:
    finite = [float(value) for value in values if np.isfinite(value)]
    return finite[-1:]


def _draw_bands(axes: Axes, rectangles: Mapping[float, tuple[float, float]]) -> list[Patch]:
    """Draw the span of precision and of recall over the thresholds; return what to explain."""
    if not rectangles:
        return []
    for column, colour in ((0, _PRECISION), (1, _RECALL)):
        values = [pair[column] for pair in rectangles.values() if np.isfinite(pair[column])]
        if values:
            axes.axhspan(min(values), max(values), color=colour, alpha=0.16, linewidth=0.8)
    low, high = min(rectangles), max(rectangles)
    span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return [Patch(facecolor=GREY, alpha=0.3, label=f"pseudo labels, threshold {span}")]


def _finish_epochs(axes: Axes, curves: Curves, ends: Sequence[tuple[float, str, str]]) -> None:
    epochs = [float(epoch) for values, _, _ in curves.values() for epoch in values]
    first, last = min(epochs), max(epochs)
    axes.set_xlim(first, last if last > first else first + 1)
    axes.set_ylim(0, 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    axes.set_yticks(np.linspace(0, 1, 6), ["0", "20%", "40%", "60%", "80%", "100%"])
    places = spread([value for value, _, _ in ends], 0.065, 0.02, 0.98)
    for place, (_, name, colour) in zip(places, ends, strict=True):
        label = axes.annotate(
            name, (1, place), xycoords=("axes fraction", "data"), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize=SMALL, color=colour,
            annotation_clip=False,
        )  # fmt: skip
        as_written(label)
