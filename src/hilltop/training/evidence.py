"""Evidence of missing labels: what heads that never saw the labels of a row say about them."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from hilltop.calibration.belief import believe
from hilltop.losses import LabelStats, Loss
from hilltop.losses.base import Evidence
from hilltop.training.folds import out_of_fold_logits
from hilltop.training.learner import head_loss
from hilltop.training.recipe import LabelBatch

LEAST_ROWS = 100
"""With fewer rows than this nothing can be told."""


def with_evidence(
    stats: LabelStats, loss: Loss, features: Tensor, labels: LabelBatch, *, seed: int
) -> LabelStats:
    """Return the statistics with evidence of missing labels, if the loss wants any.

    Args:
        stats: What is known of the labels.
        loss: The loss that will be told.
        features: One row an image ``(N, F)``.
        labels: Targets by row, as they were before a review, if there was one.
        seed: The same seed gives the same evidence.
    """
    if not loss.wants_evidence:
        return stats
    targets, observed = labels(torch.arange(len(features)))
    evidence = gather_evidence(features, targets, observed, seed=seed)
    return dataclasses.replace(stats, evidence=evidence)


def gather_evidence(
    features: Tensor, targets: Tensor, observed: Tensor | None, *, seed: int
) -> Evidence:
    """Ask heads of cross-entropy about rows whose labels they never saw.

    Args:
        features: One row an image ``(N, F)``.
        targets: 1 for labelled, 0 for not labelled, NaN for unknown ``(N, C)``.
        observed: True where a person confirmed the target.
        seed: The same seed gives the same evidence.
    """
    unlabelled = targets == 0
    absent = None if observed is None else observed & unlabelled
    if absent is not None and bool((absent == unlabelled).all()):
        return Evidence(None, "every pair is known to be present or absent: cross-entropy")
    if len(features) < LEAST_ROWS or not bool((targets == 1).any()):
        return Evidence(None, f"{len(features)} rows are too few to tell what is missing")
    loss = head_loss("bce", reduction="sum")
    logits = out_of_fold_logits(features, targets, loss, observed=absent, seed=seed)
    belief = believe(logits, targets, observed=absent)
    if belief.cautious is None:
        return Evidence(None, f"{belief.sentence}: cross-entropy")
    weight = belief.absent_probability(logits, targets, observed=absent)
    told = "cross-entropy in which an unlabelled pair counts as much as it is probably absent"
    return Evidence(weight, f"{belief.sentence}: {told}")
