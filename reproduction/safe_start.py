"""Does replacing ``BCEWithLogitsLoss`` by another loss hurt, if nothing else changes?

A linear head with torch's own start is trained on frozen features whose labels were reduced by the
paper's rule (40% left), with ``BCEWithLogitsLoss`` and with every loss that can saturate. Measured
is mAP on the complete labels of other rows. Two tables are written beside this file:
`safe_start.csv` with every run and `safe_start.md` with means over seeds. Runs that stand in the
table of runs already are not repeated.

python reproduction/safe_start.py --data DIR            COCO rows 12,000 to 15,999, sets: test rows
python reproduction/safe_start.py --data DIR --choose   training rows alone, for choosing constants

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

from hilltop.losses import LOSSES, Loss, build, init_head
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
    "flags", "foodtruck", "tmc2007",
)  # fmt: skip
OPTIMISERS = {
    "adam": lambda parameters, lr: torch.optim.Adam(parameters, lr=lr, fused=True),
    "adamw": lambda parameters, lr: torch.optim.AdamW(parameters, lr=lr, fused=True),
    "sgd": lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9, fused=True),
}
MARKS = ["BCEWithLogitsLoss", "bce + init_head", "hill alone", "hill + init_head"]
SAFE = [name for name in LOSSES if build(name).safe_start is not None]
ALLOWED = 0.5  # mAP below cross-entropy
Cell = tuple[str, str, str, float]  # data, features, optimiser, rate
Run = tuple[Cell, str, int]  # cell, loss, seed


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


def train_heads(
    split: Split, names: list[str], cell: Cell, seed: int
) -> tuple[dict[str, float], set[str]]:
    """Train a head for each loss on the same batches.

    The heads share nothing but the batches, so that each is what it would be alone, to the bit.

    Returns:
        Their mAP in percent, and the losses whose safe start became the equation.
    """
    epochs, batch = (8, 128) if cell[0] == "COCO" else (20, 32)
    heads, losses = [], [make_loss(name, epochs) for name in names]
    for name, loss in zip(names, losses, strict=True):
        torch.manual_seed(seed)
        heads.append(nn.Linear(split.inputs.shape[1], split.labels.shape[1]))
        if name.endswith("init_head"):
            assert isinstance(loss, Loss)
            init_head(heads[-1], loss, split.labels)
    optimiser = OPTIMISERS[cell[2]](
        [weight for head in heads for weight in head.parameters()], cell[3]
    )
    became: set[str] = set()
    for epoch in range(epochs):
        for loss in losses:
            if isinstance(loss, Loss):
                loss.set_epoch(epoch)
        for rows in torch.randperm(len(split.inputs)).split(batch):
            inputs, labels = split.inputs[rows], split.labels[rows]
            optimiser.zero_grad()
            for name, head, loss in zip(names, heads, losses, strict=True):
                loss(head(inputs), labels).backward()
                if isinstance(loss, Loss) and loss.safe_start is not None and loss.safe_start.over:
                    became.add(name)
            optimiser.step()
    with torch.no_grad():
        scores = [head(split.test_inputs).numpy() for head in heads]
    measured = (100 * float(np.nanmean(average_precision(each, split.truth))) for each in scores)
    return dict(zip(names, measured, strict=True)), became


def measure(split: Split, names: list[str], cell: Cell, seed: int) -> dict[str, float]:
    """Return the mAP of every loss.

    Until a loss becomes its equation it is the same cross-entropy as all others, to the bit (which
    tests hold). So where ``hill`` never does, no other does, and the others are not run again.
    """
    first = [name for name in names if name in MARKS or name == "hill"]
    found, became = train_heads(split, first, cell, seed) if first else ({}, set())
    others = [name for name in names if name not in first]
    if "hill" in found and "hill" not in became:
        return found | dict.fromkeys(others, found["hill"])
    return found | (train_heads(split, others, cell, seed)[0] if others else {})


def make_loss(name: str, epochs: int) -> nn.Module:
    """Return the loss of a column."""
    if name == "BCEWithLogitsLoss":
        return nn.BCEWithLogitsLoss()
    loss_name = name.partition(" ")[0]
    options: dict[str, object] = {"safe_start": not name.endswith(" alone"), "watch": False}
    if loss_name == "gr":
        options["epochs"] = epochs
    return build(loss_name, **options)


def all_cells() -> list[Cell]:
    """Return every combination of data, features, optimiser and learning rate."""
    cells = [
        ("COCO", features, optimiser, rate)
        for optimiser, by_features in COCO_RATES.items()
        for features, rates in by_features.items()
        for rate in rates
    ]
    cells += [
        (name, "standardised", optimiser, rate)
        for name in SETS
        for optimiser, rates in SET_RATES.items()
        for rate in rates
    ]
    return cells


def main() -> None:
    """Run what is missing and write the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--choose", action="store_true", help="use training rows alone")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=["COCO", *SETS], help="only these data")
    parser.add_argument("--losses", nargs="+", choices=SAFE, default=SAFE)
    parser.add_argument("--out", type=Path, default=HERE)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hilltop").setLevel(logging.ERROR)
    warnings.simplefilter("ignore", RuntimeWarning)  # a class without positives among test rows
    stem = asked.out / ("safe_start_choose" if asked.choose else "safe_start")
    runs = read_runs(stem.with_suffix(".csv"))
    split, of = None, None
    for seed in range(asked.seeds):
        for cell in all_cells():
            names = [name for name in (*MARKS, *asked.losses) if (cell, name, seed) not in runs]
            if not names or cell[0] not in (asked.only or cell):
                continue
            data = cell[:2], seed if cell[0] != "COCO" else 0
            if split is None or of != data:
                split, of = load(asked.data, cell, seed, choose=asked.choose), data
            for name, found in measure(split, names, cell, seed).items():
                runs[cell, name, seed] = found
            print(seed, *cell, flush=True)
            write_runs(runs, stem.with_suffix(".csv"))
    stem.with_suffix(".md").write_text(table(runs, [*MARKS, *asked.losses], asked.seeds, stem.name))


def load(folder: Path, cell: Cell, seed: int, *, choose: bool) -> Split:
    """Return the data of a cell."""
    if cell[0] == "COCO":
        return coco(folder, choose=choose, standardised=cell[1] == "standardised")
    return one_set(folder, cell[0], seed, choose=choose)


def read_runs(path: Path) -> dict[Run, float]:
    """Return the runs of an earlier call."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            ((row["data"], row["features"], row["optimiser"], float(row["rate"])), row["loss"],
             int(row["seed"])): float(row["mAP"])
            for row in csv.DictReader(file)
        }  # fmt: skip


def write_runs(runs: dict[Run, float], path: Path) -> None:
    """Write every run."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["data", "features", "optimiser", "rate", "loss", "seed", "mAP"])
        for (cell, loss, seed), measured in runs.items():
            rows.writerow([*cell, loss, seed, f"{measured:.2f}"])


def table(runs: dict[Run, float], names: list[str], seeds: int, stem: str) -> str:
    """Return the means over seeds, with what is below cross-entropy in bold."""
    measured: dict[tuple[Cell, str], list[float]] = defaultdict(list)
    for (cell, name, seed), found in runs.items():
        if seed < seeds:
            measured[cell, name].append(found)
    cells = [
        cell for cell in all_cells() if all(len(measured[cell, name]) == seeds for name in names)
    ]
    if not cells:
        return "# A swap of one line\n\nNo training loop has been measured with all seeds.\n"
    lines = [
        "# A swap of one line",
        "",
        f"{len(cells)} training loops of a linear head with torch's own start: mAP on complete"
        f" labels, mean over {seeds} seeds. The first four columns are for comparison; the others"
        " have a safe start. **Bold**: more than 0.5 below `BCEWithLogitsLoss`. Made by"
        f" `python reproduction/safe_start.py --data DIR`; every run is in `{stem}.csv`.",
        "",
        "| data, features, optimiser, rate | " + " | ".join(names) + " |",
        "|---|" + "---:|" * len(names),
    ]
    gains: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        means = [float(np.mean(measured[cell, name])) for name in names]
        for name, mean in zip(names, means, strict=True):
            gains[name].append(mean - means[0])
        shown = [
            f"**{mean:.1f}**" if mean < means[0] - ALLOWED else f"{mean:.1f}" for mean in means
        ]
        lines.append(f"| {', '.join(cell[:3])}, {cell[3]:g} | " + " | ".join(shown) + " |")
    for what, count in (
        ("mean difference", lambda gain: f"{np.mean(gain):+.2f}"),
        ("worst difference", lambda gain: f"{np.min(gain):+.2f}"),
        ("loops more than 0.5 below", lambda gain: str(sum(one < -ALLOWED for one in gain))),
        ("loops with difference 0", lambda gain: str(sum(abs(one) < 0.005 for one in gain))),
    ):
        lines.append(f"| {what} | " + " | ".join(count(gains[name]) for name in names) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
