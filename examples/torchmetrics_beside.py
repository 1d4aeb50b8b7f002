"""A torchmetrics collection beside our report: the same scores, one loop, the same mAP.

Run it with: python examples/torchmetrics_beside.py
"""

import torch
from torchmetrics import MetricCollection
from torchmetrics.classification import MultilabelAveragePrecision, MultilabelHammingDistance

from hilltop.metrics import ReportAccumulator


def main() -> None:
    """Print what both say of the same batches."""
    torch.manual_seed(0)
    targets = (torch.rand(500, 10) < 0.2).long()
    scores = torch.sigmoid(2 * torch.randn(500, 10) + 3 * targets)
    theirs = MetricCollection(
        {
            "mAP": MultilabelAveragePrecision(num_labels=10),
            "Hamming": MultilabelHammingDistance(num_labels=10),
        }
    )
    ours = ReportAccumulator()
    for score, target in zip(scores.split(64), targets.split(64), strict=True):
        theirs.update(score, target)
        ours.update(score, target)
    values = {name: float(value) for name, value in theirs.compute().items()}
    print(f"torchmetrics  mAP {100 * values['mAP']:.3f}, Hamming distance {values['Hamming']:.3f}")
    report = ours.compute()
    print(f"hilltop       mAP {100 * report.mAP:.3f}, CF1 {100 * report.CF1:.3f}")


if __name__ == "__main__":
    main()
