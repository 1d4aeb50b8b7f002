"""What scores that never saw the labels say about labels that are missing, and how sure that is.

Counts of labels cannot tell "annotators stopped after one" from "there is only one"; scores often
can. "Nothing is missing" is among what is compared, and wins unless the labels speak against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from hilltop.calibration.keep_rate import Fitted
from hilltop.calibration.observation import TINY_RESTORE_PROB
from hilltop.calibration.posterior import present_probability
from hilltop.calibration.profile import LOG_KEEP, Floats, profile, shrink
from hilltop.calibration.scaling import calibrate
from hilltop.losses.likelihood.choose import summed_by_count, summed_independently

Kind = Literal["nothing", "independent", "count"]

RATIOS = ("0.5", "0.8", "1")
"""Missing ratios of the paper's rule that are tried."""
CAUTION = 0.15
"""Training takes keep rates this much nearer to 1, in log keep: too little does no harm."""
COMPLETE = -0.02
"""From this log keep on a class is taken to be complete."""
LEAST_GAIN = 0.1
"""Nats a row by which a count rule must beat a keep rate of its own for each class."""
CAUTIOUS_EMPTY = 0.05
"""Share of rows without a label up to which training believes in a count rule."""
CONTRADICTED = 3.0
"""Nats: scores contradict a keep rate that is worse than 1 by more."""


@dataclass(frozen=True)
class Belief:
    """How labels were lost, as far as scores tell.

    Attributes:
        kind: Whether nothing is missing, each label was kept by itself, or a number of them.
        keep: Share of the true labels that was written down, for each class.
        cautious: The model for training, with keep rates at their cautious end; None for "nothing".
        sentence: What was found, in words.
    """

    kind: Kind
    keep: Floats
    cautious: Fitted | None
    sentence: str

    def absent_probability(
        self, logits: Tensor, targets: Tensor, *, observed: Tensor | None = None
    ) -> Tensor:
        """Return how probable it is that each unlabelled pair is really absent; 1 for the others.

        Args:
            logits: Scores that never saw these labels ``(N, C)``.
            targets: 1 for labelled, 0 for not labelled, NaN for unknown.
            observed: True where a person confirmed the target.
        """
        weight = torch.ones_like(logits, dtype=torch.float32)
        if self.cautious is None:
            return weight
        labelled = targets.nan_to_num().float()
        moved = self.cautious.calibration(logits.float())
        present = present_probability(self.cautious.loss, moved, labelled)
        open_pairs = targets == 0
        if observed is not None:
            open_pairs &= ~observed
        if self.kind == "independent":
            complete = np.log(self.keep) + CAUTION > COMPLETE
            open_pairs &= ~torch.from_numpy(complete)
        return torch.where(open_pairs, 1 - present, weight)


def believe(logits: Tensor, targets: Tensor, *, observed: Tensor | None = None) -> Belief:
    """Find out how labels were lost.

    Args:
        logits: Scores that never saw these labels, best of cross-entropy ``(N, C)``.
        targets: 1 for labelled, 0 for not labelled, NaN for unknown.
        observed: True where a person confirmed that a pair is absent.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> logits = 6 * torch.randn(2000, 3, generator=generator)
        >>> true = torch.rand(2000, 3, generator=generator) < torch.sigmoid(logits)
        >>> kept = true & (torch.rand(2000, 3, generator=generator) < 0.5)
        >>> believe(logits, true.float()).kind, believe(logits, kept.float()).kind
        ('nothing', 'independent')
    """
    logits, targets = logits.float(), targets.float()
    found = profile(logits, targets, observed=observed)
    rates = shrink(found.costs)
    counted = _counted(logits, targets, observed, found.costs)
    if counted is not None:
        return counted
    cautious = np.minimum(0.0, rates.mean + CAUTION)
    if (cautious > COMPLETE).all():
        sentence = "the labels show no sign that any is missing"
        return Belief("nothing", np.ones(len(cautious)), None, sentence)
    loss = summed_independently(torch.from_numpy(np.exp(cautious)).float())
    labelled = targets.nansum(dim=0).double().numpy()
    share = labelled.sum() / max(1e-9, float((labelled * np.exp(-rates.mean)).sum()))
    sentence = (
        f"about {share:.0%} of the true labels were written down, each by itself, as far as scores"
        " can tell"
    )
    model = Fitted(loss, found.calibration(cautious))
    return Belief("independent", np.exp(rates.mean), model, sentence)


def _counted(
    logits: Tensor, targets: Tensor, observed: Tensor | None, costs: Floats
) -> Belief | None:
    """A count rule, where scores support it much better than keep rates, and nothing forbids it."""
    if float((targets.nansum(dim=1) == 0).float().mean()) > CAUTIOUS_EMPTY:
        return None
    models = []
    for ratio in RATIOS:
        loss = summed_by_count(ratio, restore_prob=TINY_RESTORE_PROB)
        made = calibrate(loss, logits, targets, observed=observed)
        models.append((made.loss, ratio, Fitted(loss, made)))
    cost, ratio, model = min(models, key=lambda one: one[0])
    gain = (float(costs.min(axis=0).sum()) - cost) / len(targets)
    present = present_probability(model.loss, model.calibration(logits), targets)
    missing = (present * (targets == 0)).sum(dim=0).double().numpy()
    labelled = targets.nansum(dim=0).double().numpy()
    keep = labelled.sum() / max(1e-9, float((labelled + missing).sum()))
    at_keep = np.interp(-np.log(max(0.7, keep)), -LOG_KEEP, costs.sum(axis=1))
    if gain <= LEAST_GAIN or at_keep >= costs[0].sum() + CONTRADICTED:
        return None
    sentence = (
        f"of t labels of an image floor(t (1 - r)) + 1 were written down, r = {ratio},"
        f" about {keep:.0%} of all; scores prefer it to independent loss by {gain:.2f} nats an"
        " image"
    )
    return Belief("count", labelled / np.maximum(labelled + missing, 1e-9), model, sentence)
