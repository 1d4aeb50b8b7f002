"""How long do value and gradient of a loss take, and how much is kept in between?

Compared with the released eager formulations, rewritten from their equations, and with torch's
own BCE. Run it with: python benchmarks/losses.py [--save]
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from hilltop.losses import hill, kernel, splc_released
from timing import Row, compare, finish, show

Loss = Callable[[Tensor, Tensor], Tensor]


def eager_hill(logits: Tensor, targets: Tensor) -> Tensor:
    """Hill in the plain form: log of a sigmoid, weights by power, halves added."""
    probs, probs_margin = torch.sigmoid(logits), torch.sigmoid(logits - 1.0)
    weight = ((1 - probs_margin) * targets + (1 - targets)) ** 2.0
    positive = targets * torch.log(probs_margin)
    negative = (1 - targets) * -(1.5 - probs) * probs**2
    return (-(positive + negative) * weight).sum()


def eager_splc(logits: Tensor, targets: Tensor) -> Tensor:
    """SPLC in the plain form: margin, correction, then Focal loss."""
    logits = torch.where(targets == 1, logits - 1.0, logits)
    targets = torch.where(torch.sigmoid(logits) > 0.6, torch.ones_like(targets), targets)
    probs = torch.sigmoid(logits)
    weight = ((1 - probs) * targets + probs * (1 - targets)) ** 2.0
    positive = targets * nn.functional.logsigmoid(logits)
    negative = (1 - targets) * nn.functional.logsigmoid(-logits)
    return (-(positive + negative) * weight).sum()


def saved_mib(loss: Loss, logits: Tensor, targets: Tensor) -> float:
    """MiB that autograd keeps from forward to backward, beside logits and targets."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        value = loss(logits, targets)
    del value
    for own in (logits, targets):
        kept.pop(own.data_ptr(), None)
    return sum(kept.values()) / 2**20


def measure(rows: int, classes: int, labels_per_image: float, rounds: int) -> list[Row]:
    """Compare all losses at one size, on logits like those of a trained model."""
    torch.manual_seed(0)
    logits = (2 * torch.randn(rows, classes) - 3).requires_grad_()
    targets = (torch.rand(rows, classes) < labels_per_image / classes).float()
    ours_splc = splc_released(reduction="sum")
    ours_splc.set_epoch(1)
    losses: dict[str, Loss] = {
        "eager Hill": eager_hill,
        "hilltop hill": hill(reduction="sum"),
        "eager SPLC": eager_splc,
        "hilltop splc_released": ours_splc,
        "BCEWithLogitsLoss": nn.BCEWithLogitsLoss(reduction="sum"),
    }

    def work(loss: Loss) -> Callable[[], None]:
        def step() -> None:
            logits.grad = None
            loss(logits, targets).backward()

        return step

    notes = {
        name: f"keeps {saved_mib(loss, logits, targets):.2f} MiB" for name, loss in losses.items()
    }
    size = f"{rows}x{classes}"
    measured = []
    for baseline, names in {
        "eager Hill": ("eager Hill", "hilltop hill", "BCEWithLogitsLoss"),
        "eager SPLC": ("eager SPLC", "hilltop splc_released"),
    }.items():
        steps = {name: work(losses[name]) for name in names}
        question = "loss forward+backward"
        measured += compare(question, size, steps, baseline, rounds=rounds, notes=notes)
    return measured


def main() -> None:
    """Measure at the size of COCO and at that of a large tag vocabulary."""
    print("compiled kernel:", "yes" if kernel.library() else "no")
    rows = measure(128, 80, 2.9, rounds=41) + measure(256, 9605, 5.0, rounds=21)
    show(rows)
    finish(rows, {"torch": torch.__version__})


if __name__ == "__main__":
    main()
