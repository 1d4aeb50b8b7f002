"""From scores to the probability that a label is true, and from there to decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilltop.doors import open_doors

if TYPE_CHECKING:
    from hilltop.calibration.belief import Belief, believe
    from hilltop.calibration.calibrator import TruthCalibrator
    from hilltop.calibration.decision import Decision, Goal, decide
    from hilltop.calibration.expected import Expected, ExpectedCounts
    from hilltop.calibration.intervals import binomial_interval, weighted_interval
    from hilltop.calibration.keep_posterior import KeepPosterior, MissingCounts
    from hilltop.calibration.keep_rate import Fitted, KeepEstimate
    from hilltop.calibration.observation import build_likelihood, describe_model
    from hilltop.calibration.posterior import present_probability
    from hilltop.calibration.scaling import Calibration, calibrate
    from hilltop.calibration.truth import NOTHING_MISSING, TruthModel, fit_truth

__all__ = [
    "NOTHING_MISSING",
    "Belief",
    "Calibration",
    "Decision",
    "Expected",
    "ExpectedCounts",
    "Fitted",
    "Goal",
    "KeepEstimate",
    "KeepPosterior",
    "MissingCounts",
    "TruthCalibrator",
    "TruthModel",
    "believe",
    "binomial_interval",
    "build_likelihood",
    "calibrate",
    "decide",
    "describe_model",
    "fit_truth",
    "present_probability",
    "weighted_interval",
]

_HOMES = {
    "NOTHING_MISSING": "truth",
    "Belief": "belief",
    "Calibration": "scaling",
    "Decision": "decision",
    "Expected": "expected",
    "ExpectedCounts": "expected",
    "Fitted": "keep_rate",
    "Goal": "decision",
    "KeepEstimate": "keep_rate",
    "KeepPosterior": "keep_posterior",
    "MissingCounts": "keep_posterior",
    "TruthCalibrator": "calibrator",
    "TruthModel": "truth",
    "believe": "belief",
    "binomial_interval": "intervals",
    "build_likelihood": "observation",
    "calibrate": "scaling",
    "decide": "decision",
    "describe_model": "observation",
    "fit_truth": "truth",
    "present_probability": "posterior",
    "weighted_interval": "intervals",
}
__getattr__, __dir__ = open_doors(__name__, _HOMES)
