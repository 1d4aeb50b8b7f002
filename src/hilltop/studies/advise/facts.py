"""What labels alone say about labels that are missing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hilltop.checks import pluralize
from hilltop.data import LabelTable, State


@dataclass(frozen=True)
class LabelFacts:
    """Counts of a table that bear on missing labels.

    Attributes:
        images: All images.
        labelled_images: Images with at least one label.
        classes: All classes.
        labels: Pairs that are present.
        absent: Pairs that a person confirmed absent, or that are absent because the list is
            complete.
        unknown: Pairs of which nobody said anything: only here can labels be missing.
        one_label: Share of the labelled images that carry one label.
    """

    images: int
    labelled_images: int
    classes: int
    labels: int
    absent: int
    unknown: int
    one_label: float

    @classmethod
    def of(cls, table: LabelTable) -> LabelFacts:
        """Count."""
        per_image = table.labels_per_image()
        labelled = int(np.count_nonzero(per_image))
        return cls(
            images=len(table),
            labelled_images=labelled,
            classes=len(table.classes),
            labels=table.count(State.PRESENT),
            absent=table.count(State.ABSENT),
            unknown=table.count(State.UNKNOWN),
            one_label=int(np.count_nonzero(per_image == 1)) / max(1, labelled),
        )

    @property
    def mean_labels(self) -> float:
        """Labels of a labelled image."""
        return self.labels / max(1, self.labelled_images)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        return {**asdict(self), "mean_labels": self.mean_labels}

    def __str__(self) -> str:
        """Return two lines."""
        empty = self.images - self.labelled_images
        without = f", {empty:,} of them without any label" if empty else ""
        return (
            f"{pluralize(self.images, 'image', 'images')}{without};"
            f" {pluralize(self.classes, 'class', 'classes')}\n"
            f"{pluralize(self.labels, 'label', 'labels')}, {self.mean_labels:.2f} a labelled image,"
            f" {self.one_label:.0%} of which carry one;"
            f" {pluralize(self.absent, 'pair is', 'pairs are')} absent, {self.unknown:,} unknown"
        )
