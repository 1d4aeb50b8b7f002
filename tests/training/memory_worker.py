"""One rank of the test of losses that remember or learn; started by torchrun."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import Tensor

from hilltop.losses import Loss, build
from hilltop.training.distributed import average_gradients
from tests.distributed import leave
from tests.losses.conftest import batch, label_stats

IMAGES, CLASSES = 12, 5


def prepared(name: str) -> Loss:
    options = {"rate": 0.2} if name == "ll_cp" else {}
    loss = build(name, reduction="sum", **options)
    loss.prepare(label_stats(CLASSES, images=IMAGES, epochs=4))
    return loss


def see(loss: Loss, rows: Tensor, epoch: int) -> None:
    """One training step on some images."""
    logits, targets = batch(IMAGES, CLASSES, seed=epoch)[0], batch(IMAGES, CLASSES)[1]
    loss(logits[rows].requires_grad_(), targets[rows], index=rows).backward()


def shares(epoch: int) -> tuple[Tensor, Tensor]:
    """Rows of the two ranks, which change with the epoch."""
    order = torch.randperm(IMAGES, generator=torch.Generator().manual_seed(epoch))
    return order[0::2], order[1::2]


def state(loss: Loss) -> dict[str, Tensor]:
    """What all ranks must agree on."""
    kept = {key: value.clone() for key, value in loss.state_dict().items()}
    kept = {key: value for key, value in kept.items() if "treated" not in key}
    if table_gradient(loss) is not None:
        kept["gradient"] = table_gradient(loss)
    return kept


def table_gradient(loss: Loss) -> Tensor | None:
    learned = list(loss.parameters())
    return learned[0].grad if learned else None


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for name in ("ll_cp", "em_apl", "role"):
        loss = prepared(name)
        average_gradients(loss)
        for epoch in range(3):
            loss.set_epoch(epoch)
            see(loss, shares(epoch)[rank], epoch)
            for parameter in loss.parameters():
                last, parameter.grad = parameter.grad, None
        loss.set_epoch(3)
        for parameter in loss.parameters():
            parameter.grad = last
        torch.save(state(loss), f"{sys.argv[1]}/{name}{rank}.pt")
    leave()


if __name__ == "__main__":
    main()
