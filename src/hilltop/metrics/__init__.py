"""Exact metrics for multi-label classifiers, unknown entries left out. Needs numpy."""

from hilltop.metrics.accumulate import ReportAccumulator
from hilltop.metrics.at_k import ndcg_at_k, precision_at_k, propensities
from hilltop.metrics.functional import (
    EmptyClassWarning,
    average_precision,
    mean_average_precision,
)
from hilltop.metrics.report import ClassificationReport, PerClass, classification_report
from hilltop.metrics.thresholds import fit_thresholds

__all__ = [
    "ClassificationReport",
    "EmptyClassWarning",
    "PerClass",
    "ReportAccumulator",
    "average_precision",
    "classification_report",
    "fit_thresholds",
    "mean_average_precision",
    "ndcg_at_k",
    "precision_at_k",
    "propensities",
]
