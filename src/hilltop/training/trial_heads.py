"""Linear heads of several penalties and folds, trained side by side and in haste."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from hilltop.losses.init import log_odds
from hilltop.training.optim import RowAdamW

FOLDS = 3
_STEPS, _BATCH, _WARMUP = 350, 128, 0.2


class TrialHeads:
    """Heads for every penalty and fold: weights ``(penalties x folds x classes, F)``.

    Args:
        inputs: Scaled features, in random order ``(n, F)``.
        targets: Labels: 1, 0 or NaN ``(n, C)``.
        penalties: Decoupled penalties.
        rate: Peak of the learning rate.
    """

    def __init__(
        self, inputs: Tensor, targets: Tensor, penalties: Sequence[float], *, rate: float
    ) -> None:
        """Start all heads at the odds of labels."""
        self.inputs, self.known = inputs, ~targets.isnan()
        self.targets = targets.nan_to_num().to(inputs.dtype)
        self.fold = torch.arange(len(inputs)) % FOLDS
        apart = torch.stack([self.fold != fold for fold in range(FOLDS)], dim=1)
        self.learns = (apart.unsqueeze(2) & self.known.unsqueeze(1)).to(inputs.dtype)
        classes = targets.shape[1]
        self.shape = (len(penalties), FOLDS, classes)
        self.weight = inputs.new_zeros(math.prod(self.shape), inputs.shape[1])
        self.bias = log_odds(targets).to(inputs.dtype).repeat(len(penalties) * FOLDS)
        penalty = inputs.new_tensor(penalties).repeat_interleave(FOLDS * classes).unsqueeze(1)
        groups = [
            {"params": [self.weight], "weight_decay": penalty, "rows": True},
            {"params": [self.bias]},
        ]
        self.optimizer = RowAdamW(groups, lr=rate)

    def train(self, generator: torch.Generator) -> None:
        """Train all of them by cross-entropy."""
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

    def precisions(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Precision at the rank of each label, by heads that did not learn from it.

        Args:
            rows: Rows of the labels.
            columns: Their classes.

        Returns:
            One number for each penalty and label.
        """
        weights = self.weight.view(*self.shape, -1)
        biases = self.bias.view(*self.shape)
        found = self.targets.new_zeros(self.shape[0], len(rows))
        for fold in range(FOLDS):
            mine = self.fold == fold
            place = torch.cumsum(mine, dim=0) - 1
            labels = torch.nonzero(mine[rows]).flatten()
            for number in range(self.shape[0]):
                logits = torch.addmm(
                    biases[number, fold], self.inputs[mine], weights[number, fold].T
                )
                logits.masked_fill_(~self.known[mine], -torch.inf)
                every = label_precisions(logits, self.targets[mine])
                found[number, labels] = every[place[rows[labels]], columns[labels]]
        return found


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


def _batches(rows: int, passes: int, parts: int, generator: torch.Generator) -> Iterator[Tensor]:
    for _ in range(passes):
        yield from torch.randperm(rows, generator=generator).tensor_split(parts)
