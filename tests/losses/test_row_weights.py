"""A loss with weights for rows is the loss within, row by row."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.losses import LabelStats, Loss, RowWeighted, auto, bce, hill, role, splc
from tests.losses.conftest import batch


def test_a_row_of_weight_two_counts_like_the_same_row_twice() -> None:
    logits, targets = batch()
    rows = torch.arange(len(logits))
    weight = torch.tensor([2.0, *[1.0] * (len(logits) - 1)])
    weighted = RowWeighted(hill(reduction="none"), weight)(logits, targets, index=rows)
    twice = torch.cat([rows, rows[:1]])
    plain = hill(reduction="sum")(logits[twice], targets[twice])
    torch.testing.assert_close(weighted, plain)


def test_it_needs_entries_and_row_numbers() -> None:
    with pytest.raises(ArgumentError, match="needs reduction 'none', but has 'mean'"):
        RowWeighted(bce(), torch.ones(7))
    with pytest.raises(ArgumentError, match="needs index="):
        RowWeighted(bce(reduction="none"), torch.ones(7))(*batch())


def test_epochs_statistics_and_properties_reach_the_loss_within() -> None:
    inner = splc(reduction="none")
    weighted = RowWeighted(inner, torch.ones(7))
    weighted.set_epoch(3)
    assert int(inner.epoch) == int(weighted.epoch) == 3
    logits, targets = batch()
    assert torch.equal(
        weighted.pseudo_labels(logits, targets), inner.pseudo_labels(logits, targets)
    )
    assert RowWeighted(auto(reduction="none"), torch.ones(7)).wants_evidence
    estimates = RowWeighted(role(reduction="none"), torch.ones(4))
    assert estimates.self_labelling
    assert not estimates.independent_rows
    estimates.prepare(LabelStats.of(torch.eye(4)))
    assert "role keeps an estimate" in (estimates.describe() or "")


def test_the_state_of_the_loss_within_is_saved() -> None:
    loss, other = (RowWeighted(role(reduction="none"), torch.ones(4)) for _ in range(2))
    stats = LabelStats.of(torch.eye(4))
    loss.prepare(stats), other.prepare(stats)
    with torch.no_grad():
        loss.inner.moved.normal_()
    other.load_state_dict(loss.state_dict())
    torch.testing.assert_close(other.inner.moved, loss.inner.moved)


def test_weights_for_rows_leave_the_learning_rate_of_estimates_as_it_was() -> None:
    loss = role(reduction="none")
    weighted = RowWeighted(loss, torch.ones(4))
    weighted.prepare(LabelStats.of(torch.eye(4)))
    ((parameters, factor),) = weighted.parameter_groups()
    assert factor == 10.0
    assert parameters[0] is loss.moved
    assert weighted.decision_threshold(torch.tensor([[0.2, 0.9]])) == pytest.approx(0.6)


def test_estimates_learn_the_same_with_row_weights_of_one() -> None:
    def train(loss: Loss, estimates: Loss) -> Tensor:
        logits, targets, rows = torch.zeros(4, 4), torch.eye(4), torch.arange(4)
        loss.prepare(LabelStats.of(targets))
        groups = [{"params": own, "lr": 0.01 * rate} for own, rate in loss.parameter_groups()]
        optimizer = torch.optim.Adam(groups)
        for _ in range(5):
            optimizer.zero_grad()
            loss(logits.requires_grad_(), targets, index=rows).backward()
            optimizer.step()
        return estimates.moved.detach()

    plain, entries = role(reduction="sum"), role(reduction="none")
    expected = train(plain, plain)
    torch.testing.assert_close(train(RowWeighted(entries, torch.ones(4)), entries), expected)
