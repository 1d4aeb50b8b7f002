"""Rates of wrong labels are found where there are some, and none is seen where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from hilltop.missing import WrongLabelModel
from hilltop.missing.logistic import Floats

ROWS, CLASSES = 4000, 5


def labels_with(share: float, frequency: float, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    """Scores that know the truth, labels of which a share is wrong, and which ones."""
    rng = np.random.default_rng(seed)
    logits = 4 * rng.normal(size=(ROWS, CLASSES)) - 5
    true = rng.random(logits.shape) < expit(logits)
    kept = true & (rng.random(logits.shape) < frequency)
    floor = share / (1 - share) * kept.mean(axis=0)
    wrong = ~true & (rng.random(logits.shape) < floor)
    return logits, (kept | wrong).astype(float), wrong


@pytest.mark.parametrize("frequency", [1.0, 0.5])
@pytest.mark.parametrize("share", [0.05, 0.1])
def test_the_share_of_wrong_labels_is_found(share: float, frequency: float) -> None:
    logits, targets, wrong = labels_with(share, frequency)
    found = WrongLabelModel.fit(logits, targets, np.full(CLASSES, frequency))
    assert found.any_wrong
    assert found.rates == pytest.approx(wrong.sum(axis=0) / targets.sum(axis=0), abs=0.04)


@pytest.mark.parametrize("frequency", [1.0, 0.5])
def test_where_nothing_is_wrong_nothing_is_said_to_be(frequency: float) -> None:
    logits, targets, _ = labels_with(0.0, frequency)
    assert not WrongLabelModel.fit(logits, targets, np.full(CLASSES, frequency)).any_wrong


def test_wrong_labels_come_first() -> None:
    logits, targets, wrong = labels_with(0.05, 0.5)
    found = WrongLabelModel.fit(logits, targets, np.full(CLASSES, 0.5))
    suspicion = found.prob_wrong(logits)[targets == 1]
    first = np.argsort(-suspicion)[: int(wrong.sum()) // 2]
    assert wrong[targets == 1][first].mean() > 0.8
    assert suspicion.sum() == pytest.approx(wrong.sum(), rel=0.3)


def test_verified_absent_entries_say_nothing_of_mistakes() -> None:
    logits, targets, _ = labels_with(0.05, 1.0)
    absent = (targets == 0) & (np.random.default_rng(1).random(targets.shape) < 0.5)
    unknown = np.where(absent, np.nan, targets)
    one = WrongLabelModel.fit(logits, targets, np.ones(CLASSES), verified=absent)
    other = WrongLabelModel.fit(logits, unknown, np.ones(CLASSES))
    assert one.rates == pytest.approx(other.rates, abs=1e-3)


def test_a_class_with_a_weak_head_is_suspected_less_than_its_scores_say() -> None:
    logits, targets, _ = labels_with(0.05, 1.0)
    logits[:, 0] = 0.3 * np.random.default_rng(3).normal(size=ROWS) - 2
    found = WrongLabelModel.fit(logits, targets, np.ones(CLASSES))
    mean = [
        logit(np.clip(found.prob_wrong(logits)[targets[:, at] == 1, at], 1e-9, 1 - 1e-9)).mean()
        for at in range(CLASSES)
    ]
    plain = -(found.slope * logits + found.shift)
    alone = [plain[targets[:, at] == 1, at].mean() for at in range(CLASSES)]
    assert mean[0] - np.mean(mean[1:]) < alone[0] - np.mean(alone[1:])


def test_how_firmly_heads_are_held_back_does_not_change_who_is_suspected() -> None:
    # Such a head knows how frequent a class is, and says too little of everything else.
    rng, base = np.random.default_rng(0), np.linspace(-6, -14, 30)
    told = 5 * rng.normal(size=(600, 30))
    true = rng.random(told.shape) < expit(told + base)
    wrong = rng.random(told.shape) < 0.05 * true.mean(axis=0)
    targets = (true | wrong).astype(float)
    frequency = logit((targets.sum(axis=0) + 0.5) / 601)
    odds = []
    for held in (0.3, 0.6):
        logits = frequency + held * told
        probs = WrongLabelModel.fit(logits, targets, np.ones(30)).prob_wrong(logits)
        odds.append(logit(np.clip(probs, 1e-6, 1 - 1e-6))[targets == 1])
    assert np.abs(odds[0] - odds[1]).mean() < 0.15
