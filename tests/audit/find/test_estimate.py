from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import beta

from hilltop.audit.decisions.answers import Sample
from hilltop.audit.find.candidates import rank_candidates
from hilltop.audit.find.estimate import (
    Estimate,
    keep_of,
    model_estimates,
    read_estimates,
    sample_estimate,
    total_of_model,
    total_of_samples,
    write_estimates,
)
from hilltop.audit.find.score_blocks import blocks_of
from hilltop.calibration.intervals import binomial_interval, weighted_interval
from hilltop.calibration.keep_rate import Fitted, estimate_keep
from hilltop.calibration.scaling import Calibration, calibrate
from hilltop.errors import DataError
from hilltop.losses.likelihood.choose import summed_independently
from tests.audit.simulated import draw, table_of


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


def test_the_models_interval_covers_where_the_model_is_right() -> None:
    covered = classes = 0
    for seed in range(6):
        chance = torch.Generator().manual_seed(seed)
        logits = 2 * torch.randn(1500, 20, generator=chance) - 4
        true = draw(logits, chance)
        targets = true * (torch.rand(true.shape, generator=chance) < 0.5)
        loss = summed_independently(0.5)
        model = Fitted(loss, calibrate(loss, logits / 2 + 1, targets))
        labels = table_of(targets)
        _, tally = rank_candidates(labels, blocks_of(logits / 2 + 1), model)
        made = model_estimates(labels.classes, targets.sum(dim=0).long().tolist(), tally)
        truth = (true - targets).sum(dim=0).tolist()
        covered += sum(one.low <= t <= one.high for one, t in zip(made, truth, strict=True))
        classes += 20
        total = total_of_model(made, tally)
        assert total.low <= sum(truth) <= total.high
        assert keep_of(total).keep == pytest.approx(0.5, abs=0.05)
    assert 0.85 * classes <= covered <= 0.97 * classes


def test_the_models_interval_reaches_to_the_other_model() -> None:
    labels = table_of(torch.zeros(100, 2))
    model = Fitted(summed_independently(0.5), Calibration(1.0, torch.full((2,), -2.0)))
    _, tally = rank_candidates(labels, blocks_of(torch.zeros(100, 2)), model)
    alone = model_estimates(labels.classes, [0, 0], tally)
    both = model_estimates(
        labels.classes, [0, 0], tally, others=tally.missing * [[0.5, 1], [1, 2.0]]
    )
    assert both[0].low < alone[0].low
    assert both[0].high == alone[0].high
    assert both[1].high > alone[1].high


@pytest.mark.parametrize("keep", [0.3, 0.7])
def test_the_keep_rate_is_found_from_labels_alone(keep: float) -> None:
    chance = torch.Generator().manual_seed(4)
    logits = 3 * torch.randn(4000, 5, generator=chance) - 3
    true = draw(logits, chance)
    targets = true * (torch.rand(true.shape, generator=chance) < keep)
    found, model = estimate_keep(logits / 2, targets)
    assert found.low <= keep <= found.high
    assert found.high - found.low < 0.15
    assert model.calibration.slope == pytest.approx(2, rel=0.15)


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
    with pytest.raises(DataError, match=r"estimates.csv: this file is damaged"):
        read_estimates(path)
    with pytest.raises(DataError, match=r"other.csv: there is no such file"):
        read_estimates(tmp_path / "other.csv")
