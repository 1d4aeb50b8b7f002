"""Expected average precision of one class, and the first entries of each image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.missing.logistic import Floats


class RankedColumn:
    r"""Scores of one class, ready for many probabilities of truth.

    .. math::
        E[AP] \approx \frac{1}{P} \sum_i \frac{p_i}{r_i} (1 + \sum_{j \neq i, s_j \ge s_i} p_j)

    r is the rank and P the sum of p; ties share the last rank. It is average precision where p is 0
    or 1.

    Args:
        scores: Of the images that take part ``(N,)``.

    Example:
        >>> column = RankedColumn(np.array([0.9, 0.8, 0.1]))
        >>> [round(float(value), 3) for value in column.average_precision(np.array([[1.0, 0, 1]]))]
        [0.833]
    """

    def __init__(self, scores: npt.NDArray[Any]) -> None:
        """Sort once."""
        self._order = np.argsort(-scores, kind="stable")
        ranked = scores[self._order]
        ends = np.append(ranked[1:] < ranked[:-1], True) if ranked.size else np.zeros(0, bool)
        group = np.cumsum(np.append(0, ends[:-1])) if ranked.size else np.zeros(0, np.int64)
        last = np.flatnonzero(ends)
        self._last = last[group]
        self._first = np.append(0, last[:-1] + 1)[group] if ranked.size else group
        self._rank = self._last + 1.0
        self._tied = not ends.all()

    def average_precision(self, probs: Floats) -> Floats:
        """Return it for each row of probabilities ``(draws, N)``; 0 where there are none."""
        ranked = probs[:, self._order]
        summed = np.cumsum(ranked, axis=1, dtype=np.float64)
        hits = summed[:, self._last] if self._tied else summed
        found: Floats = (ranked * (hits + 1 - ranked)) @ (1 / self._rank)
        positives = summed[:, -1] if ranked.shape[1] else np.zeros(len(ranked))
        np.divide(found, positives, out=found, where=positives > 0)
        return found

    def gradient(self, probs: Floats) -> Floats:
        """Return how much it grows with the probability of each entry ``(N,)``."""
        ranked = probs[self._order]
        positives = ranked.sum()
        if positives <= 0:
            return np.zeros_like(probs)
        hits = np.cumsum(ranked)[self._last]
        shares = ranked / self._rank
        below = np.cumsum(shares[::-1])[::-1][self._first]
        value = (shares * (hits + 1 - ranked)).sum() / positives
        gradient = np.empty_like(probs)
        gradient[self._order] = ((hits + 1 - 2 * ranked) / self._rank + below - value) / positives
        return gradient


def top_entries(
    scores: npt.NDArray[Any], known: npt.NDArray[np.bool_], ks: Sequence[int]
) -> tuple[npt.NDArray[np.bool_], ...]:
    """Which entries are among the first k of their image, for each k; earlier classes win ties."""
    order = np.argsort(np.where(known, -scores, np.inf), axis=1, kind="stable")[:, : max(ks)]
    found = []
    for k in ks:
        top = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(top, order[:, :k], True, axis=1)
        found.append(top & known)
    return tuple(found)


def scar_map(scores: npt.NDArray[Any], targets: Floats, frequency: Floats) -> float:
    r"""Return the mAP that incomplete labels imply at given label frequencies.

    .. math:: AP = \frac{1}{|L|} \sum_{i \in L} \frac{1 + (h_i - 1) / c}{r_i}

    Under SCAR the labels L are a random sample of the positives, so that the number of positives
    above a label is that of labels divided by c. It needs no calibration: of two models that are
    judged by the same labels, none has a part in what counts as true.

    Args:
        scores: Of one model ``(N, C)``.
        targets: 1 labelled, 0 not labelled, NaN for entries that take no part.
        frequency: Label frequency of each class.

    Example:
        >>> scores, labels = np.array([[0.9], [0.8], [0.1]]), np.array([[1.0], [0.0], [1.0]])
        >>> round(scar_map(scores, labels, np.array([1.0])), 3)
        0.833
    """
    found = []
    for column, one in enumerate(frequency):
        there = ~np.isnan(targets[:, column])
        order = np.argsort(-scores[there, column], kind="stable")
        labelled = targets[there, column][order] == 1
        if labelled.any():
            hits, rank = np.cumsum(labelled)[labelled], np.flatnonzero(labelled) + 1
            found.append(np.minimum((1 + (hits - 1) / one) / rank, 1.0).mean())
    return float(np.mean(found)) if found else 0.0
