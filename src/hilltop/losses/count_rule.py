"""The paper's rule of which labels stay, and what it says of an image with s labels left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from hilltop.checks import check_exact
from hilltop.losses.poisson_binomial import IMPOSSIBLE


@dataclass(frozen=True)
class CountRule:
    """Of t labels ``min(t, floor(t * keep) + 1)`` stay, drawn without replacement.

    Attributes:
        keep: The share 1 - r, exactly: in floating point 5 * (1 - 0.8) falls below 1.

    Example:
        >>> rule = CountRule.of(0.8)
        >>> [rule.kept(labels) for labels in range(7)]
        [0, 1, 1, 1, 1, 2, 2]
        >>> rule.most_missing(1, among=80), rule.most_missing(2, among=80)
        (3, 7)
    """

    keep: Fraction

    @classmethod
    def of(cls, r: float | str | Fraction) -> CountRule:
        """Take the missing ratio as it is written in decimals."""
        exact = check_exact("r", r, low=0, high=1)
        # Whole-number arithmetic with t must fit into 64 bits.
        return cls(1 - exact.limit_denominator(10**9))

    def kept(self, labels: int) -> int:
        """Number of labels that stay."""
        return min(labels, math.floor(labels * self.keep) + 1) if labels else 0

    def most_missing(self, left: int, *, among: int) -> int:
        """Largest number of missing labels, of ``among`` candidates, if ``left`` are left."""
        if not left or self.keep == 1:
            return 0
        if not self.keep:
            return among if left == 1 else 0
        return min(among, max(0, math.ceil(left / self.keep) - 1 - left))

    def most_missing_ever(self, classes: int) -> int:
        """Largest number of missing labels for any number that is left."""
        return max(self.most_missing(left, among=classes - left) for left in range(classes + 1))

    def can_leave(self, left: Tensor, candidates: Tensor) -> Tensor:
        """Whether the rule can leave so many labels of an image with so many other classes.

        Example:
            >>> CountRule.of(0.8).can_leave(torch.tensor([1, 2, 2]), torch.tensor([3, 2, 3]))
            tensor([ True, False,  True])
        """
        most = int((left + candidates).max()) if left.numel() else 0
        least: dict[int, int] = {}  # true labels of which so many are left
        for labels in range(most + 1):
            least.setdefault(self.kept(labels), labels)
        needed = torch.tensor([least.get(number, most + 1) for number in range(most + 1)])
        return needed.to(left.device)[left] <= left + candidates

    def log_weights(
        self, left: Tensor, candidates: Tensor, most: int, dtype: torch.dtype
    ) -> Tensor:
        r"""Return the log chance of the labels that are left, if u of the candidates are missing.

        .. math:: w(u) = [n(s + u) = s] / \binom{s + u}{s}

        Where the rule allows no u at all (two labels left at r = 1, say), somebody has added
        labels, and the image counts as complete: w(0) = 1.

        Shape:
            left and candidates ``(...)`` to ``(..., most + 1)``, ``IMPOSSIBLE`` where w is 0.
        """
        left, candidates = left.unsqueeze(-1), candidates.unsqueeze(-1)
        missing = torch.arange(most + 1, device=left.device)
        total = left + missing
        stay = total * self.keep.numerator // self.keep.denominator + 1
        allowed = (torch.minimum(total, stay) == left) & (missing <= candidates)
        complete = (missing == 0) & ~allowed.any(dim=-1, keepdim=True)
        s, u, t = (number.to(dtype) + 1 for number in (left, missing, total))
        chance = torch.lgamma(s) + torch.lgamma(u) - torch.lgamma(t)
        return torch.where(allowed | complete, chance, IMPOSSIBLE)
