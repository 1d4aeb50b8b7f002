"""Metrics from incomplete labels: what is expected of the truth, corrected by answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilltop.calibration.intervals import Z_90
from hilltop.metrics.arrays import Floats
from hilltop.metrics.incomplete.class_sums import SUMS, ClassSums
from hilltop.metrics.incomplete.truth_posterior import expit

MISFITS: Floats = np.geomspace(0.05, 8.0, 25)
"""How far off a model may be beyond what it says itself, in standard errors of answers; before
answers, every order of magnitude is as probable as any other."""
LEAST_MISFIT = 0.2
"""How far off a model is expected to be at the least, in log odds of a metric, however few answers
there are to show it."""
REMAINDER = 0.3
"""Average precision is corrected to first order: what that leaves over, as a share of what it
corrects. A tenth to all of it was seen where the model expects too many labels far below."""
SAME_ANSWERS = 0.9
"""Correlation of the errors of calibration and of correction, which come from the same answers: 0.8
to 0.97 was seen."""
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


@dataclass(frozen=True, eq=False)
class ModelMoments:
    """What the model of the truth expects of metrics, one entry each.

    Attributes:
        middle: At its most probable probabilities: what corrections are added to.
        expected: The mean over its calibration; of log odds where metrics are shares: near 1 all
            that is uncertain makes them smaller, and a mean of shares lies below nearly all draws.
        calibration: Variance of metrics over calibrations.
        spread: Variance of the truth around it.
        alone: Standard error without answers.
        misfit: How far off the model is expected to be at the least; 0 for what is no share.
    """

    middle: Floats
    expected: Floats
    calibration: Floats
    spread: Floats
    alone: Floats
    misfit: Floats

    @classmethod
    def of(
        cls, middle: Floats, draws: Floats, spread: Floats, *, shares: bool = True
    ) -> ModelMoments:
        """Take draws of the calibration ``(draws, metrics)``."""
        variance = draws.var(axis=0)
        if not shares:
            alone = np.sqrt(variance + spread)
            return cls(middle, draws.mean(axis=0), variance, spread, alone, np.zeros_like(middle))
        inside = np.clip(draws, _EDGE, 1 - _EDGE)
        odds = np.log(inside) - np.log1p(-inside)
        # What is the same in all draws, 0 say, stays that.
        expected = np.where(np.ptp(draws, axis=0) > 0, expit(odds.mean(axis=0)), draws[0])
        slope = expected * (1 - expected)  # of a share by its log odds
        alone = np.sqrt(odds.var(axis=0) * slope**2 + spread)
        return cls(middle, expected, variance, spread, alone, LEAST_MISFIT * middle * (1 - middle))


def estimate_moments(
    sums: ClassSums, metrics: Callable[[Tensor], Tensor], *, shares: bool = True
) -> Moments:
    """Estimate metrics that follow from the numbers of classes.

    Args:
        sums: The numbers of classes.
        metrics: From ``(..., C, K)`` to ``(..., metrics)``.
        shares: Whether metrics lie between 0 and 1; differences do not.
    """
    draws = metrics(torch.from_numpy(sums.draws)).numpy()
    jacobian = jacobian_of(metrics, sums)
    spread = np.einsum("mck,ckl,mcl->m", jacobian, sums.spread, jacobian, optimize=True)
    spread += (np.einsum("mck,fck->mf", jacobian, sums.misfit) ** 2).sum(axis=1)
    sampling = np.einsum("mck,sckl,mcl->sm", jacobian, sums.sampling, jacobian, optimize=True)
    correction = np.einsum("mck,ck->m", jacobian, sums.correction)
    linearised = np.einsum("mck,ck->m", jacobian[:, :, ::SUMS], sums.correction[:, ::SUMS])
    middle = metrics(torch.from_numpy(sums.middle)).numpy()
    model = ModelMoments.of(middle, draws, np.maximum(spread, 0.0), shares=shares)
    return combine(model, correction, sampling.max(axis=0), linearised=linearised)


def jacobian_of(metrics: Callable[[Tensor], Tensor], sums: ClassSums) -> Floats:
    """Derivatives of metrics by the numbers of classes ``(metrics, C, K)``."""
    middle = torch.from_numpy(sums.middle)
    found = torch.autograd.functional.jacobian(metrics, middle)  # type: ignore[no-untyped-call]
    jacobian: Floats = found.numpy()
    return jacobian


def estimate_by_class(sums: ClassSums, number: int, *, shares: bool = False) -> Moments:
    """Estimate one number of every class; ``shares`` for average precision."""
    draws = sums.draws[:, :, number]
    spread, correction = sums.spread[:, number, number], sums.correction[:, number]
    sampling = sums.sampling[:, :, number, number].max(axis=0)
    model = ModelMoments.of(sums.middle[:, number], draws, spread, shares=shares)
    return combine(model, correction, sampling, linearised=correction * shares)


def combine(
    model: ModelMoments, correction: Floats, sampling: Floats, *, linearised: Floats
) -> Moments:
    r"""Weigh what the model expects against what answers correct.

    .. math::
        \hat\theta = \theta_0 + \lambda \Delta, \qquad
        \lambda = \frac{V + \tau^2}{V + \tau^2 + S}, \qquad
        P(\tau \mid \Delta) \propto N(\Delta; 0, V + \tau^2 + S) / \tau

    The corrected value is unbiased with variance S, whatever the model says. The truth is V off the
    model, as it says itself, and no model is quite right: by how much more, :math:`\tau`, is known
    from what answers show of it, and from that few models are right within ``LEAST_MISFIT``.
    Estimate and interval are means over it.

    Args:
        model: What the model expects.
        correction: Difference of the unbiased estimate from its most probable value.
        sampling: Variance S of the correction; 0 without answers.
        linearised: What of the correction is right to first order only.
    """
    asked = sampling > 0
    noise = np.where(asked, sampling, 1.0)
    # V and tau^2, for each tau.
    off = model.spread + model.misfit**2 + MISFITS[:, None] ** 2 * noise
    share = off / (off + noise)
    logs = -0.5 * (correction**2 / (off + noise) + np.log(off + noise))
    weight = np.exp(logs - logs.max(axis=0))
    weight /= weight.sum(axis=0)
    # What calibration gets wrong comes from the same answers as what the correction gets wrong.
    both = 2 * SAME_ANSWERS * np.sqrt(model.calibration * noise)
    left = (1 - share) ** 2 * (off + model.calibration) + share**2 * noise
    left += share * (1 - share) * both
    shift = (weight * share).sum(axis=0) * correction
    variance = (weight * (left + (share * correction - shift) ** 2)).sum(axis=0)
    variance += REMAINDER**2 * np.maximum(linearised**2 - noise, 0.0)
    return Moments(
        np.where(asked, model.middle + shift, model.expected),
        np.where(asked, np.sqrt(variance), model.alone),
    )
