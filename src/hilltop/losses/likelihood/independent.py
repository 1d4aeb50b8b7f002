"""Observation models: labels were lost by a process that can be written down.

Each is a likelihood of the labels that are there, and says how probable it is that one is missing.
"""

from __future__ import annotations

import math
from typing import Protocol, Unpack, runtime_checkable

import torch
from torch import Tensor, nn

from hilltop.checks import check_whole
from hilltop.losses.base import PairBatch
from hilltop.losses.catalogue import LOSSES, Common, MethodCard
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.likelihood.keep_rate import Keep, KeepRate, KeptNegative, KeptPositive
from hilltop.losses.targets import compute_dtype
from hilltop.losses.terms.negative import LogNegative


@runtime_checkable
class ObservationModel(Protocol):
    """A loss that can say how likely it is that a label is missing."""

    def posterior(
        self, logits: Tensor, targets: Tensor, *, observed: Tensor | None = None
    ) -> Tensor:
        """Return the probability that each entry is really present, given all labels.

        It is 1 for labels and 0 for confirmed absents. Where the target is NaN it is the model's
        own probability.
        """
        ...


class KeptIndependently(MultiLabelLoss):
    r"""Likelihood if every true label was written down with probability c, independently.

    .. math:: \ell^+ = -\log(c\,p), \qquad \ell^- = -\log(1 - c\,p), \qquad p = \sigma(x)

    In the words of positive-unlabelled (PU) learning, labels are selected completely at random
    (SCAR) with label frequency c; a c for each class is a propensity that depends on the class.

    Entries that a person confirmed absent cost :math:`-\log(1 - p)`. For labels it does not matter
    whether they are ``observed``: a label that is there was written down. Soft targets mix the two
    terms. See :func:`kept_independently`.
    """

    def __init__(self, rate: KeepRate, *, warmup_epochs: int = 0, **common: Unpack[Common]) -> None:
        """Build the terms around one rate."""
        super().__init__(
            positive=KeptPositive(keep=rate),
            negative=KeptNegative(keep=rate),
            confirmed=LogNegative(),
            **common,
        )
        self.rate = rate
        self.warmup_epochs = check_whole("warmup_epochs", warmup_epochs, low=0)
        self.register_load_state_dict_post_hook(_warm_after_loading)  # type: ignore[no-untyped-call]
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Tell the loss which epoch begins; during warm-up c moves from 1 to its value."""
        super().set_epoch(epoch)
        self.rate.warm(warm_share(epoch, self.warmup_epochs))

    @torch.no_grad()
    def posterior(
        self, logits: Tensor, targets: Tensor, *, observed: Tensor | None = None
    ) -> Tensor:
        r"""Return the probability that each entry is really present.

        .. math:: \frac{(1 - c)\,p}{1 - c\,p}

        for unlabelled entries; labels are 1, confirmed absents 0, unknown (NaN) entries p.

        Example:
            >>> model = kept_independently(keep=0.5)
            >>> model.posterior(torch.tensor([0.0, 0.0, 2.0]), torch.tensor([1.0, 0.0, 0.0]))
            tensor([1.0000, 0.3333, 0.7870])
        """
        return self._posterior(self.batch(logits, targets, observed))

    def _posterior(self, batch: PairBatch) -> Tensor:
        logits = batch.logits.to(compute_dtype(batch.logits))
        missing = torch.sigmoid(logits + self.rate.log_lost(logits, warm=False))
        if batch.observed is not None:
            missing = torch.where(batch.observed, 0.0, missing)
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
    kept = 0.4 / (1 + math.exp(-logit))
    return target * -math.log(kept) + (1 - target) * -math.log1p(-kept)


@LOSSES.register(
    "kept_independently",
    MethodCard(
        unlabelled="absent, or labels not written down",
        remark="likelihood if each label is kept with probability `keep` (SCAR, PU learning)",
        when=(
            "When labels were forgotten here and there, each with about the same probability,"
            " and when you want to know how probable it is that a label is missing."
        ),
        reference=_reference,
    ),
)
def kept_independently(
    keep: Keep | None = 0.4,
    *,
    learn: bool = False,
    prior_weight: float = 0.1,
    warmup_epochs: int = 0,
    **common: Unpack[Common],
) -> KeptIndependently:
    r"""Likelihood if every true label was written down with probability c, independently.

    .. math:: \ell^+ = -\log(c\,p), \qquad \ell^- = -\log(1 - c\,p), \qquad p = \sigma(x)

    Nothing is assumed of unlabelled entries but that each is absent, or present and left out. This
    is positive-unlabelled (PU) learning under "selected completely at random" (SCAR): c is the
    label frequency, and with one number for each class the propensity of a label of that class.

    Args:
        keep: The label frequency c, one number or one for each class; None learns it, from 0.5.
        learn: Whether c is learned with the model, from ``keep`` on. The likelihood hardly tells a
            small c from rare classes, so a prior holds it near ``keep``, see :class:`KeepRate`.
            Give ``loss.parameters()`` to the optimiser too; ours gets them.
        prior_weight: Imagined labels of known fate for each label of the data, if c is learned.
        warmup_epochs: During these c moves from 1, which is cross-entropy, to its value.
        **common: Options of :class:`MultiLabelLoss`.

    Example:
        >>> kept_independently(keep=0.5)(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
        tensor(0.4822)
        >>> loss = kept_independently(keep=None)
        >>> [name for name, _ in loss.named_parameters()]
        ['positive.rate.offset']

    Note:
        Start the head at the prior divided by c: ``init_head_prior(model, labels, keep=c)``.
    """
    rate = KeepRate(
        0.5 if keep is None else keep, learn=learn or keep is None, prior_weight=prior_weight
    )
    return KeptIndependently(rate, warmup_epochs=warmup_epochs, **common)


def warm_share(epoch: int, warmup_epochs: int) -> float:
    """How much of the warm-up is done when ``epoch`` begins."""
    return min(1.0, epoch / warmup_epochs) if warmup_epochs else 1.0


def _warm_after_loading(module: nn.Module, _: object) -> None:
    assert isinstance(module, KeptIndependently)
    module.set_epoch(int(module.epoch))
