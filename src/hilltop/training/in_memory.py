"""A head on features trained in memory, without a run folder: for the estimator and the advisor.

Needs torch alone. The numbers are those of ``hilltop train --features``.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from hilltop.checks import check_number, check_whole
from hilltop.losses import Loss, init_head, init_head_prior
from hilltop.losses.init import last_bias
from hilltop.losses.row_weights import RowWeighted
from hilltop.models import FeatureHead
from hilltop.training.optim import build_optimizer, build_schedule

LEARNING_RATE = 3e-4
WEIGHT_DECAY = 3.0
WARMUP = 0.2
USUAL_FEATURES = 1280
"""Number of features for which rate and decay were chosen."""
USUAL_STEPS = 50
"""Steps of an epoch, about: a small data set is gone through several times."""
_MOST_ENTRIES = 2_000_000  # that are looked at for where the head starts

LabelBatch = Callable[[Tensor], tuple[Tensor, Tensor | None]]
"""Gives targets, and which of them a person confirmed, for some rows."""


@dataclass(frozen=True)
class Recipe:
    """How a head is trained.

    Rate and decay depend on the number of features, see :func:`for_width`.

    Attributes:
        epochs: How often to go through the rows, as the loss counts it.
        batch_size: Most rows in a step.
        learning_rate: Peak of the one-cycle schedule; None: 3e-4 for 1280 features.
        weight_decay: Decoupled penalty on weights; None: 3 for 1280 features.
        hidden: Width of a hidden layer; None for a linear head.
        patience: With a judge: stop after so many epochs that were not the best so far.
    """

    epochs: int = 20
    batch_size: int = 128
    learning_rate: float | None = None
    weight_decay: float | None = None
    hidden: int | None = None
    patience: int = 5

    def check(self) -> None:
        """Raise if a number cannot be used."""
        check_whole("epochs", self.epochs, low=1)
        check_whole("batch_size", self.batch_size, low=1)
        check_whole("n_iter_no_change", self.patience, low=1)
        if self.learning_rate is not None:
            check_number("learning_rate", self.learning_rate, low=0, low_open=True)
        if self.weight_decay is not None:
            check_number("weight_decay", self.weight_decay, low=0)
        if self.hidden is not None:
            check_whole("hidden", self.hidden, low=1)

    def rate_and_decay(self, features: int) -> tuple[float, float]:
        """Learning rate and decay for a number of features.

        Example:
            >>> Recipe().rate_and_decay(1280), Recipe().rate_and_decay(320)
            ((0.0003, 3.0), (0.0006, 1.5))
        """
        rate, decay = for_width(LEARNING_RATE, WEIGHT_DECAY, features)
        given_rate, given_decay = self.learning_rate, self.weight_decay
        return (
            rate if given_rate is None else given_rate,
            decay if given_decay is None else given_decay,
        )


@dataclass(frozen=True)
class FittedHead:
    """A trained head and how training went.

    Attributes:
        head: The head of the last epoch; with a judge, of the best one.
        losses: Mean loss of a row in each epoch.
        scores: What the judge said after each epoch.
    """

    head: FeatureHead
    losses: tuple[float, ...]
    scores: tuple[float, ...]


def fit_head(
    features: Tensor,
    labels: LabelBatch,
    loss: Loss,
    *,
    classes: int,
    seed: int,
    recipe: Recipe,
    row_weight: Tensor | None = None,
    judge: Callable[[FeatureHead], float] | None = None,
) -> FittedHead:
    """Train a head that starts where the loss is least on these labels.

    Args:
        features: One row an image ``(N, F)``; float64 is computed with as it is, others in float32.
        labels: Targets by row.
        loss: With reduction ``"sum"``; ``"none"`` where rows have weights. It was prepared, if it
            wants to be.
        classes: Number of classes.
        seed: The same seed gives the same head.
        recipe: How to train.
        row_weight: How much each row counts ``(N,)``.
        judge: Says how good the head is; its best epoch is kept.

    Example:
        >>> from hilltop.losses import bce
        >>> X = torch.eye(2).repeat(20, 1)
        >>> fitted = fit_head(X, lambda rows: (X[rows], None), bce(reduction="sum"), classes=2,
        ...                   seed=0, recipe=Recipe(epochs=5))
        >>> (fitted.head(torch.eye(2)) > 0).int()
        tensor([[1, 0],
                [0, 1]], dtype=torch.int32)
    """
    recipe.check()
    dtype = torch.float64 if features.dtype == torch.float64 else torch.float32
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = FeatureHead(features.shape[1], classes, hidden=recipe.hidden).to(dtype)
    head.fit_scale(features, weight=row_weight)
    _start(head, loss, labels, len(features), row_weight)
    if row_weight is not None:
        loss = RowWeighted(loss, row_weight)
    rate, decay = recipe.rate_and_decay(features.shape[1])
    optimizer = build_optimizer(head, loss, learning_rate=rate, weight_decay=decay, decoupled=True)
    rounds, parts = plan_batches(len(features), recipe.batch_size)
    steps = recipe.epochs * rounds * parts
    schedule = build_schedule(optimizer, steps=steps, warmup=WARMUP)
    chance = torch.Generator().manual_seed(seed)
    watch = _Best(head, judge, recipe.patience)
    losses = []
    for epoch in range(recipe.epochs):
        loss.set_epoch(epoch)
        total = 0.0
        for rows in batches(len(features), rounds, parts, chance):
            targets, observed = labels(rows)
            optimizer.zero_grad()
            value = loss(head(features[rows].to(dtype)), targets, observed=observed, index=rows)
            value.backward()
            optimizer.step()
            schedule.step()
            total += float(value.detach())
        losses.append(total / (rounds * len(features)))
        if watch.is_over():
            break
    watch.restore()
    return FittedHead(head, tuple(losses), tuple(watch.scores))


class _Best:
    """Remembers the best epoch, as a judge sees it, and says when to stop."""

    def __init__(
        self, head: FeatureHead, judge: Callable[[FeatureHead], float] | None, patience: int
    ) -> None:
        self.head, self.judge, self.patience = head, judge, patience
        self.scores: list[float] = []
        self.state: dict[str, Tensor] | None = None

    @torch.no_grad()
    def is_over(self) -> bool:
        if self.judge is None:
            return False
        self.scores.append(self.judge(self.head))
        best = max(range(len(self.scores)), key=self.scores.__getitem__)  # the first of equals
        if best == len(self.scores) - 1:
            self.state = copy.deepcopy(self.head.state_dict())
        return len(self.scores) - 1 - best >= self.patience

    def restore(self) -> None:
        if self.state is not None:
            self.head.load_state_dict(self.state)


def _start(
    head: FeatureHead, loss: Loss, labels: LabelBatch, rows: int, row_weight: Tensor | None
) -> None:
    """Set the bias, by some rows from all over the data where there are very many."""
    classes = last_bias(head).numel()
    step = -(-rows // max(1, _MOST_ENTRIES // classes))
    targets, observed = labels(torch.arange(0, rows, step))
    if row_weight is None:
        init_head(head, loss, targets, observed=observed)
        return
    weight = row_weight[::step]
    if loss.self_labelling:
        known = weight @ (~targets.isnan()).to(weight)
        init_head_prior(head, (weight @ targets.nan_to_num().to(weight)) / known.clamp(min=1e-9))
    else:
        init_head(head, RowWeighted(loss, weight), targets, observed=observed)


def for_width(rate: float, decay: float, features: int) -> tuple[float, float]:
    """Return learning rate and decay that were chosen for 1280 features, for another number.

    With fewer features each weight has to be larger for logits of the same size; so for F features
    the rate is multiplied, and the decay divided, by sqrt(1280 / F).
    """
    factor = math.sqrt(USUAL_FEATURES / features)
    return rate * factor, decay / factor


def plan_batches(rows: int, batch_size: int) -> tuple[int, int]:
    """How often an epoch goes through the rows, and in how many batches of about one size.

    Of one size: Adam makes steps of the same length, so the few rows of a small last batch would
    count many times as much as others.
    """
    parts = -(-rows // batch_size)
    return max(1, round(USUAL_STEPS / parts)), parts


def batches(rows: int, rounds: int, parts: int, chance: torch.Generator) -> Iterator[Tensor]:
    """Yield the rows of the batches of an epoch."""
    for _ in range(rounds):
        yield from torch.randperm(rows, generator=chance).tensor_split(parts)
