"""Auto: cross-entropy without the unlabelled pairs that, by evidence, are missing labels."""

from __future__ import annotations

from torch import Tensor

from hilltop.losses.base import LabelStats, PairBatch
from hilltop.losses.catalogue import LOSSES, MethodCard
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.memory import batch_rows
from hilltop.losses.reduction import Reduction
from hilltop.losses.terms.correction import Correction
from hilltop.losses.terms.negative import LogNegative
from hilltop.losses.terms.positive import LogPositive
from hilltop.losses.wrapper import LossWrapper

NO_EVIDENCE = "nothing is known of how labels were lost, so cross-entropy is taken as it is"
"""What is said where no scores were there to ask."""


class AbsentWeights(Correction):
    r"""Leaves out every unlabelled pair that is probably a missing label.

    .. math:: keep_{ic} = I(P(\text{absent}_{ic}) \ge 0.3), \qquad pseudo_{ic} = 0

    The probabilities are fixed before training, by scores that never saw the labels. A pair that
    is probably a missing label then says nothing, and a wrong belief does little harm: nothing is
    turned into a label.

    Args:
        weight: One number for each image and class of the training set ``(N, C)``.
    """

    sees_whole_batch = False
    remembers = True
    remembers_rows = True
    weight: Tensor

    def __init__(self, weight: Tensor) -> None:
        """Keep the weights, beside what is saved with a model: they are found again."""
        super().__init__()
        self.register_buffer("weight", weight, persistent=False)

    def forward(self, batch: PairBatch, loss_neg: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(keep, pseudo)``."""
        images, classes = self.weight.shape
        rows = batch_rows("auto", batch, (images, classes))
        keep = self.weight[rows.squeeze(-1)].to(loss_neg.dtype)
        if batch.observed is not None:
            keep = keep.masked_fill(batch.observed, 1.0)
        return keep, keep.new_zeros(())


class Auto(LossWrapper):
    """Cross-entropy that leaves out unlabelled pairs where evidence shows that labels are missing.

    Args:
        reduction: As in :class:`MultiLabelLoss`.
        watch: As in the other losses; nothing in this one can go flat.
    """

    wants_evidence = True

    def __init__(self, *, reduction: Reduction = "mean", watch: bool = True) -> None:
        """Start as cross-entropy, which never hurts."""
        super().__init__(_cross_entropy(None, reduction), reduction=reduction)
        self.watched = watch
        self._sentence = NO_EVIDENCE

    def prepare(self, stats: LabelStats) -> None:
        """Take the evidence, if there is any."""
        weight = None
        self._sentence = NO_EVIDENCE
        if stats.evidence is not None:
            weight, self._sentence = stats.evidence.weight, stats.evidence.sentence
        chosen = _cross_entropy(weight, self.reduction)
        chosen.set_epoch(int(self.epoch))
        self.wrap(chosen.to(self.epoch.device))

    def describe(self) -> str | None:
        """Return what was found and chosen."""
        return f"{self._sentence}."


def _cross_entropy(weight: Tensor | None, reduction: Reduction) -> MultiLabelLoss:
    return MultiLabelLoss(
        positive=LogPositive(),
        negative=LogNegative(),
        correction=None if weight is None else AbsentWeights(weight),
        reduction=reduction,
        watch=False,
    )


@LOSSES.register(
    "auto",
    MethodCard(
        unlabelled="absent, or left out by evidence",
        remark="cross-entropy without probable missing labels; what `hilltop train` uses",
        when=(
            "When you do not want to choose. It is what `hilltop train` and"
            " `HilltopClassifier` use unless told otherwise. On features, and on images with"
            " pretrained weights, it finds out with scores that never saw the labels how they were"
            " lost, and without evidence is cross-entropy."
        ),
    ),
)
def auto(*, reduction: Reduction = "mean", watch: bool = True) -> Auto:
    """Cross-entropy that trusts unlabelled pairs as far as evidence goes, see :class:`Auto`.

    Training on features, or on images with pretrained weights, gathers the evidence: scores of
    heads that never saw the labels say whether some are missing, and how probable it is for each
    pair. In a training loop of your own it is cross-entropy, unless ``prepare`` is given evidence.

    Args:
        reduction: As in :class:`MultiLabelLoss`.
        watch: As in the other losses; nothing in this one can go flat.

    Example:
        >>> auto().describe()
        'nothing is known of how labels were lost, so cross-entropy is taken as it is.'
    """
    return Auto(reduction=reduction, watch=watch)
