"""Scores that no image had a part in: linear heads trained on all folds but one, side by side.

One matrix product serves the heads of all folds, which is as fast as training a single wide head.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hilltop.checks import check_whole, pluralize
from hilltop.errors import DataError
from hilltop.losses import Loss, best_constant
from hilltop.models import FeatureHead
from hilltop.training.in_memory import batches, for_width, plan_batches
from hilltop.training.optim import build_optimizer, build_schedule

BATCH_SIZE = 128
EPOCHS = 20
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 10.0
WARMUP = 0.2


def out_of_fold_logits(
    features: Tensor,
    targets: Tensor,
    loss: Loss,
    *,
    observed: Tensor | None = None,
    folds: int = 4,
    partitions: int = 1,
    epochs: int = EPOCHS,
    seed: int = 0,
) -> Tensor:
    """Return logits for every image from heads that have never seen its labels.

    Args:
        features: One row an image ``(N, F)``.
        targets: 1 for labelled, 0 for not labelled ``(N, C)``.
        loss: What the heads are trained with.
        observed: True where a person confirmed the target.
        folds: Into how many parts the images are dealt; each is scored by the head of the others.
        partitions: How often they are dealt anew; logits are averaged over the deals.
        epochs: How often each head goes through its images; several times as often if they are few.
        seed: The same seed gives the same logits.

    Raises:
        DataError: There are fewer images than folds.

    Example:
        >>> from hilltop.losses import bce
        >>> features = torch.eye(2).repeat(20, 1)
        >>> logits = out_of_fold_logits(features, features.clone(), bce(reduction="sum"))
        >>> bool((logits[::2, 0] > logits[1::2, 0]).all())
        True
    """
    check_whole("folds", folds, low=2)
    check_whole("partitions", partitions, low=1)
    if len(features) < folds:
        images = pluralize(len(features), "image", "images")
        raise DataError(f"{images} cannot be dealt into {folds} folds; use fewer.")
    chance = torch.Generator().manual_seed(seed)
    dealt = torch.stack([_deal(len(features), folds, chance) for _ in range(partitions)], dim=1)
    classes = targets.shape[1]
    heads = FeatureHead(features.shape[1], partitions * folds * classes, hidden=None)
    heads.fit_scale(features)
    last = heads.layers[-1]
    assert isinstance(last, nn.Linear)
    nn.init.constant_(last.bias, best_constant(loss, targets, observed=observed))
    learns = _one_hot(dealt, folds) == 0
    batch = BATCH_SIZE * folds // (folds - 1)  # so that each head sees that many of them
    rate, decay = for_width(LEARNING_RATE, WEIGHT_DECAY, features.shape[1])
    optimizer = build_optimizer(heads, loss, learning_rate=rate, weight_decay=decay, decoupled=True)
    rounds, parts = plan_batches(len(features), batch)
    schedule = build_schedule(optimizer, steps=epochs * rounds * parts, warmup=WARMUP)
    for epoch in range(epochs):
        loss.set_epoch(epoch)
        for rows in batches(len(features), rounds, parts, chance):
            mine = learns[rows]
            logits = heads(features[rows].float()).view(len(rows), -1, classes)[mine]
            image = torch.arange(len(rows)).unsqueeze(1).expand_as(mine)[mine]
            seen = None if observed is None else observed[rows][image]
            optimizer.zero_grad()
            loss(logits, targets[rows][image], observed=seen, index=rows[image]).backward()
            optimizer.step()
            schedule.step()
    return _unseen(heads, features, dealt, folds, classes)


def _deal(images: int, folds: int, chance: torch.Generator) -> Tensor:
    """The fold of each image; folds differ in size by at most one."""
    return torch.randperm(images, generator=chance) % folds


def _one_hot(dealt: Tensor, folds: int) -> Tensor:
    """1 for the heads that are to score an image: one of each partition."""
    return torch.nn.functional.one_hot(dealt, folds).flatten(1)


@torch.no_grad()
def _unseen(heads: nn.Module, features: Tensor, dealt: Tensor, folds: int, classes: int) -> Tensor:
    """Mean logit of the heads that did not learn from an image."""
    scoring = _one_hot(dealt, folds).to(torch.float32) / dealt.shape[1]
    logits = torch.empty(len(features), classes)
    for rows in torch.split(torch.arange(len(features)), 1024):
        every = heads(features[rows].float()).view(len(rows), -1, classes)
        logits[rows] = torch.einsum("nhc,nh->nc", every, scoring[rows])
    return logits
