"""Folds of images, and linear heads of cross-entropy that are solved on all folds but one.

One matrix product serves the heads of all folds, which is as fast as fitting a single wide head.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hilltop.models import FeatureHead, Features
from hilltop.progress import ProgressLog
from hilltop.training.learner import step_threads
from hilltop.training.logistic import (
    Entries,
    LogisticSolver,
    ScaledRows,
    chunks,
    l2_penalty,
    label_log_odds,
)
from hilltop.training.recipe import Recipe


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Heads of all folds but one, and what they say of it.

    Attributes:
        logits: Out-of-fold logits ``(N, C)``.
        recipe: How the heads were trained, with the penalty that was chosen.
        weight: Weights of the heads of the first deal ``(folds * C, F)``, from which heads of
            another loss on the same folds can start; None if they were trained by steps.
        inputs: The rows as the heads see them; likewise.
    """

    logits: Tensor
    recipe: Recipe
    weight: Tensor | None = None
    inputs: ScaledRows | None = None


def solve_folds(
    features: Features,
    head: FeatureHead,
    entries: Entries,
    recipe: Recipe,
    fold_of: Tensor,
    *,
    folds: int,
    start: CrossValidation | None = None,
) -> CrossValidation:
    """Fit heads of cross-entropy, as many side by side as memory allows.

    Args:
        features: One row an image ``(N, F)``.
        head: The scale of the features.
        entries: The labels, as weights.
        recipe: With the penalty.
        fold_of: The fold of each image in each deal ``(N, repeats)``; logits are averaged over the
            deals.
        folds: Number of folds.
        start: Heads on the same folds of the same rows.
    """
    assert recipe.weight_decay is not None
    scoring = torch.nn.functional.one_hot(fold_of, folds).flatten(1)  # heads that score an image
    (rows, classes), heads = entries.positive.shape, scoring.shape[1]
    inputs = ScaledRows(features, head) if start is None or start.inputs is None else start.inputs
    entries = entries.to(head.mean)
    penalty = l2_penalty(recipe.weight_decay, entries)
    first, logits = [], torch.zeros(rows, classes)
    whole = label_log_odds(entries.rows @ entries.positive, entries.rows @ entries.total)
    with ProgressLog("cross-validation", heads, "heads") as said:
        for part in chunks(heads, rows * classes):
            mine = scoring[:, part]
            weight = head.mean.new_zeros(mine.shape[1] * classes, features.shape[1])
            if start is not None and start.weight is not None:
                given = start.weight[part.start * classes : part.stop * classes]
                weight[: len(given)] = given * (recipe.slope / start.recipe.slope)
            bias = weight.new_zeros(len(weight))
            solver = LogisticSolver(
                weight, bias, inputs, entries, penalty, learns=mine == 0, slope=recipe.slope
            )
            with step_threads(rows, features.shape[1], len(weight)):
                solver.solve()
            # A fold with more labels leaves fewer to learn from: at the log odds of these, its
            # scores would be lower for it, and scores of folds could not be compared.
            level = whole.repeat(mine.shape[1]) - solver.log_odds
            every = (solver.logits + level).view(rows, -1, classes)
            share = mine.to(every.dtype) / fold_of.shape[1]
            logits += torch.einsum("nhc,nh->nc", every, share).float()
            first.append(weight[: max(0, folds - part.start) * classes])
            said.update(min(heads, part.stop))
    return CrossValidation(logits, recipe, torch.cat(first), inputs)


def head_solver(
    head: FeatureHead,
    features: Features,
    entries: Entries,
    *,
    recipe: Recipe,
    heads: CrossValidation | None = None,
) -> LogisticSolver:
    """Return what fits a linear head to cross-entropy, from the mean of cross-validated heads.

    Args:
        head: The head, with the scale of its features.
        features: One row an image ``(N, F)``.
        entries: The labels, as weights.
        recipe: With the penalty.
        heads: Cross-validated heads on the same rows.
    """
    assert recipe.weight_decay is not None
    layer, inputs = head.last, None
    if heads is not None and heads.recipe.scaling == recipe.scaling and heads.weight is not None:
        inputs = heads.inputs if heads.weight.dtype == layer.weight.dtype else None
        with torch.no_grad():
            mean = heads.weight.view(-1, *layer.weight.shape).mean(dim=0)
            layer.weight.copy_(mean * (recipe.slope / heads.recipe.slope))
    entries = entries.to(layer.weight.detach())
    weight = None if bool((entries.rows == 1).all()) else entries.rows
    return LogisticSolver(
        layer.weight.detach(),
        layer.bias.detach(),
        inputs or ScaledRows(features, head, weight=weight),
        entries,
        l2_penalty(recipe.weight_decay, entries),
        slope=recipe.slope,
    )


def assign_folds(images: int, folds: int, generator: torch.Generator) -> Tensor:
    """The fold of each image; folds differ in size by at most one."""
    return torch.randperm(images, generator=generator) % folds
