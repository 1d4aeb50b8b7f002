"""True scores from incomplete test labels: estimates with intervals, comparisons, what to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilltop.doors import open_doors

if TYPE_CHECKING:
    from hilltop.metrics.incomplete.answer_files import (
        PLAN_COLUMNS,
        planned_rows,
        read_sampled_answers,
        sampled_answers,
        write_planned_pairs,
    )
    from hilltop.metrics.incomplete.answers import SampledAnswers
    from hilltop.metrics.incomplete.comparison import ModelComparison
    from hilltop.metrics.incomplete.estimation import EstimatedReport, IncompleteTest
    from hilltop.metrics.incomplete.moments import MetricEstimate
    from hilltop.metrics.incomplete.plan import PlannedPairs

__all__ = [
    "PLAN_COLUMNS",
    "EstimatedReport",
    "IncompleteTest",
    "MetricEstimate",
    "ModelComparison",
    "PlannedPairs",
    "SampledAnswers",
    "planned_rows",
    "read_sampled_answers",
    "sampled_answers",
    "write_planned_pairs",
]

_HOMES = {
    "PLAN_COLUMNS": "answer_files",
    "EstimatedReport": "estimation",
    "IncompleteTest": "estimation",
    "MetricEstimate": "moments",
    "ModelComparison": "comparison",
    "PlannedPairs": "plan",
    "SampledAnswers": "answers",
    "planned_rows": "answer_files",
    "read_sampled_answers": "answer_files",
    "sampled_answers": "answer_files",
    "write_planned_pairs": "answer_files",
}
__getattr__, __dir__ = open_doors(__name__, _HOMES)
