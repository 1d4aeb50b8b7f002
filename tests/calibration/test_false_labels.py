"""Rates of wrong labels are found where there are some, and none is seen where there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from hilltop.calibration.false_labels import find_false_labels

ROWS, CLASSES = 4000, 5


def labels_with(share: float, keep: float, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Scores that know the truth, labels of which a share is wrong, and which ones."""
    generator = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(ROWS, CLASSES, generator=generator) - 5
    true = torch.rand(logits.shape, generator=generator) < torch.sigmoid(logits)
    kept = true & (torch.rand(logits.shape, generator=generator) < keep)
    floor = share / (1 - share) * kept.float().mean(dim=0)
    wrong = ~true & (torch.rand(logits.shape, generator=generator) < floor)
    return logits, (kept | wrong).float(), wrong


@pytest.mark.parametrize("keep", [1.0, 0.5])
@pytest.mark.parametrize("share", [0.05, 0.1])
def test_the_share_of_wrong_labels_is_found(share: float, keep: float) -> None:
    logits, targets, wrong = labels_with(share, keep)
    found = find_false_labels(logits, targets, torch.full((CLASSES,), keep))
    assert found.any_wrong
    actual = (wrong.sum(dim=0) / targets.sum(dim=0)).numpy()
    assert found.rates == pytest.approx(actual, abs=0.04)


@pytest.mark.parametrize("keep", [1.0, 0.5])
def test_where_nothing_is_wrong_nothing_is_said_to_be(keep: float) -> None:
    logits, targets, _ = labels_with(0.0, keep)
    assert not find_false_labels(logits, targets, torch.full((CLASSES,), keep)).any_wrong


def test_wrong_labels_come_first() -> None:
    logits, targets, wrong = labels_with(0.05, 0.5)
    found = find_false_labels(logits, targets, torch.full((CLASSES,), 0.5))
    suspicion = found.wrong_probability(logits)[targets == 1]
    first = suspicion.argsort(descending=True)[: int(wrong.sum()) // 2]
    assert wrong[targets == 1][first].float().mean() > 0.9
    assert float(suspicion.sum()) == pytest.approx(int(wrong.sum()), rel=0.3)


def test_a_class_with_a_weak_head_is_suspected_less_and_the_sum_stays() -> None:
    logits, targets, _ = labels_with(0.05, 1.0)
    weak = torch.randn(ROWS, generator=torch.Generator().manual_seed(3))
    logits[:, 0] = 0.3 * weak - 2  # its labels are right, but scores hardly tell
    found = find_false_labels(logits, targets, torch.ones(CLASSES))
    before = replace(found, level=torch.zeros(CLASSES))
    assert found.level[0] < 0 < found.level[1:].min()
    both = [one.wrong_probability(logits)[targets == 1].sum() for one in (found, before)]
    assert both[0] == pytest.approx(float(both[1]), rel=0.01)


def test_confirmed_absents_say_nothing_of_mistakes() -> None:
    logits, targets, _ = labels_with(0.05, 1.0)
    absent = (targets == 0) & (
        torch.rand(targets.shape, generator=torch.Generator().manual_seed(1)) < 0.5
    )
    keep = torch.ones(CLASSES)
    unknown = targets.masked_fill(absent, torch.nan)
    with_absents = find_false_labels(logits, targets, keep, observed=absent)
    without = find_false_labels(logits, unknown, keep)
    np.testing.assert_allclose(with_absents.rates, without.rates, atol=1e-3)


def test_how_firmly_heads_are_held_back_does_not_change_who_is_suspected() -> None:
    # Such a head knows how frequent a class is, and says too little of everything else.
    generator, base = torch.Generator().manual_seed(0), torch.linspace(-6, -14, 30)
    told = 5 * torch.randn(600, 30, generator=generator)
    true = torch.rand(told.shape, generator=generator) < torch.sigmoid(told + base)
    wrong = torch.rand(told.shape, generator=generator) < 0.05 * true.float().mean(dim=0)
    targets = (true | wrong).float()
    frequency = torch.logit((targets.sum(dim=0) + 0.5) / 601)
    odds = []
    for held in (0.3, 0.6):
        logits = frequency + held * told
        found = find_false_labels(logits, targets, torch.ones(30))
        odds.append(torch.logit(found.wrong_probability(logits), eps=1e-6)[targets == 1])
    assert float((odds[0] - odds[1]).abs().mean()) < 0.12
