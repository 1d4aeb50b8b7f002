"""Heads that several processes train: their parts add up to what one process finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from hilltop.errors import DataError
from hilltop.inputs import Ranks
from hilltop.losses import LOSSES, build
from hilltop.training import folds
from hilltop.training.folds import (
    CrossValidation,
    HeadShards,
    cross_validate,
    shared_out_of_fold_logits,
)
from hilltop.training.learner import head_loss
from hilltop.training.recipe import HEADS

OPTIONS = {"folds": 3, "repeats": 2, "seed": 5}


@pytest.fixture(scope="module")
def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(240, 6, generator=generator)
    truth = features @ torch.randn(6, 4, generator=generator)
    return features, (truth > 1).float()


def test_parts_of_the_heads_add_up_to_all(data: tuple[Tensor, Tensor]) -> None:
    loss = head_loss("bce", reduction="sum")
    whole = cross_validate(*data, loss, **OPTIONS).logits
    parts = [
        cross_validate(*data, loss, heads=one, **OPTIONS).logits for one in ([0, 1], [2, 3, 4, 5])
    ]
    torch.testing.assert_close(parts[0] + parts[1], whole, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(parts[0], whole, atol=0.1)


def test_what_a_process_finished_is_not_done_again(
    data: tuple[Tensor, Tensor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, said = head_loss("bce", reduction="sum"), []
    monkeypatch.setattr(Ranks, "wait", lambda self: None)
    whole = cross_validate(*data, loss, **OPTIONS).logits

    def shared(number: int, **changed: object) -> Tensor:
        shards = HeadShards(tmp_path, Ranks(number, 2))
        return shared_out_of_fold_logits(
            *data, loss, shards=shards, observed=None, say=said.append, **{**OPTIONS, **changed}
        )

    with pytest.raises(
        DataError, match="heads of another process"
    ):  # the other process is not there, and nobody waited
        shared(0)
    shared(1)
    assert not said
    torch.testing.assert_close(shared(0), whole, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(shared(0).numpy(), shared(1).numpy())
    assert said == ["the heads of this process were trained before"] * 3
    with pytest.raises(DataError, match="heads of another process"):  # another seed, other heads
        shared(0, seed=6)


@pytest.mark.parametrize("name", ["ll_r", "splc_adaptive"])
def test_a_loss_that_ties_heads_together_is_not_shared(
    name: str, data: tuple[Tensor, Tensor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def trained(*_: object, heads: object = None, **__: object) -> CrossValidation:
        asked.append(heads)
        return CrossValidation(torch.zeros(1), HEADS)

    assert name in LOSSES
    monkeypatch.setattr(folds, "cross_validate", trained)
    shards = HeadShards(tmp_path, Ranks(0, 2))
    shared_out_of_fold_logits(
        *data, build(name, reduction="sum"), shards=shards, observed=None, say=print, **OPTIONS
    )
    assert asked == [None]
