"""Features, true labels and thinned labels of a simulated data set, for tests of the ranking."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.audit.find.top_k import Keys, entry_keys
from hilltop.data import LabelTable, State


@dataclass(frozen=True)
class Simulated:
    features: Tensor
    true: Tensor
    targets: Tensor
    labels: LabelTable

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        return ((self.true == 1) & (self.targets == 0)).numpy()

    def part(self, rows: slice) -> Simulated:
        targets = self.targets[rows]
        return Simulated(self.features[rows], self.true[rows], targets, table_of(targets))

    def save_features(self, path: Path) -> Path:
        np.savez(path, ids=np.array(self.labels.images.to_pylist()), X=self.features.numpy())
        return path


def simulate(
    images: int = 600,
    classes: int = 6,
    width: int = 12,
    *,
    keep: float = 0.5,
    shift: float = -3.0,
    seed: int = 0,
) -> Simulated:
    """Labels follow from features by a logistic model; each is kept with one chance."""
    chance = torch.Generator().manual_seed(seed)
    features = torch.randn(images, width, generator=chance)
    weights = torch.randn(width, classes, generator=chance)
    true = draw(features @ weights + shift, chance)
    targets = true * (torch.rand(images, classes, generator=chance) < keep)
    return Simulated(features, true, targets, table_of(targets))


def draw(logits: Tensor, chance: torch.Generator) -> Tensor:
    return (torch.rand(logits.shape, generator=chance) < torch.sigmoid(logits)).float()


def table_of(targets: Tensor) -> LabelTable:
    rows, columns = np.nonzero(targets.numpy())
    images = [f"image-{row}.jpg" for row in range(len(targets))]
    classes = [f"class {column}" for column in range(targets.shape[1])]
    return LabelTable.from_coo(
        images, classes, rows, columns, State.PRESENT, unlisted=State.UNKNOWN
    )


def block_keys(probs: npt.NDArray[np.float32]) -> Keys:
    """Keys of all pairs of a table."""
    return entry_keys(probs.ravel(), np.arange(probs.size))


def average_precision(scores: npt.NDArray[np.floating], truth: npt.NDArray[np.bool_]) -> float:
    """Mean over the true ones of the precision at their rank."""
    found = truth[np.argsort(-scores, kind="stable")]
    ranks = np.flatnonzero(found) + 1
    return float((np.arange(1, len(ranks) + 1) / ranks).mean())
