"""Terms: one side of Eq. 1 each, a pure function of logits.

A term returns a loss of the shape of the logits, is never negative and is finite for every finite
logit. It knows nothing of targets, epochs or reductions.
"""

from __future__ import annotations

import inspect
from typing import Any

from torch import Tensor, nn

from hilltop.checks import check_number
from hilltop.errors import ArgumentError
from hilltop.losses import functional
from hilltop.losses.engine.kernel import KernelTerm


class Part(nn.Module):
    """A part of a loss: a term or a correction."""

    can_saturate: bool = False
    """Whether the gradient of an unlabelled entry vanishes near probability 1, or pushes it on."""

    def extra_repr(self) -> str:
        """Show the arguments of the class that are stored under their names."""
        stored = {
            name: getattr(self, name, self) for name in inspect.signature(type(self)).parameters
        }
        return ", ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in stored.items()
            if value is None or isinstance(value, bool | int | float | str | tuple)
        )


class Term(Part):
    """One side of the loss: logits in, a loss of the same shape out.

    Subclasses write :meth:`forward` with differentiable torch operations and are done. Those that
    the compiled kernel can express also return :meth:`kernel_form`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Take back the kernel form of a base class where ``forward`` is written anew."""
        super().__init_subclass__(**options)
        if "forward" in vars(cls) and "kernel_form" not in vars(cls):
            cls.kernel_form = Term.kernel_form  # type: ignore[method-assign]

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        raise NotImplementedError

    def kernel_form(self, logits: Tensor) -> KernelTerm | None:
        """Return the same term for the compiled kernel, or None if it has no such form.

        Args:
            logits: Those that it will be used for; their size and device count, not their values.
        """
        return None


class PositiveTerm(Term):
    """The loss of an entry that is labelled present."""


class NegativeTerm(Term):
    """The loss of an entry that is not labelled."""

    stresses_confident: bool = False
    """Whether entries near probability 1 weigh more, compared with those near one half, than in
    cross-entropy. Among missing labels that hurts, so that a safe start never ends."""


def _focal(gamma: float, **numbers: Any) -> KernelTerm | None:
    """Return a term for the kernel, which takes small whole numbers as gamma."""
    if gamma > 8 or gamma != int(gamma):
        return None
    return KernelTerm("focal", gamma=gamma, **numbers)


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

    def kernel_form(self, logits: Tensor) -> KernelTerm:
        """Return the same term for the compiled kernel."""
        return KernelTerm("focal", sign=-1.0)


class FocalPositive(PositiveTerm):
    r"""Positive term of Focal loss; with a margin, of Focal margin.

    .. math:: \ell^+(p_m) = -\alpha\,(1 - p_m)^\gamma \log p_m, \qquad p_m = \sigma(x - m)

    Without a margin the hardest positives dominate. A margin of 0.5 to 1 moves the weight to the
    semi-hard ones, whose probability is near one half.

    Args:
        gamma: How strongly easy positives are down-weighted; 0 gives the log term at margin 0.
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
        """Check and store the constants."""
        super().__init__()
        self.gamma = check_number("gamma", gamma, low=0)
        self.margin = check_number("margin", margin, low=-1e4, high=1e4)
        self.detach_weight = detach_weight
        self.alpha = check_number("alpha", alpha, low=0)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        loss = functional.focal_positive(logits, self.gamma, self.margin, self.detach_weight)
        return loss if self.alpha == 1 else self.alpha * loss

    def kernel_form(self, logits: Tensor) -> KernelTerm | None:
        """Return the same term for the compiled kernel, if gamma is a small whole number."""
        return _focal(
            self.gamma,
            sign=-1.0,
            offset=self.margin,
            scale=self.alpha,
            detach_weight=self.detach_weight,
        )


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

    def kernel_form(self, logits: Tensor) -> KernelTerm:
        """Return the same term for the compiled kernel."""
        return KernelTerm("focal")


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
        """Check and store the weight."""
        super().__init__()
        self.weight = None if weight is None else check_number("weight", weight, low=0)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return self._scale(logits) * functional.focal_negative(logits, 0.0, False)

    def kernel_form(self, logits: Tensor) -> KernelTerm:
        """Return the same term for the compiled kernel."""
        return KernelTerm("focal", scale=self._scale(logits))

    def _scale(self, logits: Tensor) -> float:
        if self.weight is not None:
            return self.weight
        classes = logits.shape[-1] if logits.ndim else 1
        if classes < 2:
            raise ArgumentError(
                "The default weight 1/(K-1) needs at least 2 classes in the last dimension of"
                f" logits, but got {classes}. Pass weight= instead."
            )
        return 1.0 / (classes - 1)


class FocalNegative(NegativeTerm):
    r"""Negative term of Focal loss.

    .. math:: \ell^-(p) = -\alpha\,p^\gamma \log(1 - p), \qquad p = \sigma(x)

    Easy negatives are down-weighted and hard ones are not: a missing label, which looks like a hard
    negative, keeps its full weight.

    Args:
        gamma: How strongly easy negatives are down-weighted; 0 gives the log term.
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
        """Check and store the constants."""
        super().__init__()
        self.gamma = check_number("gamma", gamma, low=0)
        self.detach_weight = detach_weight
        self.alpha = check_number("alpha", alpha, low=0)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        loss = functional.focal_negative(logits, self.gamma, self.detach_weight)
        return loss if self.alpha == 1 else self.alpha * loss

    def kernel_form(self, logits: Tensor) -> KernelTerm | None:
        """Return the same term for the compiled kernel, if gamma is a small whole number."""
        return _focal(self.gamma, scale=self.alpha, detach_weight=self.detach_weight)


class ShiftedFocalNegative(NegativeTerm):
    r"""Negative term of the asymmetric loss (ASL).

    .. math:: \ell^-(p_m) = -p_m^\gamma \log(1 - p_m), \qquad p_m = \max(\sigma(x) - m, 0)

    Negatives below the shift cost nothing, and those very near 1 are forgiven a little.

    Args:
        gamma: How strongly easy negatives are down-weighted: 0, or at least 1.
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

    can_saturate = stresses_confident = True

    def __init__(
        self, *, gamma: float = 4.0, shift: float = 0.05, detach_weight: bool = False
    ) -> None:
        """Check and store the constants."""
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
        self.detach_weight = detach_weight

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        if self.shift == 0:
            return functional.focal_negative(logits, self.gamma, self.detach_weight)
        return functional.shifted_focal_negative(logits, self.gamma, self.shift, self.detach_weight)

    def kernel_form(self, logits: Tensor) -> KernelTerm | None:
        """Return the same term for the compiled kernel, if gamma is a small whole number."""
        return _focal(self.gamma, shift=self.shift, detach_weight=self.detach_weight)


class MseNegative(NegativeTerm):
    r"""Squared probability, the robust term from which the Hill loss is derived.

    .. math:: \ell^-(p) = p^2, \qquad p = \sigma(x)

    Its gradient :math:`2p^2(1-p)` vanishes near 1, where a "negative" is probably a missing label.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> MseNegative()(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([0.0142, 0.2500, 0.9644])
    """

    can_saturate = True

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return functional.mse_negative(logits)

    def kernel_form(self, logits: Tensor) -> KernelTerm:
        """Return the same term for the compiled kernel."""
        return KernelTerm("cubic", quadratic=1.0)


class HillNegative(NegativeTerm):
    r"""Negative term of the Hill loss, which forgives the most confident negatives.

    .. math:: \ell^-(p) = (\lambda - p)\,p^2, \qquad p = \sigma(x)

    A zero in the targets may be a missing label. At :math:`\lambda = 1.5` the gradient
    is :math:`3p^2(1-p)^2`: it vanishes near one, where a "negative" is probably a missing positive.

    Args:
        lam: Height of the hill. Must be at least 1, so that the loss stays non-negative. Below
            1.5 the gradient turns over near 1 and pushes such entries up.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> HillNegative()(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([0.0196, 0.2500, 0.4995])
    """

    can_saturate = True

    def __init__(self, *, lam: float = 1.5) -> None:
        """Check and store the constant."""
        super().__init__()
        self.lam = check_number("lam", lam, low=1)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return functional.hill_negative(logits, self.lam)

    def kernel_form(self, logits: Tensor) -> KernelTerm:
        """Return the same term for the compiled kernel."""
        return KernelTerm("cubic", quadratic=self.lam, cubic=-1.0)
