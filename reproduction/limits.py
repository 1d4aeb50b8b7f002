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
import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from lost_labels import WAYS, Array, Cell
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from hilltop.losses.init import log_odds
from hilltop.metrics import average_precision
from hilltop.models import FeatureHead
from hilltop.training.optim import RowAdamW
from hilltop.training.penalty import PENALTIES
from hilltop.training.recipe import HEADS

LEARNS, MOST_ROWS, LEAST_LABELS = 0.75, 3000, 5
HIGHEST_START = 0.95


@dataclasses.dataclass(frozen=True)
class Task:
    """What heads of one kind learn from.

    Attributes:
        targets: Labels ``(N, C)``.
        counts: 1 for the pairs that count.
        keep: The share of true labels that was written down, as the loss has it.
    """

    targets: Tensor
    counts: Tensor
    keep: float = 1.0


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
            for way, line in measure(held_out(path, seed), given.ways.split(","), seed):
                lines.append(line)
                said = ", ".join(f"{name} {value:+.2f}" for name, value in line.items())
                print(f"{path.stem} {way} {seed}: {said}", flush=True)
    means = {name: float(np.mean([line[name] for line in lines])) for name in lines[0]}
    for name, mean in means.items():
        share = mean / means["gap"]
        print(f"{len(lines)} cells, {name}: {mean:+.2f} in the mean, {share:.0%} of the gap")


def held_out(path: Path, seed: int) -> Cell:
    """Training rows of a set, split once more; the test rows take no part."""
    cell = Cell.read(path, seed)
    rows = np.random.default_rng(seed).permutation(len(cell.features))[:MOST_ROWS]
    learn, judge = np.split(rows, [int(LEARNS * len(rows))])
    wide = cell.labels[learn].sum(axis=0) >= LEAST_LABELS
    parts = (cell.features[learn], cell.labels[learn][:, wide])
    return Cell(*parts, cell.features[judge], cell.labels[judge][:, wide])


def measure(cell: Cell, ways: list[str], seed: int) -> Iterator[tuple[str, dict[str, float]]]:
    """What could be won for each way of losing labels, and the gap to complete labels."""
    features = torch.from_numpy(cell.features)
    head = FeatureHead(features.shape[1], 1, hidden=None)
    head.fit_scale(features)
    inputs, others = (head.scaled(one) for one in (features, torch.from_numpy(cell.test_features)))
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
        own = {name: own_penalty(head, features, tasks[name].targets, seed) for name in tasks}
        penalties = {name: [*penalties_of(features), own[name]] for name in tasks}
        found = trained(inputs, others, cell.test_labels, tasks, penalties, seed)
        complete = found["complete"][-1] if complete is None else complete
        base = found["bce"][-1]
        gains = {name: max(found[name]) - base for name in ("bce", "kept", "told")}
        yield way, gains | {"gap": complete - base}


def own_penalty(head: FeatureHead, features: Tensor, targets: Tensor, seed: int) -> float:
    """The penalty that the recipe chooses by these labels."""
    recipe = HEADS.for_head(head, features, lambda rows: (targets[rows], None), seed=seed)
    assert recipe.weight_decay is not None
    return recipe.weight_decay


def penalties_of(features: Tensor) -> list[float]:
    """All that the recipe could choose for so many rows and features."""
    width = math.sqrt(features.shape[1] / 1280)
    return [penalty * width * math.sqrt(2 / 3) for penalty in PENALTIES]


@torch.no_grad()
def trained(
    inputs: Tensor,
    others: Tensor,
    labels: Array,
    tasks: dict[str, Task],
    penalties: dict[str, list[float]],
    seed: int,
) -> dict[str, list[float]]:
    """Per cent of mAP on other rows, of heads of every task and penalty, trained side by side."""
    pairs = [(task, decay) for name, task in tasks.items() for decay in penalties[name]]
    targets, counts = (
        torch.stack([getattr(task, name) for task, _ in pairs], dim=1)
        for name in ("targets", "counts")
    )
    keep = torch.tensor([task.keep for task, _ in pairs]).view(1, -1, 1)
    heads, classes = targets.shape[1:]
    prior = torch.stack([torch.sigmoid(log_odds(task.targets)) for task, _ in pairs])
    bias = torch.logit((prior / keep[0]).clamp(max=HIGHEST_START)).flatten()
    weight = torch.zeros(heads * classes, inputs.shape[1])
    decay = torch.tensor([decay for _, decay in pairs]).repeat_interleave(classes).unsqueeze(1)
    groups = [{"params": [weight], "weight_decay": decay, "rows": True}, {"params": [bias]}]
    optimizer = RowAdamW(groups, lr=HEADS.rate_for(inputs.shape[1]))
    plan = [b for e in range(HEADS.epochs) for b in HEADS.epoch_plan(len(inputs), seed, e)]
    peaks = [group["lr"] for group in optimizer.param_groups]
    schedule = OneCycleLR(optimizer, peaks, total_steps=len(plan), pct_start=HEADS.warmup)
    for rows in plan:
        probs = torch.addmm(bias, inputs[rows], weight.T).sigmoid_().view(-1, heads, classes)
        unlabelled = keep * probs * (1 - probs) / (1 - keep * probs).clamp_(min=1e-6)
        grad = torch.where(targets[rows] > 0, probs - 1, unlabelled) * counts[rows]
        weight.grad, bias.grad = grad.flatten(1).T @ inputs[rows], grad.sum(dim=0).flatten()
        optimizer.step()
        schedule.step()
    scores = torch.addmm(bias, others, weight.T).view(-1, heads, classes).unbind(dim=1)
    found = [100 * float(np.nanmean(average_precision(one.numpy(), labels))) for one in scores]
    names = [name for name in tasks for _ in penalties[name]]
    return {name: [f for f, n in zip(found, names, strict=True) if n == name] for name in tasks}


if __name__ == "__main__":
    main()
