"""Suspects: labels, ranked by the probability that they are wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilltop.audit.find.candidates import Candidates
from hilltop.checks import pluralize
from hilltop.data import LabelTable, State
from hilltop.data.scores import Places
from hilltop.missing.logistic import Floats
from hilltop.missing.priors import MIN_WRONG_LABELS
from hilltop.missing.wrong import WrongLabelModel


@dataclass(frozen=True)
class WrongLabels:
    """Labels that may be wrong.

    Attributes:
        suspects: Labels, the most probable mistake first; probabilities are of being wrong.
        rates: Share of the labels of each class that is wrong.
        total: Number of labels that are probably wrong; without a sign of any it is 0, and the
            order of the suspects is all there is.
    """

    suspects: Candidates
    rates: Floats
    total: float

    @property
    def sentence(self) -> str:
        """Say how many are wrong."""
        if not self.total:
            return "the labels show no sign that any is wrong"
        labels = pluralize(round(self.total), "label", "labels")
        return f"scores do not support about {labels}, which may be wrong"


def wrong_labels(
    table: LabelTable, rows: Places, found: WrongLabelModel, suspects: Candidates
) -> WrongLabels:
    """Say how many labels are wrong.

    Args:
        table: The labels, as before.
        rows: Image numbers that were looked at.
        found: The share of each class that is wrong.
        suspects: Labels, the most probable mistake first.
    """
    counts = table.select(rows).counts_by_class(State.PRESENT)
    rates = np.where(counts >= MIN_WRONG_LABELS, found.rates, 0.0)
    total = float(rates @ counts)
    if not found.any_wrong or total < 1:
        return WrongLabels(suspects, np.zeros_like(rates), 0.0)
    return WrongLabels(suspects, rates, total)
