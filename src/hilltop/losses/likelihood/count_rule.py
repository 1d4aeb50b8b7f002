"""The paper's rule of which labels stay, and what it says of an image with s labels left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from hilltop.checks import check_exact, check_number
from hilltop.losses.likelihood.poisson_binomial import IMPOSSIBLE


@dataclass(frozen=True)
class CountRule:
    """Of t labels ``min(t, floor(t * keep) + 1)`` stay, drawn without replacement.

    Attributes:
        keep: The share 1 - r, exactly: in floating point 5 * (1 - 0.8) falls below 1.
        restore_prob: Probability that a label that did not stay was put back since.

    Example:
        >>> rule = CountRule.of(0.8)
        >>> [rule.kept(labels) for labels in range(7)]
        [0, 1, 1, 1, 1, 2, 2]
        >>> rule.most_missing(1, among=80), rule.most_missing(2, among=80)
        (3, 7)
    """

    keep: Fraction
    restore_prob: float = 0.0

    @classmethod
    def of(cls, r: float | str | Fraction, *, restore_prob: float = 0.0) -> CountRule:
        """Take the missing ratio as it is written in decimals."""
        exact = check_exact("r", r, low=0, high=1)
        check_number("restore_prob", restore_prob, low=0, high=0.9)
        # Whole-number arithmetic with t must fit into 64 bits.
        return cls(1 - exact.limit_denominator(10**9), float(restore_prob))

    def kept(self, labels: int) -> int:
        """Number of labels that stay."""
        return min(labels, math.floor(labels * self.keep) + 1) if labels else 0

    def most_missing(self, left: int, *, among: int) -> int:
        """Largest number of missing labels, of ``among`` candidates, if ``left`` are left."""
        if not left or self.keep == 1:
            return 0
        if not self.keep:
            return among if left == 1 or self.restore_prob else 0
        return min(among, max(0, math.ceil(left / self.keep) - 1 - left))

    def most_missing_ever(self, classes: int) -> int:
        """Largest number of missing labels for any number that is left."""
        return max(self.most_missing(left, among=classes - left) for left in range(classes + 1))

    def log_rise(self, left: int) -> float:
        """How much the logarithm of a weight may be above that of no missing label."""
        return (self.kept(left) - left) * math.log(self.restore_prob) if self.restore_prob else 0.0

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
        stay = total * self.keep.numerator // self.keep.denominator + 1
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
