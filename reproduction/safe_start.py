"""Does replacing ``BCEWithLogitsLoss`` by another loss hurt, if nothing else changes?

A linear head with torch's own start is trained on frozen features whose labels were reduced by the
paper's rule (40% left), with every loss that can saturate and with cross-entropy. Measured is mAP
on the complete labels of other rows. Two tables are written beside this file: `safe_start.csv`
with every run and `safe_start.md` with means over seeds.

python reproduction/safe_start.py --data DIR            COCO rows 12,000 to 15,999, sets: test rows
python reproduction/safe_start.py --data DIR --choose   training rows alone, for choosing constants;
                                                        --push 10 tries another bound of the push

DIR holds `coco16k_lite0.npz` (X, Y_full, Y_04left) and `sets/*.npz` (X, Y).
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
from torch import Tensor, nn

from hilltop.losses import LOSSES, Loss, build, init_head, safe_start
from hilltop.metrics import average_precision

HERE = Path(__file__).parent
COCO_RATES = {
    "adam": {"standardised": (3e-3, 1e-3, 3e-4, 1e-4), "as they are": (3e-3, 1e-3, 3e-4)},
    "adamw": {"standardised": (3e-3, 1e-3, 3e-4, 1e-4), "as they are": (3e-3, 1e-3, 3e-4)},
    "sgd": {"standardised": (0.01, 0.1, 1.0), "as they are": (0.1, 1.0, 10.0)},
}
SET_RATES = {"adam": (3e-3, 3e-4), "adamw": (1e-3,), "sgd": (0.1, 1.0)}
SETS = (
    "emotions", "birds", "yeast", "scene", "enron", "reuters", "cal500", "medical", "genbase",
    "flags", "foodtruck",
)  # fmt: skip
OPTIMISERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9),
}
SATURATING = [name for name in LOSSES if build(name).can_saturate]
MARKS = ["bce", "bce + init_head", "hill alone", "hill + init_head"]
ALLOWED = 0.5  # mAP below cross-entropy


class Split(NamedTuple):
    """Features and reduced labels to train on, features and complete labels to test on."""

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    truth: np.ndarray


def coco(folder: Path, *, choose: bool, standardised: bool) -> Split:
    """The first 6,000 rows to train on; 4,000 others to measure on."""
    stored = np.load(folder / "coco16k_lite0.npz")
    rows = slice(6000, 10000) if choose else slice(12000, 16000)
    inputs = stored["X"].astype(np.float32)
    train, test = inputs[:6000], inputs[rows]
    if standardised:
        train, test = standardise(train, test)
    labels = torch.from_numpy(stored["Y_04left"][:6000].astype(np.float32))
    return Split(torch.from_numpy(train), labels, torch.from_numpy(test), stored["Y_full"][rows])


def one_set(folder: Path, name: str, seed: int, *, choose: bool) -> Split:
    """60% of the rows to train on and 40% to test on; the same again within the 60% to choose."""
    stored = np.load(folder / "sets" / f"{name}.npz", allow_pickle=True)
    inputs, truth = stored["X"].astype(np.float32), stored["Y"].astype(np.float32)
    truth = truth[:, (truth == 1).sum(axis=0) >= 10]
    order = np.random.default_rng(seed).permutation(len(inputs))
    if choose:
        order = order[: int(0.6 * len(order))]
    train, test = np.split(order, [int(0.6 * len(order))])
    generator = np.random.default_rng([11, seed])
    labels = np.stack([reduced(row, generator) for row in truth[train]])
    both = standardise(inputs[train], inputs[test])
    return Split(
        torch.from_numpy(both[0]), torch.from_numpy(labels), torch.from_numpy(both[1]), truth[test]
    )


def reduced(row: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Keep floor(n / 5) + 1 of n labels, the paper's rule at r = 0.8."""
    there = np.flatnonzero(row)
    left = np.zeros_like(row)
    left[generator.permutation(there)[: len(there) // 5 + 1]] = 1
    return left


def standardise(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give every feature mean 0 and deviation 1."""
    mean, deviation = train.mean(axis=0), train.std(axis=0) + 1e-6
    return (train - mean) / deviation, (test - mean) / deviation


def learned(
    split: Split, name: str, optimiser: str, rate: float, seed: int, *, epochs: int, batch: int
) -> float:
    """Train a head and return its mAP in percent."""
    torch.manual_seed(seed)
    head = nn.Linear(split.inputs.shape[1], split.labels.shape[1])
    loss = make_loss(name, epochs)
    if name.endswith("init_head"):
        init_head(head, loss, split.labels)
    steps = OPTIMISERS[optimiser](head.parameters(), lr=rate)
    for epoch in range(epochs):
        loss.set_epoch(epoch)
        for rows in torch.randperm(len(split.inputs)).split(batch):
            steps.zero_grad()
            loss(head(split.inputs[rows]), split.labels[rows]).backward()
            steps.step()
    with torch.no_grad():
        scores = head(split.test_inputs).numpy()
    return 100 * float(np.nanmean(average_precision(scores, split.truth)))


def make_loss(name: str, epochs: int) -> Loss:
    """Return the loss of a column."""
    options: dict[str, object] = {"safe_start": not name.endswith(" alone")}
    loss_name = name.partition(" ")[0]
    if loss_name == "gr":
        options["epochs"] = epochs
    if loss_name != "bce":
        options["watch"] = False
    return build(loss_name, **options)


def fill(
    cell: dict[str, list[float]],
    splits: list[Split],
    names: list[str],
    optimiser: str,
    rate: float,
    *,
    epochs: int,
    batch: int,
) -> None:
    """Measure every loss, and with ``init_head`` those that end below cross-entropy."""

    def measure(name: str) -> None:
        for seed, split in enumerate(splits):
            measured = learned(split, name, optimiser, rate, seed, epochs=epochs, batch=batch)
            cell[name].append(measured)

    for name in (*MARKS, *names):
        measure(name)
    for name in names:
        if is_below(cell, name) and f"{name} + init_head" not in cell:
            measure(f"{name} + init_head")


def is_below(cell: dict[str, list[float]], name: str) -> bool:
    """Return whether a loss ends more than 0.5 below cross-entropy, in the mean of seeds."""
    return float(np.mean(cell[name])) < float(np.mean(cell["bce"])) - ALLOWED


def main() -> None:
    """Run everything and write the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--choose", action="store_true", help="use training rows alone")
    parser.add_argument("--push", type=float, help="bound of the push, in label rates")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=["COCO", *SETS], help="only these data")
    parser.add_argument("--losses", nargs="+", choices=SATURATING, default=SATURATING)
    parser.add_argument("--out", type=Path, default=HERE)
    asked = parser.parse_args()
    if asked.push is not None:
        safe_start._PUSH = asked.push
    torch.set_num_threads(1)
    logging.getLogger("hilltop").setLevel(logging.ERROR)
    warnings.simplefilter("ignore", RuntimeWarning)  # a class without positives among test rows
    found: dict[tuple[str, str, str, float], dict[str, list[float]]] = {}
    names = asked.only or ["COCO", *SETS]
    for features in ("standardised", "as they are") if "COCO" in names else ():
        split = coco(asked.data, choose=asked.choose, standardised=features == "standardised")
        for optimiser, rates in COCO_RATES.items():
            for rate in rates[features]:
                cell = found.setdefault(("COCO", features, optimiser, rate), defaultdict(list))
                splits = [split] * asked.seeds
                fill(cell, splits, asked.losses, optimiser, rate, epochs=8, batch=128)
                print("COCO", features, optimiser, rate, flush=True)
    for name in [name for name in SETS if name in names]:
        splits = [
            one_set(asked.data, name, seed, choose=asked.choose) for seed in range(asked.seeds)
        ]
        for optimiser, rates in SET_RATES.items():
            for rate in rates:
                cell = found.setdefault((name, "standardised", optimiser, rate), defaultdict(list))
                fill(cell, splits, asked.losses, optimiser, rate, epochs=20, batch=32)
        print(name, flush=True)
    write(found, asked.losses, asked.out / ("safe_start_choose" if asked.choose else "safe_start"))


def write(
    found: dict[tuple[str, str, str, float], dict[str, list[float]]],
    shown: list[str],
    stem: Path,
) -> None:
    """Write every run, and means with what stays below cross-entropy."""
    with stem.with_suffix(".csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["data", "features", "optimiser", "rate", "loss", "seed", "mAP"])
        for cell, losses in found.items():
            for loss, runs in losses.items():
                for seed, measured in enumerate(runs):
                    rows.writerow([*cell, loss, seed, f"{measured:.2f}"])
    names = [*MARKS, *shown]
    seeds = len(next(iter(found.values()))["bce"])
    lines = [
        "# A swap of one line",
        "",
        "mAP on complete labels, mean over seeds, of a linear head with torch's own start. The"
        " first four columns are for comparison; the others have a safe start. **Bold**: more than"
        " 0.5 below `bce`. **Bold** with *: the same loss with `init_head` and without a safe start"
        " is below as well, so that the loss is at fault and not its start. Made by"
        f" `python reproduction/safe_start.py --data DIR --seeds {seeds} --losses"
        f" {' '.join(shown)}`; every run is in"
        f" `{stem.name}.csv`.",
        "",
        "| data, features, optimiser, rate | " + " | ".join(names) + " |",
        "|---|" + "---:|" * len(names),
    ]
    below: dict[str, int] = defaultdict(int)
    at_fault: dict[str, int] = defaultdict(int)
    for (data, features, optimiser, rate), losses in found.items():
        shown = []
        for name in names:
            mean = f"{float(np.mean(losses[name])):.1f}"
            if is_below(losses, name):
                below[name] += 1
                initialised = f"{name} + init_head"
                itself = initialised in losses and is_below(losses, initialised)
                at_fault[name] += itself
                mean = f"**{mean}**" + "\\*" * itself
            shown.append(mean)
        lines.append(f"| {data}, {features}, {optimiser}, {rate:g} | " + " | ".join(shown) + " |")
    for counts, what in ((below, "more than 0.5 below"), (at_fault, "of these, the loss itself")):
        counted = " | ".join(str(counts[name]) for name in names)
        lines.append(f"| cells of {len(found)} {what} | {counted} |")
    stem.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
