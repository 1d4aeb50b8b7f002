"""Positive terms, loss+: what an entry that is labelled present costs."""

from __future__ import annotations

from torch import Tensor

from hilltop.checks import check_number
from hilltop.losses.terms import functional
from hilltop.losses.terms.base import FusedTerm, PositiveTerm, kernel_gamma
from hilltop.registry import Registry

POSITIVES: Registry[PositiveTerm] = Registry("positive term")


@POSITIVES.register("log")
class LogPositive(PositiveTerm):
    r"""Positive term of binary cross-entropy.

    .. math:: \ell^+(p) = -\log p, \qquad p = \sigma(x)

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> LogPositive()(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([2.1269, 0.6931, 0.0181])
    """

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return functional.focal_positive(logits, 0.0, 0.0, False)

    def fused(self, classes: int) -> FusedTerm:
        """Return the same term for the compiled kernel."""
        return FusedTerm("focal", sign=-1.0)


@POSITIVES.register("focal")
class FocalPositive(PositiveTerm):
    r"""Positive term of Focal loss; with a margin, of Focal margin.

    .. math:: \ell^+(p_m) = -\alpha\,(1 - p_m)^\gamma \log p_m, \qquad p_m = \sigma(x - m)

    Without a margin the hardest positives dominate. A margin of 0.5 to 1 moves the weight to the
    semi-hard ones, whose probability is near one half.

    Args:
        gamma: How strongly easy positives are played down; 0 gives the log term at margin 0.
        margin: The m of the paper, subtracted from the logit.
        detach_weight: Whether the factor :math:`(1-p_m)^\gamma` is held constant in the
            gradient, as the released code of Focal loss and ASL does.
        alpha: Factor on the whole term.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> FocalPositive(margin=1.0)(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([2.7663e+00, 7.0187e-01, 1.0928e-04])

    Reference:
        Lin et al., Focal loss for dense object detection, ICCV 2017; the margin is Eq. 11 of
        "Simple and Robust Loss Design for Multi-Label Learning with Missing Labels".
    """

    def __init__(
        self,
        *,
        gamma: float = 2.0,
        margin: float = 0.0,
        detach_weight: bool = False,
        alpha: float = 1.0,
    ) -> None:
        """Check and keep the constants."""
        super().__init__()
        self.gamma = check_number("gamma", gamma, low=0)
        self.margin = check_number("margin", margin, low=-1e4, high=1e4)
        self.detach_weight = self.stops_gradient = detach_weight
        self.alpha = check_number("alpha", alpha, low=0)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        loss = functional.focal_positive(logits, self.gamma, self.margin, self.detach_weight)
        return self.alpha * loss

    def fused(self, classes: int) -> FusedTerm | None:
        """Return the same term for the compiled kernel, if gamma is a small whole number."""
        gamma = kernel_gamma(self.gamma)
        if gamma is None:
            return None
        return FusedTerm(
            "focal",
            sign=-1.0,
            offset=self.margin,
            gamma=gamma,
            scale=self.alpha,
            detach_weight=self.detach_weight,
        )

    def extra_repr(self) -> str:
        """Show the constants."""
        alpha = "" if self.alpha == 1 else f", alpha={self.alpha:g}"
        constants = f"gamma={self.gamma:g}, margin={self.margin:g}"
        return f"{constants}, detach_weight={self.detach_weight}{alpha}"
