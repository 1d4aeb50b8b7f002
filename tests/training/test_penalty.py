"""The penalty that is chosen: firm where rows are few and features many, light where not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from hilltop.training import penalty
from hilltop.training.penalty import PENALTIES, USUAL_PENALTY, choose_penalty


def chosen(rows: int, features: int, *, noise: float, seed: int = 0, **options: int) -> float:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(rows, features, generator=generator)
    weights = torch.randn(features, 4, generator=generator) / features**0.5
    targets = inputs @ weights + noise * torch.randn(rows, 4, generator=generator) > 0.8
    return choose(inputs, targets.float(), **options)


def choose(inputs: Tensor, targets: Tensor, *, learned: int | None = None) -> float:
    width = (inputs.shape[1] / 1280) ** 0.5
    rate = 1e-3 / width
    rows = len(inputs) if learned is None else learned
    return choose_penalty(inputs, targets, rows=rows, rate=rate, width=width, seed=0)


def test_noisy_labels_of_few_rows_are_held_back_more_than_clear_ones_of_many() -> None:
    assert chosen(150, 200, noise=2.0) >= 10 * chosen(2000, 20, noise=0.1)


def test_the_more_rows_there_are_beyond_those_it_was_chosen_by_the_less_is_held_back() -> None:
    few, many = (chosen(300, 30, noise=1.0, learned=rows) for rows in (300, 1200))
    assert few == 2 * many


def test_with_too_few_rows_or_labels_the_usual_penalty_is_taken() -> None:
    assert chosen(50, 10, noise=1.0) == USUAL_PENALTY
    assert choose(torch.randn(200, 10), torch.zeros(200, 3)) == USUAL_PENALTY
    assert USUAL_PENALTY in PENALTIES


def test_unknown_targets_take_no_part() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(400, 10, generator=generator)
    targets = (inputs[:, :3] > 1).float()
    hidden = torch.rand(targets.shape, generator=generator) < 0.3
    unknown = targets.masked_fill(hidden, torch.nan)
    wrong = torch.where(hidden, 1 - targets, targets)
    assert choose(inputs, unknown) <= choose(inputs, wrong)


def test_one_label_in_each_fold_says_nothing_of_the_penalty() -> None:
    targets = torch.zeros(300, 4)
    targets[:3] = 1  # rows are dealt into three folds in turn
    assert choose(torch.randn(300, 10, generator=torch.manual_seed(0)), targets) == USUAL_PENALTY


def test_a_label_does_not_count_at_its_own_rank() -> None:
    logits = torch.tensor([[4.0, 4.0], [3.0, 3.0], [2.0, 2.0], [1.0, 1.0]])
    targets = torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    # Alone at the top it is luck; of three, the second has 1 of 3 at its rank, the last 2 of 4.
    assert penalty._precisions(logits, targets).tolist() == pytest.approx([0.0, 1 / 3 + 2 / 4])
