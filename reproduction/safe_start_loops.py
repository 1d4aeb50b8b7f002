"""Does the safe start hold in loops that its constants were not chosen on?

As `safe_start.py`, with other networks (a hidden layer, without and with batch norm and dropout),
batch sizes, weight decay and learning rates: `hill()` against `BCEWithLogitsLoss` from torch's own
start, two seeds, test rows. No constant of the safe start was chosen on any of these loops. Runs
that stand in `safe_start_loops.csv` already are not repeated.

python reproduction/safe_start_loops.py --data DIR
"""

from __future__ import annotations

import argparse
import csv
import logging
import warnings
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safe_start import ALLOWED, HERE, SETS, Split, coco, one_set
from torch import nn

from hilltop.losses import Loss, build
from hilltop.metrics import average_precision

OPTIMISERS = {
    "adam": lambda weights, rate, decay: torch.optim.Adam(weights, rate, fused=True),
    "adamw": lambda weights, rate, decay: torch.optim.AdamW(
        weights, rate, weight_decay=decay, fused=True
    ),
    "sgd": lambda weights, rate, decay: torch.optim.SGD(weights, rate, momentum=0.9, fused=True),
}
SMALL = ("tmc2007", "enron", "scene", "yeast")
BOTH = (("COCO", "as they are"), ("COCO", "standardised"))


class Loop(NamedTuple):
    """One training loop."""

    network: str
    data: str
    features: str
    optimiser: str
    rate: float
    batch: int
    decay: float = 0.0


def all_loops() -> list[Loop]:
    """Return every loop."""
    loops = [
        Loop(network, data, features, "adam", rate, 128 if data == "COCO" else 32)
        for network in ("hidden layer", "batch norm")
        for rate in (3e-3, 1e-3, 3e-4, 1e-4)
        for data, features in (*BOTH, *((name, "standardised") for name in SMALL))
    ]
    loops += [
        Loop("linear", data, features, "adam", rate, batch)
        for batch in (32, 512)
        for rate in (3e-3, 1e-3, 3e-4)
        for data, features in (*BOTH, ("tmc2007", "standardised"), ("reuters", "standardised"))
    ]
    loops += [
        Loop("linear", data, features, "adamw", rate, 128, 0.1)
        for rate in (3e-3, 3e-4)
        for data, features in (*BOTH, ("tmc2007", "standardised"))
    ]
    loops += [
        Loop("linear", name, "standardised", optimiser, rate, 32)
        for name in SETS
        for optimiser, rates in (("adam", (1e-2, 1e-3, 1e-4)), ("sgd", (0.01,)))
        for rate in rates
    ]
    return list(dict.fromkeys(loops))


def make_network(kind: str, features: int, classes: int) -> nn.Module:
    """Return a network with torch's own start."""
    if kind == "linear":
        return nn.Linear(features, classes)
    hidden = [nn.Linear(features, 256), nn.ReLU()]
    if kind == "batch norm":
        hidden = [nn.Linear(features, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.2)]
    return nn.Sequential(*hidden, nn.Linear(256, classes))


def train(loop: Loop, split: Split, name: str, seed: int) -> float:
    """Train with a loss and return mAP in percent."""
    torch.manual_seed(seed)
    model = make_network(loop.network, split.inputs.shape[1], split.labels.shape[1])
    optimiser = OPTIMISERS[loop.optimiser](model.parameters(), loop.rate, loop.decay)
    loss = nn.BCEWithLogitsLoss() if name == "BCEWithLogitsLoss" else build(name, watch=False)
    for epoch in range(8 if loop.data == "COCO" else 20):
        if isinstance(loss, Loss):
            loss.set_epoch(epoch)
        for rows in torch.randperm(len(split.inputs)).split(loop.batch):
            if loop.network == "batch norm" and len(rows) < 2:
                continue
            optimiser.zero_grad()
            loss(model(split.inputs[rows]), split.labels[rows]).backward()
            optimiser.step()
    with torch.no_grad():
        scores = model.eval()(split.test_inputs).numpy()
    return 100 * float(np.nanmean(average_precision(scores, split.truth)))


def main() -> None:
    """Run what is missing and print what is below cross-entropy."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hilltop").setLevel(logging.ERROR)
    warnings.simplefilter("ignore", RuntimeWarning)  # a class without positives among test rows
    path, names = HERE / "safe_start_loops.csv", ("BCEWithLogitsLoss", "hill")
    runs: dict[tuple[str, ...], float] = {}
    if path.exists():
        with path.open(newline="") as file:
            runs = {tuple(row[:-1]): float(row[-1]) for row in list(csv.reader(file))[1:]}
    for seed in range(asked.seeds):
        for loop in all_loops():
            keys = {name: (*map(str, loop), name, str(seed)) for name in names}
            if runs.keys() >= set(keys.values()):
                continue
            standardised = loop.features == "standardised"
            split = (
                coco(asked.data, choose=False, standardised=standardised)
                if loop.data == "COCO"
                else one_set(asked.data, loop.data, seed, choose=False)
            )
            for name, key in keys.items():
                runs[key] = train(loop, split, name, seed)
            with path.open("w", newline="") as file:
                rows = csv.writer(file, lineterminator="\n")
                rows.writerow([*Loop._fields, "loss", "seed", "mAP"])
                rows.writerows([*each, f"{found:.2f}"] for each, found in runs.items())
    report(runs)


def report(runs: dict[tuple[str, ...], float]) -> None:
    """Print the mean difference, and every loop in which the mean over seeds is below."""
    gains: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for (*loop, name, seed), found in runs.items():
        if name == "hill":
            gains[tuple(loop)].append(found - runs[*loop, "BCEWithLogitsLoss", seed])
    means = {loop: float(np.mean(found)) for loop, found in gains.items()}
    below = {loop: mean for loop, mean in means.items() if mean < -ALLOWED}
    print(
        f"{len(means)} loops: {np.mean(list(means.values())):+.2f} in the mean,"
        f" {len(below)} more than {ALLOWED} below"
    )
    for loop, mean in sorted(below.items(), key=lambda item: item[1]):
        print(f"{mean:+.2f}  {', '.join(loop)}")


if __name__ == "__main__":
    main()
