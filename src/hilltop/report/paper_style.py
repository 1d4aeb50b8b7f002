"""How the paper's figures look: widths, fonts and colours, and figures as PDF or PNG bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from hilltop.errors import ArgumentError

Values = Sequence[float] | npt.NDArray[Any]

COLUMN, PAGE = 3.4, 7.0  # inches: one column of a paper, and both
INK, SOFT, LINE = "#1a1a1a", "#595959", "#d9d9d9"
GREEN, RED, GREY = "#007a5a", "#c8430a", "#7a7a7a"
# Okabe and Ito's colours, which people with any colour vision can tell apart; green and red
# above are their darker forms, to be read as text too.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

TEXT, SMALL = 8.0, 7.0  # points
FONTS = ["STIXGeneral", "DejaVu Sans"]  # both come with matplotlib; the second knows more letters
_DPI = 300


def render_figure(figure: Figure, *, kind: Literal["pdf", "png"] = "png") -> bytes:
    """Return a figure as the bytes of a file; the same figure gives the same bytes.

    Example:
        >>> from hilltop.report.paper_figures import draw_negative_gradients
        >>> render_figure(draw_negative_gradients(), kind="pdf")[:5]
        b'%PDF-'
    """
    target = io.BytesIO()
    dated: dict[str, str | None] = {"CreationDate": None} if kind == "pdf" else {"Software": None}
    # Publishers refuse the Type 3 fonts that are the default.
    with mpl.rc_context({"pdf.fonttype": 42}):
        figure.savefig(target, format=kind, dpi=_DPI, metadata=dated)
    return target.getvalue()


def sheet(width: float, height: float, *, constrained: bool = True) -> Figure:
    """An empty figure of a size in inches, independent of pyplot."""
    figure = Figure(figsize=(width, height), layout="constrained" if constrained else None)
    FigureCanvasAgg(figure)
    return figure


def frame(axes: Axes, *, below: str = "", beside: str = "") -> None:
    """Two thin axes with their names, and nothing else."""
    axes.set_xlabel(below, fontsize=TEXT, color=INK, labelpad=2)
    axes.set_ylabel(beside, fontsize=TEXT, color=INK, labelpad=3)
    axes.tick_params(
        colors=SOFT, labelcolor=INK, labelsize=SMALL, length=2.5, width=0.6, pad=2,
        labelfontfamily=FONTS,
    )  # fmt: skip
    axes.tick_params(which="minor", length=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set(color=SOFT, linewidth=0.6)


def frame_grid(panels: Sequence[Axes], columns: int, *, below: str, beside: str) -> None:
    """Frame panels in rows that share their axes; only those at the edges of the grid are named."""
    for number, axes in enumerate(panels):
        left, bottom = number % columns == 0, number + columns >= len(panels)
        frame(axes, below=below if bottom else "", beside=beside if left else "")
        axes.tick_params(labelleft=left, labelbottom=bottom)


def probability_axis(axes: Axes) -> None:
    """Mark an axis from 0 to 1 at its quarters."""
    axes.set_xlim(0, 1)
    axes.set_xticks(np.linspace(0, 1, 5), ["0", "0.25", "0.5", "0.75", "1"])


def finish(figure: Figure) -> Figure:
    """Set the paper's fonts on all that is written in a figure, and return it."""
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_fontfamily(FONTS)
        text.set_math_fontfamily("stix")
    return figure


def spread(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move values apart until each is ``gap`` from the next, within bounds where there is room.

    Example:
        >>> spread([0.5, 0.5, 0.9], 0.1, 0.0, 1.0)
        [0.5, 0.6, 0.9]
    """
    order = sorted(range(len(values)), key=lambda at: values[at])
    placed = list(values)
    below = low - gap
    for at in order:
        below = placed[at] = max(placed[at], below + gap)
    above = high + gap
    for at in reversed(order):
        above = placed[at] = min(placed[at], above - gap)
    return placed


def as_written(text: Text) -> Text:
    """Show a name that a user chose letter by letter; a dollar sign would start an equation."""
    text.set_parse_math(False)
    return text


def check_lengths(what: str, *series: Values) -> None:
    """Raise unless all series of one curve are equally long and hold something."""
    lengths = [len(values) for values in series]
    if len(set(lengths)) > 1 or not lengths[0]:
        raise ArgumentError(
            f"{what} must be equally long and not empty, but got lengths {lengths}."
        )
