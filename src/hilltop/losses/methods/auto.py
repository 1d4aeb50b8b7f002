"""Auto: looks at how many labels images carry, and takes a loss that suits them."""

from __future__ import annotations

import torch
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.losses.base import LabelStats, Loss
from hilltop.losses.catalogue import LOSSES, MethodCard
from hilltop.losses.likelihood.by_count import kept_by_count
from hilltop.losses.likelihood.choose import ABOUT_ONE, RESTORE_PROB, Choice, LabelCounts
from hilltop.losses.likelihood.independent import kept_independently
from hilltop.losses.methods.splc_adaptive import splc_adaptive
from hilltop.losses.reduction import Reduction
from hilltop.losses.wrapper import LossWrapper

KNOWN_RESTORE_PROB = 0.1
"""Probability that a lost label was put back, where it is known that some were."""
MANY_RESTORED = 0.1
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
    restored = (
        0.0 if before_review is None else 1 - _labels(before_review) / _labels(labels_per_image)
    )
    if carried.mostly_single and restored > MANY_RESTORED:
        meaning = (
            "annotators wrote down about one label an image, and a review has put"
            f" {restored:.0%} of all labels back (kept_independently, keep = 0.4)"
        )
        loss: Loss = kept_independently(keep=0.4, reduction=reduction, watch=watch)
    elif carried.one == 1:
        meaning = "one was written down, whatever there was (kept_by_count, r = 0.9)"
        restore_prob = KNOWN_RESTORE_PROB if restored else 0.0
        loss = kept_by_count(r=0.9, restore_prob=restore_prob, reduction=reduction, watch=watch)
    elif carried.mostly_single:
        meaning = ABOUT_ONE
        restore_prob = KNOWN_RESTORE_PROB if restored else RESTORE_PROB
        loss = kept_by_count(r=0.8, restore_prob=restore_prob, reduction=reduction, watch=watch)
    else:
        meaning = (
            "most labels seem to be there, so only what is all but sure is corrected"
            " (splc_adaptive)"
        )
        loss = splc_adaptive(reduction=reduction, watch=watch)
    return Choice(loss, carried.sentence(meaning))


def _labels(labels_per_image: Tensor) -> int:
    return int((labels_per_image * torch.arange(len(labels_per_image))).sum())


class Auto(LossWrapper):
    """The loss that :func:`choose_loss` takes for the labels of a training set.

    Args:
        reduction: As in :class:`MultiLabelLoss`.
        watch: Whether to warn when training is going flat.
    """

    needs_prepare = True

    def __init__(self, *, reduction: Reduction = "mean", watch: bool = True) -> None:
        """Wait for the labels."""
        super().__init__(None, reduction=reduction)
        self.watched = watch  # by the loss to come
        self._sentence: str | None = None

    def prepare(self, stats: LabelStats) -> None:
        """Choose by the number of labels of each image."""
        chosen, self._sentence = choose_loss(
            stats.labels_per_image,
            before_review=stats.before_review,
            reduction=self.reduction,
            watch=self.watched,
        )
        chosen.prepare(stats)
        chosen.set_epoch(int(self.epoch))
        self.wrap(chosen.to(self.epoch.device))

    def describe(self) -> str | None:
        """Return what was chosen and why, once it is known."""
        return self._sentence

    def ready(self) -> Loss:
        """Return the loss that was chosen.

        Raises:
            ArgumentError: The labels have not been shown yet.
        """
        if self.inner is None:
            raise ArgumentError(
                "auto chooses by the labels of the whole training set: call"
                " prepare(LabelStats.of(targets)) before training."
            )
        return self.inner


@LOSSES.register(
    "auto",
    MethodCard(
        unlabelled="as one of these has them",
        remark="chosen by how many labels images carry; what `hilltop train` uses",
        when=(
            "When you do not want to choose. It is what `hilltop train` and"
            " `HilltopClassifier` use unless told otherwise."
        ),
    ),
)
def auto(*, reduction: Reduction = "mean", watch: bool = True) -> Auto:
    """A loss chosen by how many labels images carry, see :func:`choose_loss`.

    Our trainer and estimators show it the labels; elsewhere call ``prepare`` before training.
    :meth:`Auto.describe` says in one sentence what was chosen and why.

    Args:
        reduction: As in :class:`MultiLabelLoss`.
        watch: Whether to warn when training is going flat.

    Example:
        >>> import torch
        >>> loss = auto()
        >>> loss.prepare(LabelStats.of(torch.eye(3)))
        >>> loss.describe()
        '100% of the labelled images carry one label: one was written down, whatever there was \
(kept_by_count, r = 0.9).'
    """
    return Auto(reduction=reduction, watch=watch)
