"""One rank of the test of FusedLinearLoss under DistributedDataParallel; started by torchrun."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn

from hilltop.losses import hill
from tests.distributed import leave
from tests.losses.engine.fused_head import head, inputs


def full_batch_gradients() -> list[Tensor]:
    features, targets = inputs()
    fused = head(hill())
    fused(features[:6], targets[:6]).backward()
    return [parameter.grad for parameter in fused.parameters()]


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    features, targets = (part[:6][rank::2] for part in inputs())
    labels = [row.nonzero().flatten() for row in targets]
    fused = nn.parallel.DistributedDataParallel(head(hill()))
    fused(features, labels).backward()
    if rank == 0:
        torch.save([parameter.grad for parameter in fused.parameters()], sys.argv[1])
    leave()


if __name__ == "__main__":
    main()
