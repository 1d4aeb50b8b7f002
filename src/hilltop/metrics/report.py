"""The seven numbers that multi-label papers report, and the table for each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from hilltop.checks import check_choice
from hilltop.errors import ArgumentError
from hilltop.metrics.arrays import Column, Floats, ScoredTargets
from hilltop.metrics.functional import (
    Empty,
    column_average_precision,
    mean_over_classes,
    shortened,
)

if TYPE_CHECKING:
    from hilltop.missing import Interval, SampledAnswers

CF1Kind = Literal["mean", "harmonic"]


@dataclass(frozen=True, eq=False)
class PerClass:
    """What was measured for each class; all arrays have one entry a class."""

    names: tuple[str, ...]
    threshold: Floats
    positives: npt.NDArray[np.int64]
    predicted: npt.NDArray[np.int64]
    average_precision: Floats
    precision: Floats
    recall: Floats
    f1: Floats


@dataclass(frozen=True, eq=False)
class ClassificationReport:
    """Metrics of a multi-label classifier, as fractions in [0, 1].

    ``CP``, ``CR`` and ``CF1`` are means over classes, ``OP``, ``OR`` and ``OF1`` are over all
    entries. ``empty_classes`` names the classes without a positive entry. ``intervals`` has the 90%
    interval of every number that was estimated from incomplete labels, precision at k among them;
    it is empty where labels are complete.
    """

    mAP: float  # noqa: N815 (the name that the field uses)
    CP: float
    CR: float
    CF1: float
    OP: float
    OR: float
    OF1: float
    empty_classes: tuple[str, ...]
    per_class: PerClass
    intervals: Mapping[str, Interval] = field(default_factory=dict)

    def as_dict(self) -> dict[str, float]:
        """Return the seven numbers by name."""
        return {name: getattr(self, name) for name in ("mAP", "CP", "CR", "CF1", "OP", "OR", "OF1")}

    def __str__(self) -> str:
        """Return names over percentages and empty classes; with intervals, a line for each name."""
        if self.intervals:
            return "\n".join(f"{name:>5}  {found}" for name, found in self.intervals.items())
        values = self.as_dict()
        lines = [
            "".join(f"{name:>7}" for name in values),
            "".join(f"{100 * value:7.2f}" for value in values.values()),
        ]
        if self.empty_classes:
            lines.append(f"classes without positives: {shortened(self.empty_classes)}")
        return "\n".join(lines)


def classification_report(
    scores: Any,
    targets: Any,
    threshold: float | Sequence[float] | Floats = 0.5,
    *,
    known: Any = None,
    cf1: CF1Kind = "mean",
    empty: Empty = "skip",
    class_names: Sequence[str] | None = None,
    incomplete: bool = False,
    answers: SampledAnswers | None = None,
) -> ClassificationReport:
    """Measure mAP, and precision, recall and F1 at a threshold, for each class and over all.

    An entry is predicted present if its score is greater than the threshold, compared in float64.
    Precision is 0 where nothing was predicted.

    Args:
        scores: ``(N, C)`` array or tensor, usually probabilities.
        targets: ``(N, C)``, 1 for present, 0 for absent, NaN for unknown.
        threshold: One number, or one for each class (see :func:`fit_thresholds`).
        known: ``(N, C)`` of bool; False leaves an entry out, like a NaN target.
        cf1: ``"mean"`` averages the F1 of the classes, as the paper does; ``"harmonic"`` takes
            the harmonic mean of CP and CR, as others do.
        empty: What a class without positives does to the class means: ``"skip"`` (the default)
            leaves it out, ``"zero"`` counts it as 0. Either way ``empty_classes`` names it.
        class_names: Names for the table of classes.
        incomplete: Whether targets of 0 may be labels that nobody wrote down. Then all numbers are
            estimates of what complete labels would give, and ``intervals`` says how sure they are;
            scores must be probabilities by a model that never saw these labels. See
            :class:`hilltop.missing.Evaluation`.
        answers: With ``incomplete``, what people said of single pairs.

    Example:
        >>> print(classification_report([[0.9, 0.1], [0.8, 0.7]], [[1, 0], [0, 1]]))
            mAP     CP     CR    CF1     OP     OR    OF1
         100.00  75.00 100.00  83.33  66.67 100.00  80.00
    """
    check_choice("cf1", cf1, get_args(CF1Kind))
    check_choice("empty", empty, get_args(Empty))
    judged = ScoredTargets(scores, targets, known, class_names)
    thresholds = _thresholds(threshold, judged.classes)
    if incomplete:
        from hilltop.metrics.estimated import estimated_report

        return estimated_report(
            scores, targets, thresholds, known, judged.names, answers, harmonic=cf1 == "harmonic"
        )
    if answers is not None:
        raise ArgumentError("answers need incomplete=True: complete labels leave nothing to ask.")
    precisions, hits, predicted, positives = _measured(judged, thresholds)
    precision, recall = _share(hits, predicted), _share(hits, positives)
    f1 = _share(2 * precision * recall, precision + recall)
    is_empty = positives == 0
    cp, cr = (mean_over_classes(values, is_empty, empty) for values in (precision, recall))
    op, or_ = (float(_share(hits.sum(), total.sum())) for total in (predicted, positives))
    return ClassificationReport(
        mAP=mean_over_classes(precisions, is_empty, empty),
        CP=cp,
        CR=cr,
        CF1=mean_over_classes(f1, is_empty, empty) if cf1 == "mean" else _harmonic(cp, cr),
        OP=op,
        OR=or_,
        OF1=_harmonic(op, or_),
        empty_classes=tuple(judged.names[number] for number in np.flatnonzero(is_empty)),
        per_class=PerClass(
            names=judged.names,
            threshold=thresholds,
            positives=positives.astype(np.int64),
            predicted=predicted.astype(np.int64),
            average_precision=precisions,
            precision=precision,
            recall=recall,
            f1=f1,
        ),
    )


def _measured(judged: ScoredTargets, thresholds: Floats) -> Floats:
    """Average precision, hits, predictions and positives: four rows, one entry a class."""
    if judged.on_device:
        from hilltop.metrics.on_device import measured_on_device

        return measured_on_device(judged, thresholds)

    def measure(column: Column) -> tuple[float, ...]:
        predicted = column.scores.astype(np.float64) > thresholds[column.number]
        counted = (predicted & column.present, predicted, column.present)
        return (column_average_precision(column), *(int(np.count_nonzero(c)) for c in counted))

    return np.array(judged.each_class(measure), dtype=np.float64).reshape(-1, 4).T


def _thresholds(threshold: Any, classes: int) -> Floats:
    values = np.asarray(threshold, dtype=np.float64)
    if values.shape not in ((), (classes,)):
        raise ArgumentError(
            f"threshold must be one number or one for each of {classes} classes,"
            f" but got the shape {values.shape}."
        )
    if np.isnan(values).any():
        raise ArgumentError("threshold must not be NaN.")
    return np.broadcast_to(values, (classes,)).copy()


def _share(part: Any, whole: Any) -> Any:
    """``part / whole``, and 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > 0)


def _harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0
