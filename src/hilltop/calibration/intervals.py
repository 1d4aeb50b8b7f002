"""Exact and nearly exact 90% intervals for counts from random samples, without scipy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Z_90 = 1.6448536269514722
_TAIL = 0.05


def binomial_interval(found: int, total: int) -> tuple[float, float]:
    """Return the exact 90% interval (Clopper and Pearson's) of a share.

    Args:
        found: How many of the sample.
        total: Size of the sample.

    Example:
        >>> low, high = binomial_interval(3, 50)
        >>> print(f"{low:.3f} to {high:.3f}")
        0.017 to 0.148
    """
    low = 0.0 if found == 0 else _root(lambda p: 1 - _at_most(found - 1, total, p))
    high = 1.0 if found == total else 1 - _root(lambda q: _at_most(found, total, 1 - q))
    return low, high


def weighted_interval(counts: Sequence[int], weights: Sequence[float]) -> tuple[float, float]:
    r"""Return the 90% interval of :math:`\sum_c w_c E[k_c]` for rare counts k (Fay and Feuer's).

    It covers at least as often as it says unless nearly all of a sample is found.

    Args:
        counts: How many were found in each stratum's sample.
        weights: For how many pairs each of them stands.

    Example:
        >>> low, high = weighted_interval([4, 1], [10.0, 20.0])
        >>> print(f"{low:.0f} to {high:.0f}")
        22 to 144
    """
    total = sum(weight * count for weight, count in zip(weights, counts, strict=True))
    spread = sum(weight**2 * count for weight, count in zip(weights, counts, strict=True))
    one_more = max(weights, default=0.0)
    low = 0.0 if not total else _gamma_quantile(total, spread, -Z_90)
    return low, _gamma_quantile(total + one_more, spread + one_more**2, Z_90)


def _gamma_quantile(mean: float, variance: float, z: float) -> float:
    """Quantile of the gamma distribution with this mean and variance (Wilson and Hilferty's)."""
    if not mean:
        return 0.0
    freedom = 2 * mean**2 / variance
    root = 1 - 2 / (9 * freedom) + z * math.sqrt(2 / (9 * freedom))
    return mean * max(0.0, root) ** 3


def _at_most(found: int, total: int, share: float) -> float:
    """Chance of at most ``found`` of ``total``."""
    if share <= 0 or share >= 1:
        return 1.0 if share <= 0 or found >= total else 0.0
    log_odds = math.log(share) - math.log1p(-share)
    term = total * math.log1p(-share)
    terms = []
    for number in range(found + 1):
        terms.append(math.exp(term))
        term += math.log((total - number) / (number + 1)) + log_odds if number < total else 0.0
    return min(1.0, math.fsum(terms))


def _root(tail: Callable[[float], float]) -> float:
    """Where a tail that grows with its argument has the chance of one side."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) < _TAIL else (low, middle)
    return (low + high) / 2
