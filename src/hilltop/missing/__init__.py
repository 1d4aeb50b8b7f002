"""What is missing, what is true, what to predict, and how good is it, from incomplete labels.

:class:`MissingLabelModel` is fitted once for a data set, from out-of-fold scores and labels.
Training, audit, prediction, evaluation, report and review page read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilltop.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from hilltop.missing.answer_files import (
        PLAN_COLUMNS,
        planned_rows,
        read_sampled_answers,
        sampled_answers,
        write_planned_pairs,
    )
    from hilltop.missing.answers import PlannedPairs, SampledAnswers
    from hilltop.missing.calibrator import Calibrator
    from hilltop.missing.decision import Decision, Expected, ExpectedCounts, Goal, decide
    from hilltop.missing.evaluation import EstimatedReport, Evaluation, ModelComparison
    from hilltop.missing.extra_scores import combine_scores
    from hilltop.missing.interval import Interval, proportion_interval, weighted_count_interval
    from hilltop.missing.model import Calibration, MissingCounts, MissingLabelModel
    from hilltop.missing.wrong import WrongLabelModel

__all__ = [
    "PLAN_COLUMNS",
    "Calibration",
    "Calibrator",
    "Decision",
    "EstimatedReport",
    "Evaluation",
    "Expected",
    "ExpectedCounts",
    "Goal",
    "Interval",
    "MissingCounts",
    "MissingLabelModel",
    "ModelComparison",
    "PlannedPairs",
    "SampledAnswers",
    "WrongLabelModel",
    "combine_scores",
    "decide",
    "planned_rows",
    "proportion_interval",
    "read_sampled_answers",
    "sampled_answers",
    "weighted_count_interval",
    "write_planned_pairs",
]

_MODULES = {
    "PLAN_COLUMNS": "answer_files",
    "Calibration": "model",
    "Calibrator": "calibrator",
    "Decision": "decision",
    "EstimatedReport": "evaluation",
    "Evaluation": "evaluation",
    "Expected": "decision",
    "ExpectedCounts": "decision",
    "Goal": "decision",
    "Interval": "interval",
    "MissingCounts": "model",
    "MissingLabelModel": "model",
    "ModelComparison": "evaluation",
    "PlannedPairs": "answers",
    "SampledAnswers": "answers",
    "WrongLabelModel": "wrong",
    "combine_scores": "extra_scores",
    "decide": "decision",
    "planned_rows": "answer_files",
    "proportion_interval": "interval",
    "read_sampled_answers": "answer_files",
    "sampled_answers": "answer_files",
    "weighted_count_interval": "interval",
    "write_planned_pairs": "answer_files",
}
__getattr__, __dir__ = lazy_imports(__name__, _MODULES)
