"""Answers of people about single pairs, with the probability with which each was asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilltop.checks import check_same_shape
from hilltop.errors import ArgumentError
from hilltop.metrics.arrays import Floats

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SampledAnswers:
    """What people said of pairs; all arrays have one entry an answer.

    Attributes:
        rows: Image numbers.
        columns: Class numbers.
        present: Whether the class is there.
        sampled_with: The probability with which the pair was drawn, among those that were open
            then; NaN for a pair that was not drawn at random: it is known, and stands for no other.
        batch: Number of the sample that it was drawn in, earlier ones first.
    """

    rows: Ints
    columns: Ints
    present: Flags
    sampled_with: Floats
    batch: Ints

    def __post_init__(self) -> None:
        """Check that entries fit together."""
        for name in ("columns", "present", "sampled_with", "batch"):
            check_same_shape(name, getattr(self, name).shape, "rows", self.rows.shape)
        outside = self.sampled_with[(self.sampled_with <= 0) | (self.sampled_with > 1)]
        if outside.size:
            raise ArgumentError(
                "sampled_with must be greater than 0 and at most 1, or NaN,"
                f" but got {float(outside[0])!r}."
            )

    @classmethod
    def none(cls) -> SampledAnswers:
        """Return no answers."""
        whole, empty = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(whole, whole, np.zeros(0, dtype=bool), empty, whole)

    def __len__(self) -> int:
        """Number of answers."""
        return len(self.rows)

    def correction_weights(self) -> Floats:
        r"""How often each residual counts besides its own pair.

        .. math:: T = \sum_i p_i + \sum_{i \in S} \frac{y_i - p_i}{\pi_i}

        is the difference estimator of one sample. Every sample estimates what was open when it was
        drawn; their estimates are averaged by size. Answers are put in place of p before, so that
        one is taken off for every sample that could have contained the pair.
        """
        at_random = ~np.isnan(self.sampled_with)
        weights = np.zeros(len(self))
        total = max(1, int(at_random.sum()))
        for batch in np.unique(self.batch[at_random]):
            mine = at_random & (self.batch == batch)
            share = mine.sum() / total
            weights[mine] += share / self.sampled_with[mine]
            weights[at_random & (self.batch >= batch)] -= share
        return weights

    def variance_weights(self) -> Floats:
        """How much the square of each residual adds to the variance of the estimator."""
        at_random = ~np.isnan(self.sampled_with)
        weights = np.zeros(len(self))
        total = max(1, int(at_random.sum()))
        for batch in np.unique(self.batch[at_random]):
            mine = at_random & (self.batch == batch)
            prob = self.sampled_with[mine]
            weights[mine] = (mine.sum() / total) ** 2 * (1 - prob) / prob**2
        return weights
