"""Negative terms, loss-: what an entry that nobody labelled costs."""

from __future__ import annotations

from torch import Tensor

from hilltop.checks import check_number
from hilltop.errors import ArgumentError
from hilltop.losses.terms import functional
from hilltop.losses.terms.base import FusedTerm, NegativeTerm, kernel_gamma
from hilltop.registry import Registry

NEGATIVES: Registry[NegativeTerm] = Registry("negative term")


@NEGATIVES.register("log")
class LogNegative(NegativeTerm):
    r"""Negative term of binary cross-entropy.

    .. math:: \ell^-(p) = -\log(1 - p), \qquad p = \sigma(x)

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> LogNegative()(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([0.1269, 0.6931, 4.0181])
    """

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return functional.focal_negative(logits, 0.0, False)

    def fused(self, classes: int) -> FusedTerm:
        """Return the same term for the compiled kernel."""
        return FusedTerm("focal")


@NEGATIVES.register("weak")
class WeakNegative(NegativeTerm):
    r"""Negative term of weak assume-negatives (WAN): cross-entropy with a small weight.

    .. math:: \ell^-(p) = -w \log(1 - p), \qquad p = \sigma(x)

    Args:
        weight: The w of the equation. Without it, :math:`1/(K-1)` for K classes, the size of the
            last dimension of the logits: all negatives of an image weigh as much as one positive.

    Shape:
        logits ``(..., K)`` to a loss of the same shape.

    Example:
        >>> WeakNegative()(torch.tensor([[-2.0, 0.0, 4.0]]))
        tensor([[0.0635, 0.3466, 2.0091]])

    Reference:
        Cole et al., Multi-label learning from single positive labels, CVPR 2021.
    """

    def __init__(self, *, weight: float | None = None) -> None:
        """Check and keep the weight."""
        super().__init__()
        self.weight = None if weight is None else check_number("weight", weight, low=0)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        scale = self._scale(logits.shape[-1] if logits.ndim else 1)
        return scale * functional.focal_negative(logits, 0.0, False)

    def fused(self, classes: int) -> FusedTerm:
        """Return the same term for the compiled kernel."""
        return FusedTerm("focal", scale=self._scale(classes))

    def for_classes(self, classes: int) -> WeakNegative:
        """Return the term with the weight that it has for so many classes."""
        return WeakNegative(weight=self._scale(classes))

    def extra_repr(self) -> str:
        """Show the weight."""
        return "weight=1/(K-1)" if self.weight is None else f"weight={self.weight:g}"

    def _scale(self, classes: int) -> float:
        if self.weight is not None:
            return self.weight
        if classes < 2:
            raise ArgumentError(
                "The default weight 1/(K-1) needs at least 2 classes in the last dimension of"
                f" logits, but got {classes}. Pass weight= instead."
            )
        return 1.0 / (classes - 1)


@NEGATIVES.register("focal")
class FocalNegative(NegativeTerm):
    r"""Negative term of Focal loss.

    .. math:: \ell^-(p) = -\alpha\,p^\gamma \log(1 - p), \qquad p = \sigma(x)

    Easy negatives are played down, hard ones kept: a missing label, which looks like a hard
    negative, keeps its full weight.

    Args:
        gamma: How strongly easy negatives are played down; 0 gives the log term.
        detach_weight: Whether the factor :math:`p^\gamma` is held constant in the gradient, as
            the released code does.
        alpha: Factor on the whole term.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> FocalNegative()(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([1.8036e-03, 1.7329e-01, 3.8749e+00])

    Reference:
        Lin et al., Focal loss for dense object detection, ICCV 2017.
    """

    def __init__(
        self, *, gamma: float = 2.0, detach_weight: bool = False, alpha: float = 1.0
    ) -> None:
        """Check and keep the constants."""
        super().__init__()
        self.gamma = check_number("gamma", gamma, low=0)
        self.detach_weight = self.stops_gradient = detach_weight
        self.alpha = check_number("alpha", alpha, low=0)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return self.alpha * functional.focal_negative(logits, self.gamma, self.detach_weight)

    def fused(self, classes: int) -> FusedTerm | None:
        """Return the same term for the compiled kernel, if gamma is a small whole number."""
        gamma = kernel_gamma(self.gamma)
        if gamma is None:
            return None
        return FusedTerm("focal", gamma=gamma, scale=self.alpha, detach_weight=self.detach_weight)

    def extra_repr(self) -> str:
        """Show the constants."""
        alpha = "" if self.alpha == 1 else f", alpha={self.alpha:g}"
        return f"gamma={self.gamma:g}, detach_weight={self.detach_weight}{alpha}"


@NEGATIVES.register("shifted_focal")
class ShiftedFocalNegative(NegativeTerm):
    r"""Negative term of the asymmetric loss (ASL).

    .. math:: \ell^-(p_m) = -p_m^\gamma \log(1 - p_m), \qquad p_m = \max(\sigma(x) - m, 0)

    Negatives below the shift cost nothing, and only those very near 1 are forgiven a little.

    Args:
        gamma: How strongly easy negatives are played down: 0, or at least 1.
        shift: The m of the equation, at least 0 and below 1; 0 gives the Focal term.
        detach_weight: Whether the factor :math:`p_m^\gamma` is held constant in the gradient, as
            the released code does.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> ShiftedFocalNegative()(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([1.6448e-06, 2.4515e-02, 2.0286e+00])

    Reference:
        Ridnik et al., Asymmetric loss for multi-label classification, ICCV 2021.
    """

    can_go_flat = True

    def __init__(
        self, *, gamma: float = 4.0, shift: float = 0.05, detach_weight: bool = False
    ) -> None:
        """Check and keep the constants."""
        super().__init__()
        self.gamma = check_number("gamma", gamma, low=0)
        if 0 < self.gamma < 1:
            raise ArgumentError(
                f"gamma must be 0 or at least 1, but got {gamma!r}: in between, the gradient at"
                " the shift is infinite."
            )
        self.shift = check_number("shift", shift, low=0, high=0.99)
        if 0 < self.shift < 1e-4:
            raise ArgumentError(f"shift must be 0 or at least 0.0001, but got {shift!r}.")
        self.detach_weight = self.stops_gradient = detach_weight

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        if self.shift == 0:
            return functional.focal_negative(logits, self.gamma, self.detach_weight)
        return functional.shifted_focal_negative(logits, self.gamma, self.shift, self.detach_weight)

    def fused(self, classes: int) -> FusedTerm | None:
        """Return the same term for the compiled kernel, if gamma is a small whole number."""
        gamma = kernel_gamma(self.gamma)
        if gamma is None:
            return None
        return FusedTerm("focal", gamma=gamma, shift=self.shift, detach_weight=self.detach_weight)

    def extra_repr(self) -> str:
        """Show the constants."""
        return f"gamma={self.gamma:g}, shift={self.shift:g}, detach_weight={self.detach_weight}"


@NEGATIVES.register("mse")
class MseNegative(NegativeTerm):
    r"""Squared probability: the robust term that Hill starts from.

    .. math:: \ell^-(p) = p^2, \qquad p = \sigma(x)

    Its gradient :math:`2p^2(1-p)` fades near 1, where a "negative" is probably a missing label.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> MseNegative()(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([0.0142, 0.2500, 0.9644])
    """

    can_go_flat = True

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return functional.mse_negative(logits)

    def fused(self, classes: int) -> FusedTerm:
        """Return the same term for the compiled kernel."""
        return FusedTerm("cubic", quadratic=1.0)


@NEGATIVES.register("hill")
class HillNegative(NegativeTerm):
    r"""Negative term that forgives the most confident negatives.

    .. math:: \ell^-(p) = (\lambda - p)\,p^2, \qquad p = \sigma(x)

    A zero in the targets may be a label nobody wrote down. At :math:`\lambda = 1.5` the gradient
    is :math:`3p^2(1-p)^2`: it fades near one, where a "negative" is probably a missing positive.

    Args:
        lam: Height of the hill. Must be at least 1, so that the loss stays non-negative. Below
            1.5 the gradient turns over near 1 and pushes such entries up.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> HillNegative()(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([0.0196, 0.2500, 0.4995])
    """

    can_go_flat = True

    def __init__(self, *, lam: float = 1.5) -> None:
        """Check and keep the constant."""
        super().__init__()
        self.lam = check_number("lam", lam, low=1)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return functional.hill_negative(logits, self.lam)

    def fused(self, classes: int) -> FusedTerm:
        """Return the same term for the compiled kernel."""
        return FusedTerm("cubic", quadratic=self.lam, cubic=-1.0)

    def extra_repr(self) -> str:
        """Show the constant."""
        return f"lam={self.lam:g}"
