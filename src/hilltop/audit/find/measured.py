"""How many labels are missing, from a sample that was drawn with known probabilities.

The queue for measuring asks more about pairs whose answer is uncertain. Its answers are no fair
sample as they are; divided by the probability of being drawn, they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilltop.audit.decisions.answers import Answers, resolve
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.checks import pluralize
from hilltop.data import LabelTable
from hilltop.data.csv_rows import read_rows
from hilltop.data.data_errors import data_error

Floats = npt.NDArray[np.float64]
_QUANTILE = 1.645  # of a 90% interval
_SAMPLE_COLUMNS = ("image", "class", "probability", "sampled_with", "drawn")


@dataclass(frozen=True)
class Measured:
    """What a weighted sample says of all classes together.

    Attributes:
        missing: Number of missing labels.
        low: Lower end of the 90% interval.
        high: Upper end of the 90% interval.
        answers: Number of answers it rests on.
    """

    missing: float
    low: float
    high: float
    answers: int

    @property
    def sentence(self) -> str:
        """Say what was found."""
        pairs = pluralize(self.answers, "pair", "pairs")
        return (
            f"weighted sample ({pairs}, all classes): {self.missing:,.0f} missing labels"
            f" ({self.low:,.0f} to {self.high:,.0f})."
        )


def weighted_total(
    expected: float, probs: Floats, present: Floats, sampled_with: Floats
) -> Measured:
    r"""Add up missing labels by the difference estimator.

    .. math:: \sum_{i} p_i + \sum_{i \in S} \frac{y_i - p_i}{\pi_i}

    It is unbiased whatever the probabilities p of the audit are worth; the better they are, the
    narrower is the interval.

    Args:
        expected: Sum of the audit's probabilities of all pairs that were drawn from.
        probs: Probabilities of the pairs that were drawn.
        present: 1 where the label is missing, 0 where the class is absent.
        sampled_with: Probability with which each was drawn.

    Example:
        >>> round(weighted_total(10.0, np.array([0.5]), np.array([1.0]), np.array([0.25])).missing)
        12
    """
    weighted = (present - probs) / sampled_with
    missing = expected + float(weighted.sum())
    spread = math.sqrt(float(((1 - sampled_with) * weighted**2).sum()))
    least = float(present.sum())
    low, high = missing - _QUANTILE * spread, missing + _QUANTILE * spread
    return Measured(max(least, missing), max(least, low), max(least, high), len(present))


def measured(folder: AuditFolder, table: LabelTable, answers: Answers) -> Measured | None:
    """Return what the last sample of the queue for measuring says; None without answers to it."""
    if not folder.sample.is_file():
        return None
    drawn_at, drawn = _read_sample(folder.sample)
    index = CandidateIndex.read(folder, table)
    told = {
        pair: outcome == "present"
        for pair in drawn
        if (outcome := resolve(answers.votes(pair[1], pair[0]).values())) in ("present", "absent")
    }
    if not told:
        return None
    expected, found = _population(index, table, answers, drawn_at)
    probs = np.array([drawn[pair][0] for pair in told])
    # The sample is in random order: of those answered, any could have been any other.
    sampled_with = np.array([drawn[pair][1] for pair in told]) * len(told) / len(drawn)
    present = np.array(list(told.values()), dtype=np.float64)
    total = weighted_total(expected, probs, present, sampled_with)
    return Measured(total.missing + found, total.low + found, total.high + found, total.answers)


def _population(
    index: CandidateIndex, table: LabelTable, answers: Answers, drawn_at: str
) -> tuple[float, int]:
    """Sum of probabilities of the pairs that were open then, and labels found among the others."""
    row_of = {name: row for row, name in enumerate(table.images.to_pylist())}
    expected, found = 0.0, 0
    for column, name in enumerate(table.classes):
        expected += index.expected(column)
        for image, votes in answers.pairs(name):
            place = index.place(column, row_of[image]) if image in row_of else None
            if place is not None and min(vote.time for vote in votes.values()) < drawn_at:
                expected -= float(index.class_probabilities(column)[place])
                found += resolve(votes.values()) == "present"
    return expected, found


def _read_sample(path: Path) -> tuple[str, dict[tuple[str, str], tuple[float, float]]]:
    """When the sample was drawn, and by image and class the probability and that of being drawn."""
    try:
        rows = [cells for _, cells in read_rows(path, _SAMPLE_COLUMNS)]
        found = {
            (row["image"], row["class"]): (float(row["probability"]), float(row["sampled_with"]))
            for row in rows
        }
        return rows[0]["drawn"], found
    except (ValueError, IndexError):
        raise data_error(path, "this file is damaged. Draw the sample again.") from None
