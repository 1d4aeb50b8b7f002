"""Deprecated: this is :mod:`hilltop.missing` now."""

from __future__ import annotations

from hilltop.deprecation import renamed_attributes

__getattr__ = renamed_attributes(
    __name__,
    {
        "EstimatedReport": "hilltop.missing.EstimatedReport",
        "IncompleteTest": "hilltop.missing.Evaluation",
        "MetricEstimate": "hilltop.missing.Interval",
        "ModelComparison": "hilltop.missing.ModelComparison",
        "PlannedPairs": "hilltop.missing.PlannedPairs",
        "SampledAnswers": "hilltop.missing.SampledAnswers",
        "planned_rows": "hilltop.missing.planned_rows",
        "read_sampled_answers": "hilltop.missing.read_sampled_answers",
        "sampled_answers": "hilltop.missing.sampled_answers",
        "write_planned_pairs": "hilltop.missing.write_planned_pairs",
    },
)
