"""From scores to the probability that a label is true: observation models fitted to labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilltop.doors import open_doors

if TYPE_CHECKING:
    from hilltop.calibration.intervals import binomial_interval, weighted_interval
    from hilltop.calibration.keep_rate import Fitted, KeepEstimate, estimate_keep
    from hilltop.calibration.observation import (
        ModelSelection,
        build_likelihood,
        describe_model,
        select_model,
    )
    from hilltop.calibration.posterior import present_probability
    from hilltop.calibration.scaling import Calibration, calibrate

__all__ = [
    "Calibration",
    "Fitted",
    "KeepEstimate",
    "ModelSelection",
    "binomial_interval",
    "build_likelihood",
    "calibrate",
    "describe_model",
    "estimate_keep",
    "present_probability",
    "select_model",
    "weighted_interval",
]

_HOMES = {
    "Calibration": "scaling",
    "Fitted": "keep_rate",
    "KeepEstimate": "keep_rate",
    "ModelSelection": "observation",
    "binomial_interval": "intervals",
    "build_likelihood": "observation",
    "calibrate": "scaling",
    "describe_model": "observation",
    "estimate_keep": "keep_rate",
    "present_probability": "posterior",
    "select_model": "observation",
    "weighted_interval": "intervals",
}
__getattr__, __dir__ = open_doors(__name__, _HOMES)
