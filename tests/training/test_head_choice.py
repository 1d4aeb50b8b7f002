"""How a head learns: firmly held back where rows are few and features many, and so on."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor

from hilltop.integrations import HilltopClassifier
from hilltop.models import FeatureHead, Scaling
from hilltop.training import recipe as head_choice
from hilltop.training.recipe import (
    HEADS,
    LOW_PENALTIES,
    PENALTIES,
    USUAL_PENALTY,
    HeadChoice,
    HeadSearch,
    Recipe,
    label_precisions,
)


def choose(inputs: Tensor, targets: Tensor, *, learned: int = 1, **recipe: float) -> Recipe:
    """What is chosen for features whose rows come ``learned`` times."""
    inputs, targets = inputs.repeat(learned, 1), targets.repeat(learned, 1)
    head = FeatureHead(inputs.shape[1], 1, hidden=None).to(inputs.dtype)
    return dataclasses.replace(HEADS, **recipe).for_head(
        head, inputs, lambda rows: (targets[rows], None), seed=0
    )


def penalty(inputs: Tensor, targets: Tensor, *, learned: int = 1) -> float:
    """The penalty as if for 1280 features."""
    decay = choose(inputs, targets, learned=learned).weight_decay
    assert decay is not None
    return decay * (1280 / inputs.shape[1]) ** 0.5


def drawn(rows: int, features: int, *, noise: float) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(rows, features, generator=generator)
    weights = torch.randn(features, 4, generator=generator) / features**0.5
    targets = inputs @ weights + noise * torch.randn(rows, 4, generator=generator) > 0.8
    return inputs, targets.float()


def test_noisy_labels_of_few_rows_are_held_back_more_than_clear_ones_of_many() -> None:
    noisy, clear = drawn(150, 200, noise=2.0), drawn(2000, 20, noise=0.1)
    assert penalty(*noisy) >= 10 * penalty(*clear)


def test_the_more_rows_there_are_beyond_those_it_was_chosen_by_the_less_is_held_back() -> None:
    few, many = (head_choice.penalty_for(10.0, chosen_by=300, rows=rows) for rows in (300, 1200))
    assert few > 2 * many > 0.25 * few


def test_with_too_few_rows_or_labels_the_usual_penalty_is_taken() -> None:
    assert penalty(*drawn(50, 10, noise=1.0)) == pytest.approx(USUAL_PENALTY)
    assert penalty(torch.randn(200, 10), torch.zeros(200, 3)) == pytest.approx(USUAL_PENALTY)
    assert USUAL_PENALTY in PENALTIES


def test_unknown_targets_take_no_part() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(400, 10, generator=generator)
    targets = (inputs[:, :3] > 1).float()
    hidden = torch.rand(targets.shape, generator=generator) < 0.3
    unknown = targets.masked_fill(hidden, torch.nan)
    wrong = torch.where(hidden, 1 - targets, targets)
    assert penalty(inputs, unknown) <= penalty(inputs, wrong)


def test_one_label_in_each_fold_says_nothing_of_the_penalty() -> None:
    targets = torch.zeros(300, 4)
    targets[:3] = 1  # rows are dealt into three folds in turn
    inputs = torch.randn(300, 10, generator=torch.Generator().manual_seed(0))
    search = HeadSearch(lambda _: inputs, targets, rows=900, width=0.1)
    usual = Scaling(same_length=False)
    assert search.choose(usual, zeros=False, raise_rate=True) == HeadChoice(
        USUAL_PENALTY, 1.0, usual
    )


def test_a_label_does_not_count_at_its_own_rank() -> None:
    logits = torch.tensor([[4.0, 4.0], [3.0, 3.0], [2.0, 2.0], [1.0, 1.0]])
    targets = torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    # Alone at the top it is luck; of three, the second has 1 of 3 at its rank, the last 2 of 4.
    found = label_precisions(logits, targets)
    assert found.sum(dim=0).tolist() == pytest.approx([0.0, 1 / 3 + 2 / 4])
    assert found[:, 1].tolist() == pytest.approx([0.0, 0.0, 1 / 3, 2 / 4])


def test_features_that_need_large_weights_are_held_back_less_and_learned_from_faster() -> None:
    inputs, targets = drawn(900, 20, noise=0.3)
    noise = torch.randn(900, 20, generator=torch.Generator().manual_seed(1))
    small = torch.cat([inputs / 30, noise], dim=1)
    usual = Scaling(same_length=False)
    search = HeadSearch(lambda _: small, targets, rows=600, width=0.2)
    made = search.choose(usual, zeros=False, raise_rate=True)
    assert made.penalty < min(PENALTIES)
    assert made.speed == LOW_PENALTIES[made.penalty]
    search = HeadSearch(lambda _: small, targets, rows=600, width=0.2)
    assert search.choose(usual, zeros=False, raise_rate=False).speed == 1
    assert choose(inputs, targets, learning_rate=1e-3).learning_rate == 1e-3  # as was asked


def test_rows_are_brought_to_one_length_only_where_that_helps() -> None:
    inputs, targets = drawn(900, 80, noise=0.1)
    longer = inputs * torch.linspace(0.05, 3.0, 900)[torch.randperm(900)].unsqueeze(1)
    assert choose(longer, targets).scaling == Scaling(same_length=True)  # length says nothing
    size = longer.norm(dim=1, keepdim=True)
    by_length = (size > size.quantile(torch.linspace(0.6, 0.9, 4))).float()
    assert choose(longer.abs(), by_length).scaling == Scaling(same_length=False)


def test_zeros_are_scaled_like_other_values_only_where_that_helps() -> None:
    inputs, targets = drawn(600, 20, noise=0.5)
    noise = torch.randn(600, 20, generator=torch.Generator().manual_seed(1))
    for kept in (False, True):
        search = HeadSearch(
            lambda way, kept=kept: inputs if way.keep_zeros == kept else noise,
            targets,
            rows=600,
            width=0.2,
        )
        made = search.choose(Scaling(same_length=True), zeros=True, raise_rate=False)
        assert made.scaling.keep_zeros == kept


def test_a_scaling_that_is_taken_gets_a_penalty_of_its_own() -> None:
    inputs, targets = drawn(600, 60, noise=1.0)
    larger = inputs * 20  # weights on them are a twentieth, so that little holds them back

    def scaled(scaling: Scaling) -> Tensor:
        return larger if scaling.same_length else inputs[:, :1].expand(-1, 60)

    search = HeadSearch(scaled, targets, rows=600, width=0.2)
    made = search.choose(Scaling(same_length=False), zeros=False, raise_rate=False)
    search = HeadSearch(scaled, targets, rows=600, width=0.2)
    assert made == search.choose(Scaling(same_length=True), zeros=False, raise_rate=False)


def reviewed(answers: Tensor, before: Tensor, inputs: Tensor) -> HeadChoice:
    search = HeadSearch(lambda _: inputs, answers, rows=len(inputs), width=0.2, before=before)
    return search.choose(Scaling(same_length=False), zeros=False, raise_rate=False)


def test_answers_change_the_penalty_only_where_they_clearly_speak_for_another() -> None:
    (inputs, before), (_, true) = drawn(600, 20, noise=3.0), drawn(600, 20, noise=0.1)
    kept = reviewed(before, before, inputs).penalty
    found = {}
    for answered in (40, 80, 600):
        after = torch.cat([true[:answered], before[answered:]])
        found[answered] = reviewed(after, before, inputs).penalty / kept
    assert found[40] == found[80] == 1.0
    assert found[600] < 0.1


def test_a_recipe_that_was_chosen_stays() -> None:
    inputs, targets = drawn(900, 20, noise=0.3)
    inputs = (2 * inputs).exp()
    chosen = choose(inputs, targets)
    head = FeatureHead(20, 1, hidden=None)
    again = chosen.for_head(head, inputs, lambda rows: (1 - targets[rows], None), seed=0)
    assert again == chosen
    assert head.same_length == (chosen.scaling or Scaling(False)).same_length


@pytest.mark.parametrize("loss", ["auto", "hill"])
def test_a_head_and_the_folds_that_judge_it_choose_once(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def counted(search: HeadSearch, usual: Scaling, **options: bool) -> HeadChoice:
        asked.append(options)
        return HeadChoice(USUAL_PENALTY, 1.0, usual)

    monkeypatch.setattr(HeadSearch, "choose", counted)
    inputs, targets = drawn(150, 7, noise=0.31)
    HilltopClassifier(loss, epochs=1, random_state=0).fit(inputs.numpy(), targets.numpy())
    assert len(asked) == 1
