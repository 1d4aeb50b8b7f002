"""Evidence of missing labels: the missing-label model of cross-validated heads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilltop.checks import pluralize
from hilltop.losses import LabelStats, Loss
from hilltop.losses.base import Evidence
from hilltop.missing.model import MissingLabelModel
from hilltop.missing.priors import MIN_LOGLIK_GAIN
from hilltop.models import Features
from hilltop.training.folds import CrossValidation, cross_validate
from hilltop.training.learner import head_loss
from hilltop.training.recipe import HEADS, LabelBatch, Recipe

REPEATS = 2
"""How often images are dealt into folds; scores are means over the deals."""
LEAST_ROWS = 100
"""With fewer rows than this nothing can be told."""
LEAST_ABSENT = 0.3
"""An unlabelled entry that is less probably absent than this is masked out of the loss. One that is
doubtful stays whole: a head that learns from fewer entries is less certain, which costs more."""
NETWORK_LEAST_ABSENT = 0.7
"""The same for a network that learns from images. It has weights enough
to memorise missing labels as absent, so that a doubtful entry costs more than it teaches."""


@dataclass(frozen=True)
class FoldEvidence:
    """Out-of-fold scores of heads of cross-entropy, and the missing-label model fitted to them.

    Attributes:
        logits: The scores ``(N, C)``.
        model: How labels were lost.
        heads: The heads that gave them.
    """

    logits: Tensor
    model: MissingLabelModel
    heads: CrossValidation | None = None

    def start_of(self, loss: Loss) -> CrossValidation | None:
        """Heads that the final one starts from; None where the loss masks nothing.

        ``auto`` without evidence of missing labels is then cross-entropy to the bit.
        """
        return None if getattr(loss, "correction", None) is None else self.heads


def prepare_loss(
    loss: Loss,
    stats: LabelStats,
    features: Callable[[], Features],
    labels: LabelBatch,
    *,
    seed: int,
    before: LabelBatch | None = None,
    least_absent: float = LEAST_ABSENT,
    recipe: Recipe = HEADS,
) -> FoldEvidence | None:
    """Tell the loss what is known of the labels, with evidence of missing ones if it wants any.

    Args:
        loss: The loss to be told.
        stats: What is known of the labels.
        features: Gives one row an image ``(N, F)``; called only if there is something to ask.
        labels: Targets by row.
        seed: The same seed gives the same evidence.
        before: Targets by row as they were before a review, if there was one.
        least_absent: Unlabelled pairs that are less probably absent than this are left out.
        recipe: How heads are trained, where that was chosen already.

    Returns:
        The evidence, for whoever asks the same next; None if nobody was asked.
    """
    if not loss.wants_evidence:
        loss.prepare(stats)
        return None
    rows = torch.arange(stats.images)
    targets, observed = labels(rows)
    absent = confirmed_absent(targets, observed)
    restored = None if before is None else restored_labels(targets, before(rows)[0])
    asked, reason = None, _nothing_to_ask(targets, absent)
    evidence = Evidence(None, reason)
    if not reason:
        asked = ask_folds(features(), targets, absent, seed=seed, restored=restored, recipe=recipe)
        evidence = mask_evidence(asked, targets, absent, least_absent, restored=restored)
    loss.prepare(dataclasses.replace(stats, evidence=evidence))
    return asked


def ask_folds(
    features: Features,
    targets: Tensor,
    absent: Tensor | None,
    *,
    seed: int,
    restored: Tensor | None = None,
    recipe: Recipe = HEADS,
) -> FoldEvidence:
    """Cross-validate heads of cross-entropy, and fit the missing-label model to their scores.

    Args:
        features: One row an image ``(N, F)``.
        targets: 1 for labelled, 0 for not labelled, NaN for unknown ``(N, C)``.
        absent: True where a person confirmed that a pair is absent.
        seed: The same seed gives the same evidence.
        restored: True for labels that a review put back; they are evidence of missing ones.
        recipe: How heads are trained, where that was chosen already.
    """
    loss = head_loss("bce", reduction="sum")
    heads = cross_validate(
        features, targets, loss, observed=absent, repeats=REPEATS, seed=seed, recipe=recipe
    )
    model = MissingLabelModel.fit(heads.logits, targets, verified=absent, restored=restored)
    return FoldEvidence(heads.logits, model, heads)


def restored_labels(targets: Tensor, before: Tensor) -> Tensor:
    """The labels that were missing before a review and that it put back."""
    return (targets == 1) & (before != 1)


def confirmed_absent(targets: Tensor, observed: Tensor | None) -> Tensor | None:
    """The pairs that a person said are absent."""
    return None if observed is None else observed & (targets == 0)


def _nothing_to_ask(targets: Tensor, absent: Tensor | None) -> str:
    """Why evidence cannot be had or is not needed; empty if it can and is."""
    if absent is not None and bool((absent == (targets == 0)).all()):
        return "every pair is known to be present or absent: cross-entropy"
    if len(targets) < LEAST_ROWS or not bool((targets == 1).any()):
        return f"{len(targets)} rows are too few to tell what is missing"
    return ""


def mask_evidence(
    asked: FoldEvidence,
    targets: Tensor,
    absent: Tensor | None,
    least_absent: float = LEAST_ABSENT,
    *,
    restored: Tensor | None = None,
) -> Evidence:
    """Return which entries count in the loss of ``auto``, and why.

    Args:
        asked: The missing-label model and the scores that it was fitted to.
        targets: 1 for labelled, 0 for not labelled, NaN for unknown ``(N, C)``.
        absent: True where a person verified that an entry is absent.
        least_absent: Unlabelled entries that are less probably absent than this are masked.
        restored: True for labels that a review put back: they do not count as recorded.
    """
    model = asked.model
    if model.kind not in ("scar", "count"):
        return Evidence(None, f"{model.describe()} The loss is cross-entropy")
    if model.loglik_gain <= MIN_LOGLIK_GAIN:  # the number of labels alone is no evidence of which
        return Evidence(None, f"{model.describe()} Scores do not show which: cross-entropy")
    # An entry is masked only if the count rule and SCAR agree that it is probably present.
    recorded = targets if restored is None else targets.masked_fill(restored, 0.0)
    present = np.minimum(
        model.prob_present(asked.logits, recorded, verified=absent),
        model.prob_present(asked.logits, recorded, verified=absent, by_rule=False),
    )
    open_entries = targets == 0 if absent is None else (targets == 0) & ~absent
    masked = torch.from_numpy(1 - present < least_absent) & open_entries
    left_out = pluralize(int(masked.sum()), "unlabelled entry", "unlabelled entries")
    how = "probably" if least_absent < 0.5 else "possibly"
    told = f"The loss is cross-entropy without {left_out} that are {how} missing labels"
    return Evidence((~masked).float(), f"{model.describe()} {told}")
