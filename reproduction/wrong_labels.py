"""Labels that are wrong: our ranking beside those of cleanlab, on the same scores.

Wrong labels are added to complete or thinned ones, classes as often as their labels; heads that
never saw the labels of a row are trained on what comes out, and both rank the labels by their
scores. ``missing`` is the average precision of missing labels, which must not suffer.

Run it with: python reproduction/wrong_labels.py --sets sets/scene.npz,sets/emotions.npz
    [--keep all,0.4] [--shares 0,0.02,0.05,0.1] [--seeds 0] [--out wrong_labels.csv]
Each set is an .npz with features X and complete labels Y. cleanlab is needed: pip install cleanlab.
Lines that the file has already are not made again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cleanlab.internal.multilabel_scorer import ClassLabelScorer
from growing_csv import add_lines, made_keys
from sklearn.metrics import average_precision_score

from hilltop.data import LabelTable, State, drop_positives
from hilltop.missing import MissingLabelModel, WrongLabelModel
from hilltop.missing.priors import MIN_WRONG_LABELS
from hilltop.studies.compare.level import parse_levels
from hilltop.training.heads import cross_validate
from hilltop.training.learner import head_loss

CLEANLAB = {
    "self_confidence": (ClassLabelScorer.SELF_CONFIDENCE, False),
    "normalized_margin": (ClassLabelScorer.NORMALIZED_MARGIN, False),
    "weighted_entropy": (ClassLabelScorer.CONFIDENCE_WEIGHTED_ENTROPY, False),
    "adjusted": (ClassLabelScorer.SELF_CONFIDENCE, True),
}
"""Its scorers of single labels, and whether probabilities are adjusted for the class."""

COLUMNS = ("set", "keep", "share", "seed", "who", "value")


def thinned(true: Any, keep: str, seed: int) -> Any:
    """What the paper's rule leaves of complete labels."""
    if keep == "all":
        return true.copy()
    (level,) = parse_levels(keep)
    assert level.r is not None
    names = [str(number) for number in range(len(true))]
    classes = [str(number) for number in range(true.shape[1])]
    table = LabelTable.from_coo(
        names, classes, *np.nonzero(true), State.PRESENT, unlisted=State.ABSENT
    )
    return (drop_positives(table, level.r, seed=seed).table.dense() == State.PRESENT).astype(int)


def with_wrong(labels: Any, true: Any, share: float, rng: np.random.Generator) -> Any:
    """Add labels that are wrong until they are this share of all."""
    labels, left = labels.copy(), round(share / (1 - share) * labels.sum())
    frequency = labels.sum(axis=0) / labels.sum()
    while left:
        row, column = rng.integers(len(labels)), rng.choice(labels.shape[1], p=frequency)
        if not true[row, column] and not labels[row, column]:
            labels[row, column] = 1
            left -= 1
    return labels


def measure(features: Any, true: Any, labels: Any, seed: int) -> Iterator[tuple[str, float]]:
    """Yield who ranks, and the average precision of wrong labels; that of missing ones last."""
    targets = torch.from_numpy(labels).float()
    loss = head_loss("bce", reduction="sum")
    logits = cross_validate(torch.from_numpy(features).float(), targets, loss, seed=seed).logits
    model = MissingLabelModel.fit(logits, targets)
    labelled = model.missing.labelled
    frequency = labelled / (labelled + model.missing.by_class[0] + 1e-9)
    found = WrongLabelModel.fit(logits, targets, frequency)
    there = labels == 1
    wrong = (true == 0)[there]
    counts = labels.sum(axis=0)
    rates = np.where(counts >= MIN_WRONG_LABELS, found.rates, 0.0)  # as the audit says it
    yield "share found", float(rates @ counts / counts.sum()) * found.any_wrong
    if wrong.any():
        suspicion = found.prob_wrong(logits)[there]
        yield "hilltop", average_precision_score(wrong, suspicion)
        for name, quality in cleanlab_scores(torch.sigmoid(logits).double().numpy(), labels):
            yield name, average_precision_score(wrong, -quality[there])
    if ((labels == 0) & (true == 1)).any():
        present = model.prob_present(logits, targets)[~there]
        yield "missing", average_precision_score(true[~there] == 1, present)


def cleanlab_scores(probs: Any, labels: Any) -> Iterator[tuple[str, Any]]:
    """The quality of every pair by each of cleanlab's scorers."""
    both = np.stack([1 - probs, probs], axis=2)
    for name, (scorer, adjusted) in CLEANLAB.items():
        columns = [
            scorer(labels[:, column], both[:, column], adjust_pred_probs=adjusted)
            for column in range(labels.shape[1])
        ]
        yield name, np.stack(columns, axis=1)


def main() -> None:
    """Write a line for each set, level, share, seed and ranking."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", required=True)
    parser.add_argument("--keep", default="all,0.4")
    parser.add_argument("--shares", default="0,0.02,0.05,0.1")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--out", type=Path, default=Path("wrong_labels.csv"))
    given = parser.parse_args()
    made = made_keys(given.out)
    cells = product(
        map(Path, given.sets.split(",")),
        given.keep.split(","),
        given.shares.split(","),
        given.seeds.split(","),
    )
    for path, keep, share, seed in cells:
        key = (path.stem, keep, share, seed)
        if (*key, "share found") not in made:
            content, number = np.load(path), int(seed)
            features, true = content["X"].astype(np.float32), content["Y"].astype(int)
            rng = np.random.default_rng([3, number])
            labels = with_wrong(thinned(true, keep, number), true, float(share), rng)
            found = measure(features, true, labels, number)
            add_lines(given.out, COLUMNS, [(*key, who, f"{value:.4f}") for who, value in found])


if __name__ == "__main__":
    main()
