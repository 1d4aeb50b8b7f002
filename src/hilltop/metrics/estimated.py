"""Estimates from incomplete labels in the form of a classification report."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilltop.metrics.arrays import Floats
from hilltop.metrics.report import ClassificationReport, PerClass
from hilltop.missing.answers import SampledAnswers
from hilltop.missing.evaluation import Evaluation


def estimated_report(
    scores: Any,
    targets: Any,
    thresholds: Floats,
    known: Any,
    names: tuple[str, ...],
    answers: SampledAnswers | None,
    *,
    harmonic: bool,
) -> ClassificationReport:
    """Estimate what :func:`hilltop.metrics.classification_report` would say of complete labels."""
    labels = np.array(targets, dtype=np.float32)
    if known is not None:
        labels[~np.asarray(known, dtype=bool)] = np.nan
    test = Evaluation([scores], labels, answers=answers, threshold=thresholds, harmonic=harmonic)
    found = test.report()
    hits, predicted, positives = found.hits, found.predicted, found.positives
    numbers = {name: one.value for name, one in found.metrics.items() if "@" not in name}
    return ClassificationReport(
        **numbers,
        empty_classes=(),
        per_class=PerClass(
            names=names,
            threshold=thresholds,
            positives=np.rint(positives).astype(np.int64),
            predicted=predicted.astype(np.int64),
            average_precision=np.array([one.value for one in found.average_precision]),
            precision=hits / np.maximum(predicted, 1),
            recall=hits / np.maximum(positives, 1e-9),
            f1=2 * hits / np.maximum(predicted + positives, 1e-9),
        ),
        intervals=found.metrics,
    )
