"""The solver of heads of cross-entropy: the optimum, folds that leak nothing, checkpoints."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from hilltop.losses import bce, hill
from hilltop.losses.methods.auto import AbsentWeights, Auto
from hilltop.losses.row_weights import RowWeighted
from hilltop.training import logistic
from hilltop.training.folds import assign_folds
from hilltop.training.heads import cross_validate, fit_head
from hilltop.training.logistic import (
    BIAS_ABOVE,
    Entries,
    LogisticSolver,
    ScaledRows,
    entry_weights,
    l2_penalty,
)
from hilltop.training.recipe import Recipe, shared_slope


def made_up(rows: int = 300, width: int = 12) -> tuple[Tensor, Entries]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(rows, width, generator=generator, dtype=torch.float64)
    inputs = inputs * torch.linspace(0.1, 3, width)
    targets = (inputs[:, :3] + torch.randn(rows, 3, generator=generator) > 1).double()
    total = (torch.rand(rows, 3, generator=generator) > 0.1).double()
    return inputs, Entries(targets * total, total, torch.ones(rows, dtype=torch.float64))


def uneven() -> tuple[Tensor, Entries]:
    """The first class is done steps before the others: it has the mean of all probabilities."""
    inputs, entries = made_up()
    entries.positive[:, 0] = entries.total[:, 0] * 0.1
    return inputs, entries


def solver_of(
    inputs: Tensor, entries: Entries, tolerance: float = 1e-12, slope: float = 1.0
) -> LogisticSolver:
    classes, width = entries.total.shape[1], inputs.shape[1]
    weight, bias = inputs.new_zeros(classes, width), inputs.new_zeros(classes)
    penalty = l2_penalty(3.0, entries)
    return LogisticSolver(
        weight, bias, ScaledRows(inputs, None), entries, penalty, tolerance=tolerance, slope=slope
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


def test_a_class_that_is_done_has_no_part_in_further_steps() -> None:
    inputs, entries = uneven()
    solver, columns = solver_of(inputs, entries, 1e-5), list[int]()
    project = solver.inputs.project

    def counted(weight: Tensor) -> Tensor:
        columns.append(len(weight))
        return project(weight)

    solver.inputs.project = counted  # type: ignore[method-assign]
    solver.solve(60)
    assert columns == sorted(columns, reverse=True)
    assert columns[0] == 3 > columns[-1] > 0
    for only in range(3):  # each class as if it were alone
        alone = Entries(*(part[:, [only]] for part in entries[:2]), entries.rows)
        single = solver_of(inputs, alone, 1e-5)
        single.solve(60)
        torch.testing.assert_close(single.weight[0], solver.weight[only], atol=1e-9, rtol=1e-9)


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


def test_a_fold_with_many_labels_has_no_lower_scores_for_it() -> None:
    """Features without information: scores of folds must not tell what labels they hold."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(400, 5, generator=generator)
    targets = (torch.rand(400, 40, generator=generator) < 0.05).float()
    logits = cross_validate(features, targets, bce(reduction="sum")).logits
    fold_of = assign_folds(400, 4, torch.Generator().manual_seed(0))
    by_fold = torch.stack([logits[fold_of == fold].mean(dim=0) for fold in range(4)])
    labels = torch.stack([targets[fold_of == fold].mean(dim=0) for fold in range(4)])
    stacked = torch.stack([(one - one.mean(dim=0)).flatten() for one in (by_fold, labels)])
    assert torch.corrcoef(stacked)[0, 1] > -0.3


def test_a_slope_makes_weights_larger_and_keeps_ranks_and_mean_probabilities() -> None:
    inputs, entries = made_up()
    plain, steep = solver_of(inputs, entries), solver_of(inputs, entries, slope=2.5)
    for solver in (plain, steep):
        solver.solve(60)
    torch.testing.assert_close(steep.weight, 2.5 * plain.weight, atol=1e-5, rtol=1e-5)
    share = entries.positive.sum(dim=0) / entries.total.sum(dim=0)
    for solver in (plain, steep):
        means = (solver.logits.sigmoid() * entries.total).sum(dim=0) / entries.total.sum(dim=0)
        torch.testing.assert_close(means, share, atol=1e-4, rtol=1e-4)
        by_hand = inputs @ solver.weight.T + solver.bias
        torch.testing.assert_close(solver.logits, by_hand, atol=1e-8, rtol=1e-6)


def test_the_shared_slope_is_that_of_the_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4000, 5, generator=generator)
    chance = (3 * logits + torch.linspace(-2, 1, 5)).sigmoid()
    targets = torch.bernoulli(chance, generator=generator)
    assert shared_slope(logits, targets) == pytest.approx(3, abs=0.2)
    unknown = targets.masked_fill(torch.rand(targets.shape, generator=generator) < 0.3, torch.nan)
    masked = logits.masked_fill(unknown.isnan(), -torch.inf)
    assert shared_slope(masked, unknown) == pytest.approx(3, abs=0.25)


def test_probabilities_of_a_head_whose_penalty_was_chosen_have_the_right_size() -> None:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(1600, 60, generator=generator)
    weight = torch.randn(60, 6, generator=generator) * 0.35
    targets = torch.bernoulli((inputs @ weight - 2).sigmoid(), generator=generator)
    learned, others = slice(800), slice(800, None)
    fitted = fit_head(
        inputs[learned], lambda rows: (targets[rows], None), bce(reduction="sum"), classes=6
    )
    logits = fitted.head(inputs[others]).detach()
    assert 0.8 < shared_slope(logits, targets[others]) < 1.25
    assert fitted.recipe.slope > 1.2, "without it they would be too small"


def test_a_solver_is_done_when_no_class_moves_and_makes_no_more_passes() -> None:
    inputs, entries = made_up()
    solver = solver_of(inputs, entries, tolerance=1e-3)
    assert not bool(solver.done.any())
    losses = list(solver.passes(60))
    assert bool(solver.done.all())
    assert 1 < len(losses) < 60
    assert losses == sorted(losses, reverse=True)
    before = solver.weight.clone()
    solver.step()
    assert torch.equal(solver.weight, before)
