"""Intervals of weighted counts against the exact ones, from both sides."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from hilltop.calibration import weighted_interval


@pytest.mark.parametrize("found", [4, 20, 150])
def test_one_stratum_gives_the_exact_interval_of_a_poisson_count(found: int) -> None:
    low, high = weighted_interval([found], [3.0])
    assert low == pytest.approx(3 * chi2.ppf(0.05, 2 * found) / 2, rel=0.03)
    assert high == pytest.approx(3 * chi2.ppf(0.95, 2 * found + 2) / 2, rel=0.01)


def test_several_strata_are_covered_nine_times_of_ten_and_hardly_more_often() -> None:
    weights, means = np.array([5.0, 10.0, 12.0]), np.array([30.0, 60.0, 20.0])
    drawn = np.random.default_rng(0).poisson(means, size=(1000, 3))
    truth = float(weights @ means)
    ends = [weighted_interval(counts, weights.tolist()) for counts in drawn.tolist()]
    covered = sum(low <= truth <= high for low, high in ends)
    assert 890 <= covered <= 950
