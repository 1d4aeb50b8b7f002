"""How many labels are missing: intervals that are neither too narrow nor too wide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from hilltop.calibration.belief import believe
from hilltop.calibration.keep_posterior import NOTICEABLE, KeepPosterior
from hilltop.calibration.profile import LOG_KEEP, Floats
from tests.audit.simulated import draw

LABELLED = np.full(12, 200)


def certain(log_keep: Floats) -> Floats:
    """Curves that leave no doubt."""
    return 4000 * (LOG_KEEP[:, None] - log_keep) ** 2


def test_classes_are_drawn_together_unless_they_clearly_differ() -> None:
    flat = np.zeros((len(LOG_KEEP), 3))
    clear = np.stack([40 * (LOG_KEEP - np.log(0.4)) ** 2] * 9, axis=1)
    mean = KeepPosterior.of(np.concatenate([clear, flat], axis=1)).mean()
    assert np.exp(mean[9:]) == pytest.approx(np.exp(mean[:9]).mean(), abs=0.06)
    apart = KeepPosterior.of(certain(np.log([0.2] * 6 + [0.9] * 6)))
    assert apart.weight[0].sum() < 0.01
    assert np.exp(apart.mean()[0]) < 0.3 < 0.7 < np.exp(apart.mean()[-1])


def test_where_curves_leave_no_doubt_the_common_error_remains_and_reaches_further_up() -> None:
    at = LOG_KEEP[5]
    found = KeepPosterior.of(certain(np.full(12, at))).missing(LABELLED)
    low, middle, high = found.total / LABELLED.sum()
    assert found.any_missing
    assert middle == pytest.approx(np.expm1(-at), abs=0.12)
    # 0.15 in log keep, 1.645 times; twice as far towards more missing labels.
    assert low == pytest.approx(np.expm1(-at - 1.645 * 0.15), abs=0.12)
    assert high == pytest.approx(np.expm1(-at + 1.645 * 0.3), abs=0.3)


def test_two_models_beside_each_other_reach_from_the_one_to_the_other_and_not_beyond() -> None:
    few, many = LOG_KEEP[3], LOG_KEEP[9]
    one, other = (KeepPosterior.around(np.full(12, at)) for at in (many, few))
    found = replace(one, beside=other).missing(LABELLED)
    low, middle, high = found.total / LABELLED.sum()
    # A tenth of the draws of each, at its end: 1.28 standard deviations of the common error.
    assert low == pytest.approx(np.expm1(-few - 1.28 * 0.15), abs=0.15)
    assert high == pytest.approx(np.expm1(-many + 1.28 * 0.15), abs=0.5)
    assert np.expm1(-few) < middle < np.expm1(-many)
    assert high < one.missing(LABELLED).total[2] / LABELLED.sum()
    assert (found.by_class[0] <= LABELLED * np.expm1(-few)).all()
    assert (found.by_class[2] >= LABELLED * np.expm1(-many)).all()


def test_complete_labels_have_nothing_missing_but_may_have_a_little() -> None:
    found = KeepPosterior.of(certain(np.zeros(12))).missing(LABELLED)
    assert not found.any_missing
    assert found.total[0] == found.total[1] == 0
    assert 0 < found.total[2] < LABELLED.sum()
    assert (found.by_class[:2] == 0).all()


def test_too_little_to_notice_is_not_called_missing() -> None:
    found = KeepPosterior.of(certain(np.full(12, np.log(0.95)))).missing(LABELLED)
    assert not found.any_missing
    assert found.total[2] > NOTICEABLE * LABELLED.sum()


def test_what_little_evidence_many_labels_give_is_no_evidence() -> None:
    """Curves of a form that is a little wrong: the more labels, the surer they seem."""
    found = KeepPosterior.of(np.stack([8 * (LOG_KEEP - np.log(0.5)) ** 2] * 12, axis=1))
    assert found.missing(LABELLED).any_missing
    assert not found.missing(20 * LABELLED).any_missing


def test_flat_curves_say_that_anything_could_be() -> None:
    found = KeepPosterior.of(np.zeros((len(LOG_KEEP), 12))).missing(LABELLED)
    assert not found.any_missing
    assert found.total[0] == 0
    assert found.total[2] > 5 * LABELLED.sum()


def test_the_same_seed_draws_the_same() -> None:
    posterior = KeepPosterior.of(certain(np.full(12, np.log(0.5))))
    first, second = posterior.missing(LABELLED), posterior.missing(LABELLED)
    assert np.array_equal(first.by_class, second.by_class)
    assert not np.array_equal(first.by_class, posterior.missing(LABELLED, seed=1).by_class)


def test_intervals_cover_by_class_and_in_total_and_are_no_wider_than_their_error_allows() -> None:
    covered, totals, width = [], [], []
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        logits = 3 * torch.randn(1500, 10, generator=generator) - 3
        true = draw(logits, generator)
        # Classes and sets differ, as they do for people.
        log_keep = -0.8 + 0.25 * torch.randn(1, generator=generator)
        keep = (log_keep + 0.15 * torch.randn(10, generator=generator)).exp().clamp(max=1)
        targets = true * (torch.rand(true.shape, generator=generator) < keep)
        found = believe(logits / 2 + 1, targets).missing
        truth = (true - targets).sum(dim=0).numpy()
        covered += ((found.by_class[0] <= truth) & (truth <= found.by_class[2])).tolist()
        totals.append(found.total[0] <= truth.sum() <= found.total[2])
        width.append((found.total[2] - found.total[0]) / float(targets.sum()))
    assert np.mean(covered) >= 0.85
    assert np.mean(totals) >= 0.85
    assert np.median(width) < 3
