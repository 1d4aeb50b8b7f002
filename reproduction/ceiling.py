"""How much of what missing labels cost can be won back, and what must one know for it?

Linear heads on features, trained as ``hilltop train`` trains them, on labels that the paper's rule
has thinned; mAP on the test rows of :mod:`lost_labels`:

- ``bce``, ``auto``: who knows nothing;
- ``labels N``: auto, after a person has answered the N most probable candidates of the audit;
- ``model N``: auto, after a person has answered N pairs of ``hilltop queue --for model``;
- ``model N in K``: the same in K parts, with an audit of what is known between them;
- ``before N``: as ``labels``, in the order of another audit, see ``--before``;
- ``told``: BCE that is told which unlabelled pairs are missing labels, and leaves them out. What
  remains to BCE on complete labels is that there are fewer labels to learn from.

All heads of a set, way and seed are trained side by side, with the scaling, rate and penalty that
the labels choose that are left; ``complete`` chooses its own. ``--own-recipe`` lets answers change
the choice, as ``hilltop train`` does; each takes as long as two heads or more.

Run it with: python reproduction/ceiling.py sets/yeast.npz sets/scene.npz [--ways r0.8,r1]
    [--seeds 0,1,2] [--lines "auto,labels 1000,model 1000"] [--first 12000] [--before FOLDER]
    [--held-out] [--own-recipe] [--out answers.csv]
Lines that the file has already are not made again.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from growing_csv import add_lines, made_keys
from heads_together import Task, own_recipe, train_side_by_side
from lost_labels import Cell
from torch import Tensor

from hilltop.audit.review.queues import model_values
from hilltop.metrics import average_precision
from hilltop.training.heads import (
    FoldEvidence,
    KnownLabels,
    cross_validate_heads,
    mask_evidence,
)
from hilltop.training.recipe import Recipe

LINES = ("auto", "labels 1000", "labels 5000", "labels 7000", "labels 20000", "model 1000")
LINES += ("model 7000", "bce", "told", "complete")
COLUMNS = ("set", "way", "seed", "who", "mAP")


def orders(known: Tensor, present: Tensor) -> dict[str, Tensor]:
    """The pairs that are not known in the order of each queue.

    Args:
        known: Whether each pair is a label or was answered.
        present: How probable the audit thinks that each pair is present.
    """
    open_pairs = (~known).flatten().nonzero().flatten()
    probs = present.flatten()[open_pairs].double().numpy()
    columns = open_pairs.numpy() % known.shape[1]
    values = model_values(probs, columns, known.sum(dim=0).numpy())
    return {
        name: open_pairs[np.argsort(-value, kind="stable")]
        for name, value in (("labels", probs), ("model", values))
    }


@dataclass(frozen=True)
class Review:
    """What a person is asked about, and what the audit thinks of it.

    Attributes:
        features: Of the training rows.
        true: Their complete labels, by which answers are given.
        given: Labels that are left.
        seed: Of the heads.
    """

    features: Tensor
    true: Tensor
    given: Tensor
    seed: int

    def audit(self, answered: Tensor | None = None) -> FoldEvidence:
        """Out-of-fold logits of heads that know the answers, and what they say of the labels."""
        known = self._known(answered)
        return FoldEvidence.fit(cross_validate_heads(self.features, known, seed=self.seed), known)

    def _known(self, answered: Tensor | None) -> KnownLabels:
        """Labels after answers, which of them are verified as absent, and which were put back."""
        if answered is None:
            return KnownLabels(self.given)
        targets = torch.where(answered, self.true, self.given)
        restored = (targets == 1) & (self.given != 1)
        return KnownLabels(targets, answered & (targets == 0), restored)

    def task(self, answered: Tensor) -> Task:
        """What ``auto`` learns from: answers count in full, entries probably missing not at all."""
        known = self._known(answered)
        weight = _weight(self.audit(answered), known)
        return Task(known.targets, weight.masked_fill(answered, 1.0))

    def ask(self, present: Tensor, number: int, rounds: int) -> Tensor:
        """Pairs of the queue for the model, in parts with an audit between them.

        Args:
            present: How probable each pair is before the first answer.
            number: Of all answers.
            rounds: Number of parts.
        """
        answered = torch.zeros(self.given.shape, dtype=torch.bool)
        for part in range(rounds):
            if part:
                found = self.audit(answered)
                present = torch.from_numpy(found.model.prob_present(found.logits, self.given))
            queue = orders((self.given == 1) | answered, present)["model"]
            answered.view(-1)[queue[: number // rounds]] = True
        return answered


def _weight(found: FoldEvidence, known: KnownLabels) -> Tensor:
    """Which entries count in the loss of ``auto``: all but those that are probably missing."""
    weight = mask_evidence(found, known).weight
    return torch.ones(known.targets.shape) if weight is None else weight


def first_of(queue: Tensor, number: int, like: Tensor) -> Tensor:
    """True for the first pairs of a queue."""
    asked = torch.zeros(like.shape, dtype=torch.bool)
    asked.view(-1)[queue[:number]] = True
    return asked


def tasks_of(
    cell: Cell, way: str, seed: int, lines: Collection[str], before: Tensor | None
) -> Iterator[tuple[str, Task]]:
    """Yield who knows what, and what they learn from."""
    true, given = (torch.from_numpy(one).float() for one in (cell.labels, cell.lose(way, seed)))
    every = torch.ones(given.shape)
    asking = [line for line in lines if " " in line]
    if asking or "auto" in lines:
        review = Review(torch.from_numpy(cell.features), true, given, seed)
        found = review.audit()
        present = torch.from_numpy(found.model.prob_present(found.logits, given))
        queues = orders(given == 1, present)
        if before is not None:
            queues["before"] = orders(given == 1, before)["labels"]
        for line in asking:
            name, number, *rounds = line.replace(" in ", " ").split(" ")
            if rounds:
                yield line, review.task(review.ask(present, int(number), int(rounds[0])))
            elif name in queues:
                yield line, review.task(first_of(queues[name], int(number), given))
        yield "auto", Task(given, _weight(found, KnownLabels(given)))
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
            reviewed = own and " " in name
            chosen[key] = own_recipe(features, targets, seed, before=left if reviewed else None)
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
