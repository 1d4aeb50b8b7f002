"""Parameter groups, optimiser, schedule, and the moving average of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, AdamW
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel

from hilltop.losses import Loss


def build_optimizer(
    model: nn.Module,
    loss: Loss,
    *,
    learning_rate: float,
    weight_decay: float,
    decoupled: bool,
    head: Sequence[nn.Parameter] = (),
    head_rate: float = 1.0,
) -> Adam:
    """Adam whose penalty is on matrices and filters only, not on biases and norms.

    ``head`` are parameters of the model that learn ``head_rate`` times as fast as the others.

    Parameters of the loss itself, where it has any, learn without a penalty, each at the learning
    rate times the factor that :meth:`Loss.parameter_groups` gives. ``decoupled`` makes it AdamW:
    there the penalty does not depend on the scale of the loss, so that one value suits losses with
    large and with small slopes.
    """
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    fast = {id(parameter) for parameter in head} if head_rate != 1 else set()
    groups: list[dict[str, Any]] = []
    for in_head, rate in ((False, learning_rate), (True, head_rate * learning_rate)):
        mine = [parameter for parameter in learning if (id(parameter) in fast) == in_head]
        matrices = [parameter for parameter in mine if parameter.ndim > 1]
        others = [parameter for parameter in mine if parameter.ndim <= 1]
        groups.append({"params": matrices, "weight_decay": weight_decay, "lr": rate})
        groups.append({"params": others, "weight_decay": 0.0, "lr": rate})
    for parameters, factor in loss.parameter_groups():
        rate = factor * learning_rate
        groups.append({"params": parameters, "weight_decay": 0.0, "lr": rate})
    fused = all(parameter.device.type in ("cpu", "cuda") for parameter in learning)
    kind = AdamW if decoupled else Adam
    return kind([group for group in groups if group["params"]], lr=learning_rate, fused=fused)


def build_schedule(optimizer: Adam, *, steps: int, warmup: float) -> OneCycleLR:
    """One cycle: up during ``warmup``, a share of all steps, then down to nearly 0.

    Its peak is the learning rate that each group of the optimiser has now.
    """
    peaks = [group["lr"] for group in optimizer.param_groups]
    return OneCycleLR(optimizer, max_lr=peaks, total_steps=max(2, steps), pct_start=warmup)


def moving_average(model: nn.Module, decay: float) -> AveragedModel:
    """Exponential moving average of weights and buffers.

    The decay grows to its value in the first steps, (1 + n) / (10 + n), so that the average does
    not stay near the random start.
    """

    @torch.no_grad()
    def update(averages: Sequence[Tensor], current: Sequence[Tensor], count: Tensor | int) -> None:
        steps = float(count)
        weight = 1 - min(decay, (1 + steps) / (10 + steps))
        for average, value in zip(averages, current, strict=True):
            if average.is_floating_point():
                average.lerp_(value.to(average), weight)
            else:
                average.copy_(value)

    return AveragedModel(model, multi_avg_fn=update, use_buffers=True)
