"""What the scores of a trained head mean: calibrated by cross-validated heads like it."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from hilltop.losses import Loss, MultiLabelLoss
from hilltop.losses.base import Reduction
from hilltop.losses.row_weights import RowWeighted
from hilltop.missing.model import MissingLabelModel
from hilltop.models import FeatureHead, Features, input_rows
from hilltop.training.evidence import FoldEvidence, ask_folds, confirmed_absent, restored_labels
from hilltop.training.folds import assign_folds, cross_validate
from hilltop.training.in_memory import fit_head
from hilltop.training.logistic import is_cross_entropy
from hilltop.training.recipe import HEADS, LabelBatch, Recipe

LEAST_ROWS = 20
"""With fewer rows than this, scores are not calibrated and tags are cut at one half."""
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
    row_weight: Tensor | None = None,
    before: Tensor | None = None,
) -> MissingLabelModel | None:
    """Calibrate the scores of a head that was trained on these rows.

    By out-of-fold scores of heads like it: linear ones learn side by side, those with a hidden
    layer one after the other. Missing labels are judged by scores of cross-entropy, for any loss.

    Args:
        features: One row an image ``(N, F)``.
        labels: Targets by row.
        loss: What the head was trained with, as it was before the first step.
        seed: The same seed gives the same calibration.
        recipe: How the head was trained, with the penalty that was chosen.
        hidden: Width of its hidden layer.
        evidence: What heads of cross-entropy said about these rows already.
        row_weight: How much each row counted ``(N,)``.
        before: Targets before a review, if there was one ``(N, C)``.

    Returns:
        None where there are too few rows or no label at all.
    """
    targets, observed = labels(torch.arange(len(features)))
    if len(features) < LEAST_ROWS or not bool((targets == 1).any()):
        return None
    absent = confirmed_absent(targets, observed)
    restored = None if before is None else restored_labels(targets, before)
    usual = recipe.for_evidence if before is None else HEADS  # as the audit of reviewed labels
    asked = evidence or ask_folds(
        features, targets, absent, seed=seed, restored=restored, recipe=usual
    )
    heads = asked.heads
    same_scaling = heads is not None and heads.recipe.scaling == recipe.scaling
    same_penalty = heads is not None and heads.recipe.weight_decay == recipe.weight_decay
    alike = recipe.uses_newton and same_scaling and same_penalty
    plain = isinstance(loss, MultiLabelLoss) and loss.correction is None and is_cross_entropy(loss)
    if alike and plain and hidden is None and row_weight is None:
        return asked.model
    loss = _reduced(loss, "sum" if row_weight is None else "none")
    if hidden is None:
        loss = loss if row_weight is None else RowWeighted(loss, row_weight)
        logits = cross_validate(
            features,
            targets,
            loss,
            observed=observed,
            recipe=recipe,
            seed=seed,
            start=heads if same_scaling else None,
        ).logits
    else:
        logits = _fold_by_fold(features, labels, loss, seed, recipe, hidden, row_weight)
    return asked.model.for_scores(logits, asked.logits, targets, verified=absent)


def _reduced(loss: Loss, reduction: Reduction) -> Loss:
    """A copy that sums over pairs, or leaves it to the weights of rows."""
    copied = copy.deepcopy(loss)
    copied.reduction = reduction
    return copied


def _fold_by_fold(
    features: Features,
    labels: LabelBatch,
    loss: Loss,
    seed: int,
    recipe: Recipe,
    hidden: int,
    row_weight: Tensor | None,
) -> Tensor:
    """Scores of heads with a hidden layer, each of the rows that it did not learn from.

    All are held back as firmly as the head itself: logits would be of another size otherwise.
    """
    fold = assign_folds(len(features), _FOLDS, torch.Generator().manual_seed(seed))
    classes = labels(torch.arange(1))[0].shape[1]
    whole = FeatureHead(features.shape[1], classes, hidden=None)
    recipe = recipe.for_head(whole, features, labels, seed=seed, row_weight=row_weight)
    logits = torch.empty(len(features), classes)
    for number in range(_FOLDS):
        head = fit_head(
            features,
            labels,
            copy.deepcopy(loss),
            classes=classes,
            seed=seed,
            recipe=recipe,
            hidden=hidden,
            row_weight=row_weight,
            learn_from=torch.nonzero(fold != number).squeeze(1),
        ).head
        rows = torch.nonzero(fold == number).squeeze(1)
        with torch.no_grad():
            logits[rows] = head(input_rows(features, rows)).float()
    return logits
