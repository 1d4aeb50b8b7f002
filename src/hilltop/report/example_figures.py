"""Example images with their labels: those that training saw green, those it missed red."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from hilltop.errors import ArgumentError
from hilltop.report.paper_style import (
    FONTS,
    GREEN,
    INK,
    PAGE,
    RED,
    SMALL,
    SOFT,
    as_written,
    finish,
    sheet,
)

# All in inches.
_GUTTER, _LINE, _HEAD_LINE, _MARK, _TOP = 0.14, 0.135, 0.11, 0.13, 0.18
_TALLEST = 0.8  # of the width: the highest that an image may be shown
_NAME_ROOM = 0.55  # as little as a label's name may get before there are fewer images in a row


class Example(NamedTuple):
    """One image, its labels, and what methods think of them.

    Attributes:
        image: Pixels ``(height, width, 3)``, or ``(height, width)`` for grey ones: uint8, or
            fractions between 0 and 1.
        positives: Labels that training saw.
        missing: Labels that are true, but that training did not see.
        probs: Predicted probability by method, then by label; may be empty.
    """

    image: npt.NDArray[Any]
    positives: Sequence[str]
    missing: Sequence[str]
    probs: Mapping[str, Mapping[str, float]] = MappingProxyType({})

    @property
    def labels(self) -> list[tuple[str, bool]]:
        """Every label, and whether it is missing."""
        return [(name, False) for name in self.positives] + [(name, True) for name in self.missing]


class _Layout(NamedTuple):
    """Sizes that all images of a figure share."""

    columns: int
    cell: float
    methods: list[str]
    widths: list[float]  # of the columns of probabilities
    head: float


def draw_examples(examples: Sequence[Example]) -> Figure:
    """Images with their labels and predicted probabilities (paper, Fig. 6 and 9).

    A full green mark is a label that training saw, an empty red one a label that was missing.
    Up to four images stand in a row, fewer where the names of many methods need the room.

    Args:
        examples: What to show, in rows from left to right.

    Raises:
        ArgumentError: There is no example, or an image has another shape than pixels have.

    Example:
        >>> grey = np.full((30, 40, 3), 0.5)
        >>> cup = Example(grey, ["cup"], ["spoon"], {"BCE": {"cup": 0.9, "spoon": 0.1}})
        >>> [text.get_text() for text in draw_examples([cup]).axes[1].texts]
        ['BCE', 'cup', '0.90', 'spoon', '0.10']
    """
    if not examples:
        raise ArgumentError("examples must hold at least one image, but is empty.")
    images = [_pixels(number, example.image) for number, example in enumerate(examples)]
    layout = _plan(examples)
    per_row = layout.columns
    rows = [range(len(examples))[at : at + per_row] for at in range(0, len(examples), per_row)]
    tables = [_table_height(layout, [examples[number] for number in row]) for row in rows]
    heights = [_row_height(layout, [images[number] for number in row]) for row in rows]
    width = per_row * (layout.cell + _GUTTER) - _GUTTER
    height = _TOP + sum(heights) + sum(tables) + _GUTTER * (len(rows) - 1)
    figure = sheet(width, height, constrained=False)
    top = height - _TOP
    for row, shown, table in zip(rows, heights, tables, strict=True):
        for column, number in enumerate(row):
            left = column * (layout.cell + _GUTTER)
            above = _box(figure, left, top, layout.cell, shown)
            above.imshow(images[number])
            above.set_anchor("SW")  # on its labels, and where these begin
            below = _box(figure, left, top - shown, layout.cell, table)
            below.set(xlim=(0, layout.cell), ylim=(table, 0))  # inches from the upper left corner
            _draw_labels(below, examples[number], layout)
        top -= shown + table + _GUTTER
    _explain(figure)
    return finish(figure)


def _pixels(number: int, image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Check an image and return it with three channels."""
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[:, :, None], 3, axis=2)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise ArgumentError(
            f"The image of example {number} must have the shape (height, width, 3),"
            f" but got {np.shape(image)}."
        )
    if pixels.dtype != np.uint8 and not (pixels.min() >= 0 and pixels.max() <= 1):
        raise ArgumentError(
            f"The image of example {number} must be uint8 or lie between 0 and 1, but is"
            f" {pixels.dtype} from {pixels.min():g} to {pixels.max():g}."
        )
    return pixels if pixels.dtype == np.uint8 else pixels.astype(np.float64)


def _plan(examples: Sequence[Example]) -> _Layout:
    """The most images in a row, at most four, that leave the names of labels some room."""
    methods = list(dict.fromkeys(method for example in examples for method in example.probs))
    lines = [_head_lines(method) for method in methods]
    widths = [max(0.3, 0.075 + 0.045 * max(map(len, parts))) for parts in lines]
    head = _HEAD_LINE * max((len(parts) for parts in lines), default=0)
    for columns in (4, 3, 2, 1):
        cell = (PAGE - _GUTTER * (columns - 1)) / columns
        if cell - _MARK - sum(widths) >= _NAME_ROOM:
            break
    return _Layout(min(columns, len(examples)), cell, methods, widths, head)


def _row_height(layout: _Layout, images: Sequence[npt.NDArray[Any]]) -> float:
    """As high as the images of a row need; a tall one is shown narrower instead."""
    tallest: float = max(image.shape[0] / image.shape[1] for image in images)
    return layout.cell * min(_TALLEST, tallest)


def _head_lines(method: str) -> list[str]:
    return textwrap.wrap(method, 6, break_long_words=False) or [method]


def _table_height(layout: _Layout, examples: Sequence[Example]) -> float:
    return 0.08 + layout.head + _LINE * max(len(example.labels) for example in examples)


def _box(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Empty axes at a place in inches."""
    across, down = figure.get_size_inches()
    axes = figure.add_axes((left / across, (top - height) / down, width / across, height / down))
    axes.set_axis_off()
    return axes


def _draw_labels(axes: Axes, example: Example, layout: _Layout) -> None:
    """Write the labels below an image, a line each, with a column for each method."""
    rights = (layout.cell - np.cumsum(layout.widths[::-1])[::-1] + layout.widths).tolist()
    middle = 0.04 + layout.head
    for method, right in zip(layout.methods, rights, strict=True):
        head = "\n".join(_head_lines(method))
        as_written(axes.text(right, middle - 0.02, head, **_style(SOFT, ha="right", va="baseline")))
    room = layout.cell - _MARK - sum(layout.widths)
    for number, (name, missing) in enumerate(example.labels):
        line = middle + _LINE * (number + 0.8)
        colour = RED if missing else GREEN
        axes.plot(0.05, line - 0.03, **_mark(missing))
        label = axes.text(_MARK, line, name, **_style(colour, va="baseline"))
        _shorten(as_written(label), room)
        for method, right in zip(layout.methods, rights, strict=True):
            prob = example.probs.get(method, {}).get(name)
            value = "\N{EN DASH}" if prob is None else f"{prob:.2f}"
            axes.text(right, line, value, **_style(INK, ha="right", va="baseline"))


def _style(colour: str, **place: str) -> dict[str, Any]:
    return {"color": colour, "fontsize": SMALL, "fontfamily": FONTS, "linespacing": 1.0, **place}


def _mark(missing: bool) -> dict[str, Any]:
    """Full and green, or empty and red: the two differ without their colours too."""
    colour = RED if missing else GREEN
    face = "none" if missing else colour
    return {
        "marker": "s", "markersize": 4, "markeredgecolor": colour, "markerfacecolor": face,
        "markeredgewidth": 0.9, "linestyle": "none",
    }  # fmt: skip


def _shorten(label: Text, room: float) -> None:
    """Cut a name that is wider than ``room`` inches, and end it with dots."""
    figure, name = label.figure, label.get_text()
    assert figure is not None
    while len(name) > 1 and label.get_window_extent().width / figure.dpi > room:
        name = name[:-1].rstrip()
        label.set_text(name + "\N{HORIZONTAL ELLIPSIS}")


def _explain(figure: Figure) -> None:
    handles = [
        Line2D([], [], label="labelled", **_mark(False)),
        Line2D([], [], label="missing", **_mark(True)),
    ]
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncols=2, frameon=False,
        fontsize=SMALL, labelcolor=INK, borderaxespad=0, borderpad=0.2, handlelength=0.8,
        handletextpad=0.3, columnspacing=1.0,
    )  # fmt: skip
