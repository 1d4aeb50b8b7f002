"""Deprecated: this is :mod:`hilltop.missing` now."""

from __future__ import annotations

from hilltop.deprecation import renamed_attributes

__getattr__ = renamed_attributes(
    __name__,
    {
        "Calibration": "hilltop.missing.Calibration",
        "Decision": "hilltop.missing.Decision",
        "Expected": "hilltop.missing.Expected",
        "ExpectedCounts": "hilltop.missing.ExpectedCounts",
        "Goal": "hilltop.missing.Goal",
        "KeepEstimate": "hilltop.missing.Interval",
        "MissingCounts": "hilltop.missing.MissingCounts",
        "TruthCalibrator": "hilltop.missing.Calibrator",
        "TruthModel": "hilltop.missing.MissingLabelModel",
        "binomial_interval": "hilltop.missing.proportion_interval",
        "decide": "hilltop.missing.decide",
        "weighted_interval": "hilltop.missing.weighted_count_interval",
    },
)
