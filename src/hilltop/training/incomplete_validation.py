"""What complete validation labels would have said, where those of a run are not known to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hilltop.data import LabelTable, State, read_labels
from hilltop.data.scores import ScoreTable

if TYPE_CHECKING:
    from hilltop.metrics.incomplete import MetricEstimate
    from hilltop.training.run_folder import RunFolder

_LEAST_IMAGES = 100
"""Fewer validation images tell too little."""
_MOST_PAIRS = 20_000_000
"""More would take longer than a sentence at the end of a run is worth."""


def estimated_map(folder: RunFolder) -> MetricEstimate | None:
    """Return the true mAP of the best epoch; None where validation labels count as complete."""
    labels = read_labels(folder.val_labels)
    if not _lists_positives_alone(labels) or not folder.val_scores.is_file():
        return None
    probs = ScoreTable.load(folder.val_scores).aligned(labels.images, labels.classes)
    readable = ~np.isnan(probs).any(axis=1)
    if readable.sum() < _LEAST_IMAGES or probs.size > _MOST_PAIRS:
        return None
    from hilltop.metrics.incomplete import IncompleteTest

    targets, observed = labels.batch()
    test = IncompleteTest([probs[readable]], targets[readable], observed=observed[readable])
    return test.report().metrics["mAP"]


def _lists_positives_alone(labels: LabelTable) -> bool:
    """Whether pairs without a label were counted as absent though nobody said so."""
    absent = bool((labels.states == State.ABSENT).any())
    present = bool((labels.states == State.PRESENT).any())
    return labels.unlisted == State.UNKNOWN and present and not absent
