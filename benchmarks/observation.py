"""How much longer does a likelihood under an observation model take than plain BCE?

Value and gradient against ``BCEWithLogitsLoss``, with one to three labels left of each image.
Run it with: python benchmarks/observation.py [--quick] [--save]
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from hilltop.losses import count_likelihood, scar_likelihood
from hilltop.losses.engine import kernel
from results import finish, parser
from timing import Row, compare

Loss = Callable[[Tensor, Tensor], Tensor]


def labels_left(rows: int, classes: int, r: float) -> Tensor:
    """Targets with as many labels as the rule leaves of one to nine."""
    true = torch.randint(1, 10, (rows,))
    left = torch.minimum(true, (true * (1 - r) + 1e-9).floor() + 1)
    order = torch.rand(rows, classes).argsort(dim=1)
    return (order.argsort(dim=1) < left.unsqueeze(1)).float()


def _start(logits: Tensor, labels_per_image: float) -> float:
    """What to add to the logits so that a model expects so many labels of an image."""
    low, high = -30.0, 0.0
    for _ in range(40):
        middle = (low + high) / 2
        expected = torch.sigmoid(logits + middle).sum(dim=1).mean()
        low, high = (middle, high) if expected < labels_per_image else (low, middle)
    return low


def measure(rows: int, classes: int, r: float, rounds: int) -> list[Row]:
    """Compare at one size and one missing ratio, on logits like those of a trained model."""
    torch.manual_seed(0)
    logits = 2 * torch.randn(rows, classes)
    logits = (logits + _start(logits, 3.0)).requires_grad_()
    targets = labels_left(rows, classes, r)
    losses: dict[str, Loss] = {
        "BCEWithLogitsLoss": nn.BCEWithLogitsLoss(reduction="sum"),
        "scar_likelihood": scar_likelihood(0.4, reduction="sum", safe_start=False),
        "the same, by class": scar_likelihood([0.4] * classes, reduction="sum", safe_start=False),
        "count_likelihood": count_likelihood(r=r, reduction="sum", safe_start=False),
    }

    def work(loss: Loss) -> Callable[[], None]:
        def step() -> None:
            logits.grad = None
            loss(logits, targets).backward()

        return step

    steps = {name: work(loss) for name, loss in losses.items()}
    size = f"{rows}x{classes} r={r:g}"
    return compare("likelihood fwd+bwd", size, steps, "BCEWithLogitsLoss", rounds=rounds)


def main() -> None:
    """Measure at the size of COCO and of Open Images, at 40% left and at single label."""
    options = parser(__doc__).parse_args()
    print("compiled kernel:", "yes" if kernel.library() else "no")
    rows = [
        row
        for classes in ((80,) if options.quick else (80, 567))
        for r in (0.5, 0.8, 1.0)
        for row in measure(128, classes, r, rounds=3 if options.quick else 21)
    ]
    finish(rows, options, ["torch"])


if __name__ == "__main__":
    main()
