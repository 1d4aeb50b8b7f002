"""The recipe: one owner of every number that training goes by, on features and on images.

The command, the estimator, the advisor and the heads of the audit all take theirs from here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilltop.checks import check_number, check_whole
from hilltop.models import FeatureHead, Features, Scaling, has_zeros, input_rows
from hilltop.training.head_choice import HeadChoice, HeadSearch, choice_rows

LabelBatch = Callable[[Tensor], tuple[Tensor, Tensor | None]]
"""Gives targets, and which of them a person confirmed, for some rows."""

USUAL_FEATURES = 1280
"""Number of features for which rate and decay of heads were chosen."""


@dataclass(frozen=True)
class Recipe:
    """How a model is trained.

    Attributes:
        epochs: How often to go through the rows, as the loss counts it.
        batch_size: Most rows in a step, over all processes together.
        learning_rate: Peak of the one-cycle schedule; None fits it to the number of features.
        weight_decay: Penalty on matrices and filters; None chooses it by cross-validation.
        warmup: Share of the schedule in which the rate rises.
        schedule_epochs: Length of the schedule where it is longer than the run.
        head_epochs: Epochs at the start, with a cycle of their own, in which the head learns alone.
        ema: Decay of the moving average of weights; 0 for none.
        ema_ramp: Whether that decay grows in the first steps.
        least_steps: Steps of an epoch at the least, about: few rows are gone through several
            times.
        newton: Whether a linear head of cross-entropy is fitted by
            :class:`~hilltop.training.logistic.LogisticSolver`, an epoch being a pass through all
            rows; None does so unless a learning rate is given.
        chosen: Whether penalty and scaling were chosen by cross-validation.
        scaling: How a head scales its features; None leaves it to cross-validation where that
            chooses the penalty, and is the usual way elsewhere.
    """

    epochs: int = 20
    batch_size: int = 128
    learning_rate: float | None = None
    weight_decay: float | None = None
    warmup: float = 0.2
    schedule_epochs: int | None = None
    head_epochs: int = 0
    ema: float = 0.0
    ema_ramp: bool = True
    least_steps: int = 50
    newton: bool | None = None
    chosen: bool = False
    scaling: Scaling | None = None

    @property
    def uses_newton(self) -> bool:
        """Whether linear heads of cross-entropy are fitted by conjugate gradients, see newton."""
        return self.learning_rate is None if self.newton is None else self.newton

    @property
    def for_evidence(self) -> Recipe:
        """The usual recipe of heads, with penalty and scaling where these were chosen here."""
        if not self.chosen:
            return HEADS
        return dataclasses.replace(
            HEADS, weight_decay=self.weight_decay, scaling=self.scaling, newton=True, chosen=True
        )

    def check(self) -> None:
        """Raise if a number cannot be used."""
        check_whole("epochs", self.epochs, low=1)
        check_whole("batch_size", self.batch_size, low=1)
        if self.learning_rate is not None:
            check_number("learning_rate", self.learning_rate, low=0, low_open=True)
        if self.weight_decay is not None:
            check_number("weight_decay", self.weight_decay, low=0)

    def for_head(
        self,
        head: FeatureHead,
        features: Features,
        labels: LabelBatch,
        *,
        seed: int,
        row_weight: Tensor | None = None,
        before: LabelBatch | None = None,
    ) -> Recipe:
        """Scale the features of a head; return the recipe with a rate and a decay for it.

        With fewer features each weight has to be larger for logits of the same size; so for F
        features the rate is multiplied, and the decay divided, by sqrt(1280 / F).

        Args:
            head: The head.
            features: What it will learn from ``(N, F)``.
            labels: Their labels by row.
            seed: The same seed chooses the same.
            row_weight: How much each row counts for the scale ``(N,)``.
            before: Their labels before a review, if there was one.
        """
        head.fit_scale(features, weight=row_weight, scaling=self.scaling)
        rate, decay, usual = self.rate_for(features.shape[1]), self.weight_decay, head.same_length
        newton = self.uses_newton
        if decay is not None:
            scaling = self.scaling or Scaling(usual)
            return dataclasses.replace(
                self, learning_rate=rate, weight_decay=decay, newton=newton, scaling=scaling
            )
        chosen = self._choose(head, features, labels, before, seed)
        if chosen.scaling != (self.scaling or Scaling(usual)):
            head.fit_scale(features, weight=row_weight, scaling=chosen.scaling)
        decay = chosen.penalty / _width_factor(features.shape[1])
        return dataclasses.replace(
            self,
            learning_rate=rate * chosen.speed,
            weight_decay=decay,
            newton=newton,
            chosen=True,
            scaling=chosen.scaling,
        )

    def _choose(
        self,
        head: FeatureHead,
        features: Features,
        labels: LabelBatch,
        before: LabelBatch | None,
        seed: int,
    ) -> HeadChoice:
        """How the head should learn, by cross-validation on some rows."""
        rows = choice_rows(len(features), seed)
        some = input_rows(features, rows)
        usual = self.scaling or Scaling(head.same_length)

        def scaled(scaling: Scaling) -> Tensor:
            if scaling == usual:
                return head.scaled(some)
            other = FeatureHead(features.shape[1], 1, hidden=None).to(head.mean.dtype)
            other.fit_scale(some, scaling=scaling)
            return other.scaled(some)

        factor = _width_factor(features.shape[1])
        targets, brisker = labels(rows)[0], self.learning_rate is None
        earlier = None if before is None else before(rows)[0]
        search = HeadSearch(
            scaled,
            targets,
            rows=len(features),
            width=1 / factor,
            before=earlier,
        )
        return search.choose(usual, zeros=has_zeros(some), brisker=brisker)

    def rate_for(self, features: int) -> float:
        """Peak of the learning rate for a number of features.

        Example:
            >>> Recipe().rate_for(1280), Recipe().rate_for(320)
            (0.0003, 0.0006)
        """
        given = self.learning_rate
        return HEAD_RATE * _width_factor(features) if given is None else given

    def passes(self, rows: int) -> tuple[int, int]:
        """How often an epoch goes through the rows, and in how many batches each time."""
        parts = -(-rows // self.batch_size)
        return max(1, round(self.least_steps / parts)), parts

    def cycle_steps(self, rows: int, *, head_alone: bool) -> int:
        """Steps of the cycle in which the head learns alone, or of that in which all does."""
        passes, parts = self.passes(rows)
        epochs = (self.schedule_epochs or self.epochs) - self.head_epochs
        return (self.head_epochs if head_alone else epochs) * passes * parts

    def epoch_plan(self, rows: int, seed: int, epoch: int, *, world: int = 1) -> list[Tensor]:
        """The rows of every batch of an epoch, over all ranks: permutations from seed and epoch.

        Batches are of one size: Adam makes steps of the same length, so the few rows of a small
        last batch would count many times as much as others. A batch with fewer rows than there are
        ranks is left out.
        """
        generator = torch.Generator().manual_seed(seed_of(seed, epoch))
        passes, parts = self.passes(rows)
        orders = [torch.randperm(rows, generator=generator) for _ in range(passes)]
        batches = [batch for order in orders for batch in order.tensor_split(parts)]
        return [batch for batch in batches if len(batch) >= world]


HEAD_RATE = 3e-4
HEADS = Recipe()
"""For heads on features."""
IMAGES = Recipe(learning_rate=1e-4, weight_decay=1e-4, ema=0.9997, least_steps=1)
"""For networks on images, as in the paper."""


def _width_factor(features: int) -> float:
    return math.sqrt(USUAL_FEATURES / features)


def seed_of(seed: int, epoch: int, rank: int = 0) -> int:
    """A number of its own for every seed, epoch and rank."""
    return int(np.random.SeedSequence([seed, epoch, rank]).generate_state(1, np.uint64)[0] >> 1)
