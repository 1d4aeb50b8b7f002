"""How much of what missing labels cost can be won back, and what must one know for it?

Linear heads on features, trained as ``hilltop train`` trains them, on labels that the paper's rule
has thinned; mAP on the test rows of :mod:`lost_labels`:

- ``bce``, ``auto``: who knows nothing;
- ``labels N``: auto, after a person has answered the N most probable candidates of the audit;
- ``model N``: auto, after a person has answered N pairs of ``hilltop queue --for model``;
- ``before N``: as ``labels``, in the order of another audit, see ``--before``;
- ``told``: BCE that is told which unlabelled pairs are missing labels, and leaves them out. What
  remains to BCE on complete labels is that there are fewer labels to learn from.

All heads of a set, way and seed are trained side by side, with the scaling, rate and penalty that
the labels choose that are left; ``complete`` chooses its own. ``--own-recipe`` chooses anew after
answers, as ``hilltop train`` does; each choice takes as long as two heads or more.

Run it with: python reproduction/ceiling.py sets/yeast.npz sets/scene.npz [--ways r0.8,r1]
    [--seeds 0,1,2] [--lines "auto,labels 1000,model 1000"] [--first 12000] [--before FOLDER]
    [--held-out] [--own-recipe] [--out answers.csv]
Lines that the file has already are not made again.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import torch
from growing_csv import add_lines, made_keys
from heads_together import Task, own_recipe, train_side_by_side
from lost_labels import Cell
from torch import Tensor

from hilltop.audit.review.queues import model_values
from hilltop.audit.run import REPEATS
from hilltop.calibration.belief import believe
from hilltop.metrics import average_precision
from hilltop.training.evidence import LEAST_ABSENT
from hilltop.training.folds import out_of_fold_logits
from hilltop.training.learner import head_loss
from hilltop.training.recipe import Recipe

LINES = ("auto", "labels 1000", "labels 5000", "labels 7000", "labels 20000", "model 1000")
LINES += ("model 7000", "bce", "told", "complete")
COLUMNS = ("set", "way", "seed", "who", "mAP")


def orders(given: Tensor, present: Tensor) -> dict[str, Tensor]:
    """The unlabelled pairs in the order of each queue.

    Args:
        given: Labels that are left.
        present: How probable the audit thinks that each pair is present.
    """
    open_pairs = (given == 0).flatten().nonzero().flatten()
    probs = present.flatten()[open_pairs].double().numpy()
    columns = open_pairs.numpy() % given.shape[1]
    values = model_values(probs, columns, given.sum(dim=0).long().numpy())
    return {
        name: open_pairs[np.argsort(-value, kind="stable")]
        for name, value in (("labels", probs), ("model", values))
    }


def answered(true: Tensor, given: Tensor, weight: Tensor, asked: Tensor) -> Task:
    """What is learned from after some pairs were answered: they count in full, as they are."""
    observed = torch.zeros(given.numel(), dtype=torch.bool)
    observed[asked] = True
    observed = observed.view(given.shape)
    return Task(torch.where(observed, true, given), weight.masked_fill(observed, 1.0))


def tasks_of(
    cell: Cell, way: str, seed: int, lines: Collection[str], before: Tensor | None
) -> Iterator[tuple[str, Task]]:
    """Yield who knows what, and what they learn from."""
    true, given = (torch.from_numpy(one).float() for one in (cell.labels, cell.lose(way, seed)))
    every = torch.ones(given.shape)
    asking = [line for line in lines if " " in line]
    if asking or "auto" in lines:
        features, loss = torch.from_numpy(cell.features), head_loss("bce", reduction="sum")
        logits = out_of_fold_logits(features, given, loss, repeats=REPEATS, seed=seed)
        belief = believe(logits, given)
        weight = (belief.absent_probability(logits, given) >= LEAST_ABSENT).float()
        queues = orders(given, belief.present_probability(logits, given))
        if before is not None:
            queues["before"] = orders(given, before)["labels"]
        for line in asking:
            name, number = line.split(" ")
            if name in queues:
                yield line, answered(true, given, weight, queues[name][: int(number)])
        yield "auto", Task(given, weight)
    told = (1 - true) + given
    others = {"bce": (given, every), "told": (given, told), "complete": (true, every)}
    yield from ((name, Task(*one)) for name, one in others.items() if name in lines)


def measure(
    cell: Cell,
    way: str,
    seed: int,
    lines: Collection[str] = LINES,
    *,
    before: Tensor | None = None,
    own: bool = False,
) -> dict[str, float]:
    """Per cent of mAP on test rows, by who knows what.

    Args:
        cell: The set.
        way: How labels were lost.
        seed: Of the loss and of training.
        lines: Who is asked for.
        before: Probabilities of another audit.
        own: Whether every line chooses its own recipe.
    """
    features, others = (torch.from_numpy(one) for one in (cell.features, cell.test_features))
    tasks = dict(tasks_of(cell, way, seed, lines, before))
    left = torch.from_numpy(cell.lose(way, seed)).float()
    chosen: dict[bytes, Recipe] = {}  # labels that are the same choose the same

    def recipe(name: str, task: Task) -> Recipe:
        targets = task.targets if own or name == "complete" else left
        key = targets.bool().numpy().tobytes()
        if key not in chosen:
            chosen[key] = own_recipe(features, targets, seed)
        return chosen[key]

    heads = [(task, recipe(name, task)) for name, task in tasks.items()]
    scores = train_side_by_side(features, others, heads, seed=seed)
    found = [np.nanmean(average_precision(one.numpy(), cell.test_labels)) for one in scores]
    return {name: 100 * float(value) for name, value in zip(tasks, found, strict=True)}


def main() -> None:
    """Print what each set, way and seed gives, as it comes, and add it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", type=Path, nargs="+")
    parser.add_argument("--ways", default="r0.8,r1", help="see lost_labels.py")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--lines", default=",".join(LINES))
    parser.add_argument("--first", type=int, help="rows to train with, where the file says it not")
    parser.add_argument("--held-out", action="store_true", help="judge by a part of these instead")
    parser.add_argument("--own-recipe", action="store_true")
    parser.add_argument("--before", type=Path, help="probabilities of another audit: WAY-SEED.npy")
    parser.add_argument("--out", type=Path, default=Path("answers.csv"))
    given = parser.parse_args()
    made = made_keys(given.out)
    for path in given.sets:
        for seed in map(int, given.seeds.split(",")):
            cell = Cell.read(path, seed, first=given.first)
            cell = cell.held_out(seed) if given.held_out else cell
            for way in given.ways.split(","):
                key = (path.stem, way, str(seed))
                lines = [line for line in given.lines.split(",") if (*key, line) not in made]
                if lines:
                    before, own = _before(given.before, way, seed), given.own_recipe
                    found = measure(cell, way, seed, lines, before=before, own=own)
                    add_lines(
                        given.out, COLUMNS, [(*key, who, f"{found[who]:.3f}") for who in lines]
                    )


def _before(folder: Path | None, way: str, seed: int) -> Tensor | None:
    return None if folder is None else torch.from_numpy(np.load(folder / f"{way}-{seed}.npy"))


if __name__ == "__main__":
    main()
