"""Cross-validate: linear heads trained on all folds but one, side by side.

One matrix product serves the heads of all folds, which is as fast as training a single wide head.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hilltop.checks import check_whole, pluralize
from hilltop.deprecation import warn_renamed
from hilltop.errors import DataError
from hilltop.losses import Loss
from hilltop.losses.init import head_start, log_odds
from hilltop.losses.row_weights import RowWeighted
from hilltop.models import FeatureHead, Features, input_rows
from hilltop.progress import ProgressLog
from hilltop.training.learner import Learner, skip_safe_start, step_threads
from hilltop.training.logistic import (
    Entries,
    LogisticSolver,
    ScaledRows,
    chunks,
    entry_weights,
    l2_penalty,
    label_log_odds,
)
from hilltop.training.recipe import HEADS, Recipe

FOLDS = 4


def out_of_fold_logits(features: Features, targets: Tensor, loss: Loss, **options: Any) -> Tensor:
    """Return the logits of :func:`cross_validate`, whose deprecated form this is."""
    warn_renamed("out_of_fold_logits", "cross_validate(...).logits")
    return cross_validate(features, targets, loss, **options).logits


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


def cross_validate(
    features: Features,
    targets: Tensor,
    loss: Loss,
    *,
    observed: Tensor | None = None,
    folds: int = FOLDS,
    repeats: int = 1,
    recipe: Recipe = HEADS,
    seed: int = 0,
    start: CrossValidation | None = None,
) -> CrossValidation:
    """Train heads on all folds but one: each image is scored by heads that never saw its labels.

    Heads of cross-entropy are fitted by :class:`~hilltop.training.logistic.LogisticSolver`, those
    of other losses by steps. All labels together decide one number, how firmly heads are held back.

    Args:
        features: One row an image ``(N, F)``.
        targets: 1 for labelled, 0 for not labelled ``(N, C)``.
        loss: What the heads are trained with.
        observed: True where a person confirmed the target.
        folds: Into how many parts the images are dealt; each is scored by the head of the others.
        repeats: How often they are dealt anew; logits are averaged over the deals.
        recipe: How the heads are trained.
        seed: The same seed gives the same logits.
        start: Heads on the same folds of the same rows.

    Raises:
        DataError: There are fewer images than folds.

    Example:
        >>> from hilltop.losses import bce
        >>> features = torch.eye(2).repeat(20, 1)
        >>> logits = cross_validate(features, features.clone(), bce(reduction="sum")).logits
        >>> bool((logits[::2, 0] > logits[1::2, 0]).all())
        True
    """
    check_whole("folds", folds, low=2)
    check_whole("repeats", repeats, low=1)
    if len(features) < folds:
        images = pluralize(len(features), "image", "images")
        raise DataError(f"{images} cannot be dealt into {folds} folds; use fewer.")
    generator = torch.Generator().manual_seed(seed)
    assigned = [assign_folds(len(features), folds, generator) for _ in range(repeats)]
    fold_of = torch.stack(assigned, dim=1)
    classes = targets.shape[1]
    scores = _one_hot(fold_of, folds)
    learns = scores == 0
    rows = torch.arange(len(features))
    entries = entry_weights(loss, targets, observed, rows)
    if entries is not None and recipe.uses_newton:
        dtype = torch.float64 if features.dtype == torch.float64 else torch.float32
        single = FeatureHead(features.shape[1], 1, hidden=None).to(dtype)
        if start is None or start.inputs is None or recipe.weight_decay is None:
            recipe = recipe.for_head(
                single, features, lambda rows: (targets[rows], None), seed=seed
            )
        return _solve(features, single, entries, recipe, scores / repeats, folds, start)
    head = FeatureHead(features.shape[1], scores.shape[1] * classes, hidden=None)
    with torch.no_grad():  # each head starts at the odds of the rows that it learns from
        plain = loss.inner if isinstance(loss, RowWeighted) else loss
        usual = head_start(plain, targets, verified=observed) - log_odds(targets)
        starts = [log_odds(targets[mine]) + usual for mine in learns.T]
        head.last.bias.copy_(torch.cat(starts))
    skip_safe_start(loss)
    if plain.watch is not None:
        plain.watch.local = True  # the first process calibrates while the others wait
    # A batch is so much larger that each head sees as many rows of it as if it were alone.
    batch_size = recipe.batch_size * folds // (folds - 1)
    recipe = dataclasses.replace(recipe, batch_size=batch_size).for_head(
        head, features, lambda rows: (targets[rows], None), seed=seed
    )
    learner = Learner.build(head, loss, recipe, rows=len(features))
    threads = step_threads(batch_size, features.shape[1], learns.shape[1] * classes)
    with threads, ProgressLog("cross-validation", recipe.epochs, "epochs") as said:
        for epoch in range(recipe.epochs):
            loss.set_epoch(epoch)
            for rows in recipe.epoch_plan(len(features), seed, epoch):
                mine = learns[rows]
                logits = head(input_rows(features, rows)).view(len(rows), -1, classes)[mine]
                image = torch.arange(len(rows)).unsqueeze(1).expand_as(mine)[mine]
                seen = None if observed is None else observed[rows][image]
                learner.step(logits, targets[rows][image], observed=seen, index=rows[image])
            said.update(epoch + 1)
        return CrossValidation(_unseen(head, features, scores / repeats, classes), recipe)


def _solve(
    features: Features,
    head: FeatureHead,
    entries: Entries,
    recipe: Recipe,
    scoring: Tensor,
    folds: int,
    start: CrossValidation | None,
) -> CrossValidation:
    """Fit heads of cross-entropy, as many side by side as memory allows."""
    assert recipe.weight_decay is not None
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
            logits += torch.einsum("nhc,nh->nc", every, mine.to(every.dtype)).float()
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


def _one_hot(fold_of: Tensor, folds: int) -> Tensor:
    """1 for the heads that are to score an image: one of each repeat."""
    return torch.nn.functional.one_hot(fold_of, folds).flatten(1)


@torch.no_grad()
def _unseen(heads: nn.Module, features: Features, scoring: Tensor, classes: int) -> Tensor:
    """Mean logit of the heads that did not learn from an image."""
    logits = torch.empty(len(features), classes)
    for rows in torch.split(torch.arange(len(features)), 1024):
        every = heads(input_rows(features, rows)).view(len(rows), -1, classes)
        logits[rows] = torch.einsum("nhc,nh->nc", every, scoring[rows])
    return logits
