"""The report of the demo: what was forgotten, how many, tags, methods and what a review adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilltop.missing import Interval
from hilltop.report.page import Picture, Tag, write_page
from hilltop.report.paper_style import render_figure
from hilltop.report.run_figures import draw_histogram_panels

Mask = npt.NDArray[np.bool_]
Probs = npt.NDArray[np.floating[Any]]

ANSWERS_AN_HOUR = 1200
"""At three seconds an answer."""
_LOOKED_AT = (100, 300, ANSWERS_AN_HOUR, 3000)
_EXAMPLES, _BINS = 12, 25


@dataclass(frozen=True)
class DemoMethod:
    """One trained method.

    Attributes:
        name: What to call it.
        why: What it does with pairs that have no label.
        metrics: Its metrics on the test images, F1 at probability one half.
        tags: The same with tags at the thresholds that were found from the labels it was shown.
        train_probs: Its probabilities on the training images ``(images, classes)``.
    """

    name: str
    why: str
    metrics: Mapping[str, float]
    tags: Mapping[str, float]
    train_probs: Probs


@dataclass(frozen=True)
class DemoPairs:
    """The training pairs, on the rows and columns of the probabilities.

    Attributes:
        images: File of each training image.
        classes: Class names.
        known: Labels that training saw.
        missing: Labels that were removed before training.
    """

    images: Sequence[Path]
    classes: Sequence[str]
    known: Mask
    missing: Mask


class Looked(NamedTuple):
    """What looking at the first candidates gives."""

    number: int
    right: int

    @property
    def precision(self) -> float:
        """Share of them that are removed labels."""
        return self.right / self.number


@dataclass(frozen=True)
class DemoAudit:
    """What the audit of the training labels found.

    Attributes:
        rows: Image of each candidate, the most probable missing label first.
        columns: Class of each candidate.
        probs: Probability that its label is missing.
        right: Whether it is a removed label.
        missing: How many labels are missing by its estimate.
        folder: The audit's folder.
    """

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    probs: Probs
    right: Mask
    missing: Interval
    folder: Path

    def looked(self) -> list[Looked]:
        """What the first candidates give, up to as many as labels were removed."""
        found, removed = np.cumsum(self.right), int(self.right.sum())
        numbers = [*(number for number in _LOOKED_AT if number < removed), removed]
        return [Looked(number, int(found[number - 1])) for number in numbers]

    def an_hour(self) -> Looked:
        """What an hour of review gives, or as many answers as labels were removed."""
        return max(one for one in self.looked() if one.number <= ANSWERS_AN_HOUR)


def gap_closed(method: DemoMethod, baseline: DemoMethod, ceiling: DemoMethod) -> float | None:
    """Share of the mAP between baseline and ceiling that a method wins back; None without a gap."""
    gap = ceiling.metrics["mAP"] - baseline.metrics["mAP"]
    return (method.metrics["mAP"] - baseline.metrics["mAP"]) / gap if gap > 0 else None


def write_demo_report(
    path: Path,
    *,
    ceiling: DemoMethod,
    methods: Sequence[DemoMethod],
    pairs: DemoPairs,
    audit: DemoAudit,
    test_images: int,
    seconds: float,
) -> Path:
    """Write the page and return its path.

    Args:
        path: The HTML file.
        ceiling: BCE trained on the complete labels.
        methods: What was trained on the labels that are left; the first is the baseline, the last
            the default of Hilltop.
        pairs: The training pairs.
        audit: What the audit found in them.
        test_images: Number of test images, for the text.
        seconds: How long the whole demo took, for the text.
    """
    baseline = methods[0]
    write_page(
        path,
        "demo.html",
        methods=methods,
        every=[*methods, ceiling],
        ceiling=ceiling,
        closed={one.name: gap_closed(one, baseline, ceiling) for one in (*methods, ceiling)},
        below=[one.name for one in methods if one.metrics["mAP"] < baseline.metrics["mAP"]],
        best_tags=_best(methods, lambda one: one.tags["OF1"]),
        best_ranking=_best(methods, lambda one: one.metrics["mAP"]),
        histograms=_histograms(methods, pairs),
        classes=len(pairs.classes),
        images=len(pairs.images),
        known=int(pairs.known.sum()),
        removed=int(pairs.missing.sum()),
        unlabelled=int((~pairs.known).sum()),
        examples=_examples(audit, pairs),
        legend=[
            Tag("known label", "known"),
            Tag("forgotten, found 0.87", "found"),
            Tag("forgotten, not found", "missed"),
            Tag("found, but wrong 0.60", "wrong"),
        ],
        audit=audit,
        answers_an_hour=ANSWERS_AN_HOUR,
        test_images=test_images,
        seconds=seconds,
    )
    return path


def _best(methods: Sequence[DemoMethod], value: Any) -> int:
    """Number of the method with the highest value."""
    return max(range(len(methods)), key=lambda number: value(methods[number]))


def _histograms(methods: Sequence[DemoMethod], pairs: DemoPairs) -> bytes:
    """How probable each method finds labels that it was shown, removed ones, and other pairs."""
    kinds = {
        "positives": pairs.known,
        "missing labels": pairs.missing,
        "true negatives": ~(pairs.known | pairs.missing),
    }
    edges = np.linspace(0, 1, _BINS + 1)
    panels = {
        one.name: {
            kind: (edges, np.histogram(one.train_probs[mask], edges)[0])
            for kind, mask in kinds.items()
        }
        for one in methods
    }
    return render_figure(draw_histogram_panels(panels))


def _examples(audit: DemoAudit, pairs: DemoPairs) -> list[tuple[Picture, list[Tag]]]:
    """The first images from which a label was removed: known labels, found, missed, wrong ones.

    Found are as many candidates, the most probable first, as labels are missing by the estimate.
    """
    probs = np.full(pairs.known.shape, np.nan)
    first = slice(round(audit.missing.value))
    probs[audit.rows[first], audit.columns[first]] = audit.probs[first]
    found = ~np.isnan(probs)
    kinds = {
        "known": pairs.known,
        "found": found & pairs.missing,
        "missed": ~found & pairs.missing,
        "wrong": found & ~pairs.missing,
    }
    cards = []
    for row in np.flatnonzero(pairs.missing.any(axis=1))[:_EXAMPLES].tolist():
        tags = [
            Tag(pairs.classes[at] + (f" {probs[row, at]:.2f}" if found[row, at] else ""), kind)
            for kind, mask in kinds.items()
            for at in sorted(np.flatnonzero(mask[row]).tolist(), key=lambda at: -probs[row, at])
        ]
        cards.append((Picture.whole(pairs.images[row]), tags))
    return cards
