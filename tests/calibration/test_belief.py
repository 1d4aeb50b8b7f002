"""How labels were lost, found by scores: nothing, independently, by count, and by class."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from hilltop.calibration.belief import believe
from hilltop.calibration.profile import LOG_KEEP, profile, shrink


def drawn(rows: int = 3000, classes: int = 8, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Clear scores and true labels."""
    generator = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(rows, classes, generator=generator) - 2
    return logits, (torch.rand(rows, classes, generator=generator) < torch.sigmoid(logits)).float()


def kept(true: Tensor, keep: float | Tensor, *, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return true * (torch.rand(true.shape, generator=generator) < keep)


def test_complete_labels_show_no_sign_of_missing_ones() -> None:
    logits, true = drawn()
    belief = believe(logits, true)
    assert belief.kind == "nothing"
    assert belief.cautious is None
    assert torch.equal(belief.absent_probability(logits, true), torch.ones_like(true))


@pytest.mark.parametrize("keep", [0.3, 0.6])
def test_labels_that_were_lost_independently_are_found_with_their_rate(keep: float) -> None:
    logits, true = drawn()
    belief = believe(logits, kept(true, keep))
    assert belief.kind == "independent"
    assert np.median(belief.keep) == pytest.approx(keep, abs=0.12)


def test_scores_may_be_stretched_and_shifted() -> None:
    logits, true = drawn()
    belief = believe(0.4 * logits + torch.linspace(-1, 1, 8), kept(true, 0.4))
    assert np.median(belief.keep) == pytest.approx(0.4, abs=0.12)


def test_missing_labels_weigh_less_than_true_negatives_and_confirmed_ones_in_full() -> None:
    logits, true = drawn()
    labels = kept(true, 0.5)
    belief = believe(logits, labels)
    weight = belief.absent_probability(logits, labels)
    missing, absent = (true == 1) & (labels == 0), true == 0
    assert weight[missing].mean() < 0.75 < weight[absent].mean()
    assert weight[labels == 1].eq(1).all()
    observed = absent & (torch.rand(true.shape) < 0.5)
    confirmed = belief.absent_probability(logits, labels, observed=observed)
    assert confirmed[observed].eq(1).all()


def test_a_rule_that_keeps_one_label_is_told_from_things_that_have_one() -> None:
    logits, true = drawn(classes=6)
    generator = torch.Generator().manual_seed(2)
    some = true.sum(dim=1) > 0
    logits, true = logits[some], true[some]
    one = torch.zeros_like(true)
    one.scatter_(1, torch.multinomial(true, 1, generator=generator), 1.0)
    belief = believe(logits, one)
    assert belief.kind == "count"
    assert "r = 1" in belief.sentence
    single = torch.nn.functional.one_hot(torch.randint(6, (2000,), generator=generator), 6).float()
    clear = 8 * single - 4 + torch.randn(2000, 6, generator=generator)
    assert believe(clear, single).kind == "nothing"


def test_empty_rows_are_evidence_against_a_count() -> None:
    logits, true = drawn(classes=6)
    assert believe(logits, kept(true, 0.2)).kind == "independent"


def test_unknown_targets_take_no_part() -> None:
    logits, true = drawn()
    labels = kept(true, 0.5)
    hidden = torch.rand(labels.shape, generator=torch.Generator().manual_seed(3)) < 0.3
    unknown = labels.masked_fill(hidden, torch.nan)
    left_out = believe(logits, unknown)
    assert np.median(left_out.keep) == pytest.approx(0.5, abs=0.12)
    assert left_out.absent_probability(logits, unknown)[hidden].eq(1).all()


def test_the_cost_at_each_rate_is_the_likelihood_of_the_labels() -> None:
    logits, true = drawn(400, 2)
    labels = kept(true, 0.5)
    found = profile(logits, labels)
    for number in (0, 4, 12):
        keep = float(np.exp(LOG_KEEP[number]))
        moved = found.slopes[number] * logits.double() + torch.from_numpy(found.shifts[number])
        probs = keep * torch.sigmoid(moved)
        cost = -(labels * probs.log() + (1 - labels) * torch.log1p(-probs)).sum(dim=0).numpy()
        shift = found.shifts[number] - found.shifts[number].mean()
        assert found.costs[number] == pytest.approx(cost + shift**2 * 2, abs=0.05 * len(cost) + 2)
    assert found.costs.sum(axis=1).argmin() in (4, 5)


def test_classes_are_drawn_together_unless_they_clearly_differ() -> None:
    flat = np.zeros((len(LOG_KEEP), 3))
    clear = np.stack([40 * (LOG_KEEP - np.log(0.4)) ** 2] * 9, axis=1)
    rates = shrink(np.concatenate([clear, flat], axis=1))
    assert np.exp(rates.mean[9:]) == pytest.approx(np.exp(rates.mean[:9]).mean(), abs=0.06)
    apart = np.stack(
        [400 * (LOG_KEEP - np.log(keep)) ** 2 for keep in [0.2] * 6 + [0.9] * 6], axis=1
    )
    rates = shrink(apart)
    assert rates.spread > 0.15
    assert np.exp(rates.mean[0]) < 0.4 < 0.7 < np.exp(rates.mean[-1])
