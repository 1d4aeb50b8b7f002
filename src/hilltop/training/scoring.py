"""Probabilities for all rows by a model in memory, on one process or many."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from hilltop.errors import DataError, DivergenceError
from hilltop.training.config import TrainConfig
from hilltop.training.distributed import all_reduce_sum, shard
from hilltop.training.fabric import Fabric
from hilltop.training.task import Inputs


def predict(
    model: nn.Module,
    inputs: Inputs,
    rows: int,
    config: TrainConfig,
    fabric: Fabric,
    *,
    done: Callable[[int], None] | None = None,
) -> Tensor:
    """Probabilities for all rows, on every rank; rows that cannot be read are NaN.

    ``done`` is told how many rows there are already.
    """
    model.eval()
    mine = shard(range(rows), fabric.global_rank, fabric.world_size)
    plan = [mine[at : at + config.batch_size] for at in range(0, len(mine), config.batch_size)]
    scores, read = None, torch.zeros(rows, device=fabric.device)
    with torch.no_grad(), fabric.autocast():
        for number, (at, batch) in enumerate(inputs.loader(plan, None), start=1):
            probs = torch.sigmoid(model(placed(batch, fabric)).float())
            if scores is None:
                scores = torch.zeros(rows, probs.shape[1], device=fabric.device)
            if not bool(probs.isfinite().all()):  # never to be taken for an image without a score
                raise DivergenceError(
                    "The model gives scores that are not finite numbers. Try a lower learning rate."
                )
            where = torch.from_numpy(at).to(fabric.device)
            scores[where], read[where] = probs, 1.0
            if done is not None:
                done(min(rows, number * config.batch_size * fabric.world_size))
    if scores is None:
        raise DataError("There is nothing to predict: not one image could be read.")
    scores, read = all_reduce_sum(scores), all_reduce_sum(read)
    scores[read == 0] = torch.nan
    return scores.cpu()


def placed(batch: Tensor, fabric: Fabric) -> Tensor:
    """Put a batch where the model is, images in the layout that convolutions like best."""
    layout = torch.channels_last if batch.ndim == 4 else torch.contiguous_format
    return batch.to(fabric.device, memory_format=layout)
