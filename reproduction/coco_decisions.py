"""Tags of the COCO slice, decided from incomplete labels alone.

Takes features ``X`` with complete labels ``Y_full`` and reduced ones ``Y_04left`` and ``Y_single``
in one ``.npz`` file; the first 12,000 rows train, the others test. For each model: mAP, then OF1
and CF1 (mean of the F1 of classes) cut at one half, at thresholds found from its own labels, and at
the best ones of each class on the test labels; the calibration error of both probabilities.

Run it with: python reproduction/coco_decisions.py coco16k_lite0.npz --out coco_decisions.csv
Rows that the file holds already are not made again.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
import torch
from decisions import ece

from hilltop.integrations import HilltopClassifier
from hilltop.metrics import classification_report, fit_thresholds

TRAIN_ROWS = 12_000
MODELS = {
    "BCE, 40% left": ("Y_04left", "bce"),
    "auto, 40% left": ("Y_04left", "auto"),
    "BCE, complete labels": ("Y_full", "bce"),
    "auto, single label": ("Y_single", "auto"),
}
COLUMNS = (
    "model", "seed", "mAP", "OF1_half", "CF1_half", "OF1", "CF1", "OF1_best", "CF1_best",
    "ECE_half", "ECE", "expected",
)  # fmt: skip


def main() -> None:
    """Train, decide, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("slice", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("coco_decisions.csv"))
    given = parser.parse_args()
    held: set[tuple[str, str]] = set()
    if given.out.is_file():
        with given.out.open(newline="", encoding="utf-8") as file:
            held = {(row["model"], row["seed"]) for row in csv.DictReader(file)}
    for name in MODELS:
        if (name, str(given.seed)) not in held:
            row = {"model": name, "seed": given.seed, **measure(given.slice, name, given.seed)}
            new = not given.out.is_file()
            with given.out.open("a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                if new:
                    writer.writeheader()
                writer.writerow(row)
            print(row, flush=True)


def measure(path: Path, name: str, seed: int) -> dict[str, Any]:
    """Train one model and judge its tags by complete labels of other rows."""
    key, loss = MODELS[name]
    content = np.load(path)
    features, truth = content["X"].astype(np.float32), content["Y_full"][TRAIN_ROWS:]
    rest = features[TRAIN_ROWS:]
    model = HilltopClassifier(loss, random_state=seed)
    model.fit(features[:TRAIN_ROWS], content[key][:TRAIN_ROWS].astype(int))
    with torch.no_grad():
        scores = torch.sigmoid(model.head_(torch.from_numpy(rest))).numpy()
    probs = model.predict_proba(rest)
    half = classification_report(scores, truth, 0.5)
    own = classification_report(probs, truth, model.threshold_)
    best = classification_report(scores, truth, fit_thresholds(scores, truth))
    numbers = {
        "mAP": half.mAP, "OF1_half": half.OF1, "CF1_half": half.CF1, "OF1": own.OF1,
        "CF1": own.CF1, "OF1_best": best.OF1, "CF1_best": best.CF1,
        "ECE_half": ece(scores, truth), "ECE": ece(probs, truth),
    }  # fmt: skip
    shares = {column: round(100 * number, 2) for column, number in numbers.items()}
    return {**shares, "expected": str(model.decision_.expected)}


if __name__ == "__main__":
    main()
