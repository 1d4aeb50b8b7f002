"""Suspects: labels, ranked by the probability that they are wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilltop.audit.find.candidates import MOST_OF_HUGE, Candidates, KeptKeys, block_rows, pair_keys
from hilltop.audit.find.score_blocks import LogitBlocks, label_block
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


def find_wrong(
    table: LabelTable,
    logits: LogitBlocks,
    rows: Places,
    sample: tuple[Tensor, Places],
    belief: Belief,
) -> WrongLabels:
    """Find out which share of the labels is wrong, and rank them.

    Args:
        table: The labels as they were before a review: what people confirmed is none of these.
        logits: Out-of-sample logits of images in the order of ``rows``.
        rows: Image numbers that have logits.
        sample: Logits of some images, with their numbers, to fit rates to.
        belief: How labels were lost.
    """
    some, places = sample
    targets, observed, _ = label_block(table, places)
    keep = torch.from_numpy(np.exp(belief.posterior.mean())).float()
    found = find_false_labels(some, targets, keep, observed=_confirmed_absent(targets, observed))
    suspects = _rank(table, logits, rows, found)
    counts = table.select(rows).counts_by_class(State.PRESENT)
    rates = np.where(counts >= LEAST_LABELS, found.rates, 0.0)
    total = float(rates @ counts)
    if not found.any_wrong or total < 1:
        return WrongLabels(suspects, np.zeros_like(rates), False, 0.0)
    return WrongLabels(suspects, rates, True, total)


def _confirmed_absent(targets: Tensor, observed: Tensor | None) -> Tensor | None:
    return None if observed is None else observed & (targets == 0)


def _rank(table: LabelTable, logits: LogitBlocks, rows: Places, found: FalseLabels) -> Candidates:
    width = len(table.classes)
    labelled = table.count(State.PRESENT)
    kept = KeptKeys(min(labelled, MOST_OF_HUGE), labelled)
    step = block_rows(width)
    for first in range(0, len(rows), step):
        chosen = rows[first : first + step]
        targets, _, _ = label_block(table, chosen)
        wrong = found.wrong_probability(logits(first, first + len(chosen)))
        kept.add(pair_keys(wrong.numpy(), (targets == 1).numpy(), chosen))
    return Candidates(kept.sorted(), width)
