"""What the scores of a trained head mean: by heads like it that never saw the rows they score."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from hilltop.calibration import TruthModel, fit_truth
from hilltop.losses import Loss, LossWrapper, MultiLabelLoss
from hilltop.losses.terms.negative import LogNegative
from hilltop.losses.terms.positive import LogPositive
from hilltop.models import Features
from hilltop.training.evidence import LEAST_ROWS, FoldEvidence, ask_folds, confirmed_absent
from hilltop.training.folds import assign_folds, out_of_fold_logits
from hilltop.training.in_memory import fit_head
from hilltop.training.recipe import HEADS, LabelBatch, Recipe

_FOLDS = 4


def truth_of_head(
    features: Features,
    labels: LabelBatch,
    loss: Loss,
    *,
    seed: int,
    recipe: Recipe,
    hidden: int | None = None,
    evidence: FoldEvidence | None = None,
) -> TruthModel | None:
    """Calibrate the scores of a head that was trained on these rows.

    A linear head by out-of-fold scores; one with a hidden layer by its like that learned from three
    quarters of the rows. Missing labels are judged by scores of cross-entropy, for any loss.

    Args:
        features: One row an image ``(N, F)``.
        labels: Targets by row.
        loss: What the head was trained with, as it was before the first step.
        seed: The same seed gives the same calibration.
        recipe: How the head was trained.
        hidden: Width of its hidden layer.
        evidence: What heads of cross-entropy said about these rows already.

    Returns:
        None where there are too few rows or no label at all.
    """
    targets, observed = labels(torch.arange(len(features)))
    if len(features) < LEAST_ROWS or not bool((targets == 1).any()):
        return None
    absent = confirmed_absent(targets, observed)
    asked = evidence or ask_folds(features, targets, absent, seed=seed)
    if _is_cross_entropy(loss) and recipe == HEADS and hidden is None:
        return fit_truth(asked.logits, targets, observed=absent, belief=asked.belief)
    loss = _summed(loss)
    if hidden is None:
        rows = torch.arange(len(features))
        logits = out_of_fold_logits(
            features, targets, loss, observed=observed, recipe=recipe, seed=seed
        )
    else:
        rows, logits = _held_out(features, labels, loss, seed, recipe, hidden)
    return fit_truth(
        logits,
        targets[rows],
        observed=None if absent is None else absent[rows],
        belief=asked.belief,
        believed_logits=asked.logits[rows],
    )


def _summed(loss: Loss) -> Loss:
    """A copy that sums over pairs; where rows have weights, losses are made not to."""
    copied = copy.deepcopy(loss)
    inner = copied.inner if isinstance(copied, LossWrapper) else None
    if inner is not None and inner.reduction == copied.reduction:
        inner.reduction = "sum"
    copied.reduction = "sum"
    return copied


def _held_out(
    features: Features,
    labels: LabelBatch,
    loss: Loss,
    seed: int,
    recipe: Recipe,
    hidden: int,
) -> tuple[Tensor, Tensor]:
    """Rows that a head did not learn from, and its scores of them."""
    fold = assign_folds(len(features), _FOLDS, torch.Generator().manual_seed(seed))
    head = fit_head(
        features,
        labels,
        loss,
        classes=labels(torch.arange(1))[0].shape[1],
        seed=seed,
        recipe=recipe,
        hidden=hidden,
        learn_from=torch.nonzero(fold != 0).squeeze(1),
    ).head
    rows = torch.nonzero(fold == 0).squeeze(1)
    with torch.no_grad():
        return rows, head(features[rows].to(head.mean.dtype)).float()


def _is_cross_entropy(loss: Loss) -> bool:
    """Whether a loss is the one that missing labels are judged by, nothing added."""
    inner = loss.inner if isinstance(loss, LossWrapper) else loss
    return (
        isinstance(inner, MultiLabelLoss)
        and type(inner.positive) is LogPositive
        and type(inner.negative) is LogNegative
        and inner.correction is None
        and inner.class_weight is None
        and inner.pos_weight is None
        and not inner.label_smoothing
    )
