"""What is gained by knowing which classes each source of labels looked for?

Complete labels of a data set are dealt to three sources that have different images and overlapping
lists of classes: each looked for half of them, and every class was looked for by one or two. Linear
heads with BCE on features, trained as ``hilltop train`` trains them:

- ``joined``: pairs that nobody looked for take no part;
- ``union``: they are negatives, as when label files are simply put together;
- ``separate``: one head a source; where two looked for a class, the mean of their probabilities;
- ``complete``: every class in every image, which nobody has: the ceiling.

And the audit of the joined table: how many labels there are where nobody looked, and how many of
the first candidates among these pairs are right.

Run it with: python reproduction/joined.py --labels train.parquet --val-labels val.parquet
    --features features.npz [--rows 4000] [--seeds 0,1,2] [--out joined.csv]
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hilltop.audit import find_missing_labels
from hilltop.data import LabelSet, LabelTable, State, join_tables
from hilltop.inputs.features import FeatureInputs, read_features
from hilltop.losses import bce
from hilltop.metrics import classification_report
from hilltop.studies.compare.study import read_complete
from hilltop.training import TrainConfig, fit_head

SOURCES = 3
_FIRST = 1000  # candidates that are looked at


def deal(complete: LabelTable, seed: int) -> list[LabelSet]:
    """Deal images and classes to sources."""
    rng = np.random.default_rng(seed)
    parts = np.array_split(rng.permutation(len(complete)), SOURCES)
    width = len(complete.classes)
    order = rng.permutation(width)
    sets = []
    for number, rows in enumerate(parts):
        start = number * width // SOURCES
        chosen = np.sort(order[(start + np.arange(width // 2)) % width])
        names = [complete.classes[column] for column in chosen]
        part = complete.select(np.sort(rows))
        present = part.dense()[:, chosen] == State.PRESENT
        table = LabelTable.from_coo(
            part.images, names, *present.nonzero(), State.PRESENT, unlisted=State.UNKNOWN
        )
        sets.append(LabelSet(f"source {number + 1}", table))
    return sets


def scores(inputs: Tensor, targets: Tensor, others: Tensor, seed: int) -> Tensor:
    """Train a linear head and return its probabilities for other images."""
    fitted = fit_head(
        inputs,
        lambda rows: (targets[rows], None),
        bce(reduction="sum"),
        classes=targets.shape[1],
        seed=seed,
    )
    with torch.no_grad():
        return torch.sigmoid(fitted.head(others))


def separate(
    sets: list[LabelSet], inputs: Tensor, table: LabelTable, others: Tensor, seed: int
) -> Tensor:
    """Probabilities of one head a source, averaged where several looked for a class."""
    total = torch.zeros(len(others), len(table.classes))
    looked = torch.zeros(len(table.classes))
    for one in sets:
        rows = torch.from_numpy(table.find(one.table.images))
        columns = [table.classes.index(name) for name in one.table.classes]
        targets = torch.from_numpy(one.table.batch()[0])
        total[:, columns] += scores(inputs[rows], targets, others, seed)
        looked[columns] += 1
    return total / looked


def audit(joined: LabelTable, truth: np.ndarray, inputs: Tensor, seed: int) -> dict[str, float]:
    """What the audit says of pairs that nobody looked for, and what is true of them."""
    found = find_missing_labels(joined, features=inputs, seed=seed)
    beyond = ~joined.looked_for()
    rows, columns = found.candidates.rows(), found.candidates.columns()
    hidden = beyond[rows, columns]
    first = truth[rows[hidden][:_FIRST], columns[hidden][:_FIRST]]
    return {
        "labels not looked for": float((truth & beyond).sum()),
        "estimated": sum(estimate.beyond for estimate in found.estimates),
        f"right of the first {_FIRST}": float(first.mean()),
    }


def measure(learned: LabelTable, judged: LabelTable, features: Path, seed: int) -> dict[str, float]:
    """Mean average precision of each way, in per cent, and the audit."""
    held = read_features(features)
    sets = deal(learned, seed)
    joined = join_tables(sets)
    complete = learned.select(learned.find(joined.images)).with_classes(joined.classes)
    full = complete.dense() == State.PRESENT
    truth = judged.with_classes(joined.classes).eval_targets()
    inputs = FeatureInputs(held, joined.images).values.float()
    others = FeatureInputs(held, judged.images).values.float()
    targets = torch.from_numpy(joined.batch()[0])
    made = {
        "joined": scores(inputs, targets, others, seed),
        "union": scores(inputs, targets.nan_to_num(), others, seed),
        "separate": separate(sets, inputs, joined, others, seed),
        "complete": scores(inputs, torch.from_numpy(full).float(), others, seed),
    }
    numbers: dict[str, float] = {}
    for name, probs in made.items():
        report = classification_report(probs.numpy(), truth)
        numbers[f"{name} mAP"] = 100 * report.mAP
        numbers[f"{name} OF1"] = 100 * report.OF1
    return {**numbers, **audit(joined, full, inputs, seed)}


def main() -> None:
    """Deal, train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("--labels", "--val-labels", "--features"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--rows", type=int, help="training images, the first ones; all without it")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    config = TrainConfig(labels=given.labels, val_labels=given.val_labels)
    learned = read_complete(given.labels, config)
    judged = read_complete(given.val_labels, config)
    if given.rows:
        learned = learned.select(range(given.rows))
    lines = []
    for seed in map(int, given.seeds.split(",")):
        numbers = measure(learned, judged, given.features, seed)
        print(f"seed {seed}: " + ", ".join(f"{key} {value:.4g}" for key, value in numbers.items()))
        lines += [[seed, key, f"{value:.4g}"] for key, value in numbers.items()]
    if given.out is not None:
        with given.out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([["seed", "what", "value"], *lines])


if __name__ == "__main__":
    main()
