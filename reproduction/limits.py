"""How much of what missing labels cost could any loss win back, for linear heads on features?

Three things nobody has are given away, one at a time, on held-out parts of the training rows of
:mod:`lost_labels` (three quarters learn, one quarter judges by complete labels):

- ``bce``: the penalty that is best on the very labels that judge;
- ``kept``: the same, and the true share of labels that were kept, with the exact likelihood
  ``-log(1 - c p)`` of an unlabelled pair;
- ``told``: which pairs are missing; they are left out.

Everything is compared with BCE at the penalty that its own labels choose. The heads of all losses
and penalties are trained side by side, by the recipe of ``hilltop train``.

Run it with: python reproduction/limits.py FOLDER [--sets a,b] [--ways u0.3,r1] [--seeds 0,1]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from heads_together import Task, own_recipe, train_side_by_side
from lost_labels import WAYS, Array, Cell
from torch import Tensor

from hilltop.metrics import average_precision
from hilltop.training.recipe import PENALTIES, Recipe

MOST_ROWS = 3000


def main() -> None:
    """Print a line for each set, way and seed, and what could be won in the mean."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default=None)
    parser.add_argument("--ways", default=",".join(way for way in WAYS if way != "none"))
    parser.add_argument("--seeds", default="0")
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for path in sorted(given.folder.glob("*.npz")):
        if "X" not in np.load(path) or (given.sets and path.stem not in given.sets.split(",")):
            continue
        for seed in map(int, given.seeds.split(",")):
            cell = Cell.read(path, seed).held_out(seed, most=MOST_ROWS)
            for way, line in measure(cell, given.ways.split(","), seed):
                lines.append(line)
                said = ", ".join(f"{name} {value:+.2f}" for name, value in line.items())
                print(f"{path.stem} {way} {seed}: {said}", flush=True)
    means = {name: float(np.mean([line[name] for line in lines])) for name in lines[0]}
    for name, mean in means.items():
        share = mean / means["gap"]
        print(f"{len(lines)} cells, {name}: {mean:+.2f} in the mean, {share:.0%} of the gap")


def measure(cell: Cell, ways: list[str], seed: int) -> Iterator[tuple[str, dict[str, float]]]:
    """What could be won for each way of losing labels, and the gap to complete labels."""
    features = torch.from_numpy(cell.features)
    others = torch.from_numpy(cell.test_features)
    complete = None
    for way in ways:
        left = torch.from_numpy(cell.lose(way, seed))
        true = torch.from_numpy(cell.labels)
        told = ~(true & ~left)
        kept, every = float(left.sum() / true.sum()), torch.ones(left.shape)
        tasks = {
            "bce": Task(left.float(), every),
            "kept": Task(left.float(), every, kept),
            "told": Task(left.float(), told.float()),
        }
        if complete is None:
            tasks["complete"] = Task(true.float(), every)
        own = {name: own_recipe(features, tasks[name].targets, seed) for name in tasks}
        recipes = {
            name: [*(replace(one, weight_decay=decay) for decay in penalties_of(features)), one]
            for name, one in own.items()
        }
        found = trained(features, others, cell.test_labels, tasks, recipes, seed)
        complete = found["complete"][-1] if complete is None else complete
        base = found["bce"][-1]
        gains = {name: max(found[name]) - base for name in ("bce", "kept", "told")}
        yield way, gains | {"gap": complete - base}


def penalties_of(features: Tensor) -> list[float]:
    """All that the recipe could choose for so many rows and features."""
    width = math.sqrt(features.shape[1] / 1280)
    return [penalty * width * math.sqrt(2 / 3) for penalty in PENALTIES]


def trained(
    features: Tensor,
    others: Tensor,
    labels: Array,
    tasks: dict[str, Task],
    recipes: dict[str, list[Recipe]],
    seed: int,
) -> dict[str, list[float]]:
    """Per cent of mAP on other rows, of heads of every task and recipe, trained side by side."""
    pairs = [(task, recipe) for name, task in tasks.items() for recipe in recipes[name]]
    scores = train_side_by_side(features, others, pairs, seed=seed)
    found = [100 * float(np.nanmean(average_precision(one.numpy(), labels))) for one in scores]
    names = [name for name in tasks for _ in recipes[name]]
    return {name: [f for f, n in zip(found, names, strict=True) if n == name] for name in tasks}


if __name__ == "__main__":
    main()
