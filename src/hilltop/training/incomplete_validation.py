"""What complete validation labels would have said, where those of a run are not known to be.

A model is punished for every label it found and nobody wrote down. The best epoch is therefore
chosen by estimates of the true mAP, see :mod:`hilltop.metrics.incomplete`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilltop.metrics.incomplete import IncompleteTest, MetricEstimate
from hilltop.metrics.incomplete.row_sample import row_errors, widened

if TYPE_CHECKING:
    from hilltop.data import LabelTable

Scores = npt.NDArray[Any]

LEAST_IMAGES = 30
"""Fewer validation images tell too little; they are judged by their labels as they are."""
LEAST_LABELS = 20
"""The same for labels."""
MOST_PAIRS, FEWEST_IMAGES = 20_000, 60
"""About so many pairs of the validation images are looked at after an epoch, evenly spaced images,
and no fewer images than this where classes are many; intervals say how far off others may be."""
EPOCH_DRAWS = 16
"""Draws of the calibration: which epoch is better hardly depends on them."""
ESTIMATED = ("mAP", "CF1", "OF1")
"""Metrics that are estimated."""


@dataclass(frozen=True, eq=False)
class IncompleteValidation:
    """Validation labels that list positives alone.

    Attributes:
        rows: The images that are looked at.
        targets: 1 for labelled, 0 for not labelled, NaN for a pair that nobody looked for.
    """

    rows: npt.NDArray[np.int64]
    targets: npt.NDArray[np.float32]

    @classmethod
    def of(cls, labels: LabelTable) -> IncompleteValidation | None:
        """Return None where labels count as complete, or tell too little."""
        return cls.of_targets(labels.eval_targets()) if _lists_positives_alone(labels) else None

    @classmethod
    def of_targets(cls, targets: npt.NDArray[np.float32]) -> IncompleteValidation | None:
        """Take labels of which some may be missing; None where they tell too little."""
        every = min(targets.size // MOST_PAIRS, len(targets) // FEWEST_IMAGES)
        rows = np.arange(0, len(targets), max(1, every))
        targets = targets[rows]
        if len(rows) < LEAST_IMAGES or (targets == 1).sum() < LEAST_LABELS:
            return None
        return cls(rows, targets)

    def judge(
        self, probs: Scores, threshold: Any = 0.5, *, rival: Scores | None = None
    ) -> JudgedEpoch:
        """Estimate true metrics of an epoch, and compare it with the best one so far.

        The two are compared on what both say of missing labels: by its own scores alone, an epoch
        that is too sure of itself looks too good.

        Args:
            probs: Scores of all validation images; rows that could not be read are NaN.
            threshold: Above it is a prediction.
            rival: Scores of the best epoch so far.
        """
        models = [probs[self.rows].astype(np.float64)]
        if rival is not None:
            models.append(rival[self.rows].astype(np.float64))
        readable = ~np.isnan(np.concatenate(models, axis=1)).any(axis=1)
        targets = self.targets[readable]
        if readable.sum() < LEAST_IMAGES or not (targets == 1).any():
            return JudgedEpoch(dict.fromkeys(ESTIMATED, MetricEstimate(*[np.nan] * 3)), None)
        models = [one[readable] for one in models]
        test = IncompleteTest(models, targets, threshold=threshold, draws=EPOCH_DRAWS)
        metrics = test.report().metrics
        gain = None
        if rival is not None:
            gain = metrics["mAP"].estimate - test.report(1).metrics["mAP"].estimate
        errors = row_errors(test, images=len(probs))
        found = {name: widened(metrics[name], errors[name]) for name in ESTIMATED}
        return JudgedEpoch(found, gain)


@dataclass(frozen=True)
class JudgedEpoch:
    """What is probably true of an epoch.

    Attributes:
        metrics: Estimates by name.
        gain: How much higher its mAP is than that of the best epoch so far; None without one.
    """

    metrics: dict[str, MetricEstimate]
    gain: float | None

    def columns(self) -> dict[str, float]:
        """What the table of metrics has beside the labels as they are."""
        return {
            f"{name}_{end}": value
            for name, found in self.metrics.items()
            for end, value in found.as_dict().items()
        }


class EstimatedMap:
    """Scores epochs one after another: the estimate of the first, and what the best ones gained."""

    def __init__(self, validation: IncompleteValidation) -> None:
        """Begin without an epoch."""
        self._validation = validation
        self._best: Scores | None = None
        self._reached = 0.0

    def __call__(self, probs: Scores) -> float:
        """Return the mAP of an epoch, comparable with those before."""
        found = self._validation.judge(probs, rival=self._best)
        first = found.metrics["mAP"].estimate
        score = first if found.gain is None else self._reached + found.gain
        if self._best is None or score > self._reached:
            self._best, self._reached = probs, score
        return score


def _lists_positives_alone(labels: LabelTable) -> bool:
    """Whether pairs without a label count as absent though nobody said so."""
    from hilltop.data import State  # which needs pyarrow; a matrix of targets does not

    absent = bool((labels.states == State.ABSENT).any())
    present = bool((labels.states == State.PRESENT).any())
    return labels.unlisted == State.UNKNOWN and present and not absent
