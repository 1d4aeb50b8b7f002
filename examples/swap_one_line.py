"""Swap ``BCEWithLogitsLoss`` for ``hill()`` in a plain PyTorch loop; labels are generated.

Run it with: python examples/swap_one_line.py
"""

import torch
from torch import nn

from hilltop.losses import hill
from hilltop.metrics import mean_average_precision


def train(criterion: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> nn.Module:
    """Train a linear head for a few epochs."""
    torch.manual_seed(0)
    model = nn.Linear(inputs.shape[1], targets.shape[1])
    nn.init.constant_(model.bias, -3.0)  # near the log odds of a label: see the README
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(20):
        for rows in torch.randperm(len(inputs)).split(128):
            optimizer.zero_grad()
            criterion(model(inputs[rows]), targets[rows]).backward()
            optimizer.step()
    return model


def main() -> None:
    """Train on 40% of the labels with both losses and print mAP on complete labels."""
    torch.manual_seed(1)
    inputs, truth = torch.randn(6000, 64), torch.randn(64, 40)
    labels = (inputs @ truth / 8 + 0.5 * torch.randn(6000, 40) > 2.0).float()  # about 1.5 an image
    kept = labels[:4000] * (torch.rand(4000, 40) < 0.4)
    for criterion in (nn.BCEWithLogitsLoss(), hill()):  # <- the line to change
        model = train(criterion, inputs[:4000], kept)
        scores = model(inputs[4000:]).detach()
        name = type(criterion).__name__ if isinstance(criterion, nn.BCEWithLogitsLoss) else "hill"
        print(f"{name:18} mAP {100 * mean_average_precision(scores, labels[4000:]):.2f}")


if __name__ == "__main__":
    main()
