"""Interval: the one type for every estimate, and intervals of counts in random samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy import stats
from scipy.special import expit, logit

from hilltop.missing.priors import LEVEL

Z_90 = float(stats.norm.ppf((1 + LEVEL) / 2))
"""Standard errors on each side of a 90% interval."""
_EDGE = 1e-4


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval.

    Attributes:
        value: The estimate.
        low: Lower end.
        high: Upper end.
        level: Probability with which the interval contains the true value.

    Example:
        >>> print(Interval(0.583, 0.55, 0.612))
        58.3 (55.0 to 61.2)
        >>> Interval(22_480, 14_100, 38_020).count()
        '22,480 (14,100 to 38,020)'
    """

    value: float
    low: float
    high: float
    level: float = LEVEL

    @classmethod
    def of_share(cls, value: float, error: float) -> Interval:
        """Return an interval within 0 and 1, symmetric in log odds, from a standard error."""
        value = float(np.clip(value, 0.0, 1.0))
        inside = float(np.clip(value, _EDGE, 1 - _EDGE))
        reach = Z_90 * error / (inside * (1 - inside))
        low, high = expit(logit(inside) - reach), expit(logit(inside) + reach)
        return cls(value, float(min(low, value)), float(max(high, value)))

    @classmethod
    def of_normal(cls, value: float, error: float) -> Interval:
        """Return a symmetric interval from a standard error."""
        return cls(float(value), float(value - Z_90 * error), float(value + Z_90 * error))

    def __str__(self) -> str:
        """Return percentages with one decimal, or whole numbers where it is no share."""
        if max(abs(self.value), abs(self.high)) > 1:
            return self.count()
        return f"{100 * self.value:.1f} ({100 * self.low:.1f} to {100 * self.high:.1f})"

    def share(self) -> str:
        """Return whole percentages, such as ``70% (60% to 75%)``."""
        return f"{self.value:.0%} ({self.low:.0%} to {self.high:.0%})"

    def count(self) -> str:
        """Return whole numbers, such as ``1,200 (800 to 2,100)``."""
        return f"{self.value:,.0f} ({self.low:,.0f} to {self.high:,.0f})"

    def as_dict(self) -> dict[str, float]:
        """Return the numbers by name, as ``--json`` prints them."""
        return asdict(self)


def proportion_interval(found: int, total: int) -> tuple[float, float]:
    """Return the exact 90% interval (Clopper-Pearson) of a proportion.

    Example:
        >>> low, high = proportion_interval(3, 50)
        >>> print(f"{low:.3f} to {high:.3f}")
        0.017 to 0.148
    """
    if not total:
        return 0.0, 1.0
    ends = stats.binomtest(found, total).proportion_ci(LEVEL)
    return float(ends.low), float(ends.high)


def weighted_count_interval(counts: Sequence[int], weights: Sequence[float]) -> tuple[float, float]:
    r"""Return the 90% interval of :math:`\sum_c w_c E[k_c]` for Poisson counts k (Fay and Feuer).

    Args:
        counts: How many were found in the sample of each stratum.
        weights: For how many pairs each of them stands.

    Example:
        >>> low, high = weighted_count_interval([4, 1], [10.0, 20.0])
        >>> print(f"{low:.0f} to {high:.0f}")
        22 to 144
    """
    k, w = np.asarray(counts, float), np.asarray(weights, float)
    total, variance, largest = w @ k, w**2 @ k, max(weights, default=0.0)
    tail = (1 - LEVEL) / 2

    def quantile(probability: float, mean: float, spread: float) -> float:
        return float(stats.gamma.ppf(probability, mean**2 / spread, scale=spread / mean))

    low = quantile(tail, total, variance) if total else 0.0
    high = quantile(1 - tail, total + largest, variance + largest**2) if largest else 0.0
    return low, high
