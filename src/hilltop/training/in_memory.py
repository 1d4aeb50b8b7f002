"""A head on features trained in memory, without a run folder: for the estimator and the studies.

Needs torch alone. The numbers are those of ``hilltop train --features``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from hilltop.checks import check_whole
from hilltop.losses import LabelStats, Loss
from hilltop.losses.row_weights import RowWeighted
from hilltop.models import FeatureHead, Features, take_rows
from hilltop.training.evidence import FoldEvidence, prepare_loss
from hilltop.training.folds import head_solver
from hilltop.training.learner import Learner, start_head
from hilltop.training.logistic import entry_weights
from hilltop.training.recipe import HEADS, LabelBatch, Recipe
from hilltop.training.threads import step_threads


@dataclass(frozen=True)
class FittedHead:
    """A trained head and how training went.

    Attributes:
        head: The head of the last epoch; with a scorer, of the best one.
        losses: Mean loss of a row in each epoch.
        scores: What the scorer said after each epoch.
        evidence: What the loss was told of missing labels, if anybody was asked.
        untrained: The loss as it was before the first step.
        recipe: How it was trained, with the rate and the penalty that were chosen.
    """

    head: FeatureHead
    losses: tuple[float, ...]
    scores: tuple[float, ...]
    evidence: FoldEvidence | None
    untrained: Loss
    recipe: Recipe


@dataclass(frozen=True)
class EarlyStopping:
    """Keeps the best epoch.

    Attributes:
        scorer: Says how good a head is.
        patience: Epochs without a better one after which training stops.
    """

    scorer: Callable[[FeatureHead], float]
    patience: int = 5


def fit_head(
    features: Features,
    labels: LabelBatch,
    loss: Loss,
    *,
    classes: int,
    stats: LabelStats | None = None,
    seed: int = 0,
    recipe: Recipe = HEADS,
    hidden: int | None = None,
    row_weight: Tensor | None = None,
    stopping: EarlyStopping | None = None,
    learn_from: Tensor | None = None,
) -> FittedHead:
    """Train a head that starts where the loss is least on these labels.

    Args:
        features: One row an image ``(N, F)``, dense or sparse; float64 is computed with as it is,
            others in float32.
        labels: Targets by row.
        loss: With reduction ``"sum"``; ``"none"`` where rows have weights.
        classes: Number of classes.
        stats: What the loss is told of the labels; None if it has been told already.
        seed: The same seed gives the same head.
        recipe: How to train.
        hidden: Width of a hidden layer; None for a linear head.
        row_weight: How much each row counts ``(N,)``.
        stopping: Which epoch to keep; the last one without it.
        learn_from: The rows to learn from; all without it.

    Example:
        >>> from hilltop.losses import bce
        >>> X = torch.eye(2).repeat(20, 1)
        >>> fitted = fit_head(X, lambda rows: (X[rows], None), bce(reduction="sum"), classes=2,
        ...                   recipe=Recipe(epochs=5))
        >>> (fitted.head(torch.eye(2)) > 0).int()
        tensor([[1, 0],
                [0, 1]], dtype=torch.int32)
    """
    recipe.check()
    with step_threads(recipe.batch_size, features.shape[1], classes):
        return _fit(
            features,
            labels,
            loss,
            classes,
            stats,
            seed,
            recipe,
            hidden,
            row_weight,
            stopping,
            learn_from,
        )


def _fit(
    features: Features,
    labels: LabelBatch,
    loss: Loss,
    classes: int,
    stats: LabelStats | None,
    seed: int,
    recipe: Recipe,
    hidden: int | None,
    row_weight: Tensor | None,
    stopping: EarlyStopping | None,
    learn_from: Tensor | None,
) -> FittedHead:
    chosen = torch.arange(len(features)) if learn_from is None else learn_from
    rows, evidence = len(chosen), None
    learned = features if learn_from is None else take_rows(features, chosen)
    dtype = torch.float64 if features.dtype == torch.float64 else torch.float32
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = FeatureHead(features.shape[1], classes, hidden=hidden).to(dtype)
        weight = None if row_weight is None else row_weight[chosen]

    def batch_labels(batch: Tensor) -> tuple[Tensor, Tensor | None]:
        return labels(chosen[batch])

    recipe = recipe.for_head(head, learned, batch_labels, seed=seed, row_weight=weight)
    if stats is not None:
        evidence = prepare_loss(
            loss, stats, lambda: features, labels, seed=seed, recipe=recipe.for_evidence
        )
    untrained = copy.deepcopy(loss)
    plain = loss
    if row_weight is not None:
        loss = RowWeighted(loss, row_weight)
    best = _Best(head, stopping)
    losses = []
    entries = None if hidden is not None else entry_weights(loss, *labels(chosen), chosen)
    if entries is not None and recipe.uses_newton:
        asked = None if evidence is None else evidence.start_of(plain)
        solver = head_solver(head, learned, entries, recipe=recipe, heads=asked)
        for _ in range(recipe.epochs):
            losses.append(solver.step())
            solver.set_bias()
            if best.is_over() or bool(solver.done.all()):
                break
    else:
        start_head(head, plain, batch_labels, rows, row_weight=weight)
        learner = Learner.build(head, loss, recipe, rows=rows)
        for epoch in range(recipe.epochs):
            loss.set_epoch(epoch)
            plan = recipe.epoch_plan(rows, seed, epoch)
            total = 0.0
            for batch in (chosen[part] for part in plan):
                targets, observed = labels(batch)
                logits = head(features[batch].to(dtype))
                total += learner.step(logits, targets, observed=observed, index=batch)
            losses.append(total / sum(map(len, plan)))
            if best.is_over():
                break
    best.restore()
    return FittedHead(head, tuple(losses), tuple(best.scores), evidence, untrained, recipe)


class _Best:
    """Remembers the best epoch, as a scorer sees it, and says when to stop."""

    def __init__(self, head: FeatureHead, stopping: EarlyStopping | None) -> None:
        if stopping is not None:
            check_whole("n_iter_no_change", stopping.patience, low=1)
        self.head, self.stopping = head, stopping
        self.scores: list[float] = []
        self.state: dict[str, Tensor] | None = None

    @torch.no_grad()
    def is_over(self) -> bool:
        if self.stopping is None:
            return False
        self.scores.append(self.stopping.scorer(self.head))
        best = max(range(len(self.scores)), key=self.scores.__getitem__)  # the first of equals
        if best == len(self.scores) - 1:
            self.state = copy.deepcopy(self.head.state_dict())
        return len(self.scores) - 1 - best >= self.stopping.patience

    def restore(self) -> None:
        if self.state is not None:
            self.head.load_state_dict(self.state)
