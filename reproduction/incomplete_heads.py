"""Linear heads that learned from incomplete labels, and test rows whose labels are lost as well.

What ``incomplete_tests.py`` judges; scores are kept, a file for each set, way and seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from lost_labels import Array, Cell

from hilltop.data import State, lose_by_clarity
from hilltop.training.learner import head_loss

MOST_TRAIN, MOST_TEST, FOLDS, LEAST_LABELS = 2000, 1000, 4, 3
TIMES = 3
"""How often labels of the test rows are lost anew."""
PENALTY = 0.1
"""Of a head, for each row that it learns from; features are standardised."""
MODELS = {"bce": ("bce", 1), "hill": ("hill", 1), "bce third": ("bce", 3)}
"""Loss of each model, and of how many training rows it saw one."""


@dataclass(frozen=True)
class Tested:
    """Models and the test set they are judged by.

    Attributes:
        probs: Of each model ``(N, C)``.
        labels: What is left of the labels, lost anew a few times ``(times, N, C)``.
        true: All of them ``(N, C)``.
    """

    probs: dict[str, Array]
    labels: Array
    true: Array

    @classmethod
    def make(cls, place: Place) -> Tested:
        """Train heads, and lose labels of the test rows."""
        seed = int(place.seed)
        train, test = prepared(place.path, seed)
        left = lost(train, place.way, seed)
        test_left = np.stack(
            [lost(test, place.way, 100 * (turn + 1) + seed) for turn in range(TIMES)]
        )
        there = (test_left.sum(axis=1) >= LEAST_LABELS).all(axis=0)
        probs = {
            name: trained(train.features[::every], left[::every], loss, test)
            for name, (loss, every) in MODELS.items()
        }
        kept = {name: found[:, there] for name, found in probs.items()}
        return cls(kept, test_left[:, :, there], test.labels[:, there])

    @classmethod
    def read(cls, path: Path) -> Tested:
        """Take a file that holds them already."""
        content = np.load(path)
        probs = {name: content[name].astype(np.float64) for name in MODELS}
        return cls(probs, content["labels"], content["true"])

    def save(self, path: Path) -> None:
        """Keep them for another time."""
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, labels=self.labels, true=self.true, **self.probs)


@lru_cache(maxsize=1)
def prepared(path: Path, seed: int) -> tuple[Cell, Cell]:
    """Rows to train and to test with."""
    cell = Cell.read(path, seed)
    train, test = (
        Cell(features[:most], labels[:most], features[:1], labels[:1])
        for features, labels, most in (
            (cell.features, cell.labels, MOST_TRAIN),
            (cell.test_features, cell.test_labels, MOST_TEST),
        )
    )
    return train, test


def lost(cell: Cell, way: str, seed: int) -> Array:
    """Labels that are left."""
    if way != "salient":
        return cell.lose(way, seed)
    clear = ridge_scores(cell.features, cell.labels, np.random.default_rng(seed))
    left: Array = lose_by_clarity(cell.table(), clear, seed=seed).table.dense() == State.PRESENT
    return left


def ridge_scores(features: Array, labels: Array, rng: np.random.Generator) -> Array:
    """How clear each pair is: out-of-fold scores of a ridge regression on complete labels."""
    spread = features.std(axis=0) + 1e-6
    rows = np.c_[(features - features.mean(axis=0)) / spread, np.ones(len(features))]
    fold, scores = rng.permutation(len(rows)) % FOLDS, np.zeros(labels.shape)
    for number in range(FOLDS):
        learn, judge = rows[fold != number], rows[fold == number]
        inner = learn.T @ learn + len(learn) * np.eye(rows.shape[1])
        weights = np.linalg.solve(inner, learn.T @ labels[fold != number])
        scores[fold == number] = judge @ weights
    return scores


def trained(features: Array, left: Array, name: str, test: Cell) -> Array:
    """Probabilities on test rows, by a linear head that learned from incomplete labels.

    Heads are fitted to the end by L-BFGS with one penalty for all sets: what is judged here is the
    estimate of their scores, whatever they are.
    """
    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-6
    rows, judged = (
        torch.from_numpy(np.c_[(one - mean) / spread, np.ones(len(one))]).float()
        for one in (features, test.features)
    )
    targets, loss = torch.from_numpy(left).float(), head_loss(name, reduction="sum")
    share = (left.sum(axis=0) + 0.5) / (len(left) + 1)
    weights = torch.zeros(rows.shape[1], left.shape[1])
    weights[-1] = torch.from_numpy(np.log(share / (1 - share))).float()
    weights.requires_grad_()
    search = torch.optim.LBFGS(
        [weights], max_iter=30, line_search_fn="strong_wolfe", tolerance_change=0.1
    )

    def cost() -> torch.Tensor:
        search.zero_grad()
        held = PENALTY * len(rows) * weights[:-1].square().sum() / 2
        total = loss(rows @ weights, targets) + held
        total.backward()
        return total

    search.step(cost)
    with torch.no_grad():
        return torch.sigmoid(judged @ weights).double().numpy()


@dataclass(frozen=True)
class Place:
    """A file, and how its labels are lost."""

    path: Path
    name: str
    way: str
    seed: str

    def tested(self, kept: Path) -> Tested:
        """Read scores, or train."""
        path = kept / f"{self.name}.{self.way}.{self.seed}.npz"
        if not path.is_file():
            Tested.make(self).save(path)
        return Tested.read(path)


def cells(folder: Path, ways: list[str], seeds: list[str]) -> Iterator[Place]:
    """What a folder offers."""
    for seed in seeds:
        for path in sorted(folder.glob("*.npz")):
            if {"X", "X_train"} & set(np.load(path)):
                name = path.stem.partition("_")[0].removesuffix("16k").removesuffix("2012")
                yield from (Place(path, name, one, seed) for one in ways)
