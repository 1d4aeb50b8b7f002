"""A head trained in memory: weights of rows, batches of one size, features of any number."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.losses import bce, gr, init_head_prior, scar_likelihood
from hilltop.losses.row_weights import RowWeighted
from hilltop.models import FeatureHead
from hilltop.training.heads import EarlyStopping, fit_head
from hilltop.training.learner import start_head
from hilltop.training.recipe import HEADS, IMAGES, Recipe


def made_up(rows: int = 150, features: int = 6) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(rows, features, generator=generator)
    return drawn, (drawn[:, :3] + 0.3 * torch.randn(rows, 3, generator=generator) > 0.8).float()


@pytest.mark.parametrize("same_length", [False, True])
def test_a_weighted_scale_is_that_of_repeated_rows(same_length: bool) -> None:
    drawn, _ = made_up(20)
    weight = torch.arange(20) % 4
    heads = [FeatureHead(6, 2, hidden=None, same_length=same_length).double() for _ in range(2)]
    heads[0].fit_scale(drawn, weight=weight.double())
    heads[1].fit_scale(drawn.repeat_interleave(weight, dim=0))
    torch.testing.assert_close(dict(heads[0].named_buffers()), dict(heads[1].named_buffers()))
    assert heads[0].std.ne(1).all()


def test_batches_are_of_one_size_and_go_through_all_rows() -> None:
    assert HEADS.passes(130) == (25, 2)
    assert HEADS.passes(6400) == (1, 50)
    assert HEADS.passes(100_000) == (1, 782)
    assert IMAGES.passes(130) == (1, 2)
    assert [len(rows) for rows in HEADS.epoch_plan(130, 0, 0)] == 50 * [65]
    first, second = IMAGES.epoch_plan(131, 0, 0)
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(131))


def test_plans_differ_by_seed_and_epoch_and_leave_no_rank_without_a_row() -> None:
    plans = [IMAGES.epoch_plan(200, seed, epoch)[0].tolist() for seed in (0, 1) for epoch in (0, 1)]
    assert len({tuple(plan) for plan in plans}) == 4
    assert IMAGES.epoch_plan(200, 1, 1)[0].tolist() == plans[3]
    assert IMAGES.epoch_plan(3, 0, 0, world=4) == []


def test_what_a_scorer_calls_best_is_kept() -> None:
    drawn, labels = made_up()
    verdicts = iter([0.1, 0.9, 0.3, 0.2])
    seen: list[Tensor] = []

    def scorer(head: FeatureHead) -> float:
        seen.append(head(drawn).clone())
        return next(verdicts)

    fitted = fit_head(
        drawn,
        lambda rows: (labels[rows], None),
        bce(reduction="sum"),
        classes=3,
        seed=0,
        recipe=Recipe(epochs=9, learning_rate=1e-3),
        stopping=EarlyStopping(scorer, patience=2),
    )
    assert fitted.scores == (0.1, 0.9, 0.3, 0.2)
    assert len(fitted.losses) == 4
    assert torch.equal(fitted.head(drawn), seen[1])
    assert not torch.equal(seen[1], seen[3])


def test_the_loss_falls_and_what_the_loss_itself_learns_moves() -> None:
    drawn, labels = made_up()
    loss = scar_likelihood(label_frequency=None, reduction="sum")
    before = loss.frequency().detach()
    options = {"classes": 3, "seed": 0, "recipe": Recipe(epochs=4)}
    fitted = fit_head(drawn, lambda rows: (labels[rows], None), loss, **options)
    assert list(fitted.losses) == sorted(fitted.losses, reverse=True)
    assert (loss.frequency().detach() - before).abs() > 1e-3


def test_row_weights_want_entries_and_row_numbers() -> None:
    with pytest.raises(ArgumentError, match="needs reduction 'none', but has 'mean'"):
        RowWeighted(bce(), torch.ones(2))
    loss = RowWeighted(bce(reduction="none"), torch.ones(2))
    with pytest.raises(ArgumentError, match="needs index="):
        loss(torch.zeros(2, 3), torch.zeros(2, 3))


def test_a_loss_that_guesses_labels_starts_at_the_weighted_prior_of_each_class() -> None:
    _, labels = made_up(20)
    labels[::3, 1] = float("nan")
    weight = torch.arange(20) % 4
    heads = [FeatureHead(6, 3, hidden=None) for _ in range(2)]
    loss = gr(reduction="none")
    labels_of = lambda rows: (labels[rows], None)  # noqa: E731
    start_head(heads[0], loss, labels_of, 20, row_weight=weight.double())
    init_head_prior(heads[1], labels.repeat_interleave(weight, dim=0))
    torch.testing.assert_close(heads[0].state_dict(), heads[1].state_dict())
