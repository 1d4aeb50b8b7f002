"""Auto: what it chooses, and that it then is what it chose."""

from __future__ import annotations

import pytest
import torch

from hilltop.errors import ArgumentError, DataError
from hilltop.losses import KeptByCount, LabelStats, auto, build, choose_loss
from tests.losses.conftest import batch


@pytest.mark.parametrize(
    ("counts", "name"),
    [
        ([0, 50], "kept_by_count, r = 0.9"),
        ([7, 50], "kept_by_count, r = 0.9"),  # images without a label say nothing
        ([0, 85, 14, 1], "kept_by_count, r = 0.8"),
        ([0, 74, 25, 1], "splc_adaptive"),
        ([0, 80, 10, 10], "splc_adaptive"),
        ([0, 30, 30, 20, 10], "splc_adaptive"),
    ],
)
def test_the_choice_follows_the_number_of_labels_an_image(counts: list[int], name: str) -> None:
    loss, sentence = choose_loss(torch.tensor(counts))
    assert type(loss) is type(build(name.partition(",")[0]))
    assert name in sentence


def test_it_is_the_loss_that_it_chose() -> None:
    logits, targets = batch(6, 5)
    targets = (torch.arange(5) == torch.arange(6).unsqueeze(1) % 5).to(targets)
    loss = auto(reduction="sum")
    loss.prepare(LabelStats.of(targets))
    expected = build("kept_by_count", r=0.9, reduction="sum")(logits, targets)
    torch.testing.assert_close(loss(logits, targets), expected)
    assert loss.describe() is not None


def test_about_one_label_an_image_leaves_room_for_labels_that_were_put_back() -> None:
    chosen = choose_loss(torch.tensor([0, 90, 10])).loss
    assert isinstance(chosen, KeptByCount)
    assert chosen.rule.restore_prob == 0.03


@pytest.mark.parametrize(
    ("before", "now", "name"),
    [
        ([0, 100], [0, 95, 5], "kept_by_count, r = 0.9"),
        ([0, 90, 10], [0, 85, 15], "kept_by_count, r = 0.8"),
        ([0, 100], [0, 80, 20], "17% of all labels back (kept_independently, keep = 0.4)"),
        ([0, 90, 10], [0, 60, 40], "kept_independently"),
        ([10, 30, 30, 20, 10], [0, 30, 30, 20, 20], "splc_adaptive"),
    ],
)
def test_reviewed_labels_are_judged_by_what_was_there_before(
    before: list[int], now: list[int], name: str
) -> None:
    choice = choose_loss(torch.tensor(now), before_review=torch.tensor(before))
    assert name in choice.sentence
    if isinstance(choice.loss, KeptByCount):
        assert choice.loss.rule.restore_prob == 0.1


def test_the_epoch_reaches_the_chosen_loss_before_and_after_the_choice() -> None:
    loss = auto()
    loss.set_epoch(4)
    loss.prepare(LabelStats.of(torch.ones(4, 3)))
    assert loss.inner is not None
    assert int(loss.inner.epoch) == 4
    loss.set_epoch(7)
    assert int(loss.inner.epoch) == 7


def test_without_labels_it_says_what_is_missing() -> None:
    with pytest.raises(ArgumentError, match=r"call prepare\(LabelStats.of\(targets\)\)"):
        auto()(*batch())
    with pytest.raises(DataError, match="no label at all"):
        auto().prepare(LabelStats.of(torch.zeros(4, 3)))
