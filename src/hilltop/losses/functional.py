"""The equations of the terms, as pure differentiable functions of logits without defaults.

Each takes logits of any shape and returns a loss of the same shape. The minus sign of
Eq. 1 is folded in, so losses are never negative. Values and gradients are finite for every finite
logit.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor


def focal_positive(logits: Tensor, gamma: float, margin: float, detach_weight: bool) -> Tensor:
    r"""Return :math:`-(1-p_m)^\gamma \log p_m` with :math:`p_m = \sigma(x - m)`."""
    return focal_negative(margin - logits, gamma, detach_weight)


def focal_negative(logits: Tensor, gamma: float, detach_weight: bool) -> Tensor:
    r"""Return :math:`-p^\gamma \log(1 - p)`."""
    loss = F.softplus(logits)
    if gamma == 0:
        return loss
    weighed = logits.detach() if detach_weight else logits
    if gamma == 2:  # the gradient of products takes less time than that of a power
        probs = torch.sigmoid(weighed)
        return probs * (probs * loss)
    if gamma >= 1:
        return torch.sigmoid(weighed) ** gamma * loss
    # The gradient of a power below 1 is infinite where the sigmoid underflows to zero.
    return torch.exp(gamma * F.logsigmoid(weighed)) * loss


def shifted_focal_negative(
    logits: Tensor, gamma: float, shift: float, detach_weight: bool
) -> Tensor:
    r"""Return :math:`-p_m^\gamma \log(1 - p_m)` with :math:`p_m = \max(p - m, 0)`, m > 0."""
    shifted = F.relu(torch.sigmoid(logits) - shift)
    loss = -torch.log1p(-shifted)
    if gamma == 0:
        return loss
    return (shifted.detach() if detach_weight else shifted) ** gamma * loss


def mse_negative(logits: Tensor) -> Tensor:
    r"""Return :math:`p^2`."""
    return torch.sigmoid(logits).square()


def hill_negative(logits: Tensor, lam: float) -> Tensor:
    r"""Return :math:`(\lambda - p)\,p^2`."""
    probs = torch.sigmoid(logits)
    return (lam - probs) * (probs * probs)  # quicker than square(), whose gradient is a power's


def scar_negative(logits: Tensor, log_lost: Tensor) -> Tensor:
    r"""Return :math:`-\log(1 - c\,p)`, given :math:`\log(1 - c)`, which may be minus infinity."""
    frequency = -torch.expm1(log_lost)
    negative = logits <= 0
    # Not clamp, whose gradient at 0 itself may be 0.
    low, high = torch.where(negative, logits, 0.0), torch.where(negative, 0.0, logits)
    below = -torch.log1p(-frequency * torch.sigmoid(low))
    # log(1 + e^-x) - log(e^-x + 1 - c): at c = 1 and a large logit, log(1 - c p) is log 0.
    above = F.softplus(-high) - torch.logaddexp(-high, log_lost)
    return torch.where(negative, below, above)


def generalised_positive(logits: Tensor, q: float) -> Tensor:
    r"""Return :math:`(1 - p^q) / q`; the negative form is that of the opposite logit."""
    # expm1 instead of 1 - p**q, which cancels for a small q and has an infinite gradient where p
    # underflows to zero.
    return -torch.expm1(q * F.logsigmoid(logits)) / q


def entropy_negative(logits: Tensor) -> Tensor:
    r"""Return :math:`\log 2 + p \log p + (1 - p) \log(1 - p)`."""
    entropy = F.softplus(logits) - logits * torch.sigmoid(logits)
    return (math.log(2) - entropy).clamp(min=0.0)  # at p = 1/2 rounding makes it negative


def smooth_targets(targets: Tensor, eps: float) -> Tensor:
    r"""Return :math:`y (1 - \epsilon) + (1 - y) \epsilon`: 1 - eps for 1 and eps for 0."""
    return targets * (1 - 2 * eps) + eps if eps else targets
