"""The learner: model, loss and optimiser, and the one step that all training is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel

from hilltop.errors import ArgumentError, DivergenceError
from hilltop.losses import LOSSES, Loss, build
from hilltop.losses.init import head_start, last_bias
from hilltop.losses.row_weights import RowWeighted
from hilltop.training.logistic import LogisticSolver
from hilltop.training.optim import build_optimizer, build_schedule, moving_average
from hilltop.training.recipe import LabelBatch, Recipe

_MOST_ENTRIES = 2_000_000  # that are looked at for where the head starts


@dataclass
class Learner:
    """What changes while training.

    Attributes:
        model: The model, as it is saved.
        loss: With reduction ``"sum"``.
        recipe: How it learns.
        rows: Number of training rows.
        optimizer: Of the parameters of both, or the solver of a head of cross-entropy.
        schedule: Of its learning rates; a solver has none.
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
    optimizer: Optimizer | LogisticSolver
    schedule: OneCycleLR | None
    head: Sequence[nn.Parameter] = ()
    body: Sequence[nn.Parameter] = ()
    average: AveragedModel | None = None
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
            assert isinstance(self.optimizer, Optimizer)
            assert self.schedule is not None
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
        assert isinstance(self.optimizer, Optimizer)
        assert self.schedule is not None
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
            self.average.update_parameters(self.model)
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
