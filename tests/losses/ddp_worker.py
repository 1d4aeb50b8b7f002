"""One rank of the test of DistributedDataParallel; started by torchrun."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn

from hilltop.losses import hill
from tests.distributed import leave
from tests.losses.conftest import batch


def model() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(5, 5)


def full_batch_gradient() -> Tensor:
    inputs, targets = batch(8, 5)
    network = model()
    hill(safe_start=False)(network(inputs), targets).backward()
    assert network.weight.grad is not None
    return network.weight.grad


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    inputs, targets = (part[rank::2] for part in batch(8, 5))
    network = nn.parallel.DistributedDataParallel(model())
    hill(safe_start=False)(network(inputs), targets).backward()
    if rank == 0:
        torch.save(network.module.weight.grad, sys.argv[1])
    leave()


if __name__ == "__main__":
    main()
