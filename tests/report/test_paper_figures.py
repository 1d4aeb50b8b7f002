"""Figures of the paper show what they were given, inside their bounds and without side effects."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Literal

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch
from matplotlib.text import Text

from hilltop.errors import ArgumentError
from hilltop.report.paper_figures import (
    Example,
    draw_asl_gradients,
    draw_examples,
    draw_focal_margin_gradients,
    draw_histogram_panels,
    draw_negative_gradients,
    draw_pseudo_labels_by_epoch,
    render_figure,
)

EDGES = [0.0, 0.5, 1.0]
GROUPS = {
    "positives": (EDGES, [3, 40]),
    "missing labels": (EDGES, [60, 7]),
    "true negatives": (EDGES, [9000, 0]),
}
FOUND = {
    "with SPLC": ([1, 2, 3], [0.9, 0.85, 0.8], [0.1, 0.3, 0.5]),
    "without": ([1, 2, 3], [0.95, 0.9, 0.8], [0.1, 0.2, 0.5]),
}
PSEUDO = {0.4: (0.6, 0.3), 0.5: (0.7, 0.2), 0.6: (0.85, 0.12)}
PIXELS = np.linspace(0, 255, 24 * 32 * 3).reshape(24, 32, 3).astype(np.uint8)
PHOTO = Example(
    PIXELS,
    ["person"],
    ["cup", "a class whose name is far too long for the room below its image"],
    {"BCE": {"person": 0.91, "cup": 0.08}, "SPLC epoch 3": {"person": 0.85, "cup": 0.62}},
)

DRAWN: dict[str, Callable[[], Figure]] = {
    "negative": draw_negative_gradients,
    "margin": draw_focal_margin_gradients,
    "asl": draw_asl_gradients,
    "histogram": lambda: draw_histogram_panels({"BCE": GROUPS}),
    "panels": lambda: draw_histogram_panels({f"loss {number}": GROUPS for number in range(8)}),
    "recovered": lambda: draw_pseudo_labels_by_epoch(FOUND, PSEUDO),
    "examples": lambda: draw_examples([PHOTO] * 5),
}


def test_histogram_shows_the_counts_that_were_given() -> None:
    axes = draw_histogram_panels({"BCE": GROUPS}).axes[0]
    steps = {patch.get_label(): patch for patch in axes.patches if isinstance(patch, StepPatch)}
    assert list(steps) == list(GROUPS)
    assert steps["positives"].get_data().values.tolist() == [3, 40]
    assert steps["missing labels"].get_data().edges.tolist() == EDGES
    low, high = axes.get_ylim()
    assert steps["true negatives"].get_data().values.tolist() == [9000, low]
    assert low < 1
    assert high > 9000
    assert axes.get_yscale() == "log"
    assert axes.get_title("left") == "BCE"


def test_up_to_four_histograms_fill_a_column_and_more_fill_the_page() -> None:
    four = draw_histogram_panels({str(number): GROUPS for number in range(4)})
    five = draw_histogram_panels({str(number): GROUPS for number in range(5)})
    assert four.get_figwidth() == pytest.approx(3.4)
    assert five.get_figwidth() == pytest.approx(7.0)
    titles = [axes.get_title("left") for axes in five.axes if axes.axison]
    assert titles == ["(a) 0", "(b) 1", "(c) 2", "(d) 3", "(e) 4"]
    assert len({axes.get_ylim() for axes in five.axes if axes.axison}) == 1


def test_groups_keep_their_colour_over_panels_that_lack_some() -> None:
    first = {"a": (EDGES, [1, 2]), "b": (EDGES, [3, 4])}
    figure = draw_histogram_panels({"one": first, "two": {"b": (EDGES, [5, 6])}})
    tones = [
        {patch.get_label(): patch.get_edgecolor() for patch in axes.patches} for axes in figure.axes
    ]
    assert tones[0]["b"] == tones[1]["b"] != tones[0]["a"]


def test_recovered_curves_and_rectangles_have_the_values_that_were_given() -> None:
    axes = draw_pseudo_labels_by_epoch(FOUND, PSEUDO).axes[0]
    drawn = [line.get_ydata().tolist() for line in axes.lines]
    assert drawn == [values for _, *pair in FOUND.values() for values in pair]
    spans = [
        (patch.get_y(), patch.get_y() + patch.get_height())
        for patch in axes.patches
        if isinstance(patch, Rectangle)
    ]
    np.testing.assert_allclose(spans, [(0.6, 0.85), (0.12, 0.3)])


def test_one_colour_is_precision_and_one_is_recall() -> None:
    figure = draw_pseudo_labels_by_epoch(FOUND, PSEUDO)
    tones = [line.get_color() for line in figure.axes[0].lines]
    assert tones[0] == tones[2] != tones[1] == tones[3]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["precision", "recall", "pseudo labels, threshold 0.4 to 0.6"]


def test_names_at_the_ends_of_curves_do_not_cover_each_other() -> None:
    same = {f"method {number}": ([1, 2], [0.9, 0.98], [0.1, 0.98]) for number in range(4)}
    figure = draw_pseudo_labels_by_epoch(same)
    figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in figure.axes[0].texts), key=lambda b: b.y0)
    assert len(boxes) == 8
    for lower, upper in itertools.pairwise(boxes):
        assert upper.y0 >= lower.y0 + 0.7 * lower.height


def test_epochs_without_a_find_leave_a_gap_and_no_name_if_there_is_never_one() -> None:
    nan = math.nan
    figure = draw_pseudo_labels_by_epoch({"none": ([1, 2], [nan, nan], [0.0, 0.0])})
    (name,) = figure.axes[0].texts
    assert name.xy[1] == pytest.approx(0.02)


def test_a_single_epoch_can_be_seen() -> None:
    axes = draw_pseudo_labels_by_epoch({"one": ([1], [0.5], [0.2])}).axes[0]
    assert {line.get_marker() for line in axes.lines} == {"o"}


def test_examples_show_positives_green_and_missing_labels_red() -> None:
    image, table = draw_examples([PHOTO]).axes
    np.testing.assert_array_equal(image.images[0].get_array(), PIXELS)
    tones = {text.get_text(): to_rgb(text.get_color()) for text in table.texts}
    red, green, _ = tones["cup"]
    assert red > 2 * green
    red, green, _ = tones["person"]
    assert green > 2 * red
    filled = [line.get_markerfacecolor() != "none" for line in table.lines]
    assert filled == [True, False, False]


def test_whole_example_image_is_in_view() -> None:
    tall = np.zeros((40, 10, 3), dtype=np.uint8)
    for axes in draw_examples([PHOTO, Example(tall, ["cup"], [])]).axes[::2]:
        left, right, bottom, top = axes.images[0].get_extent()
        assert axes.get_xlim() == (left, right)
        assert axes.get_ylim() == (bottom, top)


def test_a_row_of_examples_is_as_high_as_its_images_and_they_stand_on_their_labels() -> None:
    wide, square = (
        Example(np.zeros((height, 40, 3), dtype=np.uint8), ["cup"], []) for height in (20, 40)
    )
    figure = draw_examples([wide] * 4 + [square] * 4)
    images = [axes for axes in figure.axes if axes.images]
    first, second = images[0].get_position(), images[4].get_position()
    assert second.height == pytest.approx(1.6 * first.height)
    assert {axes.get_anchor() for axes in images} == {"SW"}


def test_example_probabilities_stand_in_the_line_of_their_label() -> None:
    _, table = draw_examples([PHOTO]).axes
    lines: dict[float, list[str]] = {}
    for text in sorted(table.texts, key=lambda text: text.get_position()):
        lines.setdefault(round(text.get_position()[1], 6), []).append(text.get_text())
    assert ["person", "0.91", "0.85"] in lines.values()
    assert ["cup", "0.08", "0.62"] in lines.values()
    assert ["BCE", "SPLC\nepoch\n3"] in lines.values()
    (cut,) = [line for line in lines.values() if line[0].startswith("a class")]
    assert cut[0].endswith("…")
    assert cut[1:] == ["–", "–"]  # noqa: RUF001 (a dash stands for no number)


def test_grey_images_and_fractions_are_shown_too() -> None:
    grey = Example(np.array([[0, 255]], dtype=np.uint8), ["cup"], [])
    parts = Example(np.full((4, 4, 3), 0.5), ["cup"], [])
    first, _, second, _ = draw_examples([grey, parts]).axes
    assert first.images[0].get_array().tolist() == [[[0, 0, 0], [255, 255, 255]]]
    assert float(second.images[0].get_array().max()) == 0.5


def test_many_methods_leave_fewer_images_in_a_row() -> None:
    probs = {f"method {number}": {"cup": 0.5} for number in range(6)}
    plain = draw_examples([PHOTO._replace(probs={})] * 4)
    crowded = draw_examples([PHOTO._replace(probs=probs)] * 4)
    assert len({round(axes.get_position().x0, 6) for axes in plain.axes}) == 4
    assert len({round(axes.get_position().x0, 6) for axes in crowded.axes}) < 4


def test_names_with_dollar_signs_are_shown_as_written() -> None:
    odd = "$\\broken$"
    figures = [
        draw_examples([Example(PIXELS, [odd], [], {odd: {odd: 0.5}})]),
        draw_pseudo_labels_by_epoch({odd: ([1], [0.5], [0.2])}),
        draw_histogram_panels({odd: {odd: (EDGES, [1, 2])}}),
    ]
    for figure in figures:
        render_figure(figure)
        texts = [text for text in figure.findobj(Text) if odd in text.get_text()]
        assert texts
        assert not any(text.get_parse_math() for text in texts)


@pytest.mark.parametrize("name", DRAWN)
def test_everything_written_lies_inside_the_figure(name: str) -> None:
    figure = DRAWN[name]()
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    for text in figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_visible()):
        assert isinstance(text, Text)
        axes = text.axes
        if not text.get_text() or (axes is not None and not axes.axison and text not in axes.texts):
            continue
        box = text.get_window_extent()
        assert -1 <= box.x0 <= box.x1 <= width + 1, text
        assert -1 <= box.y0 <= box.y1 <= height + 1, text


@pytest.mark.parametrize("name", DRAWN)
def test_figures_have_the_width_of_a_column_or_a_page(name: str) -> None:
    assert round(DRAWN[name]().get_figwidth(), 6) in (3.4, 7.0)


@pytest.mark.parametrize("name", DRAWN)
def test_drawing_leaves_pyplot_and_the_settings_as_they_were(name: str) -> None:
    before = dict(mpl.rcParams)
    DRAWN[name]()
    assert dict(mpl.rcParams) == before
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("kind", ["pdf", "png"])
def test_rendering_is_reproducible_and_leaves_the_settings(kind: Literal["pdf", "png"]) -> None:
    before = dict(mpl.rcParams)
    first = render_figure(draw_histogram_panels({"": GROUPS}), kind=kind)
    assert dict(mpl.rcParams) == before
    assert first == render_figure(draw_histogram_panels({"": GROUPS}), kind=kind)
    assert b"CreationDate" not in first


@pytest.mark.parametrize("name", DRAWN)
def test_pdf_holds_true_type_fonts_only(name: str) -> None:
    pdf = render_figure(DRAWN[name](), kind="pdf")
    assert pdf.startswith(b"%PDF-")
    assert b"/Type3" not in pdf
    assert b"/FontFile2" in pdf
    assert b"STIXGeneral" in pdf


def test_png_has_300_points_an_inch() -> None:
    png = render_figure(draw_negative_gradients())
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20]) == 1020


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: draw_histogram_panels({"": {"positives": (EDGES, [1, 2, 3])}}),
            "The group 'positives' must have one more edge than counts,"
            " but got 3 edges and 3 counts.",
        ),
        (
            lambda: draw_histogram_panels({"BCE": {}}),
            "The panel 'BCE' must hold at least one group, but is empty.",
        ),
        (lambda: draw_histogram_panels({}), "panels must hold at least one panel, but is empty."),
        (
            lambda: draw_pseudo_labels_by_epoch({"SPLC": ([1, 2], [0.5], [0.5])}),
            "epochs, precision and recall of 'SPLC' must be equally long and not empty,"
            " but got lengths [2, 1, 1].",
        ),
        (
            lambda: draw_pseudo_labels_by_epoch({}),
            "curves must hold at least one method, but is empty.",
        ),
        (lambda: draw_examples([]), "examples must hold at least one image, but is empty."),
        (
            lambda: draw_examples([Example(np.zeros((3, 8, 8)), ["cup"], [])]),
            "The image of example 0 must have the shape (height, width, 3), but got (3, 8, 8).",
        ),
        (
            lambda: draw_examples([Example(np.full((8, 8, 3), 200.0), ["cup"], [])]),
            "The image of example 0 must be uint8 or lie between 0 and 1,"
            " but is float64 from 200 to 200.",
        ),
        (
            lambda: draw_focal_margin_gradients(()),
            "margins must hold at least one number, but is empty.",
        ),
        (lambda: draw_asl_gradients(()), "gammas must hold at least one number, but is empty."),
    ],
)
def test_wrong_input_is_named_in_one_sentence(draw: Callable[[], Figure], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        draw()
    assert str(caught.value) == message
