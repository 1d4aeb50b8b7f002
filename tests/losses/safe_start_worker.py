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
        drop = 0.2 * step * (1 + rank)  # one process comes down in half the time
        logits = (torch.randn(64, 20, generator=generator) - drop).requires_grad_()
        targets = (torch.rand(64, 20, generator=generator) < 0.02 * (1 + rank)).float()
        loss(logits, targets).backward()
        stages.append(int(loss.safe_start.stage))
    torch.save((stages, loss.safe_start.sums), Path(sys.argv[1]) / f"{rank}.pt")
    leave()


if __name__ == "__main__":
    main()
