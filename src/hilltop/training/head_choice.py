"""How a head learns from its features: chosen by cross-validation on its own labels.

The penalty first; then, only where labels clearly speak for it, another scaling of the features and
a brisker rate. After a review the choice of the labels before it stays, unless answers clearly
speak for another penalty: a new one by chance can cost more than the answers bring.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hilltop.models import Scaling
from hilltop.training.logistic import Entries, LogisticSolver, ScaledRows, l2_penalty

FOLDS = 3
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
CLEARLY = 1.64
"""Standard errors by which something else must be better than what is usual: 19 in 20."""
HARDLY = 0.5
"""Standard errors by which a lower penalty must be better than a higher one."""
_LEAST_ROWS, _MOST_ROWS = 100, 3000
_MOST_WEIGHTS = 2_000_000  # of all heads together


@dataclass(frozen=True)
class HeadChoice:
    """How a head learns.

    Attributes:
        penalty: Decoupled penalty on its weights, for 1280 features.
        speed: Factor on the usual learning rate, for losses that are trained by steps.
        scaling: How its features are scaled.
    """

    penalty: float
    speed: float
    scaling: Scaling


@dataclass(frozen=True)
class _Judged:
    """A choice, and the precision at each held-out label of heads that learned so."""

    choice: HeadChoice
    precision: Tensor


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
    def choose(self, usual: Scaling, *, zeros: bool, brisker: bool) -> HeadChoice:
        """Return how a head should learn.

        Args:
            usual: How features are scaled where nothing speaks for another way.
            zeros: Whether some features are mostly zero.
            brisker: Whether the rate may be raised.
        """
        inputs = self._scaled(usual)
        useful = _useful(self._targets, inputs.shape[1])
        if len(inputs) < _LEAST_ROWS or not len(useful):
            return HeadChoice(USUAL_PENALTY, 1.0, usual)
        self._targets = self._targets[:, useful]
        best = self._best_penalty(usual)
        if best is None:  # a label a fold: none stands above another
            return HeadChoice(USUAL_PENALTY, 1.0, usual)
        best = self._if_better(best, scaling=Scaling(not usual.same_length, usual.keep_zeros))
        if zeros:
            kept = best.choice.scaling
            best = self._if_better(best, scaling=Scaling(kept.same_length, keep_zeros=False))
        if best.choice.scaling != usual:  # features of another size want another penalty
            best = self._best_penalty(best.choice.scaling) or best
        if brisker and best.choice.penalty == min(PENALTIES):
            for penalty, speed in LOW_PENALTIES.items():
                best = self._if_better(best, speed=speed, penalty=penalty)
        choice = best.choice
        if self._reviewed is not None:
            self._targets = self._reviewed[:, useful]
            choice = self._after_review(choice)
        penalty = penalty_for(choice.penalty, chosen_by=len(inputs), rows=self._rows)
        return replace(choice, penalty=penalty)

    def _after_review(self, choice: HeadChoice) -> HeadChoice:
        """The choice, or its penalty changed where the labels of today clearly speak for it."""
        penalties = tuple(sorted({*PENALTIES, choice.penalty}, reverse=True))
        precision = self._judge(self._scaled(choice.scaling), penalties)
        best, _ = self._highest(precision)
        clear = self._clear(precision[best] - precision[penalties.index(choice.penalty)])
        return replace(choice, penalty=penalties[best]) if clear else choice

    def _best_penalty(self, scaling: Scaling) -> _Judged | None:
        precision = self._judge(self._scaled(scaling), PENALTIES)
        best, score = self._highest(precision)
        if not score:
            return None
        return _Judged(HeadChoice(PENALTIES[best], 1.0, scaling), precision[best])

    def _highest(self, precision: Tensor) -> tuple[int, float]:
        """Which penalty to take, and its mean precision over classes.

        The highest of those that are not lower than the best by half a standard error: missing
        labels and few rows make low penalties look good by chance.
        """
        scores = [float(self._class_means(one).mean()) for one in precision]
        best = max(range(len(scores)), key=scores.__getitem__)
        for number in range(best):
            if not self._clear(precision[best] - precision[number], HARDLY):
                return number, scores[number]
        return best, scores[best]

    def _if_better(
        self,
        best: _Judged,
        *,
        scaling: Scaling | None = None,
        speed: float | None = None,
        penalty: float | None = None,
    ) -> _Judged:
        """Another choice, if it is clearly better than the best so far."""
        choice = best.choice
        choice = replace(
            choice,
            scaling=scaling or choice.scaling,
            speed=speed or choice.speed,
            penalty=penalty or choice.penalty,
        )
        inputs = self._scaled(choice.scaling)
        precision = self._judge(inputs, (choice.penalty,))[0]
        return _Judged(choice, precision) if self._clear(precision - best.precision) else best

    def _clear(self, gain: Tensor, errors: float = CLEARLY) -> bool:
        """Whether a gain in precision at each label is more than so many standard errors."""
        means = self._class_means(gain)
        columns = self._labels()[1]
        counts = torch.bincount(columns, minlength=len(means)).clamp(min=1)
        spread = self._class_means((gain - means[columns]).square()) / counts
        return bool(means.mean() > errors * spread.sum().sqrt() / len(means))

    def _judge(self, inputs: Tensor, penalties: tuple[float, ...]) -> Tensor:
        """Precision at each label of heads that did not learn from it ``(penalties, labels)``.

        Heads of all folds are fitted side by side, each penalty from the solution of the last one.
        Where precision falls from penalty to penalty, the rest of them is left out, as 0.
        """
        rows, columns = self._labels()
        known = ~self._targets.isnan()
        targets = self._targets.nan_to_num().to(inputs.dtype)
        entries = Entries(targets, known.to(targets), targets.new_ones(len(targets)))
        fold = torch.arange(len(inputs)) % FOLDS
        learns = fold.unsqueeze(1) != torch.arange(FOLDS)
        classes = targets.shape[1]
        rotated = ScaledRows(inputs, None).rotated()
        solver = LogisticSolver(
            inputs.new_zeros(FOLDS * classes, rotated.shape[1]),
            inputs.new_zeros(FOLDS * classes),
            rotated,
            entries,
            targets.new_zeros(classes),
            learns=learns,
            tolerance=SEARCH_TOLERANCE,
        )
        found = targets.new_zeros(len(penalties), len(rows))
        means: list[float] = []
        for number, penalty in enumerate(penalties):
            if means and len(means) - means.index(max(means)) > PATIENCE:
                break
            solver.set_penalty(l2_penalty(penalty * self._width, entries))
            solver.solve()
            logits = solver.logits.view(len(inputs), FOLDS, classes)
            logits = logits[torch.arange(len(inputs)), fold].masked_fill(~known, -torch.inf)
            for mine in (fold == one for one in range(FOLDS)):
                place = torch.cumsum(mine, dim=0) - 1
                labels = torch.nonzero(mine[rows]).flatten()
                every = label_precisions(logits[mine], targets[mine])
                found[number, labels] = every[place[rows[labels]], columns[labels]]
            means.append(float(self._class_means(found[number]).mean()))
        return found

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
    return penalty * math.sqrt(chosen_by * (FOLDS - 1) / FOLDS / rows)


def _useful(targets: Tensor, features: int) -> Tensor:
    """Classes that take part: with labels in every fold, and not too many of them."""
    counts = (targets == 1).sum(dim=0)
    useful = torch.nonzero((counts >= FOLDS) & (counts <= len(targets) - FOLDS)).flatten()
    most = max(8, _MOST_WEIGHTS // (FOLDS * len(PENALTIES) * features))
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
