"""What a term is: one side of Eq. 1, a function of logits alone."""

from __future__ import annotations

from typing import Literal, NamedTuple

from torch import Tensor, nn

from hilltop.losses.capabilities import Capabilities


class FusedTerm(NamedTuple):
    r"""A term in the form that the compiled kernel knows.

    With :math:`z = \mathrm{sign}\,x + \mathrm{offset}` and :math:`s = \sigma(z)`, ``"focal"`` is
    scale :math:`q^\gamma \cdot -\log(1-q)` + constant, :math:`q = \max(s - \mathrm{shift}, 0)`,
    ``"cubic"`` is scale :math:`(\mathrm{quadratic}\,s^2 + \mathrm{cubic}\,s^3)` and ``"kept"`` is
    :math:`-\log(1 - \mathrm{keep}\,s)` with keep = 1 - lost, of the logit. With ``by_class``,
    :meth:`Term.by_class` gives the constant of a positive term, or keep and lost of a negative one,
    for each class.
    """

    kind: Literal["focal", "cubic", "kept"]
    sign: float = 1.0
    offset: float = 0.0
    gamma: int = 0
    shift: float = 0.0
    quadratic: float = 0.0
    cubic: float = 0.0
    scale: float = 1.0
    keep: float = 1.0
    lost: float = 0.0
    constant: float = 0.0
    by_class: bool = False
    detach_weight: bool = False


class Term(Capabilities, nn.Module):
    """One side of the loss: logits in, loss of the same shape out.

    A term works entry by entry, is never negative and is finite for every finite logit. It knows
    nothing of targets, epochs or reduction. Subclasses write :meth:`forward` with differentiable
    torch operations and are done; those that the compiled kernel can express also return
    :meth:`fused`.
    """

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        raise NotImplementedError

    def fused(self, classes: int) -> FusedTerm | None:
        """Return the same term for the compiled kernel, or None if it has no such form."""
        return None

    def by_class(self, logits: Tensor) -> Tensor | None:
        """Return the numbers that the kernel form needs for each class, one row for each kind."""
        return None


def fused_form(term: Term, classes: int) -> FusedTerm | None:
    """The term for the kernel, if that is what calling the term computes.

    A subclass that overrides ``forward`` alone, or a forward hook, makes it something else.
    """
    return term.fused(classes) if overrides_forward(term, "fused") else None


def overrides_forward(module: nn.Module, method: str) -> bool:
    """Whether ``method`` was written by the class that wrote ``forward``, or by a subclass."""
    if module._forward_hooks or module._forward_pre_hooks:
        return False
    for kind in type(module).__mro__:
        if method in vars(kind):
            return True
        if "forward" in vars(kind):
            return False
    return False


class PositiveTerm(Term):
    """The loss of an entry that is labelled present."""


class NegativeTerm(Term):
    """The loss of an entry that is not labelled.

    One whose gradient vanishes near probability 1 declares that it ``can_go_flat``.
    """

    def for_classes(self, classes: int) -> NegativeTerm:
        """Return a term that does to some of so many classes what this one does to all of them."""
        return self


def kernel_gamma(gamma: float) -> int | None:
    """Return ``gamma`` as the small whole number that the kernel takes, or None."""
    return int(gamma) if gamma <= 8 and gamma == int(gamma) else None
