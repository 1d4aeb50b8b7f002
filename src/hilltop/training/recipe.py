"""Select hyperparameters: the recipe has every number that training goes by.

The command, the estimator, the advisor and the heads of the audit take theirs from here. What a
head leaves open, penalty and scaling first of all, is chosen by cross-validation on its own labels.
After a review the choice of the labels before it stays, unless answers clearly speak for another
penalty: a new one by chance can cost more than the answers bring.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hilltop.checks import check_number, check_whole
from hilltop.missing.logistic import Counts, Prior, fit_logistic
from hilltop.models import FeatureHead, Features, Scaling, has_zeros, input_rows
from hilltop.training.logistic import Entries, LogisticSolver, ScaledRows, l2_penalty

SEARCH_FOLDS = 3
PENALTIES = (100.0, 56.0, 30.0, 18.0, 10.0, 5.6, 3.0, 1.8, 1.0)
"""Decoupled penalties to choose from, for 1280 features."""
USUAL_PENALTY = 10.0
"""Where there are too few rows or labels to choose by."""
LOW_PENALTIES = {0.3: 4.0, 0.1: 16.0}
"""Lower ones for features with heavy tails, and rare classes that are told apart well, which need
large weights; with factors on the rate of losses that are trained by steps."""
PATIENCE = 3
"""Lower penalties in a row that are worse, after which still lower ones are not tried."""
SEARCH_TOLERANCE = 1e-2
"""Heads that are only compared need not be exact, see the tolerance of the solver."""
Z_95 = 1.64
"""Standard errors by which something else must be better than what is usual: 19 in 20."""
HALF_ERROR = 0.5
"""Standard errors by which a lower penalty must be better than a higher one."""
PENALTY_POWER = 0.75
"""How fast the penalty falls with the number of rows; of 0.5, 0.75 and 1 on 8,000 of the COCO
training rows, judged by 4,000 others, with complete labels and 40% of them."""
_LEAST_ROWS, _MOST_ROWS = 100, 3000
_MOST_WEIGHTS = 2_000_000  # of all heads together


@dataclass(frozen=True)
class HeadChoice:
    """How a head learns.

    Attributes:
        penalty: Decoupled penalty on its weights, for 1280 features.
        speed: Factor on the usual learning rate, for losses that are trained by steps.
        scaling: How its features are scaled.
        slope: Factor on weights, so that sizes of logits are those of probabilities.
    """

    penalty: float
    speed: float
    scaling: Scaling
    slope: float = 1.0


@dataclass(frozen=True)
class _Judged:
    """A choice, the precision at each held-out label of heads that learned so, and their logits."""

    choice: HeadChoice
    precision: Tensor
    logits: Tensor


class HeadSearch:
    """Compares ways to learn from some rows, by cross-entropy on labels as they are.

    Missing labels lower the precision at held-out labels for all ways alike.

    Args:
        scaled: Gives the features of some rows, in random order, scaled in a way ``(n, F)``.
        targets: Their labels: 1, 0 or NaN ``(n, C)``.
        before: Their labels before a review, if there was one.
        rows: Number of rows that the head will learn from.
        width: Factor on penalties for this number of features.
    """

    def __init__(
        self,
        scaled: Callable[[Scaling], Tensor],
        targets: Tensor,
        *,
        rows: int,
        width: float,
        before: Tensor | None = None,
    ) -> None:
        """Keep what is compared by."""
        self._scaled, self._rows = scaled, rows
        self._reviewed = None if before is None else targets
        self._targets = targets if before is None else before
        self._width = width

    @torch.no_grad()
    def choose(self, usual: Scaling, *, zeros: bool, raise_rate: bool) -> HeadChoice:
        """Return how a head should learn.

        Args:
            usual: How features are scaled where nothing speaks for another way.
            zeros: Whether some features are mostly zero.
            raise_rate: Whether the rate may be raised.
        """
        inputs = self._scaled(usual)
        useful = _useful_classes(self._targets, inputs.shape[1])
        if len(inputs) < _LEAST_ROWS or not len(useful):
            return HeadChoice(USUAL_PENALTY, 1.0, usual)
        self._targets = self._targets[:, useful]
        best = self._best_penalty(usual)
        if best is None:  # a label a fold: none stands above another
            return HeadChoice(USUAL_PENALTY, 1.0, usual)
        best = self._better(best, scaling=usual._replace(same_length=not usual.same_length))
        if zeros:
            best = self._better(best, scaling=best.choice.scaling._replace(keep_zeros=False))
        if best.choice.scaling != usual:  # features of another size want another penalty
            best = self._best_penalty(best.choice.scaling) or best
        if raise_rate and best.choice.penalty == min(PENALTIES):
            for penalty, speed in LOW_PENALTIES.items():
                best = self._better(best, speed=speed, penalty=penalty)
        if self._reviewed is not None:
            self._targets = self._reviewed[:, useful]
            best = self._after_review(best.choice)
        penalty = penalty_for(best.choice.penalty, chosen_by=len(inputs), rows=self._rows)
        slope = shared_slope(best.logits, self._targets)
        return replace(best.choice, penalty=penalty, slope=slope)

    def _after_review(self, choice: HeadChoice) -> _Judged:
        """The choice, or its penalty changed where the labels of today clearly speak for it."""
        penalties = tuple(sorted({*PENALTIES, choice.penalty}, reverse=True))
        judged = self._judge(choice, penalties)
        best, usual = self._highest(judged)[0], judged[penalties.index(choice.penalty)]
        clear = self._clear(judged[best].precision - usual.precision)
        return judged[best] if clear else usual

    def _best_penalty(self, scaling: Scaling) -> _Judged | None:
        judged = self._judge(HeadChoice(USUAL_PENALTY, 1.0, scaling), PENALTIES)
        best, score = self._highest(judged)
        return judged[best] if score else None

    def _highest(self, judged: list[_Judged]) -> tuple[int, float]:
        """Which one to take, and its mean precision over classes.

        The highest penalty of those that are not lower than the best by half a standard error:
        missing labels and few rows make low penalties look good by chance.
        """
        scores = [float(self._class_means(one.precision).mean()) for one in judged]
        best = max(range(len(scores)), key=scores.__getitem__)
        for number in range(best):
            if not self._clear(judged[best].precision - judged[number].precision, HALF_ERROR):
                return number, scores[number]
        return best, scores[best]

    def _better(self, best: _Judged, **changes: Any) -> _Judged:
        """The best choice so far with some changes, if it is clearly better with them."""
        choice = replace(best.choice, **changes)
        (judged,) = self._judge(choice, (choice.penalty,))
        return judged if self._clear(judged.precision - best.precision) else best

    def _clear(self, gain: Tensor, errors: float = Z_95) -> bool:
        """Whether a gain in precision at each label is more than so many standard errors."""
        means = self._class_means(gain)
        columns = self._labels()[1]
        counts = torch.bincount(columns, minlength=len(means)).clamp(min=1)
        spread = self._class_means((gain - means[columns]).square()) / counts
        return bool(means.mean() > errors * spread.sum().sqrt() / len(means))

    def _judge(self, choice: HeadChoice, penalties: tuple[float, ...]) -> list[_Judged]:
        """Judge a choice with several penalties by heads that did not learn from what they score.

        Heads of all folds are fitted side by side, each penalty from the solution of the last one.
        Where precision falls from penalty to penalty, the rest of them is left out.
        """
        inputs = self._scaled(choice.scaling)
        known = ~self._targets.isnan()
        targets = self._targets.nan_to_num().to(inputs.dtype)
        entries = Entries(targets, known.to(targets), targets.new_ones(len(targets)))
        fold = torch.arange(len(inputs)) % SEARCH_FOLDS
        learns = fold.unsqueeze(1) != torch.arange(SEARCH_FOLDS)
        classes = targets.shape[1]
        rotated = ScaledRows(inputs, None).rotated()
        solver = LogisticSolver(
            inputs.new_zeros(SEARCH_FOLDS * classes, rotated.shape[1]),
            inputs.new_zeros(SEARCH_FOLDS * classes),
            rotated,
            entries,
            targets.new_zeros(classes),
            learns=learns,
            tolerance=SEARCH_TOLERANCE,
        )
        judged: list[_Judged] = []
        means: list[float] = []
        for penalty in penalties:
            if means and len(means) - means.index(max(means)) > PATIENCE:
                break
            solver.set_penalty(l2_penalty(penalty * self._width, entries))
            solver.solve()
            logits = solver.logits.view(len(inputs), SEARCH_FOLDS, classes)
            logits = logits[torch.arange(len(inputs)), fold].masked_fill(~known, -torch.inf)
            precisions = torch.zeros_like(targets)
            for one in range(SEARCH_FOLDS):
                mine = fold == one
                precisions[mine] = label_precisions(logits[mine], targets[mine])
            precision = precisions[self._labels()]
            judged.append(_Judged(replace(choice, penalty=penalty), precision, logits))
            means.append(float(self._class_means(precision).mean()))
        return judged

    def _labels(self) -> tuple[Tensor, Tensor]:
        rows, columns = torch.nonzero(self._targets == 1, as_tuple=True)
        return rows, columns

    def _class_means(self, values: Tensor) -> Tensor:
        """Means over the labels of each class."""
        columns, classes = self._labels()[1], self._targets.shape[1]
        sums = values.new_zeros(classes).index_add_(0, columns, values)
        return sums / torch.bincount(columns, minlength=classes).clamp(min=1)


def choice_rows(rows: int, seed: int) -> Tensor:
    """The rows that a head's way to learn is chosen by, in random order."""
    return torch.randperm(rows, generator=torch.Generator().manual_seed(seed))[:_MOST_ROWS]


def penalty_for(penalty: float, *, chosen_by: int, rows: int) -> float:
    """A penalty for more rows than it was chosen by: the more, the less is held back.

    Args:
        penalty: The penalty that was chosen.
        chosen_by: Number of rows that took part, of which a fold was held out.
        rows: Number of rows that the head will learn from.
    """
    learned = chosen_by * (SEARCH_FOLDS - 1) / SEARCH_FOLDS
    return penalty * math.pow(learned / rows, PENALTY_POWER)


def _useful_classes(targets: Tensor, features: int) -> Tensor:
    """Classes that take part: with labels in every fold, and not too many of them."""
    counts = (targets == 1).sum(dim=0)
    enough = (counts >= SEARCH_FOLDS) & (counts <= len(targets) - SEARCH_FOLDS)
    useful = torch.nonzero(enough).flatten()
    most = max(8, _MOST_WEIGHTS // (SEARCH_FOLDS * len(PENALTIES) * features))
    if len(useful) > most:  # evenly over common and rare classes
        places = torch.linspace(0, len(useful) - 1, most).long()
        useful = useful[counts[useful].argsort(stable=True)][places]
    return useful


def label_precisions(logits: Tensor, targets: Tensor) -> Tensor:
    """Precision at the rank of each label of a class, by the labels above it; 0 for other pairs.

    A label does not count at its own rank: of few labels that are left one comes first by luck, and
    precision there would be 1.
    """
    order = logits.sort(dim=0, descending=True, stable=True).indices
    hits = targets.gather(0, order)
    ranks = torch.arange(1, len(hits) + 1).unsqueeze(1)
    sorted_precisions = (hits.cumsum(dim=0) - 1) / ranks * hits
    return torch.zeros_like(sorted_precisions).scatter_(0, order, sorted_precisions)


def shared_slope(logits: Tensor, targets: Tensor) -> float:
    """Factor on held-out logits of all classes at which they fit the labels best.

    Each class has an intercept of its own. The prior matters for a handful of labels only.

    Args:
        logits: Held-out logits ``(n, C)``; those of unknown entries do not count.
        targets: 1, 0 or NaN ``(n, C)``.
    """
    known = ~targets.isnan()
    counts = Counts.of_labels(logits.double().where(known, 0.0).numpy(), targets.numpy())
    features = np.stack([counts.scores, np.ones_like(counts.scores)])
    prior = Prior(np.array([1.0, 0.0]), np.array([1.0, 1e-4]), np.array([np.inf, 1e-4]))
    return float(fit_logistic(features, 0.0, counts, prior).shared[0])


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
        slope: How many times as large as the solution weights of such a head are, see
            :class:`~hilltop.training.logistic.LogisticSolver`.
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
    slope: float = 1.0
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
            HEADS,
            weight_decay=self.weight_decay,
            slope=self.slope,
            scaling=self.scaling,
            newton=True,
            chosen=True,
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
            slope=chosen.slope,
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
        targets, raise_rate = labels(rows)[0], self.learning_rate is None
        earlier = None if before is None else before(rows)[0]
        search = HeadSearch(
            scaled,
            targets,
            rows=len(features),
            width=1 / factor,
            before=earlier,
        )
        return search.choose(usual, zeros=has_zeros(some), raise_rate=raise_rate)

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
