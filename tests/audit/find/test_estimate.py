from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta

from hilltop.audit.decisions.answers import Sample
from hilltop.audit.find.estimate import (
    Estimate,
    Tally,
    keep_of,
    model_estimates,
    read_estimates,
    sample_estimate,
    total_of_samples,
    write_estimates,
)
from hilltop.calibration.intervals import binomial_interval, weighted_interval
from hilltop.calibration.keep_posterior import MissingCounts
from hilltop.errors import DataError


@pytest.mark.parametrize(("found", "total"), [(0, 20), (1, 20), (3, 50), (49, 50), (50, 50)])
def test_binomial_interval_is_clopper_and_pearsons(found: int, total: int) -> None:
    low, high = binomial_interval(found, total)
    assert low == pytest.approx(beta.ppf(0.05, found, total - found + 1) if found else 0.0)
    assert high == pytest.approx(beta.ppf(0.95, found + 1, total - found) if found < total else 1)


def test_binomial_interval_holds_for_large_samples() -> None:
    low, high = binomial_interval(500, 20_000)
    assert low == pytest.approx(beta.ppf(0.05, 500, 19_501), rel=1e-6)
    assert high == pytest.approx(beta.ppf(0.95, 501, 19_500), rel=1e-6)


@pytest.mark.parametrize("missing", [10, 100, 900])
def test_the_interval_of_a_reviewed_sample_covers_the_truth(missing: int) -> None:
    pairs, answered = 2000, 100
    drawn = np.random.default_rng(0).hypergeometric(missing, pairs - missing, answered, size=300)
    covered = 0
    for present in drawn.tolist():
        found = sample_estimate("cat", 0, pairs, Sample(present, answered - present, 0))
        assert found is not None
        covered += found.low <= missing <= found.high
    assert covered >= 0.85 * 300


def test_samples_of_several_classes_cover_the_total_and_the_keep_rate() -> None:
    rng = np.random.default_rng(1)
    pairs, missing = np.array([1000, 3000, 5000]), np.array([30, 60, 400])
    labelled = [100, 100, 300]
    covered = kept = 0
    for _ in range(300):
        present = rng.hypergeometric(missing, pairs - missing, 80)
        samples = [Sample(int(found), 80 - int(found), 0) for found in present]
        total, keep = total_of_samples(labelled, pairs.tolist(), samples)
        covered += total.low <= missing.sum() <= total.high
        kept += keep.low <= 500 / (500 + missing.sum()) <= keep.high
    assert covered >= 0.85 * 300
    assert kept == covered


def test_the_estimate_of_a_sample_has_no_bias() -> None:
    rng = np.random.default_rng(2)
    drawn = rng.hypergeometric(100, 1900, 50, size=2000)
    made = [sample_estimate("cat", 0, 2000, Sample(int(k), 50 - int(k), 0)) for k in drawn]
    mean = np.mean([one.missing for one in made if one is not None])
    assert mean == pytest.approx(100, abs=4)


def test_pairs_that_nobody_could_tell_widen_the_interval() -> None:
    clear = sample_estimate("cat", 10, 1000, Sample(5, 45, 0))
    unsure = sample_estimate("cat", 10, 1000, Sample(5, 45, 10))
    assert clear is not None
    assert unsure is not None
    assert unsure.missing == clear.missing
    assert unsure.low < clear.low
    assert unsure.high > clear.high
    assert sample_estimate("cat", 10, 1000, Sample(0, 0, 3)) is None


def test_a_whole_class_reviewed_leaves_no_doubt() -> None:
    found = sample_estimate("cat", 0, 50, Sample(7, 43, 0))
    assert found is not None
    assert (found.low, found.missing, found.high) == (7, 7, 7)


def test_no_finding_bounds_the_total_from_above_only() -> None:
    low, high = weighted_interval([0, 0], [10.0, 20.0])
    assert low == 0
    assert 20 < high < 80


def test_what_was_put_back_is_no_longer_missing_and_no_more_than_pairs_can_be() -> None:
    tally = Tally(2)
    tally.add(np.zeros((10, 2), np.float32), np.ones((10, 2), bool))
    by_class = np.array([[1.0, 2.0], [4.0, 6.0], [9.0, 30.0]])
    missing = MissingCounts(by_class, np.array([5.0, 10.0, 35.0]), True)
    made, total = model_estimates(
        ["cat", "dog"], np.array([5, 7]), missing, tally, restored=np.array([3, 0])
    )
    assert made == [
        Estimate("cat", 5, 1.0, 0.0, 6.0, "model"),
        Estimate("dog", 7, 6, 2, 10, "model"),
    ]
    assert total == Estimate("", 12, 7.0, 2.0, 20.0, "model")
    assert keep_of(total).keep == pytest.approx(12 / 19)


def test_pairs_that_nobody_looked_for_are_added_up_apart() -> None:
    tally = Tally(2)
    beyond = np.array([[True, False], [False, False]])
    tally.add(np.full((2, 2), 0.25, np.float32), np.ones((2, 2), bool), beyond)
    assert tally.beyond.tolist() == [0.25, 0.0]
    assert tally.pairs.tolist() == [1, 2]


def test_estimates_come_back_from_their_file(tmp_path: Path) -> None:
    made = [
        Estimate('cat, "big"', 3, 1.5, 0.0, 4.0, "model"),
        Estimate("dog", 2, 7.0, 5.0, 9.0, "sample"),
    ]
    write_estimates(made, tmp_path / "estimates.csv")
    assert read_estimates(tmp_path / "estimates.csv") == made


@pytest.mark.parametrize("content", ["class,labelled\ncat,1\n", "a\n1\n"])
def test_a_damaged_file_of_estimates_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "estimates.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=r"estimates.csv.*(this file is damaged|is missing)"):
        read_estimates(path)
    with pytest.raises(DataError, match=r"other.csv: there is no such file"):
        read_estimates(tmp_path / "other.csv")
