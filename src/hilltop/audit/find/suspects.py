"""Suspects: labels, ranked by the probability that they are wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilltop.audit.find.candidates import Candidates
from hilltop.audit.find.score_blocks import label_block
from hilltop.calibration.arrays import Floats
from hilltop.calibration.belief import Belief
from hilltop.calibration.false_labels import FalseLabels, find_false_labels
from hilltop.checks import pluralize
from hilltop.data import LabelTable, State
from hilltop.data.scores import Places

LEAST_LABELS = 50
"""Of a class with fewer labels no number is said: a weak classifier looks like wrong labels."""


@dataclass(frozen=True)
class WrongLabels:
    """Labels that may be wrong.

    Attributes:
        suspects: Labels, the most probable mistake first; probabilities are of being wrong.
        rates: Share of the labels of each class that is wrong.
        any_wrong: Whether the labels show that some are; otherwise the order is all there is.
        total: Number of labels that are probably wrong; 0 without a sign of any.
    """

    suspects: Candidates
    rates: Floats
    any_wrong: bool
    total: float

    @property
    def sentence(self) -> str:
        """Say how many are wrong."""
        if not self.any_wrong:
            return "the labels show no sign that any is wrong"
        labels = pluralize(round(self.total), "label", "labels")
        return f"scores do not support about {labels}, which may be wrong"


def fit_wrong(table: LabelTable, sample: tuple[Tensor, Places], belief: Belief) -> FalseLabels:
    """Find out which share of the labels is wrong.

    Args:
        table: The labels as they were before a review: what people confirmed is none of these.
        sample: Logits of some images, with their numbers.
        belief: How labels were lost.
    """
    some, places = sample
    targets, observed, _ = label_block(table, places)
    keep = torch.from_numpy(np.exp(belief.posterior.mean())).float()
    return find_false_labels(some, targets, keep, observed=_confirmed_absent(targets, observed))


def wrong_labels(
    table: LabelTable, rows: Places, found: FalseLabels, suspects: Candidates
) -> WrongLabels:
    """Say how many labels are wrong.

    Args:
        table: The labels, as before.
        rows: Image numbers that were looked at.
        found: The share of each class that is wrong.
        suspects: Labels, the most probable mistake first.
    """
    counts = table.select(rows).counts_by_class(State.PRESENT)
    rates = np.where(counts >= LEAST_LABELS, found.rates, 0.0)
    total = float(rates @ counts)
    if not found.any_wrong or total < 1:
        return WrongLabels(suspects, np.zeros_like(rates), False, 0.0)
    return WrongLabels(suspects, rates, True, total)


def _confirmed_absent(targets: Tensor, observed: Tensor | None) -> Tensor | None:
    return None if observed is None else observed & (targets == 0)
