"""Image by image: what else is in this picture, and are its labels right?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.data import LabelTable

MOST_CLASSES = 10
"""Candidates of an image that are asked about at the most; any class can be added by name."""
FEWEST_CLASSES = 3
LEAST_PROBABILITY = 0.02
"""Beyond the first few, candidates less probable than this are not asked about."""


@dataclass(frozen=True)
class ImageItem:
    """A class of an image that a person is asked about.

    Attributes:
        column: Class number.
        probability: That its label is missing; of a label, that it is wrong; None if nobody knows.
    """

    column: int
    probability: float | None


class WholeImages:
    """Images in the order in which to ask, with the candidates and labels of each."""

    def __init__(
        self, labels: LabelTable, index: CandidateIndex, suspects: CandidateIndex | None
    ) -> None:
        """Sort the pairs by image."""
        self._labels = labels
        self._candidates = _ByImage(index, len(labels))
        self._suspects = None if suspects is None else _ByImage(suspects, len(labels))
        gain = self._candidates.sums()
        rows = np.flatnonzero(self._candidates.counts())
        self.order: Ints = rows[np.argsort(-gain[rows], kind="stable")]

    def __len__(self) -> int:
        """Number of images with candidates."""
        return len(self.order)

    def candidates(self, row: int) -> list[ImageItem]:
        """The classes that an image may lack, the most probable first."""
        columns, probs = self._candidates.of(row)
        likely = probs >= LEAST_PROBABILITY
        likely[:FEWEST_CLASSES] = True
        return _items(columns[likely][:MOST_CLASSES], probs[likely][:MOST_CLASSES])

    def labels(self, row: int) -> list[ImageItem]:
        """The labels of an image, the most doubtful first."""
        known = {} if self._suspects is None else _as_dict(*self._suspects.of(row))
        names = self._labels.labels_of(row)
        found = [self._labels.classes.index(name) for name in names]
        found.sort(key=lambda column: -known.get(column, 0.0))
        return [ImageItem(column, known.get(column)) for column in found]


class _ByImage:
    """Pairs of an index sorted by image and, within it, by probability."""

    def __init__(self, index: CandidateIndex, images: int) -> None:
        columns = np.repeat(np.arange(len(index.starts) - 1, dtype=np.int32), np.diff(index.starts))
        order = np.lexsort((-index.probabilities, index.rows))
        self._columns, self._probs = columns[order], index.probabilities[order]
        self._starts = np.searchsorted(index.rows[order], np.arange(images + 1))

    def of(self, row: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        mine = slice(self._starts[row], self._starts[row + 1])
        return self._columns[mine], self._probs[mine]

    def counts(self) -> Ints:
        return np.diff(self._starts)

    def sums(self) -> npt.NDArray[np.float64]:
        """Number of labels that the probabilities of each image add up to."""
        total = np.concatenate([[0.0], np.cumsum(self._probs, dtype=np.float64)])
        found: npt.NDArray[np.float64] = total[self._starts[1:]] - total[self._starts[:-1]]
        return found


def _items(columns: npt.NDArray[np.int32], probs: npt.NDArray[np.float32]) -> list[ImageItem]:
    return [
        ImageItem(column, prob)
        for column, prob in zip(columns.tolist(), probs.tolist(), strict=True)
    ]


def _as_dict(columns: npt.NDArray[np.int32], probs: npt.NDArray[np.float32]) -> dict[int, float]:
    return dict(zip(columns.tolist(), probs.tolist(), strict=True))
