"""A head with 20,000 classes whose logits are never all there; labels are lists of classes.

Run it with: python examples/many_labels.py
"""

import torch

from hilltop.losses import FusedLinearLoss
from hilltop.metrics import mean_average_precision

CLASSES, TESTED = 20_000, 40


def main() -> None:
    """Train on some labels of each image and print mAP on all labels of others."""
    torch.manual_seed(0)
    directions = torch.randn(CLASSES, 64)
    # A few classes are frequent, so that they can be tested.
    true = torch.randint(TESTED, (3000, 3))
    inputs = directions[true].sum(dim=1) + torch.randn(3000, 64)
    labels = [row[:2].unique() for row in true[:2000]]  # the third was forgotten
    head = FusedLinearLoss(64, CLASSES, loss="hill", labels=labels)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
    for epoch in range(3):
        head.set_epoch(epoch)
        for rows in torch.randperm(2000).split(100):
            optimizer.zero_grad()
            loss = head(inputs[rows], [labels[row] for row in rows])
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        scores = head.logits(inputs[2000:], start=0, stop=TESTED)
    truth = torch.zeros(1000, TESTED).scatter_(1, true[2000:], 1.0)
    print(f"hill mAP {100 * mean_average_precision(scores.numpy(), truth.numpy()):.2f}")


if __name__ == "__main__":
    main()
