"""One rank of the test of fully sharded models; started by torchrun."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from hilltop.losses import LOSSES, Loss, build
from tests.distributed import leave
from tests.losses.conftest import batch, label_stats, ready, sees_whole_batch

# A loss that looks at its batch as a whole sees another batch on every rank.
NAMES = [name for name in LOSSES if not sees_whole_batch(ready(name))]
ROWS, CLASSES = 8, 5


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(CLASSES, 6), nn.GELU(), nn.Linear(6, CLASSES))


def criterion(name: str) -> Loss:
    loss = build(name, safe_start=False)  # its means are those of a rank
    loss.prepare(label_stats(CLASSES))
    loss.set_epoch(1)
    return loss


def full_batch_gradients(name: str) -> list[Tensor]:
    inputs, targets = batch(ROWS, CLASSES)
    network = model()
    criterion(name)(network(inputs), targets, index=torch.arange(ROWS)).backward()
    return [parameter.grad for parameter in network.parameters() if parameter.grad is not None]


def sharded_gradients(name: str) -> list[Tensor]:
    rows = torch.arange(ROWS)[dist.get_rank() :: 2]
    inputs, targets = (part[rows] for part in batch(ROWS, CLASSES))
    network = model()
    mesh = init_device_mesh("cpu", (2,))
    for layer in (network[0], network[2], network):
        fully_shard(layer, mesh=mesh)
    criterion(name)(network(inputs), targets, index=rows).backward()
    return [parameter.grad.full_tensor() for parameter in network.parameters()]


def main() -> None:
    dist.init_process_group("gloo")
    found = {name: sharded_gradients(name) for name in NAMES}
    if dist.get_rank() == 0:
        torch.save(found, sys.argv[1])
    leave()


if __name__ == "__main__":
    main()
