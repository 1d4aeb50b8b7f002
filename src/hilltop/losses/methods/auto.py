"""Auto: looks at how many labels images carry, and takes a loss that suits them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hilltop.errors import ArgumentError
from hilltop.losses.base import LabelStats, Loss
from hilltop.losses.catalogue import LOSSES
from hilltop.losses.likelihood.by_count import kept_by_count
from hilltop.losses.likelihood.choose import ABOUT_ONE, PUT_BACK, Choice, LabelCounts
from hilltop.losses.likelihood.independent import kept_independently
from hilltop.losses.methods.splc_adaptive import splc_adaptive
from hilltop.losses.reduction import Reduction

KNOWN_PUT_BACK = 0.1
"""Chance that a lost label was put back, where it is known that some were."""
MANY_PUT_BACK = 0.1
"""Share of the labels that a review put back from which the rest no longer follows a count."""


def choose_loss(
    labels_per_image: Tensor,
    *,
    before_review: Tensor | None = None,
    reduction: Reduction = "mean",
    watch: bool = True,
) -> Choice[Loss]:
    """Choose a loss by how many labels images carry.

    Args:
        labels_per_image: Entry s is the number of images with s labels.
        before_review: The same before a review put labels back, if there was one.
        reduction: As in :class:`MultiLabelLoss`.
        watch: Whether to warn when training is going flat.

    Raises:
        DataError: There is no label at all.

    Example:
        >>> import torch
        >>> choose_loss(torch.tensor([0, 40, 30, 30])).sentence.partition(":")[0]
        '40% of the labelled images carry one label'
    """
    carried = LabelCounts.of(labels_per_image if before_review is None else before_review)
    put_back = (
        0.0 if before_review is None else 1 - _labels(before_review) / _labels(labels_per_image)
    )
    if carried.mostly_single and put_back > MANY_PUT_BACK:
        meaning = (
            "annotators wrote down about one label an image, and a review has put"
            f" {put_back:.0%} of all labels back (kept_independently, keep = 0.4)"
        )
        loss: Loss = kept_independently(keep=0.4, reduction=reduction, watch=watch)
    elif carried.one == 1:
        meaning = "one was written down, whatever there was (kept_by_count, r = 0.9)"
        added = KNOWN_PUT_BACK if put_back else 0.0
        loss = kept_by_count(r=0.9, added=added, reduction=reduction, watch=watch)
    elif carried.mostly_single:
        meaning = ABOUT_ONE
        added = KNOWN_PUT_BACK if put_back else PUT_BACK
        loss = kept_by_count(r=0.8, added=added, reduction=reduction, watch=watch)
    else:
        meaning = (
            "most labels seem to be there, so only what is all but sure is corrected"
            " (splc_adaptive)"
        )
        loss = splc_adaptive(reduction=reduction, watch=watch)
    return Choice(loss, carried.sentence(meaning))


def _labels(labels_per_image: Tensor) -> int:
    return int((labels_per_image * torch.arange(len(labels_per_image))).sum())


class Auto(Loss):
    """The loss that :func:`choose_loss` takes for the labels of a training set.

    Args:
        reduction: As in :class:`MultiLabelLoss`.
        watch: Whether to warn when training is going flat.
    """

    chosen: Loss | None

    def __init__(self, *, reduction: Reduction = "mean", watch: bool = True) -> None:
        """Wait for the labels."""
        super().__init__(reduction=reduction)
        self._watches = watch
        self._sentence: str | None = None
        self.register_module("chosen", None)

    def prepare(self, facts: LabelStats) -> None:
        """Choose by the number of labels of each image."""
        chosen, self._sentence = choose_loss(
            facts.labels_per_image,
            before_review=facts.before_review,
            reduction=self.reduction,
            watch=self._watches,
        )
        chosen.prepare(facts)
        chosen.set_epoch(int(self.epoch))
        self.chosen = chosen.to(self.epoch.device)

    def set_epoch(self, epoch: int) -> None:
        """Tell the loss which epoch begins."""
        super().set_epoch(epoch)
        if self.chosen is not None:
            self.chosen.set_epoch(epoch)

    def note(self) -> str | None:
        """Return what was chosen and why, once it is known."""
        return self._sentence

    def parameter_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """Return what the chosen loss learns."""
        return [] if self.chosen is None else self.chosen.parameter_groups()

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch, see :meth:`Loss.forward`."""
        loss: Tensor = self._ready()(logits, targets, observed=observed, index=index)
        return loss

    def init_loss(self) -> Loss:
        """Return what the chosen loss starts as."""
        return self._ready().init_loss()

    def pseudo_labels(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return True for unlabelled entries that the chosen loss takes for labels."""
        return self._ready().pseudo_labels(logits, targets, observed=observed, index=index)

    def _ready(self) -> Loss:
        if self.chosen is None:
            raise ArgumentError(
                "auto chooses by the labels of the whole training set: call"
                " prepare(LabelStats.of(targets)) before training."
            )
        return self.chosen


@LOSSES.register("auto")
def auto(*, reduction: Reduction = "mean", watch: bool = True) -> Auto:
    """A loss chosen by how many labels images carry, see :func:`choose_loss`.

    Our trainer and estimators show it the labels; elsewhere call ``prepare`` before training.
    :meth:`Auto.note` says in one sentence what was chosen and why.

    Args:
        reduction: As in :class:`MultiLabelLoss`.
        watch: Whether to warn when training is going flat.

    Example:
        >>> import torch
        >>> loss = auto()
        >>> loss.prepare(LabelStats.of(torch.eye(3)))
        >>> loss.note()
        '100% of the labelled images carry one label: one was written down, whatever there was \
(kept_by_count, r = 0.9).'
    """
    return Auto(reduction=reduction, watch=watch)
