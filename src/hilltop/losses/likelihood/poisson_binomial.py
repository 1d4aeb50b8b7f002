"""How many of many independent events happen: elementary symmetric sums, in logarithms."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor

# The logarithm of "impossible". Minus infinity would make the gradient of logsumexp NaN.
IMPOSSIBLE = -1e30


def log_elementary_sums(log_odds: Tensor, most: int) -> Tensor:
    r"""Return :math:`\log e_u(o_1, \dots, o_C)` for u from 0 to ``most``.

    .. math:: e_u = \sum_{|S| = u} \prod_{k \in S} o_k, \qquad
              P(u\ \text{events}) = e_u \prod_k (1 - p_k), \qquad o_k = p_k / (1 - p_k)

    Neighbours are multiplied as polynomials, pair by pair, in about log2(C) rounds. Every term is
    positive and stays a logarithm, so nothing cancels or overflows at any logit.

    Args:
        log_odds: Logits, ``IMPOSSIBLE`` for events that cannot happen.
        most: The largest number of events of interest.

    Shape:
        log_odds ``(..., C)`` to ``(..., most + 1)``.

    Example:
        >>> odds = torch.tensor([1.0, 2.0, 3.0])
        >>> log_elementary_sums(odds.log(), 3).exp()  # 1, 1+2+3, 1*2+1*3+2*3, 1*2*3
        tensor([ 1.0000,  6.0000, 11.0000,  6.0000])
    """
    if not log_odds.shape[-1]:
        log_odds = F.pad(log_odds, (0, 1), value=IMPOSSIBLE)
    sums = torch.stack([torch.zeros_like(log_odds), log_odds], dim=-1)[..., : most + 1]
    while sums.shape[-2] > 1:
        if sums.shape[-2] % 2:
            nothing = torch.full_like(sums[..., :1, :], IMPOSSIBLE)
            nothing[..., 0] = 0.0
            sums = torch.cat([sums, nothing], dim=-2)
        sums = _log_product(sums[..., 0::2, :], sums[..., 1::2, :], most)
    sums = sums[..., 0, :]
    return F.pad(sums, (0, most + 1 - sums.shape[-1]), value=IMPOSSIBLE)


def _log_product(one: Tensor, other: Tensor, most: int) -> Tensor:
    """Multiply polynomials given by the logarithms of their coefficients, up to power ``most``."""
    length = one.shape[-1]
    powers = min(2 * length - 1, most + 1)
    padded = F.pad(other, (length - 1, powers - length), value=IMPOSSIBLE)
    # Row j pairs coefficient i of the one with coefficient j - i of the other.
    # (What unfold would do; torch.vmap knows no rule for its gradient.)
    first = torch.arange(powers, device=one.device).unsqueeze(1)
    where = first + torch.arange(length, device=one.device)
    shifted = padded.index_select(-1, where.flatten()).view(*padded.shape[:-1], powers, length)
    return torch.logsumexp(shifted + one.flip(-1).unsqueeze(-2), dim=-1)
