"""How much of what missing labels cost can be won back, and what must one know for it?

Linear heads on features, trained as ``hilltop train`` trains them, on labels that the paper's rule
has thinned:

- ``bce``, ``auto``: who knows nothing;
- ``audit``: BCE on what the audit believes, its probabilities in place of unlabelled pairs;
- ``N answers``: auto, after a person has answered the first N candidates of the audit;
- ``told``: BCE that is told which unlabelled pairs are missing labels, and leaves them out. What
  remains to BCE on complete labels is that there are fewer labels to learn from.

Run it with: python reproduction/ceiling.py --labels train.parquet --val-labels val.parquet
    --features features.npz [--keep 0.4,single] [--seeds 0,1,2] [--answers 1000,5000,20000]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hilltop.audit.run import score_by_folds
from hilltop.calibration.observation import select_model
from hilltop.calibration.posterior import present_probability
from hilltop.checks import pluralize
from hilltop.data import LabelTable, drop_positives
from hilltop.inputs.features import FeatureInputs, read_features
from hilltop.losses import LabelStats, build
from hilltop.metrics import classification_report
from hilltop.studies.compare.level import parse_levels
from hilltop.studies.compare.study import read_complete
from hilltop.training import TrainConfig, fit_head


class Heads:
    """Trains heads on the features of some images, and judges them on others."""

    def __init__(self, features: Path, learned: LabelTable, judged: LabelTable) -> None:
        """Read the features."""
        held = read_features(features)
        self.inputs = FeatureInputs(held, learned.images).values.float()
        self.others = FeatureInputs(held, judged.images).values.float()
        self.truth = torch.from_numpy(judged.eval_targets())

    def mean_precision(
        self, name: str, targets: Tensor, *, seed: int, observed: Tensor | None = None
    ) -> float:
        """Train a linear head and return its mAP, in per cent."""
        loss = build(name, reduction="sum")
        if name == "auto":
            facts = LabelStats.of(targets)
            if observed is not None:
                before = LabelStats.of(targets.masked_fill(observed, 0)).labels_per_image
                facts = replace(facts, before_review=before)
            loss.prepare(facts)
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


def believed(heads: Heads, left: LabelTable, targets: Tensor, seed: int) -> Tensor:
    """How probable the audit thinks that each pair is present."""
    rows = np.arange(len(left))
    logits = score_by_folds(
        left, heads.inputs, rows, given=None, folds=4, seed=seed, say=lambda _: None
    )
    best = select_model(logits, targets).best
    return present_probability(best.loss, best.calibration(logits), targets)


def measure(
    heads: Heads, complete: LabelTable, r: str, answers: list[int], seed: int
) -> Iterator[tuple[str, float]]:
    """Yield who knows what, and the mAP of a head that does."""
    left = drop_positives(complete, r, seed=seed).table
    true, given = (torch.from_numpy(table.dense() == 1).float() for table in (complete, left))
    yield "bce", heads.mean_precision("bce", given, seed=seed)
    yield "auto", heads.mean_precision("auto", given, seed=seed)
    belief = believed(heads, left, given, seed)
    yield "audit", heads.mean_precision("bce", belief, seed=seed)
    order = torch.where(given == 1, -1.0, belief).flatten().argsort(descending=True, stable=True)
    for number in answers:
        seen = torch.zeros(given.numel(), dtype=torch.bool)
        seen[order[:number]] = True
        observed = seen.view(given.shape) & (given == 0)
        corrected = torch.where(observed, true, given)
        value = heads.mean_precision("auto", corrected, seed=seed, observed=observed)
        yield f"{number:,} answers", value
    missing = (true == 1) & (given == 0)
    yield "told", heads.mean_precision("bce", given.masked_fill(missing, torch.nan), seed=seed)
    yield "complete", heads.mean_precision("bce", true, seed=seed)


def main() -> None:
    """Print a table for each level, the mean over seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--labels", "--val-labels", "--features"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--keep", default="0.4,single")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--answers", default="1000,5000,20000")
    given = parser.parse_args()
    complete = read_complete(given.labels, TrainConfig())
    judged = read_complete(given.val_labels, TrainConfig()).with_classes(complete.classes)
    heads = Heads(given.features, complete, judged)
    seeds, answers = (
        [int(word) for word in text.split(",") if word] for text in (given.seeds, given.answers)
    )
    for level in parse_levels(given.keep):
        assert level.r is not None
        runs = [dict(measure(heads, complete, level.r, answers, seed)) for seed in seeds]
        means = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
        low, high = means["bce"], means["complete"]
        over = pluralize(len(seeds), "seed", "seeds")
        print(f"{level.title}, {over}: mAP, and share of the gap that is closed")
        for name, value in means.items():
            print(
                f"  {name:<16}{value:6.2f} {100 * (value - low) / (high - low):5.0f}%", flush=True
            )


if __name__ == "__main__":
    main()
