"""One rank of the test of the safe start with two processes; started by torchrun."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as dist

from hilltop.losses import hill
from tests.distributed import leave


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    loss, stages = hill(), []
    assert loss.safe_start is not None
    generator = torch.Generator().manual_seed(rank)
    for step in range(80):
        drop = min(0.1 * step * (1 + rank), 4.0)  # one process comes down in half the time
        share = torch.rand(64, 20, generator=generator)
        targets = (share < 0.02 * (1 + rank)).float()
        present = (share < 0.04 * (1 + rank)).float()  # half of the labels are missing
        logits = torch.randn(64, 20, generator=generator) / 2 + 3.5 * present - drop
        loss(logits.requires_grad_(), targets).backward()
        stages.append(int(loss.safe_start.stage))
    torch.save((stages, loss.safe_start.sums), Path(sys.argv[1]) / f"{rank}.pt")
    leave()


if __name__ == "__main__":
    main()
