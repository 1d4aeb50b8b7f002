"""Parameter groups, optimiser, schedule, and the moving average of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel

from hilltop.losses import Loss
from hilltop.models import FeatureHead


def build_optimizer(
    model: nn.Module,
    loss: Loss,
    *,
    learning_rate: float,
    weight_decay: float,
    head: Sequence[nn.Parameter] = (),
    head_rate: float = 1.0,
) -> Optimizer:
    """Adam whose penalty is on matrices and filters only, not on biases and norms.

    A head on features learns by :class:`RowAdamW`, with the penalty apart from the gradient, so
    that one value suits losses with large and with small gradients; a network on images by Adam
    with L2, as in the paper.

    ``head`` are parameters of the model that learn ``head_rate`` times as fast as the others.
    Parameters of the loss itself, where it has any, learn without a penalty, each at the learning
    rate times the factor that :meth:`Loss.parameter_groups` gives.
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
    groups = [group for group in groups if group["params"]]
    if isinstance(model, FeatureHead):
        return RowAdamW(_with_rows(groups, model.last.weight), lr=learning_rate)
    fused = all(parameter.device.type in ("cpu", "cuda") for parameter in learning)
    return Adam(groups, lr=learning_rate, fused=fused)


def _with_rows(groups: list[dict[str, Any]], matrix: Tensor) -> list[dict[str, Any]]:
    """The same groups with the matrix that gives the logits in one of its own, size by row."""
    made = []
    for group in groups:
        others = [parameter for parameter in group["params"] if parameter is not matrix]
        if len(others) < len(group["params"]):
            made.append({**group, "params": [matrix], "rows": True})
        if others:
            made.append({**group, "params": others})
    return made


class RowAdamW(Optimizer):
    r"""AdamW whose second moment is one number for each row of a matrix.

    .. math:: W_c \leftarrow (1 - \eta\lambda)\,W_c - \eta\,\hat m_c / \sqrt{\hat v_c},
        \qquad v_c \leftarrow \beta_2 v_c + (1 - \beta_2)\,\overline{g_c^2}

    Adam divides the gradient of every weight by its own size: a word that occurs only where a rare
    class is absent, with tiny gradients, then moves as far as the word that marks the class. With
    one size for a class the gradients of its features keep their proportion, steps still do not
    depend on the scale of the loss, and decay is the same penalty on all weights of a class.

    Args:
        params: Parameters or groups; groups with ``rows`` share a size by row, others have one for
            every entry, as in AdamW.
        lr: Learning rate.
        weight_decay: Decoupled penalty: a number, or a column with one for each row.
    """

    def __init__(self, params: Any, *, lr: float, weight_decay: float | Tensor = 0.0) -> None:
        """Keep the numbers; the others are those of Adam."""
        usual = {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-8, "rows": False}
        super().__init__(params, {**usual, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Make a step."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, group)

    def _move(self, parameter: Tensor, group: dict[str, Any]) -> None:
        (beta1, beta2), rate = group["betas"], group["lr"]
        state, grad = self.state[parameter], parameter.grad
        assert grad is not None
        square = grad.square()
        if group["rows"]:
            square = square.mean(dim=1, keepdim=True)
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(grad), torch.zeros_like(square)
        state["step"] += 1
        steps = int(state["step"])
        average = state["exp_avg"].lerp_(grad, 1 - beta1)
        size = state["exp_avg_sq"].lerp_(square, 1 - beta2) / (1 - beta2**steps)
        parameter.mul_(1 - rate * group["weight_decay"])
        parameter.sub_(average / size.sqrt_().add_(group["eps"]) * (rate / (1 - beta1**steps)))


def build_schedule(optimizer: Optimizer, *, steps: int, warmup: float) -> OneCycleLR:
    """One cycle: up during ``warmup``, a share of all steps, then down to nearly 0.

    Its peak is that of an earlier cycle, or the learning rate that each group of the optimiser has.
    """
    peaks = [group.get("max_lr", group["lr"]) for group in optimizer.param_groups]
    total = max(2, steps)
    if warmup * total == 1:  # OneCycleLR would divide by zero, the length of such a rise
        warmup *= 1 + 1e-9
    return OneCycleLR(optimizer, max_lr=peaks, total_steps=total, pct_start=warmup)


def moving_average(model: nn.Module, decay: float, *, ramp: bool = True) -> AveragedModel:
    """Exponential moving average of weights and buffers.

    With ``ramp`` the decay grows to its value in the first steps, (1 + n) / (10 + n), so that the
    average does not stay near the random start. Without, the start counts as in the code released
    with the paper: after the first step the average has moved by ``1 - decay`` of it.
    """

    @torch.no_grad()
    def update(averages: Sequence[Tensor], current: Sequence[Tensor], count: Tensor | int) -> None:
        steps = float(count)
        weight = 1 - (min(decay, (1 + steps) / (10 + steps)) if ramp else decay)
        for average, value in zip(averages, current, strict=True):
            if average.is_floating_point():
                average.lerp_(value.to(average), weight)
            else:
                average.copy_(value)

    averaged = AveragedModel(model, multi_avg_fn=update, use_buffers=True)
    if not ramp:
        averaged.n_averaged.fill_(1)  # at 0 it would take over the weights after the first step
    return averaged
