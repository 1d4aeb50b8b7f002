"""The learner: model, loss and optimiser, and the one step that all training is made of."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import OneCycleLR

from hilltop.errors import ArgumentError, DivergenceError
from hilltop.losses import LOSSES, Loss, build
from hilltop.losses.init import head_start, last_bias
from hilltop.losses.row_weights import RowWeighted
from hilltop.models import FeatureHead
from hilltop.training.recipe import LabelBatch, Recipe

if TYPE_CHECKING:
    from timm.utils.model_ema import ModelEmaV3

SMALL_STEP = 1 << 29
"""Products in a step of a head, up to which one thread is as fast as several, or faster."""


@contextmanager
def step_threads(rows: int, features: int, classes: int) -> Iterator[None]:
    """Train a head with one thread where its steps are small; before and after, all is as it was.

    On two cores 4,000 rows of features take 8.4 s with two threads and 6.8 s with one; two such
    runs at once 13.2 s and 6.8 s, because threads that wait for each other keep the cores busy.

    Args:
        rows: Rows in a step.
        features: Numbers in a row.
        classes: Classes, of all heads that learn side by side.
    """
    before = torch.get_num_threads()
    if rows * features * classes <= SMALL_STEP:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
    extra = [
        {"params": parameters, "weight_decay": 0.0, "lr": factor * learning_rate}
        for parameters, factor in loss.parameter_groups()
    ]
    if isinstance(model, FeatureHead):
        matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
        biases = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
        last, hidden = (
            [model.last.weight],
            [one for one in matrices if one is not model.last.weight],
        )
        groups = [
            {"params": last, "weight_decay": weight_decay, "rows": True},
            {"params": hidden, "weight_decay": weight_decay},
            {"params": biases, "weight_decay": 0.0},
            *extra,
        ]
        return RowAdamW([group for group in groups if group["params"]], lr=learning_rate)
    from timm.optim import param_groups_weight_decay  # type: ignore[attr-defined]

    fast = {id(parameter) for parameter in head} if head_rate != 1 else set()
    plain = reversed(param_groups_weight_decay(model, weight_decay))
    both = ((False, learning_rate), (True, head_rate * learning_rate))
    groups = [
        {**group, "params": mine, "lr": rate}
        for (in_head, rate), group in itertools.product(both, plain)
        if (mine := [one for one in group["params"] if (id(one) in fast) == in_head])
    ]
    fused = all(one.device.type in ("cpu", "cuda") for one in model.parameters())
    return Adam([*groups, *extra], lr=learning_rate, fused=fused)


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


def moving_average(model: nn.Module, decay: float, *, ramp: bool = True) -> ModelEmaV3:
    """Exponential moving average of weights and buffers, by timm.

    With ``ramp`` the decay of update n grows to its value in the first steps, n / (9 + n), so that
    the average does not stay near the random start. Without, the start counts as in the code
    released with the paper: after the first step the average has moved by ``1 - decay`` of it.
    """
    from timm.utils.model_ema import ModelEmaV3

    average = ModelEmaV3(
        model, decay, use_warmup=ramp, warmup_gamma=9.0, warmup_power=1.0, update_after_step=-1
    )
    average.register_buffer("updates", torch.zeros((), dtype=torch.long))  # a checkpoint keeps it
    return average


def update_average(average: ModelEmaV3, model: nn.Module) -> None:
    """Move an average towards its model, after a step."""
    updates = average.get_buffer("updates").add_(1)
    average.update(model, step=int(updates))


_MOST_ENTRIES = 2_000_000  # that are looked at for where the head starts


@dataclass
class Learner:
    """What changes while training.

    Attributes:
        model: The model, as it is saved.
        loss: With reduction ``"sum"``.
        recipe: How it learns.
        rows: Number of training rows.
        optimizer: Of the parameters of both.
        schedule: Of its learning rates.
        head: Parameters that learn alone in the first epochs, where the recipe says so.
        body: All other parameters of the model that learn.
        average: Moving average of the model, if there is one.
        stepper: The optimiser as Fabric runs it; None for the optimiser itself.
        head_alone: Whether only the head learns in this epoch.
    """

    model: nn.Module
    loss: Loss
    recipe: Recipe
    rows: int
    optimizer: Optimizer
    schedule: OneCycleLR
    head: Sequence[nn.Parameter] = ()
    body: Sequence[nn.Parameter] = ()
    average: ModelEmaV3 | None = None
    stepper: Any = None
    head_alone: bool = False

    @classmethod
    def build(
        cls,
        model: nn.Module,
        loss: Loss,
        recipe: Recipe,
        *,
        rows: int,
        head: Sequence[nn.Parameter] = (),
        head_rate: float = 1.0,
    ) -> Learner:
        """Start at the first step of a recipe.

        Args:
            model: What learns.
            loss: What it learns by; it may learn too.
            recipe: How, with a rate and a decay.
            rows: Number of training rows.
            head: Parameters of the model that learn ``head_rate`` times as fast as the others.
            head_rate: See there.
        """
        assert recipe.learning_rate is not None
        assert recipe.weight_decay is not None
        optimizer = build_optimizer(
            model,
            loss,
            learning_rate=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
            head=head,
            head_rate=head_rate,
        )
        steps = recipe.cycle_steps(rows, head_alone=recipe.head_epochs > 0)
        schedule = build_schedule(optimizer, steps=steps, warmup=recipe.warmup)
        average = moving_average(model, recipe.ema, ramp=recipe.ema_ramp) if recipe.ema else None
        if recipe.head_epochs and not head:
            raise ArgumentError(
                "head_epochs needs a model whose classifier is known, and timm does not say which"
                " part of this one it is. Leave head_epochs out."
            )
        known = {id(parameter) for parameter in head}
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        body = [parameter for parameter in learning if id(parameter) not in known]
        return cls(model, loss, recipe, rows, optimizer, schedule, head, body, average)

    def begin_epoch(self, epoch: int, *, step: int) -> None:
        """Hold the body while the head learns alone; when that is over, begin a new cycle.

        What is held keeps its weights to the bit: without a gradient the optimiser passes it over.
        """
        if not self.recipe.head_epochs:
            return
        self.head_alone = epoch < self.recipe.head_epochs
        for parameter in self.body:
            parameter.requires_grad_(not self.head_alone)
        if epoch == self.recipe.head_epochs and step == 0:
            steps = self.recipe.cycle_steps(self.rows, head_alone=False)
            fresh = build_schedule(self.optimizer, steps=steps, warmup=self.recipe.warmup)
            self.schedule.load_state_dict(fresh.state_dict())

    @property
    def modules(self) -> dict[str, nn.Module]:
        """What a checkpoint holds."""
        kept: dict[str, nn.Module] = {"model": self.model, "loss": self.loss}
        return kept if self.average is None else {**kept, "average": self.average}

    @property
    def kept(self) -> nn.Module:
        """The model that is evaluated and kept: the average, where there is one."""
        return self.model if self.average is None else self.average.module

    def step(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None,
        index: Tensor,
        backward: Callable[[Tensor], object] = torch.autograd.backward,
    ) -> float:
        """Learn from a batch and return its loss.

        Args:
            logits: Of the batch.
            targets: Its labels.
            observed: True where a person verified the target.
            index: Its row numbers.
            backward: Finds the gradients; Fabric has a way of its own.

        Raises:
            DivergenceError: The loss is not a finite number; nothing was learned from it.
        """
        loss = self.loss(logits, targets, verified=observed, index=index)
        self.optimizer.zero_grad()
        backward(loss)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise DivergenceError(
                f"Training diverged: the loss became {value}. Try a lower learning rate."
            )
        (self.stepper or self.optimizer).step()
        self.schedule.step()
        if self.average is not None:
            update_average(self.average, self.model)
        return value


def head_loss(name: str, **options: Any) -> Loss:
    """Build the loss of a head on features by name.

    It does not watch for a collapse: the head starts where the loss is least, which is the remedy;
    where many labels are there this is above one half, and would be taken for a collapse.
    """
    if "watch" in LOSSES.options(name):
        options = {"watch": False, **options}
    return build(name, **options)


def start_head(
    head: nn.Module, loss: Loss, labels: LabelBatch, rows: int, *, row_weight: Tensor | None = None
) -> None:
    """Set the bias of the last layer, by some rows from all over the data where there are many."""
    bias = last_bias(head)
    step = -(-rows // max(1, _MOST_ENTRIES // bias.numel()))
    targets, observed = labels(torch.arange(0, rows, step))
    weight = None if row_weight is None else row_weight[::step]
    loss = loss if weight is None else RowWeighted(loss, weight)
    start = head_start(loss, targets, verified=observed, weight=weight)
    with torch.no_grad():
        bias.copy_(start.to(bias))
    skip_safe_start(loss)


def skip_safe_start(loss: Loss) -> None:
    """Train by the equation from the first step, as a head that starts at the label rate can."""
    inner = loss.inner if isinstance(loss, RowWeighted) else loss
    if inner.safe_start is not None:
        inner.safe_start.skip()
