"""Released losses, written anew from their equations in the plain eager style of their code."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def eager_hill(logits: Tensor, targets: Tensor) -> Tensor:
    """Hill in the plain form: log of a sigmoid, weights by power, terms added."""
    probs, probs_margin = torch.sigmoid(logits), torch.sigmoid(logits - 1.0)
    weight = ((1 - probs_margin) * targets + (1 - targets)) ** 2.0
    positive = targets * torch.log(probs_margin)
    negative = (1 - targets) * -(1.5 - probs) * probs**2
    return (-(positive + negative) * weight).sum()


def eager_splc(logits: Tensor, targets: Tensor) -> Tensor:
    """SPLC in the plain form: margin, correction, then Focal loss."""
    logits = torch.where(targets == 1, logits - 1.0, logits)
    targets = torch.where(torch.sigmoid(logits) > 0.6, torch.ones_like(targets), targets)
    probs = torch.sigmoid(logits)
    weight = ((1 - probs) * targets + probs * (1 - targets)) ** 2.0
    positive = targets * nn.functional.logsigmoid(logits)
    negative = (1 - targets) * nn.functional.logsigmoid(-logits)
    return (-(positive + negative) * weight).sum()


def eager_focal(logits: Tensor, targets: Tensor) -> Tensor:
    """Focal loss in the plain form, its weight without gradient."""
    probs = torch.sigmoid(logits)
    positive = targets * nn.functional.logsigmoid(logits)
    negative = (1 - targets) * nn.functional.logsigmoid(-logits)
    with torch.no_grad():
        weight = (1 - probs * targets - (1 - probs) * (1 - targets)) ** 2.0
    return (-(positive + negative) * weight).sum()


def eager_asl(logits: Tensor, targets: Tensor) -> Tensor:
    """ASL in the plain form: shift, clamped logs, then a weight without gradient."""
    probs = torch.sigmoid(logits)
    absent = (1 - probs + 0.05).clamp(max=1)
    positive = targets * torch.log(probs.clamp(min=1e-8))
    negative = (1 - targets) * torch.log(absent.clamp(min=1e-8))
    with torch.no_grad():
        sure = probs * targets + absent * (1 - targets)
        weight = (1 - sure) ** (4.0 * (1 - targets))
    return (-(positive + negative) * weight).sum()


def eager_rejection(logits: Tensor, targets: Tensor) -> Tensor:
    """Large-loss rejection in the plain form: the largest 0.2% of all losses, if unlabelled."""
    losses = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    unlabelled = losses.detach() * (targets == 0)
    count = math.ceil(0.002 * losses.numel())
    largest = torch.topk(unlabelled.flatten(), count).values[-1]
    return (losses * (unlabelled < largest)).sum()
