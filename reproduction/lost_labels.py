"""Data sets with complete labels, split into rows to train and to test on, and ways to lose labels.

A set is an ``.npz`` file with features ``X`` and complete 0/1 labels ``Y`` or ``Y_full``, or with
``X_train``, ``Y_train``, ``X_val``, ``Y_val`` and labels that are 1 where present. Further arrays
``Y_...`` of a set are incomplete lists that were released with it. A file ``NAME_areas.npz`` beside
sets whose names begin with NAME holds ``A``: the share of the picture that the largest object of a
class fills.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hilltop.data import (
    LabelTable,
    State,
    Step,
    drop_positives,
    keep_each,
    lose_by_annotator,
    lose_by_batch,
    lose_by_clarity,
    lose_by_class,
    lose_by_size,
)
from hilltop.data.simulation import Thinned, keep_with
from hilltop.training.heads import cross_validate
from hilltop.training.learner import head_loss

Array = npt.NDArray[Any]
LEAST_LABELS, TRAIN_SHARE = 10, 0.6
LEARN_SHARE, LEAST_LEARNED = 0.75, 5
"""Share of held-out cells that learns, and labels that a class needs there."""


@dataclass(frozen=True)
class Cell:
    """One set at one seed: features and complete labels, to train and to test on.

    Attributes:
        features: To train with.
        labels: Theirs.
        test_features: To test with.
        test_labels: Theirs.
        sizes: Share of the picture that objects of the training rows fill, if it is known.
        released: Incomplete labels of the training rows, by name.
    """

    features: Array
    labels: Array
    test_features: Array
    test_labels: Array
    sizes: Array | None = None
    released: dict[str, Array] | None = None

    @classmethod
    def read(cls, path: Path, seed: int, *, first: int | None = None) -> Cell:
        """Read and split a file.

        Args:
            path: The file.
            seed: Of the rows to train with, unless the file or ``first`` says which.
            first: How many of the first rows to train with.
        """
        content = np.load(path)
        released = {}
        if "X_train" in content:
            both = (content[name] for name in ("X_train", "Y_train", "X_val", "Y_val"))
            features, labels, test_features, test_labels = both
        else:
            full = "Y" if "Y" in content else "Y_full"
            features, labels = content["X"], content[full]
            order = np.random.default_rng(seed).permutation(len(features))
            order = order if first is None else np.arange(len(features))
            train, test = np.split(order, [first or int(TRAIN_SHARE * len(order))])
            names = [name for name in content if name.startswith("Y_") and name != full]
            released = {name: content[name][train] == 1 for name in names}
            test_features, test_labels = features[test], labels[test]
            features, labels = features[train], labels[train]
        wide = (labels == 1).sum(axis=0) >= LEAST_LABELS
        sizes = read_sizes(path, len(features))
        numbers = (np.asarray(one, dtype=np.float32) for one in (features, test_features))
        return cls(
            next(numbers),
            labels[:, wide] == 1,
            next(numbers),
            test_labels[:, wide] == 1,
            None if sizes is None else sizes[:, wide],
            {name: left[:, wide] for name, left in released.items()},
        )

    def held_out(self, seed: int, *, most: int | None = None) -> Cell:
        """Training rows split once more, to choose by; the test rows take no part.

        Args:
            seed: Of the split.
            most: How many training rows to take.
        """
        rows = np.random.default_rng(seed).permutation(len(self.features))[:most]
        learn, judge = np.split(rows, [int(LEARN_SHARE * len(rows))])
        wide = self.labels[learn].sum(axis=0) >= LEAST_LEARNED
        parts = (self.features[learn], self.labels[learn][:, wide])
        return Cell(*parts, self.features[judge], self.labels[judge][:, wide])

    def table(self) -> LabelTable:
        """The complete labels to train with, as a table."""
        images = [str(row) for row in range(len(self.labels))]
        names = [str(column) for column in range(self.labels.shape[1])]
        places = self.labels.nonzero()
        return LabelTable.from_coo(images, names, *places, State.PRESENT, unlisted=State.ABSENT)

    def ways(self) -> list[str]:
        """Ways in which labels of this set can be lost."""
        return [*WAYS, *(SIZED if self.sizes is not None else ()), *(self.released or ())]

    def lose(self, way: str, seed: int) -> Array:
        """Return the training labels that are left."""
        if self.released and way in self.released:
            return self.released[way]
        left: Array = (WAYS | SIZED)[way](self, seed).table.dense() == State.PRESENT
        return left


def read_sizes(path: Path, rows: int) -> Array | None:
    """Sizes of objects in the training rows, from a file beside the set, if there is one."""
    for beside in sorted(path.parent.glob("*_areas.npz")):
        sizes = np.load(beside)["A"]
        if path.stem.startswith(beside.stem.removesuffix("_areas")) and len(sizes) == rows:
            return np.asarray(sizes, dtype=np.float64)
    return None


def by_clarity(cell: Cell, seed: int) -> Thinned:
    """Clear cases first, as heads see them that learned from complete labels of other rows."""
    targets = torch.from_numpy(cell.labels).float()
    loss = head_loss("bce", reduction="sum")
    scores = cross_validate(torch.from_numpy(cell.features), targets, loss, seed=seed).logits
    return lose_by_clarity(cell.table(), scores.numpy(), seed=seed)


def largest_alone(cell: Cell, seed: int) -> Thinned:
    """Only the class of the largest object of each picture."""
    assert cell.sizes is not None
    sizes = np.where(cell.labels, cell.sizes, -1.0)
    stays = np.zeros(sizes.shape)
    stays[np.arange(len(stays)), sizes.argmax(axis=1)] = 1.0
    return keep_with(cell.table(), stays, step=Step("largest_alone"), seed=seed)


WAYS: dict[str, Callable[[Cell, int], Thinned]] = {
    "none": lambda cell, seed: keep_each(cell.table(), 1.0, seed=seed),
    "r0.5": lambda cell, seed: drop_positives(cell.table(), "0.5", seed=seed),
    "r0.8": lambda cell, seed: drop_positives(cell.table(), "0.8", seed=seed),
    "r1": lambda cell, seed: drop_positives(cell.table(), 1, seed=seed),
    "u0.3": lambda cell, seed: keep_each(cell.table(), 0.3, seed=seed),
    "u0.5": lambda cell, seed: keep_each(cell.table(), 0.5, seed=seed),
    "u0.8": lambda cell, seed: keep_each(cell.table(), 0.8, seed=seed),
    "class": lambda cell, seed: lose_by_class(cell.table(), seed=seed),
    "clarity": by_clarity,
    "batch": lambda cell, seed: lose_by_batch(cell.table(), seed=seed),
    "annotator": lambda cell, seed: lose_by_annotator(cell.table(), seed=seed),
}
SIZED: dict[str, Callable[[Cell, int], Thinned]] = {
    "largest": largest_alone,
    "size": lambda cell, seed: lose_by_size(cell.table(), cell.sizes, seed=seed),
}
