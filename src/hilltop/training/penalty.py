"""How firmly the weights of a head are held back: chosen by cross-validation on its own labels."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from hilltop.losses.init import log_odds
from hilltop.training.optim import RowAdamW

PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)
"""Decoupled penalties to choose from, for 1280 features."""
USUAL_PENALTY = 10.0
"""Where there are too few rows or labels to choose by."""
FOLDS = 3
_LEAST_ROWS, _MOST_ROWS = 100, 3000
_MOST_WEIGHTS = 2_000_000  # of all heads together
_STEPS, _BATCH, _WARMUP = 350, 128, 0.2


@torch.no_grad()
def choose_penalty(
    inputs: Tensor, targets: Tensor, *, rows: int, rate: float, width: float, seed: int
) -> float:
    """Return the penalty with which cross-entropy ranks held-out labels best.

    Heads of all penalties and folds are trained side by side, in haste. They are judged by the mean
    over classes of average precision, on labels as they are: missing ones lower it for all alike,
    once a label does not count at its own rank. Of few labels that are left one comes first by
    luck, and precision there would be 1.

    Args:
        inputs: Scaled features of some rows, in random order ``(n, F)``.
        targets: Their labels: 1, 0 or NaN ``(n, C)``.
        rows: Number of rows that the head will learn from; the more, the less it is held back.
        rate: Learning rate of these heads.
        width: Factor on penalties for this number of features.
        seed: Of the batches.
    """
    counts = (targets == 1).sum(dim=0)
    useful = torch.nonzero((counts >= FOLDS) & (counts <= len(inputs) - FOLDS)).flatten()
    if len(inputs) < _LEAST_ROWS or not len(useful):
        return USUAL_PENALTY
    most = max(8, _MOST_WEIGHTS // (FOLDS * len(PENALTIES) * inputs.shape[1]))
    if len(useful) > most:  # evenly over common and rare classes
        places = torch.linspace(0, len(useful) - 1, most).long()
        useful = useful[counts[useful].argsort(stable=True)][places]
    targets = targets[:, useful]
    heads = _Heads(inputs, targets, rate=rate, width=width)
    heads.train(torch.Generator().manual_seed(seed))
    scores = heads.scores()
    if not any(scores):  # a label a fold: none stands above another
        return USUAL_PENALTY
    best = max(range(len(PENALTIES)), key=scores.__getitem__)
    learned = len(inputs) * (FOLDS - 1) / FOLDS
    return PENALTIES[best] * math.sqrt(learned / rows)


def choice_rows(rows: int, seed: int) -> Tensor:
    """The rows that a penalty is chosen by, in random order."""
    return torch.randperm(rows, generator=torch.Generator().manual_seed(seed))[:_MOST_ROWS]


class _Heads:
    """Linear heads for every penalty and fold: weights ``(penalties x folds x classes, F)``."""

    def __init__(self, inputs: Tensor, targets: Tensor, *, rate: float, width: float) -> None:
        self.inputs, self.known = inputs, ~targets.isnan()
        self.targets = targets.nan_to_num().to(inputs.dtype)
        self.fold = torch.arange(len(inputs)) % FOLDS
        apart = torch.stack([self.fold != fold for fold in range(FOLDS)], dim=1)
        self.learns = (apart.unsqueeze(2) & self.known.unsqueeze(1)).to(inputs.dtype)
        classes = targets.shape[1]
        self.shape = (len(PENALTIES), FOLDS, classes)
        self.weight = inputs.new_zeros(math.prod(self.shape), inputs.shape[1])
        self.bias = log_odds(targets).to(inputs.dtype).repeat(len(PENALTIES) * FOLDS)
        penalty = inputs.new_tensor(PENALTIES).repeat_interleave(FOLDS * classes).unsqueeze(1)
        groups = [
            {"params": [self.weight], "weight_decay": penalty * width, "rows": True},
            {"params": [self.bias]},
        ]
        self.optimizer = RowAdamW(groups, lr=rate)

    def train(self, generator: torch.Generator) -> None:
        parts = -(-len(self.inputs) * (FOLDS - 1) // (FOLDS * _BATCH))
        passes = max(1, round(_STEPS / parts))
        peaks = [group["lr"] for group in self.optimizer.param_groups]
        schedule = OneCycleLR(self.optimizer, peaks, total_steps=passes * parts, pct_start=_WARMUP)
        for rows in _batches(len(self.inputs), passes, parts, generator):
            inputs = self.inputs[rows]
            probs = torch.addmm(self.bias, inputs, self.weight.T).sigmoid_()
            error = probs.view(len(rows), *self.shape) - self.targets[rows][:, None, None]
            error = (error * self.learns[rows].unsqueeze(1)).flatten(1)
            self.weight.grad, self.bias.grad = error.T @ inputs, error.sum(dim=0)
            self.optimizer.step()
            schedule.step()

    def scores(self) -> list[float]:
        """For each penalty, the mean over classes of the precision at held-out labels."""
        weights = self.weight.view(*self.shape, -1)
        biases = self.bias.view(*self.shape)
        found = self.targets.new_zeros(len(PENALTIES), self.shape[2])
        for fold in range(FOLDS):
            mine = self.fold == fold
            for number in range(len(PENALTIES)):
                logits = torch.addmm(
                    biases[number, fold], self.inputs[mine], weights[number, fold].T
                )
                logits.masked_fill_(~self.known[mine], -torch.inf)
                found[number] += _precisions(logits, self.targets[mine])
        mean: list[float] = (found / self.targets.sum(dim=0).clamp(min=1)).mean(dim=1).tolist()
        return mean


def _precisions(logits: Tensor, targets: Tensor) -> Tensor:
    """Sum over the labels of each class of the precision at their rank, by the labels above it."""
    order = logits.sort(dim=0, descending=True, stable=True).indices
    hits = targets.gather(0, order)
    ranks = torch.arange(1, len(hits) + 1).unsqueeze(1)
    return ((hits.cumsum(dim=0) - 1) / ranks * hits).sum(dim=0)


def _batches(rows: int, passes: int, parts: int, generator: torch.Generator) -> Iterator[Tensor]:
    for _ in range(passes):
        yield from torch.randperm(rows, generator=generator).tensor_split(parts)
