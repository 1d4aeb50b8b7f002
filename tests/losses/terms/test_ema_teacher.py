"""Corrections that ask another model which pairs are labels."""

from __future__ import annotations

import pytest
import torch

from hilltop.errors import ArgumentError
from hilltop.losses import build
from hilltop.losses.compose import with_ema_teacher
from tests.losses.conftest import batch, label_stats


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", ["splc", "splc_bounded", "splc_released", "ll_ct", "ll_r"])
def test_pairs_are_selected_by_the_judge_and_cost_what_the_model_says(name: str) -> None:
    logits, targets = batch(40, 7)
    judge = logits.flip(0) + 1
    own, (loss, correction) = (
        build(name, reduction="none"),
        with_ema_teacher(build(name, reduction="none")),
    )
    for one in (own, loss):
        one.prepare(label_stats(7))
        one.set_epoch(3)
    torch.testing.assert_close(loss(logits, targets), own(logits, targets))
    correction.teacher_logits = judge
    selected = correction.selected(loss.batch(logits, targets, None, None), learning=False)
    assert selected.any()
    assert torch.equal(loss.pseudo_labels(logits, targets), own.pseudo_labels(judge, targets))
    plain = own.with_correction(None)  # type: ignore[arg-type]
    as_negatives = plain(logits, targets)
    actual = loss(logits, targets)
    assert torch.equal(actual[~selected], as_negatives[~selected])
    if name == "ll_r":
        assert (actual[selected] == 0).all()
    else:
        term = own.pseudo_positive or own.positive
        torch.testing.assert_close(actual[selected], term(logits)[selected])


@pytest.mark.parametrize("name", ["bce", "hill", "auto", "role", "count_likelihood"])
def test_a_loss_that_selects_nothing_has_nothing_to_ask(name: str) -> None:
    with pytest.raises(ArgumentError, match="needs a loss that selects pairs"):
        with_ema_teacher(build(name))
