"""What may be expected of thresholds: precision, recall and F1, from probabilities of truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilltop.calibration.arrays import Floats
from hilltop.calibration.intervals import Z_90

GRID: Floats = np.linspace(-8.0, 8.0, 161)
"""Logits of the thresholds that are tried."""
MISFIT = 0.045
"""How far off expected shares may be by calibration alone, as a standard deviation."""


@dataclass(frozen=True)
class Range:
    """A number with its 90% interval.

    Example:
        >>> print(Range(0.7, 0.6, 0.75))
        70% (60% to 75%)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return per cents."""
        return f"{self.value:.0%} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True)
class Expected:
    """What may be expected of decisions on rows like those that were calibrated on.

    Attributes:
        precision: Share of the tags that are right.
        recall: Share of the true labels that are found.
        f1: Harmonic mean of both.
        tags: Tags an image.
    """

    precision: Range
    recall: Range
    f1: Range
    tags: float

    def __str__(self) -> str:
        """Return a line."""
        return (
            f"precision {self.precision}, recall {self.recall}, F1 {self.f1},"
            f" {self.tags:.1f} tags an image"
        )


@dataclass(frozen=True)
class ExpectedCounts:
    """How many pairs lie above each threshold, and how many of them are true.

    Attributes:
        rows: Rows that were looked at.
        accepted: Pairs of each class above each of ``GRID`` ``(C, thresholds)``.
        hits: How many of them are true, if as many labels are missing as at the lower end, in the
            middle and at the upper end of what is believed ``(3, C, thresholds)``.
        present: True labels of each class, in the same three cases ``(3, C)``.
    """

    rows: int
    accepted: Floats
    hits: Floats
    present: Floats

    @classmethod
    def of(cls, logits: Tensor, shifts: tuple[float, float, float]) -> ExpectedCounts:
        """Count.

        Args:
            logits: Of probabilities of truth ``(N, C)``; rows with NaN take no part in a class.
            shifts: What is added to all logits in the three cases.
        """
        known = ~logits.isnan()
        at = torch.bucketize(logits.nan_to_num().double(), torch.from_numpy(GRID))
        at += torch.arange(logits.shape[1]) * (len(GRID) + 1)

        def above(values: Tensor) -> tuple[Floats, Floats]:
            weights = (values * known).double().flatten()
            counts = torch.bincount(at.flatten(), weights, logits.shape[1] * (len(GRID) + 1))
            bins = counts.view(logits.shape[1], -1).numpy()
            # Bin g holds logits above GRID[g - 1] and up to GRID[g].
            return bins[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:], bins.sum(axis=1)

        accepted, _ = above(torch.ones_like(logits, dtype=torch.float64))
        cases = [above(torch.sigmoid(logits.double() + shift).nan_to_num()) for shift in shifts]
        hits, present = (np.stack(part) for part in zip(*cases, strict=True))
        return cls(len(logits), accepted, hits, present)

    def f1(self) -> Floats:
        """F1 of each class at each threshold, in the middle case ``(C, thresholds)``."""
        whole = self.accepted + self.present[1][:, None]
        f1: Floats = 2 * self.hits[1] / np.maximum(whole, 1e-9)
        return f1

    def pooled(self) -> ExpectedCounts:
        """All classes as if they were one."""
        return ExpectedCounts(
            self.rows,
            self.accepted.sum(axis=0, keepdims=True),
            self.hits.sum(axis=1, keepdims=True),
            self.present.sum(axis=1, keepdims=True),
        )

    def at(self, thresholds: Floats) -> tuple[Floats, Floats]:
        """Accepted pairs ``(C,)`` and hits ``(3, C)`` at a logit for each class."""

        def read(curve: Floats) -> Floats:
            pairs = zip(thresholds, curve, strict=True)
            return np.array([np.interp(logit, GRID, line, right=0.0) for logit, line in pairs])

        return read(self.accepted), np.stack([read(curve) for curve in self.hits])

    def expect(self, thresholds: Floats) -> Expected:
        """Say what these thresholds will give, all classes together.

        Args:
            thresholds: A logit for each class; infinity for never.
        """
        accepted, hits = self.at(thresholds)
        tags, found, true = accepted.sum(), hits.sum(axis=1), self.present.sum(axis=1)
        return Expected(
            precision=_range(found, np.full(3, tags)),
            recall=_range(found, true),
            f1=_range(2 * found, tags + true),
            tags=float(tags / max(1, self.rows)),
        )


def _range(part: Floats, whole: Floats) -> Range:
    """The share in the middle case, and the ends of all cases, widened by error of sampling."""
    shares = np.divide(part, whole, out=np.zeros(3), where=whole > 0)
    error = np.sqrt(shares * (1 - shares).clip(0) / whole.clip(1) + MISFIT**2)
    low, high = (shares - Z_90 * error).min(), (shares + Z_90 * error).max()
    return Range(float(shares[1]), float(max(0.0, low)), float(min(1.0, high)))
