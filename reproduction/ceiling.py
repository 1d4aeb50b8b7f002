"""How much of what missing labels cost can be won back, and what must one know for it?

Linear heads on features, trained as ``hilltop train`` trains them, on labels that the paper's rule
has thinned:

- ``bce``, ``auto``: who knows nothing;
- ``labels N``: auto, after a person has answered the N most probable candidates of the audit;
- ``model N``: auto, after a person has answered N pairs of ``hilltop queue --for model``;
- ``told``: BCE that is told which unlabelled pairs are missing labels, and leaves them out. What
  remains to BCE on complete labels is that there are fewer labels to learn from.

Run it with: python reproduction/ceiling.py --labels train.parquet --val-labels val.parquet
    --features features.npz [--keep 0.4,single] [--seeds 0,1,2] [--out answers.csv]
    [--lines "auto,labels 1000,model 1000,labels 5000"]
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hilltop.audit.review.queues import model_values
from hilltop.audit.run import score_by_folds
from hilltop.calibration.belief import believe
from hilltop.data import LabelTable, drop_positives
from hilltop.inputs.features import FeatureInputs, read_features
from hilltop.losses import LabelStats, build
from hilltop.losses.base import Evidence
from hilltop.metrics import classification_report
from hilltop.studies.compare.level import parse_levels
from hilltop.studies.compare.study import read_complete
from hilltop.training import TrainConfig, fit_head
from hilltop.training.evidence import LEAST_ABSENT

QUEUES = {"labels": (1000, 5000, 20000), "model": (1000, 7000)}
"""How many answers of each queue are tried."""
LINES = ("auto", *(f"{name} {number}" for name, tried in QUEUES.items() for number in tried))
LINES += ("bce", "told", "complete")


class Heads:
    """Trains heads on the features of some images, and judges them on others."""

    def __init__(self, features: Path, learned: LabelTable, judged: LabelTable) -> None:
        """Read the features."""
        held = read_features(features)
        self.inputs = FeatureInputs(held, learned.images).values.float()
        self.others = FeatureInputs(held, judged.images).values.float()
        self.truth = torch.from_numpy(judged.eval_targets())

    def mean_precision(
        self,
        targets: Tensor,
        *,
        seed: int,
        weight: Tensor | None = None,
        observed: Tensor | None = None,
    ) -> float:
        """Train a linear head and return its mAP, in per cent.

        Args:
            targets: The labels.
            seed: Of training.
            weight: How much auto believes unlabelled pairs; BCE without it.
            observed: Pairs that a person has answered.
        """
        loss = build("bce" if weight is None else "auto", reduction="sum")
        if weight is not None:
            evidence = Evidence(weight, "found before the review")
            loss.prepare(replace(LabelStats.of(targets), evidence=evidence))
        head = fit_head(
            self.inputs,
            lambda rows: (targets[rows], None if observed is None else observed[rows]),
            loss,
            classes=targets.shape[1],
            seed=seed,
        ).head
        with torch.no_grad():
            scores = torch.sigmoid(head(self.others).double())
        return 100 * classification_report(scores, self.truth).mAP


def orders(given: Tensor, present: Tensor) -> dict[str, Tensor]:
    """The unlabelled pairs in the order of each queue."""
    open_pairs = (given == 0).flatten().nonzero().flatten()
    probs = present.flatten()[open_pairs].double().numpy()
    columns = open_pairs.numpy() % given.shape[1]
    values = model_values(probs, columns, given.sum(dim=0).long().numpy())
    return {
        name: open_pairs[np.argsort(-value, kind="stable")]
        for name, value in (("labels", probs), ("model", values))
    }


def measure(
    heads: Heads, complete: LabelTable, r: str, seed: int, lines: Collection[str] = LINES
) -> Iterator[tuple[str, float]]:
    """Yield who knows what, and the mAP of a head that does; only the lines that are asked for."""
    left = drop_positives(complete, r, seed=seed).table
    true, given = (torch.from_numpy(table.dense() == 1).float() for table in (complete, left))
    rows = np.arange(len(left))
    logits = score_by_folds(
        left, heads.inputs, rows, given=None, folds=4, seed=seed, say=lambda _: None
    )
    belief = believe(logits, given)
    weight = (belief.absent_probability(logits, given) >= LEAST_ABSENT).float()
    if "auto" in lines:
        yield "auto", heads.mean_precision(given, seed=seed, weight=weight)
    queues = orders(given, belief.present_probability(logits, given))
    asked = [(name, number) for name, tried in QUEUES.items() for number in tried]
    for name, number in asked:
        if f"{name} {number}" in lines:
            observed = torch.zeros(given.numel(), dtype=torch.bool)
            observed[queues[name][:number]] = True
            observed = observed.view(given.shape)
            corrected = torch.where(observed, true, given)
            value = heads.mean_precision(corrected, seed=seed, weight=weight, observed=observed)
            yield f"{name} {number}", value
    missing = (true == 1) & (given == 0)
    others = {"bce": given, "told": given.masked_fill(missing, torch.nan), "complete": true}
    for name, targets in others.items():
        if name in lines:
            yield name, heads.mean_precision(targets, seed=seed)


def main() -> None:
    """Print what each level and seed gives, as it comes, and write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--labels", "--val-labels", "--features"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--keep", default="0.4,single")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--lines", default=",".join(LINES))
    parser.add_argument("--out", type=Path, default=Path("answers.csv"))
    given = parser.parse_args()
    complete = read_complete(given.labels, TrainConfig())
    judged = read_complete(given.val_labels, TrainConfig()).with_classes(complete.classes)
    heads = Heads(given.features, complete, judged)
    with given.out.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not file.tell():
            writer.writerow(["keep", "seed", "who", "mAP"])
        for seed in (int(word) for word in given.seeds.split(",")):
            for level in parse_levels(given.keep):
                assert level.r is not None
                for who, value in measure(heads, complete, level.r, seed, given.lines.split(",")):
                    writer.writerow([level.title, seed, who, f"{value:.3f}"])
                    file.flush()
                    print(f"{level.title}, seed {seed}: {who:<14}{value:6.2f}", flush=True)


if __name__ == "__main__":
    main()
