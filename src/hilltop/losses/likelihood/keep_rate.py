"""The terms of a likelihood: every true label was written down with probability c."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor, nn

from hilltop.checks import check_number
from hilltop.errors import ArgumentError
from hilltop.losses.targets import check_device
from hilltop.losses.terms import functional
from hilltop.losses.terms.base import FusedTerm, NegativeTerm, PositiveTerm
from hilltop.losses.terms.negative import NEGATIVES
from hilltop.losses.terms.positive import POSITIVES
from hilltop.losses.weights import check_one_for_each_class

Keep = float | Sequence[float] | Tensor


class KeepRate(nn.Module):
    r"""The probability c with which a true label is written down: given, or learned.

    Likelihood alone does not fix c: it sees c p only, and a model flexible enough explains few
    labels as well by a small c as by small p. What fixes it is a prior. A learned c starts at
    ``keep``, and every label of the data is joined by ``prior_weight`` imagined labels of which
    the share ``keep`` was written down. This adds

    .. math:: w \left[ k \log \frac{k}{c} + (1 - k) \log \frac{1 - k}{1 - c} \right],
              \qquad k = keep,\; w = prior\_weight

    to each label's loss: c cannot run to 0 or 1, whatever the model does.

    Args:
        keep: One probability, or one for each class: at least 0.001 and at most 1.
        learn: Whether c is a parameter, on the logit scale as the distance from ``keep``.
        prior_weight: The w of the equation.

    Example:
        >>> KeepRate(0.4)(), KeepRate([0.5, 0.25])()
        (tensor(0.4000), tensor([0.5000, 0.2500]))
    """

    keep: Tensor
    warmed: Tensor

    def __init__(self, keep: Keep, *, learn: bool = False, prior_weight: float = 0.1) -> None:
        """Check and keep the numbers."""
        super().__init__()
        numbers = torch.as_tensor(keep, dtype=torch.float64)
        if numbers.ndim > 1:
            raise ArgumentError(
                "keep must be one number or one row of numbers, one for each class,"
                f" but got the shape {tuple(numbers.shape)}."
            )
        for number in numbers.flatten().tolist():
            check_number("keep", number, low=0.001, high=0.999 if learn else 1)
        self.prior_weight = check_number("prior_weight", prior_weight, low=0)
        # One number stays a Python float: a buffer would round it to float32.
        self.number = None if numbers.ndim else float(numbers)
        self.register_buffer("keep", numbers.float(), persistent=False)
        self.register_buffer("warmed", torch.ones(()), persistent=False)
        self.share = 1.0  # the same number, known without waiting for a device
        self.offset = nn.Parameter(torch.zeros(numbers.shape)) if learn else None

    def forward(self) -> Tensor:
        """Return c as it stands, without warm-up."""
        return -torch.expm1(self.log_lost(self.keep, warm=False))

    def warm(self, share: float) -> None:
        """Move c the given share of the way from 1 to its value."""
        self.warmed.fill_(share)
        self.share = share

    def log_lost(self, logits: Tensor, *, warm: bool = True) -> Tensor:
        """Return log(1 - c) in the dtype of the logits, for one or for every class."""
        if self.number is None:
            check_one_for_each_class("keep", self.keep, logits.shape[-1] if logits.ndim else 1)
            check_device("keep", self.keep, logits)
        if self.offset is not None:
            log_lost = F.logsigmoid(-(torch.logit(self._given(logits)) + self.offset))
        else:
            log_lost = torch.log1p(-self._given(logits))
        return (log_lost + self.warmed.log() if warm else log_lost).to(logits.dtype)

    def kept_and_lost(self, logits: Tensor) -> Tensor:
        """Return c and 1 - c for each class, in two rows, for the compiled kernel."""
        classes = logits.shape[-1] if logits.ndim else 1
        log_lost = self.log_lost(logits.new_empty(classes, dtype=torch.float32))
        return torch.stack([-torch.expm1(log_lost), log_lost.exp()]).expand(2, classes).contiguous()

    def prior(self, log_keep: Tensor, log_lost: Tensor) -> Tensor:
        """What the distance of c from ``keep`` costs each label."""
        given = self._given(log_keep)
        kept = given * (given.log() - log_keep)
        return self.prior_weight * (kept + (1 - given) * (torch.log1p(-given) - log_lost))

    def as_number(self) -> float | None:
        """Return c with its warm-up, if it is one number that is not learned."""
        if self.number is None or self.offset is not None:
            return None
        return 1 - self.share * (1 - self.number)

    def extra_repr(self) -> str:
        """Show the given rate."""
        shown = "one for each class" if self.number is None else f"{self.number:g}"
        return f"keep={shown}, learn={self.offset is not None}"

    def _given(self, like: Tensor) -> Tensor:
        if self.number is None:
            return self.keep.to(like.dtype)
        return torch.full_like(self.warmed, self.number, dtype=like.dtype)


@POSITIVES.register("kept")
class KeptPositive(PositiveTerm):
    r"""Positive term of a likelihood: the label is present, and it was written down.

    .. math:: \ell^+(p) = -\log(c\,p), \qquad p = \sigma(x)

    Args:
        keep: The probability c, or a :class:`KeepRate` shared with the negative term.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> KeptPositive(keep=0.5)(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([2.8201, 1.3863, 0.7113])
    """

    def __init__(self, *, keep: Keep | KeepRate = 0.4) -> None:
        """Keep the rate."""
        super().__init__()
        self.rate = keep if isinstance(keep, KeepRate) else KeepRate(keep)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        log_lost = self.rate.log_lost(logits)
        log_keep = torch.log(-torch.expm1(log_lost))
        loss = functional.focal_positive(logits, 0.0, 0.0, False) - log_keep
        if self.rate.offset is None:
            return loss
        now = self.rate.log_lost(logits, warm=False)
        return loss + self.rate.prior(torch.log(-torch.expm1(now)), now)

    def fused(self, classes: int) -> FusedTerm | None:
        """Return the same term for the compiled kernel, if c is not learned."""
        if self.rate.offset is not None:
            return None
        keep = self.rate.as_number()
        if keep is None:
            return FusedTerm("focal", sign=-1.0, by_class=True)
        return FusedTerm("focal", sign=-1.0, constant=-math.log(keep))

    def by_class(self, logits: Tensor) -> Tensor:
        """Return -log c for each class."""
        return -self.rate.kept_and_lost(logits)[0].log()


@NEGATIVES.register("kept")
class KeptNegative(NegativeTerm):
    r"""Negative term of a likelihood: the label is absent, or present and not written down.

    .. math:: \ell^-(p) = -\log(1 - c\,p), \qquad p = \sigma(x)

    Its gradient :math:`c\,p\,(1-p) / (1 - c\,p)` is itself a hill: it fades near 1, where an
    unlabelled entry is probably a label that was not written down.

    Args:
        keep: The probability c, or a :class:`KeepRate` shared with the positive term. At 1 this
            is the log term.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> KeptNegative(keep=0.4)(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([0.0489, 0.2231, 0.4989])
    """

    can_go_flat = True

    def __init__(self, *, keep: Keep | KeepRate = 0.4) -> None:
        """Keep the rate."""
        super().__init__()
        self.rate = keep if isinstance(keep, KeepRate) else KeepRate(keep)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return functional.kept_negative(logits, self.rate.log_lost(logits))

    def fused(self, classes: int) -> FusedTerm | None:
        """Return the same term for the compiled kernel, if c is not learned."""
        if self.rate.offset is not None:
            return None
        keep = self.rate.as_number()
        if keep is None:
            return FusedTerm("kept", by_class=True)
        return FusedTerm("kept", keep=keep, lost=1 - keep)

    def by_class(self, logits: Tensor) -> Tensor:
        """Return c and 1 - c for each class."""
        return self.rate.kept_and_lost(logits)
