"""Tags of the COCO slice, decided from incomplete labels alone.

Takes features ``X`` with complete labels ``Y_full`` and reduced ones ``Y_04left`` and ``Y_single``
in one ``.npz`` file; the first 12,000 rows train, the others test. For each model: mAP, then OF1
and CF1 (mean of the F1 of classes) cut at one half, and at thresholds found from its own labels.

Run it with: python reproduction/coco_decisions.py coco16k_lite0.npz [--seed 0]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from hilltop.integrations import HilltopClassifier
from hilltop.metrics import classification_report

TRAIN_ROWS = 12_000
MODELS = {
    "BCE, 40% left": ("Y_04left", "bce"),
    "auto, 40% left": ("Y_04left", "auto"),
    "auto, single label": ("Y_single", "auto"),
    "BCE, complete labels": ("Y_full", "bce"),
}


def main() -> None:
    """Train, decide, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("slice", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    content = np.load(given.slice)
    features, truth = content["X"].astype(np.float32), content["Y_full"][TRAIN_ROWS:]
    rest = features[TRAIN_ROWS:]
    for name, (key, loss) in MODELS.items():
        model = HilltopClassifier(loss, random_state=given.seed)
        model.fit(features[:TRAIN_ROWS], content[key][:TRAIN_ROWS].astype(int))
        with torch.no_grad():
            scores = torch.sigmoid(model.head_(torch.from_numpy(rest))).numpy()
        cut = classification_report(scores, truth, 0.5)
        tags = model.predict(rest)
        own = classification_report(tags.astype(np.float32), truth, 0.5)
        print(
            f"{name:22} mAP {100 * cut.mAP:.2f}; at one half OF1 {100 * cut.OF1:.1f} CF1"
            f" {100 * cut.CF1:.1f}; own thresholds OF1 {100 * own.OF1:.1f} CF1 {100 * own.CF1:.1f};"
            f" expected {model.decision_.expected}",
            flush=True,
        )


if __name__ == "__main__":
    main()
