from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilltop.audit.decisions.answers import Sample
from hilltop.audit.find.estimate import (
    Estimate,
    read_estimates,
    sample_estimate,
    total_of_samples,
    write_estimates,
)
from hilltop.errors import DataError
from hilltop.missing import Interval, MissingCounts


@pytest.mark.parametrize("missing", [10, 100, 900])
def test_the_interval_of_a_reviewed_sample_covers_the_truth(missing: int) -> None:
    pairs, answered = 2000, 100
    drawn = np.random.default_rng(0).hypergeometric(missing, pairs - missing, answered, size=300)
    covered = 0
    for present in drawn.tolist():
        found = sample_estimate("cat", 0, pairs, Sample(present, answered - present, 0))
        assert found is not None
        covered += found.missing.low <= missing <= found.missing.high
    assert covered >= 0.85 * 300


def test_samples_of_several_classes_cover_the_total_and_the_keep_rate() -> None:
    rng = np.random.default_rng(1)
    pairs, missing = np.array([1000, 3000, 5000]), np.array([30, 60, 400])
    labelled = [100, 100, 300]
    covered = kept = 0
    for _ in range(300):
        present = rng.hypergeometric(missing, pairs - missing, 80)
        samples = [Sample(int(found), 80 - int(found), 0) for found in present]
        total = total_of_samples(pairs.tolist(), samples)
        keep = MissingCounts(total, np.zeros((3, 0)), np.array(labelled)).frequency
        covered += total.low <= missing.sum() <= total.high
        kept += keep.low <= 500 / (500 + missing.sum()) <= keep.high
    assert covered >= 0.85 * 300
    assert kept == covered


def test_the_estimate_of_a_sample_has_no_bias() -> None:
    rng = np.random.default_rng(2)
    drawn = rng.hypergeometric(100, 1900, 50, size=2000)
    made = [sample_estimate("cat", 0, 2000, Sample(int(k), 50 - int(k), 0)) for k in drawn]
    mean = np.mean([one.missing.value for one in made if one is not None])
    assert mean == pytest.approx(100, abs=4)


def test_pairs_that_nobody_could_tell_widen_the_interval() -> None:
    clear = sample_estimate("cat", 10, 1000, Sample(5, 45, 0))
    unsure = sample_estimate("cat", 10, 1000, Sample(5, 45, 10))
    assert clear is not None
    assert unsure is not None
    assert unsure.missing.value == clear.missing.value
    assert unsure.missing.low < clear.missing.low
    assert unsure.missing.high > clear.missing.high
    assert sample_estimate("cat", 10, 1000, Sample(0, 0, 3)) is None


def test_a_whole_class_reviewed_leaves_no_doubt() -> None:
    found = sample_estimate("cat", 0, 50, Sample(7, 43, 0))
    assert found is not None
    assert (found.missing.low, found.missing.value, found.missing.high) == (7, 7, 7)


def test_estimates_come_back_from_their_file(tmp_path: Path) -> None:
    made = [
        Estimate('cat, "big"', 3, Interval(1.5, 0.0, 4.0), "model"),
        Estimate("dog", 2, Interval(7.0, 5.0, 9.0), "sample"),
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
