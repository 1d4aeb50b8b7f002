"""Metrics from incomplete labels: what is expected of the truth, corrected by answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilltop.calibration.intervals import Z_90
from hilltop.metrics.arrays import Floats
from hilltop.metrics.incomplete.class_sums import ClassSums

_EDGE = 1e-4


@dataclass(frozen=True)
class MetricEstimate:
    """A metric with its 90% interval.

    Example:
        >>> print(MetricEstimate(0.583, 0.55, 0.612))
        58.3 (55.0 to 61.2)
    """

    estimate: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        """Return the three numbers by name."""
        return {"estimate": self.estimate, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        """Return per cents."""
        return f"{100 * self.estimate:.1f} ({100 * self.low:.1f} to {100 * self.high:.1f})"


@dataclass(frozen=True, eq=False)
class Moments:
    """Estimates with their standard errors, one entry a metric."""

    mean: Floats
    error: Floats

    def shares(self) -> list[MetricEstimate]:
        """Return intervals within 0 and 1: symmetric in log odds."""
        mean = np.clip(self.mean, 0.0, 1.0)
        inside = np.clip(mean, _EDGE, 1 - _EDGE)
        odds = np.log(inside) - np.log1p(-inside)
        reach = Z_90 * self.error / (inside * (1 - inside))
        low, high = (1 / (1 + np.exp(-np.clip(odds + sign * reach, -30, 30))) for sign in (-1, 1))
        low, high = np.minimum(low, mean), np.maximum(high, mean)
        ends = zip(mean.tolist(), low.tolist(), high.tolist(), strict=True)
        return [MetricEstimate(*one) for one in ends]

    def differences(self) -> list[MetricEstimate]:
        """Return symmetric intervals."""
        reach = Z_90 * self.error
        ends = zip(self.mean, self.mean - reach, self.mean + reach, strict=True)
        return [MetricEstimate(*(float(number) for number in one)) for one in ends]


def estimate_moments(sums: ClassSums, metrics: Callable[[Tensor], Tensor]) -> Moments:
    """Estimate metrics that follow from the numbers of classes.

    Args:
        sums: The numbers of classes.
        metrics: From ``(..., C, K)`` to ``(..., metrics)``.
    """
    draws = metrics(torch.from_numpy(sums.draws)).numpy()
    jacobian = jacobian_of(metrics, sums)
    spread = np.einsum("mck,ckl,mcl->m", jacobian, sums.spread, jacobian, optimize=True)
    spread += (np.einsum("mck,fck->mf", jacobian, sums.misfit) ** 2).sum(axis=1)
    sampling = np.einsum("mck,ckl,mcl->m", jacobian, sums.sampling, jacobian, optimize=True)
    correction = np.einsum("mck,ck->m", jacobian, sums.correction)
    return combine(draws.mean(axis=0), draws.var(axis=0), spread, correction, sampling)


def jacobian_of(metrics: Callable[[Tensor], Tensor], sums: ClassSums) -> Floats:
    """Derivatives of metrics by the numbers of classes ``(metrics, C, K)``."""
    middle = torch.from_numpy(sums.draws.mean(axis=0))
    found = torch.autograd.functional.jacobian(metrics, middle)  # type: ignore[no-untyped-call]
    jacobian: Floats = found.numpy()
    return jacobian


def estimate_by_class(sums: ClassSums, number: int) -> Moments:
    """Estimate one number of every class."""
    draws = sums.draws[:, :, number]
    spread, sampling = (every[:, number, number] for every in (sums.spread, sums.sampling))
    correction = sums.correction[:, number]
    return combine(draws.mean(axis=0), draws.var(axis=0), spread, correction, sampling)


def combine(
    expected: Floats, calibration: Floats, spread: Floats, correction: Floats, sampling: Floats
) -> Moments:
    r"""Weigh what the model expects against what answers correct.

    .. math:: \hat\theta = \theta_0 + \lambda \Delta, \qquad \lambda = \frac{V}{V + S}

    The corrected value is unbiased with variance S, whatever the model says. The model is off by V,
    as it says itself, or by as much as the answers show, if that is more: a wrong model loses its
    weight.

    Args:
        expected: What the model expects.
        calibration: Variance of that, as far as its calibration is uncertain.
        spread: Variance V of the truth around it.
        correction: Difference of the unbiased estimate from it; 0 without answers.
        sampling: Variance S of the correction; 0 without answers.
    """
    spread = np.maximum(spread, correction**2 - sampling)
    asked = sampling > 0
    share = np.divide(spread, spread + sampling, out=np.zeros_like(spread), where=asked)
    mean: Floats = expected + share * correction
    left = np.where(asked, (1 - share) * spread, spread) + calibration
    return Moments(mean, np.sqrt(left))
