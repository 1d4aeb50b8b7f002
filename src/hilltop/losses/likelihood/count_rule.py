"""The paper's rule of which labels stay, and the Poisson-binomial sums of its likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor

from hilltop.checks import check_exact, check_number

# The logarithm of "impossible". Minus infinity would make the gradient of logsumexp NaN.
IMPOSSIBLE = -1e30


@dataclass(frozen=True)
class CountRule:
    """Of t labels ``min(t, floor(t * (1 - r)) + 1)`` stay, drawn without replacement.

    Attributes:
        missing_ratio: The r of the rule, exactly: in floating point 5 * (1 - 0.8) falls below 1.
        restore_prob: Probability that a label that did not stay was put back since.

    Example:
        >>> rule = CountRule.of(0.8)
        >>> [rule.number_left(labels) for labels in range(7)]
        [0, 1, 1, 1, 1, 2, 2]
        >>> rule.most_missing(1, among=80), rule.most_missing(2, among=80)
        (3, 7)
    """

    missing_ratio: Fraction
    restore_prob: float = 0.0

    @classmethod
    def of(cls, r: float | str | Fraction, *, restore_prob: float = 0.0) -> CountRule:
        """Take the missing ratio as it is written in decimals."""
        exact = check_exact("r", r, low=0, high=1)
        check_number("restore_prob", restore_prob, low=0, high=0.9)
        # Whole-number arithmetic with t must fit into 64 bits.
        return cls(exact.limit_denominator(10**9), float(restore_prob))

    @property
    def left_ratio(self) -> Fraction:
        """Return 1 - r."""
        return 1 - self.missing_ratio

    def number_left(self, labels: int) -> int:
        """Number of labels that stay."""
        return min(labels, math.floor(labels * self.left_ratio) + 1) if labels else 0

    def most_missing(self, left: int, *, among: int) -> int:
        """Largest number of missing labels, of ``among`` candidates, if ``left`` are left."""
        if not left or self.left_ratio == 1:
            return 0
        if not self.left_ratio:
            return among if left == 1 or self.restore_prob else 0
        return min(among, max(0, math.ceil(left / self.left_ratio) - 1 - left))

    def most_missing_ever(self, classes: int) -> int:
        """Largest number of missing labels for any number that is left."""
        return max(self.most_missing(left, among=classes - left) for left in range(classes + 1))

    def log_rise(self, left: int) -> float:
        """How much the logarithm of a weight may be above that of no missing label."""
        return (
            (self.number_left(left) - left) * math.log(self.restore_prob)
            if self.restore_prob
            else 0.0
        )

    def log_weights(
        self, left: Tensor, candidates: Tensor, most: int, dtype: torch.dtype
    ) -> Tensor:
        r"""Return the log probability of the labels that are there, if u candidates are missing.

        .. math:: w(u) = [n \le s] \binom{s}{n} \binom{s + u}{n}^{-1} a^{s - n} (1 - a)^u,
                  \qquad n = n(s + u)

        Without labels that were put back, a = 0, this is :math:`[n = s] / \binom{s + u}{s}`. Where
        that allows no u at all (two labels at r = 1, say), the image counts as complete: w(0) = 1.

        Shape:
            left and candidates ``(...)`` to ``(..., most + 1)``, ``IMPOSSIBLE`` where w is 0.
        """
        left, candidates = left.unsqueeze(-1), candidates.unsqueeze(-1)
        missing = torch.arange(most + 1, device=left.device)
        total = left + missing
        stay = total * self.left_ratio.numerator // self.left_ratio.denominator + 1
        back = left - torch.minimum(total, stay)  # labels that were put back
        allowed = ((back >= 0) if self.restore_prob else (back == 0)) & (missing <= candidates)
        complete = (missing == 0) & ~allowed.any(dim=-1, keepdim=True)
        back = torch.where(allowed, back, 0)
        s, u, t, b = (number.to(dtype) + 1 for number in (left, missing, total, back))
        weight = torch.lgamma(s) - torch.lgamma(b) + torch.lgamma(u + b - 1) - torch.lgamma(t)
        if self.restore_prob:
            restored, lost = math.log(self.restore_prob), math.log1p(-self.restore_prob)
            weight = weight + (b - 1) * restored + (u - 1) * lost
        return torch.where(allowed | complete, weight, IMPOSSIBLE)


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
