"""Intervals of counts against the exact ones, from both sides."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, chi2

from hilltop.missing import Interval, proportion_interval, weighted_count_interval


@pytest.mark.parametrize(("found", "total"), [(0, 20), (1, 20), (49, 50), (50, 50), (500, 20_000)])
def test_proportions_have_clopper_and_pearsons_interval(found: int, total: int) -> None:
    low, high = proportion_interval(found, total)
    assert low == pytest.approx(beta.ppf(0.05, found, total - found + 1) if found else 0.0)
    assert high == pytest.approx(beta.ppf(0.95, found + 1, total - found) if found < total else 1)


@pytest.mark.parametrize("found", [4, 20, 150])
def test_one_stratum_gives_the_exact_interval_of_a_poisson_count(found: int) -> None:
    low, high = weighted_count_interval([found], [3.0])
    assert low == pytest.approx(3 * chi2.ppf(0.05, 2 * found) / 2, rel=1e-6)
    assert high == pytest.approx(3 * chi2.ppf(0.95, 2 * found + 2) / 2, rel=1e-6)


def test_several_strata_are_covered_nine_times_of_ten_and_hardly_more_often() -> None:
    weights, means = np.array([5.0, 10.0, 12.0]), np.array([30.0, 60.0, 20.0])
    drawn = np.random.default_rng(0).poisson(means, size=(1000, 3))
    truth = float(weights @ means)
    ends = [weighted_count_interval(counts, weights.tolist()) for counts in drawn.tolist()]
    covered = sum(low <= truth <= high for low, high in ends)
    assert 890 <= covered <= 950


def test_no_finding_bounds_a_total_from_above_only() -> None:
    low, high = weighted_count_interval([0, 0], [10.0, 20.0])
    assert low == 0
    assert 20 < high < 80


def test_shares_stay_between_0_and_1_and_contain_their_value() -> None:
    for value in (0.0, 0.02, 0.5, 0.99, 1.0):
        found = Interval.of_share(value, 0.2)
        assert 0 <= found.low <= found.value == value <= found.high <= 1
    assert str(Interval(0.5, 0.4, 0.6)) == "50.0 (40.0 to 60.0)"
    assert str(Interval(1200, 800, 2000)) == "1,200 (800 to 2,000)"
