"""Random samples in which every pair has a known probability of its own."""

from __future__ import annotations

import numpy as np

from hilltop.calibration.arrays import Floats, Ints


def inclusion_probabilities(sizes: Floats, number: int) -> Floats:
    """Probabilities in proportion to sizes, none above 1, that add up to a number."""
    share = sizes / sizes.sum() if sizes.size else sizes
    number = min(number, len(sizes))
    inclusion = number * share
    while (inclusion > 1).any():
        sure = inclusion >= 1
        rest = share * ~sure
        if not rest.any():
            break
        inclusion = np.where(sure, 1.0, (number - sure.sum()) * rest / rest.sum())
    return np.minimum(inclusion, 1.0)


def systematic_sample(inclusion: Floats, rng: np.random.Generator) -> Ints:
    """Draw places, each with its own probability, in random order; their number is fixed."""
    order = rng.permutation(len(inclusion))
    reached = np.floor(np.cumsum(inclusion[order]) + rng.random())
    hit = np.diff(reached, prepend=0.0) >= 1
    return rng.permutation(order[hit]).astype(np.int64)
