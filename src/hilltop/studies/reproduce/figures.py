"""The figures of the paper, from the runs that a recipe names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from matplotlib.figure import Figure
from PIL import Image

from hilltop.data import State, drop_positives, read_labels
from hilltop.data.scores import ScoreTable
from hilltop.errors import HilltopError
from hilltop.inputs.image_files import find_images
from hilltop.report.paper_figures import (
    Example,
    draw_asl_gradients,
    draw_examples,
    draw_focal_margin_gradients,
    draw_histogram_panels,
    draw_negative_gradients,
    draw_pseudo_labels_by_epoch,
)
from hilltop.report.tables import Sheet
from hilltop.studies.compare import Result
from hilltop.studies.compare.level import NAMED
from hilltop.studies.reproduce.source import Source
from hilltop.training.calibration import Which
from hilltop.training.predict import load_run, predict_rows
from hilltop.training.pseudo_counts import Histograms, read_histograms
from hilltop.training.run_folder import RunFolder

_BINS = 25  # of a drawn histogram
_THRESHOLD = 0.6
_PSEUDO_LABELS = (0.4, 0.45, 0.5, 0.55, 0.6)
_EXAMPLES = 6  # two full rows with the five columns of the paper's figure
_STAGE_THRESHOLDS = {
    0.3: "a threshold for BCE, early",
    0.4: "a threshold for Focal, early",
    0.6: "above 95",
}
_STAGE_RANGES = (
    (0.0, 0.2, "hard positives"),
    (0.3, 0.5, "a large proportion with Focal"),
    (0.5, 1.0, "1.5 more with Focal than with BCE, late"),
)
_GROUPS = {"labelled": "positives", "missing": "missing labels", "absent": "true negatives"}


class NotPossibleError(HilltopError):
    """A figure cannot be drawn from this source; the message says why."""


@dataclass(frozen=True)
class Material:
    """What a figure is drawn from: nothing, or finished runs on a source.

    Attributes:
        runs: Runs by the names that the figure shows.
        source: What they were trained on.
        stopped: Names of runs that were stopped early, to show them as they were then.
    """

    runs: Mapping[str, Result]
    source: Source | None
    stopped: frozenset[str] = frozenset()


def _stages(material: Material) -> Figure:
    panels = {}
    for title, found, epoch in _stage_panels(material):
        merged = found.counts.shape[2] // _BINS  # fewer, wider bins
        panels[title] = {
            shown: (found.edges[::merged], found.of(kind, epoch).reshape(_BINS, -1).sum(axis=1))
            for kind, shown in _GROUPS.items()
        }
    return draw_histogram_panels(panels)


def _stage_panels(material: Material) -> Iterator[tuple[str, Histograms, int]]:
    """First and last epoch of each run: a title, the histograms, and the epoch from 0."""
    for name, run in material.runs.items():
        found = read_histograms(RunFolder(run.folder).histograms)
        epochs = len(found.counts)
        for epoch in dict.fromkeys((0, epochs - 1)):
            yield f"{name}, epoch {epoch + 1} of {epochs}", found, epoch


def _stage_numbers(material: Material) -> Sheet:
    """The numbers that the paper's text reads off its Fig. 2."""
    panels = list(_stage_panels(material))
    rows = []
    for threshold, said in _STAGE_THRESHOLDS.items():
        above = [found.above(threshold) for _, found, _ in panels]
        epochs = [epoch for _, _, epoch in panels]
        for part, what in enumerate(("that are missing labels", "of all missing labels")):
            values = [both[part][epoch] for both, epoch in zip(above, epochs, strict=True)]
            paper = "" if part else said
            rows.append((f"unlabelled pairs above {threshold:g} {what}", paper, values))
    for low, high, said in _STAGE_RANGES:
        values = [_share(found.of("labelled", epoch), low, high) for _, found, epoch in panels]
        rows.append((f"labels between {low:g} and {high:g}", said, values))
    return Sheet(
        "Numbers that the paper's text reads off this figure, in per cent",
        ("share of", "the paper", *(title for title, _, _ in panels)),
        tuple((name, said, *map(_per_cent, values)) for name, said, values in rows),
        notes=("Counted in the steps of training, on augmented images, before each step.",),
    )


def _per_cent(share: float) -> str:
    """Write a share; nothing where there is none."""
    return "" if np.isnan(share) else f"{100 * share:.1f}"


def _share(counts: npt.NDArray[Any], low: float, high: float) -> float:
    """The share of the pairs whose probability lies in a range."""
    start, stop = round(low * len(counts)), round(high * len(counts))
    return float(counts[start:stop].sum() / counts.sum()) if counts.sum() else float("nan")


def _test_distributions(material: Material) -> Figure:
    panels = {}
    for name, run in material.runs.items():
        folder = RunFolder(run.folder)
        labels = read_labels(folder.val_labels)
        probs = ScoreTable.load(folder.val_scores).aligned(labels.images, labels.classes)
        judged = labels.eval_targets()
        edges = np.linspace(0, 1, _BINS + 1)
        panels[name] = {
            shown: (edges, np.histogram(probs[judged == value], edges)[0])
            for shown, value in (("positives", 1), ("negatives", 0))
        }
    return draw_histogram_panels(panels)


def _missing_by_epoch(material: Material) -> Figure:
    *shown, labeller = material.runs
    curves = {}
    for name in shown:
        found = read_histograms(RunFolder(material.runs[name].folder).histograms)
        precision, recall = found.above(_THRESHOLD)
        curves[name] = (np.arange(1, len(precision) + 1), precision, recall)
    found = read_histograms(RunFolder(material.runs[labeller].folder).histograms)
    rectangles = {}
    for threshold in _PSEUDO_LABELS:
        precision, recall = found.above(threshold)
        rectangles[threshold] = (float(precision[-1]), float(recall[-1]))
    return draw_pseudo_labels_by_epoch(curves, rectangles)


def _examples(material: Material, *, start: int = 0) -> Figure:
    """Test images that would keep one label at least and lose one by the rule of the level."""
    source = material.source
    folder = None if source is None else source.pictures
    if folder is None:
        raise NotPossibleError("This source has no images to show.")
    first = next(iter(material.runs.values()))
    labels = read_labels(RunFolder(first.folder).val_labels)
    ratio = first.cell.level.r or NAMED[first.cell.level.name][1]
    true = labels.dense() == State.PRESENT
    known = drop_positives(labels, ratio, seed=first.cell.seed).table.dense() == State.PRESENT
    fitting = np.flatnonzero((true & ~known).any(axis=1) & known.any(axis=1))
    rows = fitting[start : start + _EXAMPLES]
    if not len(rows):
        raise NotPossibleError(
            f"Only {len(fitting)} test images have several labels; figures of examples need"
            f" {start + 1} at least."
        )
    images = labels.images.take(pa.array(rows))
    files = find_images(folder, images)
    probs = {
        name: _probabilities(run, images, which="last" if name in material.stopped else "best")
        for name, run in material.runs.items()
    }
    examples = []
    for number, row in enumerate(rows):
        seen, lost = (
            [labels.classes[at] for at in np.flatnonzero(mask)]
            for mask in (known[row], true[row] & ~known[row])
        )
        said = {
            name: {word: float(values[number][labels.classes.index(word)]) for word in seen + lost}
            for name, values in probs.items()
        }
        examples.append(Example(_pixels(folder / files[number].as_py()), seen, lost, said))
    return draw_examples(examples)


def _probabilities(run: Result, images: pa.StringArray, *, which: Which) -> npt.NDArray[Any]:
    """Probabilities of some images by the best or the last epoch of a run."""
    trained = load_run(run.folder, which=which)
    return np.asarray(predict_rows(trained, images).values)


def _pixels(path: Path) -> npt.NDArray[np.uint8]:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


FIGURES: dict[str, Callable[[Material], Figure]] = {
    "negative-gradients": lambda _: draw_negative_gradients(),
    "focal-margin-gradients": lambda _: draw_focal_margin_gradients(),
    "asl-gradients": lambda _: draw_asl_gradients(),
    "stages": _stages,
    "test-distributions": _test_distributions,
    "missing-by-epoch": _missing_by_epoch,
    "examples": _examples,
    "more-examples": partial(_examples, start=_EXAMPLES),
}
"""What draws a figure, by the name of its recipe."""
NUMBERS: dict[str, Callable[[Material], Sheet]] = {"stages": _stage_numbers}
"""What stands below a figure."""
