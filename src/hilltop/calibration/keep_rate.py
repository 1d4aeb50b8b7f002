"""The share of the true labels that was written down, and observation models fitted to scores."""

from __future__ import annotations

from dataclasses import dataclass

from hilltop.calibration.scaling import Calibration
from hilltop.losses.likelihood import Likelihood


@dataclass(frozen=True)
class KeepEstimate:
    """A keep rate with its 90% interval.

    Attributes:
        keep: Share of the true labels that was written down.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    keep: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return per cents."""
        return f"{self.keep:.0%} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True)
class Fitted:
    """An observation model with the calibration under which the labels are most probable."""

    loss: Likelihood
    calibration: Calibration
