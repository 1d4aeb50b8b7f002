"""Auto: cross-entropy, weighted by evidence and by nothing else."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from hilltop.errors import ArgumentError
from hilltop.losses import LabelStats, auto, bce
from hilltop.losses.base import Evidence
from tests.losses.conftest import batch


def told(weight: torch.Tensor | None, targets: torch.Tensor) -> LabelStats:
    return dataclasses.replace(
        LabelStats.of(targets), evidence=Evidence(weight, "some are missing")
    )


def test_without_evidence_it_is_cross_entropy_whether_prepared_or_not() -> None:
    logits, targets = batch(6, 5)
    loss = auto(reduction="sum")
    expected = bce(reduction="sum")(logits, targets)
    torch.testing.assert_close(loss(logits, targets), expected)
    for stats in (LabelStats.of(targets), told(None, targets)):
        loss.prepare(stats)
        torch.testing.assert_close(loss(logits, targets), expected)
    loss.prepare(LabelStats.of(torch.ones(4, 3)))
    assert loss.describe() == (
        "nothing is known of how labels were lost, so plain cross-entropy is used."
    )


def test_unlabelled_pairs_count_by_their_weight_and_labels_and_confirmed_pairs_in_full() -> None:
    logits = torch.tensor([[1.0, -1.0, 0.5], [0.3, 2.0, -0.2]])
    targets = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    weight = torch.tensor([[0.1, 0.2, 0.7], [0.4, 0.9, 0.3], [0.0, 0.0, 0.0]])
    verified = torch.tensor([[False, False, True], [False, False, False]])
    loss = auto(reduction="none")
    loss.prepare(told(weight, torch.cat([targets, targets[:1]])))
    rows = torch.tensor([1, 0])
    found = loss(logits, targets, verified=verified, index=rows)
    plain = bce(reduction="none")(logits, targets)
    used = torch.tensor([[1.0, 0.9, 1.0], [0.1, 0.2, 1.0]])
    torch.testing.assert_close(found, used * plain)
    assert loss.describe() == "some are missing."


def test_weights_belong_to_rows_so_that_row_numbers_are_needed() -> None:
    logits, targets = batch(6, 5)
    loss = auto()
    loss.prepare(told(torch.ones(6, 5), targets))
    assert not loss.independent_rows
    with pytest.raises(ArgumentError, match="pass index="):
        loss(logits, targets)


def test_a_state_of_the_release_before_is_taken() -> None:
    loss = auto()
    loss.load_state_dict({"epoch": torch.tensor(3), "inner.epoch": torch.tensor(3)})
    assert int(loss.epoch) == 3
