"""The figures of the paper, from plain values to a matplotlib figure; import them from here.

None touches pyplot or a file: :func:`render_figure` turns a figure into the bytes of one.
"""

from hilltop.report.example_figures import Example, draw_examples
from hilltop.report.gradient_figures import (
    draw_asl_gradients,
    draw_focal_margin_gradients,
    draw_negative_gradients,
    gradient_by_logit,
)
from hilltop.report.paper_style import render_figure
from hilltop.report.run_figures import (
    draw_histogram_panels,
    draw_pseudo_labels_by_epoch,
)

__all__ = [
    "Example",
    "draw_asl_gradients",
    "draw_examples",
    "draw_focal_margin_gradients",
    "draw_histogram_panels",
    "draw_negative_gradients",
    "draw_pseudo_labels_by_epoch",
    "gradient_by_logit",
    "render_figure",
]
