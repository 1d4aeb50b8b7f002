"""Corrections exactly at their limits, where one sign of the paper decides."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from hilltop.losses import (
    AdaptiveSelfPacedCorrection,
    BoundedSelfPacedCorrection,
    MultiLabelLoss,
    PairBatch,
    SelfPacedCorrection,
    bce,
    scar_likelihood,
    splc,
    splc_bounded,
)
from hilltop.losses.memory import highest

LOG2 = math.log(2.0)
JUST_ABOVE = 1e-3


@pytest.mark.parametrize("preset", [splc, splc_bounded])
def test_at_tau_itself_an_entry_stays_a_negative(
    engine: str, preset: Callable[..., MultiLabelLoss]
) -> None:
    """I(p <= tau): at tau = 1/2 the logit 0 is not above it."""
    loss = preset("bce", tau=0.5, reduction="none", safe_start=False)
    loss.set_epoch(1)
    logits = torch.tensor([[0.0, JUST_ABOVE, 2.0, 2.0]])
    targets = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    assert loss.pseudo_labels(logits, targets).tolist() == [[False, True, False, False]]
    leaf = logits.clone().requires_grad_()
    entries = loss(leaf, targets)
    entries.sum().backward()
    assert leaf.grad is not None
    assert entries[0, 0].item() == pytest.approx(LOG2)
    assert leaf.grad[0, 0].item() == pytest.approx(0.5)  # pushed down, as a negative
    assert leaf.grad[0, 1].item() == pytest.approx(-0.5, rel=1e-3)  # pushed up, as a label


@pytest.mark.parametrize("kind", [SelfPacedCorrection, BoundedSelfPacedCorrection])
@pytest.mark.parametrize(("epoch", "corrects"), [(1, False), (2, True), (3, True)])
def test_the_first_epoch_that_corrects_is_the_one_that_was_named(
    engine: str, kind: type, epoch: int, corrects: bool
) -> None:
    loss = bce(reduction="none").with_correction(kind(start_epoch=2))
    loss.set_epoch(epoch)
    logits, targets = torch.tensor([[3.0, 3.0]]), torch.tensor([[0.0, 1.0]])
    assert bool(loss.pseudo_labels(logits, targets)[0, 0]) == corrects
    positive, negative = (bce()(logits[:, :1], torch.tensor([[label]])) for label in (1.0, 0.0))
    torch.testing.assert_close(loss(logits, targets)[0, 0], positive if corrects else negative)


def test_as_many_as_are_allowed_are_all_kept() -> None:
    scores = torch.tensor([3.0, 2.0])
    assert highest(scores, torch.tensor([True, True]), torch.tensor(2)).all()
    assert highest(scores, torch.tensor([True, True]), torch.tensor(1)).tolist() == [True, False]


def test_of_equal_scores_at_the_limit_none_is_kept() -> None:
    scores, everything = torch.tensor([3.0, 2.0, 2.0]), torch.ones(3, dtype=torch.bool)
    assert highest(scores, everything, torch.tensor(2)).tolist() == [True, False, False]


class TestAdaptiveThresholds:
    """Histograms set by hand: four labels, and unlabelled pairs in the bins 100 and 90."""

    @staticmethod
    def correction(missing: float) -> AdaptiveSelfPacedCorrection:
        correct = AdaptiveSelfPacedCorrection(share=0.25)
        correct._start(1)
        correct.scores[0, 0, 120] = 4.0
        correct.scores[1, 0, 100] = correct.scores[1, 0, 90] = 1.0
        correct.missing.fill_(missing)
        return correct.eval()

    def test_a_budget_that_is_just_met_is_met(self) -> None:
        # 0.25 * 1 * 4 labels: the pair in bin 100 fits, so that the threshold lies above bin 90.
        assert self.correction(1.0).thresholds().item() == 10 - 37 * 20 / 128

    @pytest.mark.parametrize(("epoch", "corrects"), [(2, False), (3, True)])
    def test_a_score_at_the_threshold_counts_from_the_first_epoch_on(
        self, epoch: int, corrects: bool
    ) -> None:
        correct = self.correction(1.0)
        threshold = correct.thresholds().item()
        logits = torch.tensor([[threshold], [threshold - JUST_ABOVE]])
        batch = PairBatch(logits, torch.zeros(2, 1), epoch=torch.tensor(epoch))
        _, pseudo = correct(batch, logits)
        assert pseudo.tolist() == [[float(corrects)], [0.0]]

    def test_where_nothing_is_missing_nothing_is_added(self) -> None:
        assert self.correction(0.0).thresholds().item() == math.inf

    def test_an_estimate_of_nothing_missing_is_never_taken_back(self) -> None:
        correct = self.correction(0.0)
        correct.scores[1, 0, 125] = 5.0  # by the scores of today, some are missing
        correct._estimate(torch.tensor(5))
        assert correct.missing.item() == 0.0


def test_a_label_that_is_as_probable_as_not_is_no_pseudo_label() -> None:
    loss = scar_likelihood(label_frequency=0.5)
    logits, targets = torch.tensor([[LOG2, LOG2 + JUST_ABOVE]]), torch.zeros(1, 2)
    assert loss.posterior(logits, targets)[0, 0].item() == 0.5
    assert loss.pseudo_labels(logits, targets).tolist() == [[False, True]]
