"""Scores of a model with what it predicts, and which classes it puts first for each image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.metrics.arrays import Floats
from hilltop.metrics.incomplete.answers import Flags

TOP_KS = (1, 3, 5)
"""Precision is measured at these numbers of tags an image."""


@dataclass(frozen=True, eq=False)
class JudgedModel:
    """Scores of one model, with what it predicts.

    Attributes:
        scores: ``(N, C)``.
        predicted: Which pairs are predictions.
        top: For each of ``TOP_KS``, which pairs are among the first of their image.
    """

    scores: npt.NDArray[Any]
    predicted: Flags
    top: tuple[Flags, ...]

    @classmethod
    def of(cls, scores: npt.NDArray[Any], threshold: Any, known: Flags) -> JudgedModel:
        """Decide by a threshold, and rank within images."""
        predicted = (scores.astype(np.float64) > threshold) & known
        return cls(scores, predicted, top_pairs(scores, known, TOP_KS))

    def flags(self, column: int) -> Floats:
        """What hits, positives and hits among the first count ``(N, 2 + len(TOP_KS))``."""
        predicted = self.predicted[:, column]
        tops = [top[:, column] for top in self.top]
        return np.stack([predicted, np.ones_like(predicted), *tops], axis=1).astype(np.float64)


def top_pairs(scores: npt.NDArray[Any], known: Flags, ks: Sequence[int]) -> tuple[Flags, ...]:
    """Which pairs are among the first k of their image, for each k; earlier classes win ties."""
    order = np.argsort(np.where(known, -scores, np.inf), axis=1, kind="stable")[:, : max(ks)]
    found = []
    for k in ks:
        top = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(top, order[:, :k], True, axis=1)
        found.append(top & known)
    return tuple(found)
