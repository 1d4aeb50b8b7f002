"""The maths of the terms of the paper, as pure differentiable functions without defaults.

Each takes logits of any shape and returns a loss of the same shape. The minus sign of Eq. 1 is
folded in, so losses are not negative. Value and gradient are finite for every finite logit.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor


def _focused(logits: Tensor, gamma: float, detach_weight: bool) -> Tensor:
    r"""Return :math:`-\sigma(x)^\gamma \log(1 - \sigma(x))`."""
    surprise = F.softplus(logits)
    if gamma == 0:
        return surprise
    # exp(gamma * logsigmoid) instead of sigmoid ** gamma: the power's gradient at an underflowed
    # zero is infinite for gamma < 1, and infinity times zero is NaN.
    return torch.exp(gamma * F.logsigmoid(_maybe_detached(logits, detach_weight))) * surprise


def focal_positive(logits: Tensor, gamma: float, margin: float, detach_weight: bool) -> Tensor:
    r"""Return :math:`-(1-p_m)^\gamma \log p_m` with :math:`p_m = \sigma(x - m)`."""
    return _focused(margin - logits, gamma, detach_weight)


def focal_negative(logits: Tensor, gamma: float, detach_weight: bool) -> Tensor:
    r"""Return :math:`-p^\gamma \log(1 - p)`."""
    return _focused(logits, gamma, detach_weight)


def shifted_focal_negative(
    logits: Tensor, gamma: float, shift: float, detach_weight: bool
) -> Tensor:
    r"""Return :math:`-p_m^\gamma \log(1 - p_m)` with :math:`p_m = \max(p - m, 0)`, m > 0."""
    shifted = F.relu(torch.sigmoid(logits) - shift)
    surprise = -torch.log1p(-shifted)
    if gamma == 0:
        return surprise
    return _maybe_detached(shifted, detach_weight) ** gamma * surprise


def mse_negative(logits: Tensor) -> Tensor:
    r"""Return :math:`p^2`."""
    return torch.sigmoid(logits).square()


def hill_negative(logits: Tensor, lam: float) -> Tensor:
    r"""Return :math:`(\lambda - p)\,p^2`."""
    probs = torch.sigmoid(logits)
    return (lam - probs) * probs.square()


def kept_negative(logits: Tensor, log_lost: Tensor) -> Tensor:
    r"""Return :math:`-\log(1 - c\,p)`, given :math:`\log(1 - c)`, which may be minus infinity."""
    keep = -torch.expm1(log_lost)
    negative = logits <= 0
    # Not clamp, whose gradient at 0 itself may be 0.
    low, high = torch.where(negative, logits, 0.0), torch.where(negative, 0.0, logits)
    below = -torch.log1p(-keep * torch.sigmoid(low))
    # log(1 + e^-x) - log(e^-x + 1 - c): at c = 1 and a large logit, log(1 - c p) is log 0.
    above = F.softplus(-high) - torch.logaddexp(-high, log_lost)
    return torch.where(negative, below, above)


def _maybe_detached(tensor: Tensor, detach: bool) -> Tensor:
    return tensor.detach() if detach else tensor
