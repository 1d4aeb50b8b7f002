"""The solver of heads of cross-entropy: the optimum, folds that leak nothing, checkpoints."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from hilltop.losses import bce, hill
from hilltop.losses.methods.auto import AbsentWeights, Auto
from hilltop.losses.row_weights import RowWeighted
from hilltop.training import logistic
from hilltop.training.folds import cross_validate
from hilltop.training.logistic import (
    BIAS_ABOVE,
    Entries,
    LogisticSolver,
    ScaledRows,
    entry_weights,
    l2_penalty,
)
from hilltop.training.recipe import Recipe


def made_up(rows: int = 300, width: int = 12) -> tuple[Tensor, Entries]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(rows, width, generator=generator, dtype=torch.float64)
    inputs = inputs * torch.linspace(0.1, 3, width)
    targets = (inputs[:, :3] + torch.randn(rows, 3, generator=generator) > 1).double()
    total = (torch.rand(rows, 3, generator=generator) > 0.1).double()
    return inputs, Entries(targets * total, total, torch.ones(rows, dtype=torch.float64))


def solver_of(inputs: Tensor, entries: Entries, tolerance: float = 1e-12) -> LogisticSolver:
    classes, width = entries.total.shape[1], inputs.shape[1]
    weight, bias = inputs.new_zeros(classes, width), inputs.new_zeros(classes)
    penalty = l2_penalty(3.0, entries)
    return LogisticSolver(
        weight, bias, ScaledRows(inputs, None), entries, penalty, tolerance=tolerance
    )


@pytest.mark.parametrize("width", [12, 400])
def test_the_gradient_of_the_equation_is_zero_at_the_solution(width: int) -> None:
    inputs, entries = made_up(width=width)
    solver = solver_of(inputs, entries)
    solver.solve(60)
    share = entries.positive.sum(dim=0) / entries.total.sum(dim=0)
    weight = solver.weight.clone().requires_grad_()
    logits = inputs @ weight.T + share.logit() + BIAS_ABOVE
    terms = entries.total * torch.nn.functional.softplus(logits) - entries.positive * logits
    penalty = l2_penalty(3.0, entries)
    value = terms.sum() + len(inputs) / 2 * (penalty.unsqueeze(1) * weight.square()).sum()
    (gradient,) = torch.autograd.grad(value, weight)
    assert gradient.abs().max() < 1e-3
    means = (solver.logits.sigmoid() * entries.total).sum(dim=0) / entries.total.sum(dim=0)
    torch.testing.assert_close(means, share, atol=1e-5, rtol=1e-5)


def test_blocks_of_rows_and_rotated_rows_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, entries = made_up()
    whole, rotated = solver_of(inputs, entries), solver_of(inputs, entries)
    rotated.inputs = ScaledRows(inputs, None).rotated()
    for solver in (whole, rotated):
        solver.solve()
    torch.testing.assert_close(whole.logits, rotated.logits, atol=1e-5, rtol=1e-5)
    monkeypatch.setattr(logistic, "_CACHED_ENTRIES", 0)
    monkeypatch.setattr(logistic, "_BLOCK_ENTRIES", 12 * 70)
    targets = entries.positive
    parts = cross_validate(inputs, targets, bce(reduction="sum"), recipe=Recipe(weight_decay=3.0))
    monkeypatch.undo()
    once = cross_validate(inputs, targets, bce(reduction="sum"), recipe=Recipe(weight_decay=3.0))
    torch.testing.assert_close(parts.logits, once.logits, atol=1e-5, rtol=1e-5)


def test_labels_of_a_fold_have_no_part_in_its_scores() -> None:
    inputs, entries = made_up()
    targets, loss = entries.positive, bce(reduction="sum")
    before = cross_validate(inputs, targets, loss, recipe=Recipe(weight_decay=3.0))
    fold = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(0)) % 4
    changed = targets.clone()
    changed[fold == 2] = targets[fold == 2].flip(0)
    for start in (None, before):  # a start from heads of other labels is forgotten
        after = cross_validate(
            inputs, changed, loss, recipe=Recipe(weight_decay=3.0), start=start
        ).logits
        moved = (after - before.logits).abs()
        assert moved[fold == 2].max() < 1e-5
        assert moved[fold != 2].max() > 0.1


def test_a_solver_goes_on_from_its_state_to_the_bit() -> None:
    inputs, entries = made_up()
    whole, stopped = solver_of(inputs, entries), solver_of(inputs, entries)
    for _ in range(5):
        whole.step()
        whole.recompute()
    for _ in range(2):
        stopped.step()
        stopped.recompute()
    resumed = solver_of(inputs, entries)
    resumed.weight.copy_(stopped.weight)
    resumed.load_state_dict(stopped.state_dict())
    for _ in range(3):
        resumed.step()
        resumed.recompute()
    assert torch.equal(whole.weight, resumed.weight)


def test_masked_unknown_and_weighted_entries() -> None:
    targets = torch.tensor([[1.0, 0.0], [torch.nan, 0.0]])
    loss = Auto(reduction="none")
    loss.correction = AbsentWeights(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    verified = torch.tensor([[False, False], [False, True]])
    rows = torch.arange(2)
    weighted = RowWeighted(loss, torch.tensor([2.0, 3.0]))
    found = entry_weights(weighted, targets, verified, rows)
    assert found is not None
    assert found.positive.tolist() == [[1, 0], [0, 0]]
    assert found.total.tolist() == [[1, 0], [0, 1]]
    assert found.rows.tolist() == [2, 3]
    for other in (hill(), bce(pos_weight=2.0), bce(label_smoothing=0.1)):
        assert entry_weights(other, targets, None, rows) is None
