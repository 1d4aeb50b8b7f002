"""One rank of the test of the accumulator; started by torchrun."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import DistributedSampler

from hilltop.errors import ArgumentError
from hilltop.metrics import ReportAccumulator
from tests.distributed import leave


def data() -> tuple[Tensor, Tensor]:
    """Thirteen images, four classes, each with positives."""
    generator = torch.Generator().manual_seed(0)
    targets = (torch.rand(13, 4, generator=generator) < 0.4).float()
    targets[:2] = torch.tensor([[1.0], [0.0]])
    return (torch.rand(13, 4, generator=generator) + 0.3 * targets).double(), targets


def main() -> None:
    folder, mode = Path(sys.argv[1]), sys.argv[2]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    scores, targets = data()
    accumulator = ReportAccumulator()
    rows = list(DistributedSampler(range(13), shuffle=False))  # 7 a rank: one row is repeated
    assert len(rows) == 7
    if mode == "one_rank_empty":
        rows = list(range(13)) if rank == 0 else []
    for part in torch.tensor(rows, dtype=torch.long).split(3):
        if len(part):
            accumulator.update(scores[part], targets[part], index=part)
    report = accumulator.compute()
    (folder / f"{rank}.json").write_text(json.dumps(report.as_dict()))
    forgetful = ReportAccumulator()
    forgetful.update(scores, targets)
    with pytest.raises(ArgumentError, match="needs index="):
        forgetful.compute()
    leave()


if __name__ == "__main__":
    main()
