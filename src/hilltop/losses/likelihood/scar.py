"""The SCAR likelihood: every true label was recorded with one probability, independently.

SCAR ("selected completely at random") is the usual assumption of positive-unlabelled (PU) learning,
and the probability is its label frequency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, Unpack, runtime_checkable

import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor, nn

from hilltop.checks import check_number, check_whole
from hilltop.deprecation import renamed_arguments
from hilltop.errors import ArgumentError
from hilltop.losses import functional
from hilltop.losses.base import PairBatch, check_one_for_each_class
from hilltop.losses.catalogue import LOSSES, Common
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.engine.kernel import KernelTerm
from hilltop.losses.terms import LogNegative, NegativeTerm, PositiveTerm

Frequency = float | Sequence[float] | Tensor


@runtime_checkable
class ObservationModel(Protocol):
    """A loss that can say how likely it is that a label is missing."""

    def posterior(
        self, logits: Tensor, targets: Tensor, *, verified: Tensor | None = None
    ) -> Tensor:
        """Return the probability that each entry is really present, given all labels.

        It is 1 for labels and 0 for entries that were verified to be absent. Where the target is
        NaN it is the model's own probability.
        """
        ...


class LabelFrequency(nn.Module):
    r"""The probability c with which a true label is recorded: given, or learned.

    The likelihood alone does not identify c: it sees c p only, and a model that is flexible enough
    explains few labels as well by a small c as by small p. A prior identifies it. A learned c
    starts at the given value k, and every label of the data is joined by ``prior_weight``
    pseudo-observations of which the share k was recorded. This adds

    .. math:: w \left[ k \log \frac{k}{c} + (1 - k) \log \frac{1 - k}{1 - c} \right],
              \qquad w = prior\_weight

    to each label's loss, so that c cannot run to 0 or 1, whatever the model does.

    Args:
        label_frequency: One probability, or one for each class: at least 0.001 and at most 1.
        learn: Whether c is a parameter, on the logit scale as the distance from the given value.
        prior_weight: The w of the equation.

    Example:
        >>> LabelFrequency(0.4)(), LabelFrequency([0.5, 0.25])()
        (tensor(0.4000), tensor([0.5000, 0.2500]))
    """

    given: Tensor
    warmed: Tensor

    @renamed_arguments(keep="label_frequency")
    def __init__(
        self, label_frequency: Frequency, *, learn: bool = False, prior_weight: float = 0.1
    ) -> None:
        """Check and store the numbers."""
        super().__init__()
        numbers = torch.as_tensor(label_frequency, dtype=torch.float64)
        if numbers.ndim > 1:
            raise ArgumentError(
                "label_frequency must be one number or one row of numbers, one for each class,"
                f" but got the shape {tuple(numbers.shape)}."
            )
        for number in numbers.flatten().tolist():
            check_number("label_frequency", number, low=0.001, high=0.999 if learn else 1)
        self.prior_weight = check_number("prior_weight", prior_weight, low=0)
        # One number stays a Python float: a buffer would round it to float32.
        self.number = None if numbers.ndim else float(numbers)
        self.register_buffer("given", numbers.float(), persistent=False)
        self.register_buffer("warmed", torch.ones(()), persistent=False)
        self.share = 1.0  # the same number, known without waiting for a device
        self.offset = nn.Parameter(torch.zeros(numbers.shape)) if learn else None

    def forward(self) -> Tensor:
        """Return c as it stands, without warm-up."""
        return -torch.expm1(self.log_lost(self.given, warm=False))

    def warm(self, share: float) -> None:
        """Move c the given share of the way from 1 to its value."""
        self.warmed.fill_(share)
        self.share = share

    def log_lost(self, logits: Tensor, *, warm: bool = True) -> Tensor:
        """Return log(1 - c) in the dtype of the logits, for one or for every class."""
        if self.number is None:
            check_one_for_each_class("label_frequency", self.given, logits)
        if self.offset is not None:
            log_lost = F.logsigmoid(-(torch.logit(self._given(logits)) + self.offset))
        else:
            log_lost = torch.log1p(-self._given(logits))
        return (log_lost + self.warmed.log() if warm else log_lost).to(logits.dtype)

    def recorded_and_lost(self, logits: Tensor) -> Tensor:
        """Return c and 1 - c for each class, in two rows, for the compiled kernel."""
        classes = logits.shape[-1] if logits.ndim else 1
        log_lost = self.log_lost(logits.new_empty(classes, dtype=torch.float32))
        return torch.stack([-torch.expm1(log_lost), log_lost.exp()]).expand(2, classes).contiguous()

    def prior(self, log_recorded: Tensor, log_lost: Tensor) -> Tensor:
        """Return what the distance of c from the given value costs each label."""
        given = self._given(log_recorded)
        recorded = given * (given.log() - log_recorded)
        return self.prior_weight * (recorded + (1 - given) * (torch.log1p(-given) - log_lost))

    def as_number(self) -> float | None:
        """Return c with its warm-up, if it is one number that is not learned."""
        if self.number is None or self.offset is not None:
            return None
        return 1 - self.share * (1 - self.number)

    def extra_repr(self) -> str:
        """Show the given frequency."""
        shown = "one for each class" if self.number is None else f"{self.number:g}"
        return f"label_frequency={shown}, learn={self.offset is not None}"

    def _given(self, like: Tensor) -> Tensor:
        if self.number is None:
            return self.given.to(like.dtype)
        return torch.full_like(self.warmed, self.number, dtype=like.dtype)


class ScarPositive(PositiveTerm):
    r"""Positive term of the SCAR likelihood: the label is present, and it was recorded.

    .. math:: \ell^+(p) = -\log(c\,p), \qquad p = \sigma(x)

    Args:
        label_frequency: The c of the equation, or a :class:`LabelFrequency` shared with the
            negative term.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> ScarPositive(label_frequency=0.5)(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([2.8201, 1.3863, 0.7113])
    """

    @renamed_arguments(keep="label_frequency")
    def __init__(self, *, label_frequency: Frequency | LabelFrequency = 0.4) -> None:
        """Store the frequency."""
        super().__init__()
        self.frequency = _frequency(label_frequency)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        log_lost = self.frequency.log_lost(logits)
        log_recorded = torch.log(-torch.expm1(log_lost))
        loss = functional.focal_positive(logits, 0.0, 0.0, False) - log_recorded
        if self.frequency.offset is None:
            return loss
        now = self.frequency.log_lost(logits, warm=False)
        return loss + self.frequency.prior(torch.log(-torch.expm1(now)), now)

    def kernel_form(self, logits: Tensor) -> KernelTerm | None:
        """Return the same term for the compiled kernel, if c is not learned."""
        if self.frequency.offset is not None:
            return None
        number = self.frequency.as_number()
        if number is None:
            by_class = -self.frequency.recorded_and_lost(logits)[0].log()
            return KernelTerm("focal", sign=-1.0, by_class=by_class)
        return KernelTerm("focal", sign=-1.0, constant=-math.log(number))


class ScarNegative(NegativeTerm):
    r"""Negative term of the SCAR likelihood: the label is absent, or present and not recorded.

    .. math:: \ell^-(p) = -\log(1 - c\,p), \qquad p = \sigma(x)

    Its gradient :math:`c\,p\,(1-p) / (1 - c\,p)` is itself a hill: it vanishes near 1, where an
    unlabelled entry is probably a label that was not recorded.

    Args:
        label_frequency: The c of the equation, or a :class:`LabelFrequency` shared with the
            positive term. At 1 this is the log term.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> ScarNegative(label_frequency=0.4)(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([0.0489, 0.2231, 0.4989])
    """

    can_saturate = True

    @renamed_arguments(keep="label_frequency")
    def __init__(self, *, label_frequency: Frequency | LabelFrequency = 0.4) -> None:
        """Store the frequency."""
        super().__init__()
        self.frequency = _frequency(label_frequency)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return functional.scar_negative(logits, self.frequency.log_lost(logits))

    def kernel_form(self, logits: Tensor) -> KernelTerm | None:
        """Return the same term for the compiled kernel, if c is not learned."""
        if self.frequency.offset is not None:
            return None
        number = self.frequency.as_number()
        if number is None:
            return KernelTerm("scar", by_class=self.frequency.recorded_and_lost(logits))
        return KernelTerm("scar", keep=number, lost=1 - number)


class ScarLikelihood(MultiLabelLoss):
    r"""SCAR likelihood of PU learning: each true label was recorded with probability c.

    .. math:: \ell^+ = -\log(c\,p), \qquad \ell^- = -\log(1 - c\,p), \qquad p = \sigma(x)

    One c for each class is a propensity that depends on the class. Entries that a person verified
    to be absent cost :math:`-\log(1 - p)`. For labels ``verified`` makes no difference: a label
    that is there was recorded. Soft targets mix the two terms. See :func:`scar_likelihood`.
    """

    def __init__(
        self, frequency: LabelFrequency, *, warmup_epochs: int = 0, **common: Unpack[Common]
    ) -> None:
        """Build the terms around one frequency."""
        super().__init__(
            positive=ScarPositive(label_frequency=frequency),
            negative=ScarNegative(label_frequency=frequency),
            verified_negative=LogNegative(),
            **common,
        )
        self.frequency = frequency
        self.warmup_epochs = check_whole("warmup_epochs", warmup_epochs, low=0)
        self.register_load_state_dict_post_hook(_warm_after_loading)  # type: ignore[no-untyped-call]
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Tell the loss which epoch begins; during warm-up c moves from 1 to its value."""
        super().set_epoch(epoch)
        self.frequency.warm(min(1.0, epoch / self.warmup_epochs) if self.warmup_epochs else 1.0)

    @renamed_arguments(observed="verified")
    @torch.no_grad()
    def posterior(
        self, logits: Tensor, targets: Tensor, *, verified: Tensor | None = None
    ) -> Tensor:
        r"""Return the probability that each entry is really present.

        .. math:: \frac{(1 - c)\,p}{1 - c\,p}

        for unlabelled entries; labels are 1, verified absent entries 0, unknown (NaN) entries p.

        Example:
            >>> model = scar_likelihood(label_frequency=0.5)
            >>> model.posterior(torch.tensor([0.0, 0.0, 2.0]), torch.tensor([1.0, 0.0, 0.0]))
            tensor([1.0000, 0.3333, 0.7870])
        """
        return self._posterior(self.batch(logits, targets, verified))

    def _posterior(self, batch: PairBatch) -> Tensor:
        logits = batch.logits
        missing = torch.sigmoid(logits + self.frequency.log_lost(logits, warm=False))
        if batch.verified is not None:
            missing = torch.where(batch.verified, 0.0, missing)
        targets = batch.targets.to(logits.dtype)
        present = targets + (1 - targets) * missing
        return torch.where(targets == targets, present, torch.sigmoid(logits))

    def find_pseudo_labels(self, batch: PairBatch) -> Tensor:
        """Return True for unlabelled entries that are probably labels."""
        if self.correction is not None:
            return super().find_pseudo_labels(batch)
        return (self._posterior(batch) > 0.5) & (batch.targets == 0)


def _reference(logit: float, target: float) -> float:
    """The loss of one entry at c = 0.4 in plain floats, from the equation."""
    recorded = 0.4 / (1 + math.exp(-logit))
    return target * -math.log(recorded) + (1 - target) * -math.log1p(-recorded)


@LOSSES.register("scar_likelihood", reference=_reference)
@renamed_arguments(keep="label_frequency")
def scar_likelihood(
    label_frequency: Frequency | None = 0.4,
    *,
    learn: bool = False,
    prior_weight: float = 0.1,
    warmup_epochs: int = 0,
    **common: Unpack[Common],
) -> ScarLikelihood:
    r"""SCAR likelihood of PU learning: each true label was recorded with probability c.

    .. math:: \ell^+ = -\log(c\,p), \qquad \ell^- = -\log(1 - c\,p), \qquad p = \sigma(x)

    An unlabelled entry is absent, or present and not recorded. Labels are "selected completely at
    random" (SCAR); c is the label frequency of positive-unlabelled learning, and with one number
    for each class the propensity of a label of that class.

    Assumption:
        Unlabelled entries are absent, or present and not recorded.

    When to use:
        When labels were forgotten here and there, each with about the same probability, and when
        you want to know how probable it is that a label is missing.

    Args:
        label_frequency: The c of the equation, one number or one for each class; None learns it,
            from 0.5.
        learn: Whether c is learned with the model, from ``label_frequency`` on. The likelihood
            hardly tells a small c from rare classes, so a prior holds it near the given value, see
            :class:`LabelFrequency`. Give ``loss.parameters()`` to the optimiser too.
        prior_weight: Weight of that prior: pseudo-observations for each label of the data.
        warmup_epochs: During these c moves from 1, which is cross-entropy, to its value.
        **common: Options of :class:`MultiLabelLoss`.

    Example:
        >>> loss = scar_likelihood(label_frequency=0.5)
        >>> loss(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
        tensor(0.4822)
        >>> loss = scar_likelihood(label_frequency=None)
        >>> [name for name, _ in loss.named_parameters()]
        ['positive.frequency.offset']

    Note:
        Start the head at the prior divided by c:
        ``init_head_prior(model, labels, label_frequency=c)``.
    """
    frequency = LabelFrequency(
        0.5 if label_frequency is None else label_frequency,
        learn=learn or label_frequency is None,
        prior_weight=prior_weight,
    )
    return ScarLikelihood(frequency, warmup_epochs=warmup_epochs, **common)


def _frequency(given: Frequency | LabelFrequency) -> LabelFrequency:
    return given if isinstance(given, LabelFrequency) else LabelFrequency(given)


def _warm_after_loading(module: nn.Module, _: object) -> None:
    assert isinstance(module, ScarLikelihood)
    module.set_epoch(int(module.epoch))
