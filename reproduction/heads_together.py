"""Linear heads of several tasks trained side by side: one matrix product serves them all.

A head is that of ``hilltop train``, with the same recipe, batches and start. Ten heads cost little
more than three that are trained alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from hilltop.losses.init import log_odds
from hilltop.models import FeatureHead
from hilltop.training.learner import RowAdamW
from hilltop.training.recipe import HEADS, Recipe

HIGHEST_START = 0.95


@dataclasses.dataclass(frozen=True)
class Task:
    """What heads of one kind learn from.

    Attributes:
        targets: Labels, 1 or 0 ``(N, C)``.
        counts: 1 for the pairs that count, 0 for those that are left out.
        keep: The share of true labels that was written down, as the loss has it.
    """

    targets: Tensor
    counts: Tensor
    keep: float = 1.0


def own_recipe(
    features: Tensor, targets: Tensor, seed: int, *, before: Tensor | None = None
) -> Recipe:
    """How a head learns: scaling, rate and penalty that these labels choose.

    Args:
        features: What it learns from.
        targets: Its labels.
        seed: The same seed chooses the same.
        before: Its labels before a review, if there was one.
    """
    head = FeatureHead(features.shape[1], 1, hidden=None)
    earlier = None if before is None else lambda rows: (before[rows], None)
    return HEADS.for_head(
        head, features, lambda rows: (targets[rows], None), seed=seed, before=earlier
    )


def train_side_by_side(
    features: Tensor, others: Tensor, tasks: Sequence[tuple[Task, Recipe]], *, seed: int
) -> list[Tensor]:
    """Return the logits of other rows, of a head for every task and recipe.

    Heads whose recipes differ in the penalty alone are trained together.

    Args:
        features: To learn from ``(N, F)``.
        others: To score.
        tasks: What each head learns from, and how.
        seed: Of the batches.
    """
    kinds = [(recipe.scaling, recipe.learning_rate) for _, recipe in tasks]
    found: dict[int, Tensor] = {}
    for scaling, rate in dict.fromkeys(kinds):
        head = FeatureHead(features.shape[1], 1, hidden=None)
        head.fit_scale(features, scaling=scaling)
        places = [place for place, kind in enumerate(kinds) if kind == (scaling, rate)]
        both = (head.scaled(features), head.scaled(others))
        found |= zip(places, _train(*both, [tasks[at] for at in places], rate, seed), strict=True)
    return [found[place] for place in range(len(tasks))]


@torch.no_grad()
def _train(
    inputs: Tensor,
    others: Tensor,
    tasks: Sequence[tuple[Task, Recipe]],
    rate: float | None,
    seed: int,
) -> list[Tensor]:
    targets, counts = (
        torch.stack([getattr(task, name) for task, _ in tasks], dim=1)
        for name in ("targets", "counts")
    )
    keep = torch.tensor([task.keep for task, _ in tasks]).view(1, -1, 1)
    heads, classes = targets.shape[1:]
    bias = torch.stack([_start(task) for task, _ in tasks]).flatten()
    weight = torch.zeros(heads * classes, inputs.shape[1])
    decays = torch.tensor([recipe.weight_decay for _, recipe in tasks])
    decay = decays.repeat_interleave(classes).unsqueeze(1)
    groups = [{"params": [weight], "weight_decay": decay, "rows": True}, {"params": [bias]}]
    assert rate is not None
    optimizer = RowAdamW(groups, lr=rate)
    plan = [b for e in range(HEADS.epochs) for b in HEADS.epoch_plan(len(inputs), seed, e)]
    peaks = [group["lr"] for group in optimizer.param_groups]
    schedule = OneCycleLR(optimizer, peaks, total_steps=len(plan), pct_start=HEADS.warmup)
    plain = bool((keep == 1).all())
    for rows in plan:
        batch, labels = inputs[rows], targets[rows]
        probs = torch.addmm(bias, batch, weight.T).sigmoid_().view(-1, heads, classes)
        if plain:
            grad = probs.sub_(labels)
        else:  # of -log(1 - c p)
            unlabelled = keep * probs * (1 - probs) / (1 - keep * probs).clamp_(min=1e-6)
            grad = torch.where(labels > 0, probs - 1, unlabelled)
        grad = grad.mul_(counts[rows]).flatten(1)
        weight.grad, bias.grad = grad.T @ batch, grad.sum(dim=0)
        optimizer.step()
        schedule.step()
    scores = torch.addmm(bias, others, weight.T).view(-1, heads, classes)
    return list(scores.unbind(dim=1))


def _start(task: Task) -> Tensor:
    """Log odds of the pairs that count; of the true labels, where a share of them was kept."""
    odds = log_odds(task.targets.masked_fill(task.counts == 0, math.nan))
    if task.keep == 1:
        return odds
    return torch.logit((torch.sigmoid(odds) / task.keep).clamp(max=HIGHEST_START))
