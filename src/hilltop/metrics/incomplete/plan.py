"""Which pairs to ask a person about, so that intervals become narrow soonest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilltop.metrics.arrays import Floats
from hilltop.metrics.incomplete.answers import Ints
from hilltop.metrics.incomplete.metrics_of_sums import NAMES

LEAST_UNCERTAINTY = 0.1
"""A pair is drawn as if its standard deviation were no less: probabilities near 0 may be wrong.
With less, few samples meet a rare yes there, which then counts for hundreds of pairs; estimates of
the others are too high, and their intervals too narrow."""
PURPOSES = {"mAP": 0.7, "OF1": 0.15, "P@3": 0.15}
"""How much the intervals of metrics count when pairs are chosen."""


@dataclass(frozen=True, eq=False)
class PlannedPairs:
    """Pairs to ask about; all arrays have one entry a pair.

    Attributes:
        rows: Image numbers.
        columns: Class numbers.
        probs: Probability that the class is there.
        sampled_with: Probability with which the pair was drawn.
    """

    rows: Ints
    columns: Ints
    probs: Floats
    sampled_with: Floats


def sampling_sizes(gradient: Floats, probs: Floats) -> Floats:
    r"""How often pairs are drawn, in proportion, so that estimates vary least (Neyman).

    .. math:: \pi_i \propto |\partial \theta / \partial y_i| \sqrt{p_i (1 - p_i)}

    Args:
        gradient: How much each pair moves each metric ``(pairs, metrics)``.
        probs: Probability that each answer is yes.
    """
    spread = np.sqrt(probs * (1 - probs) + LEAST_UNCERTAINTY**2)
    total = np.zeros(len(probs))
    for name, weight in PURPOSES.items():
        size = np.abs(gradient[:, NAMES.index(name)]) * spread
        total += weight * (size / max(size.sum(), 1e-300)) ** 2
    sizes: Floats = np.sqrt(total)
    return sizes if sizes.any() else np.ones_like(sizes)
