"""Auto: binary cross-entropy in which probable missing labels are masked out.

Unlabelled entries that out-of-fold scores show to be probable missing labels have weight 0;
all other entries have weight 1. Without such evidence this is plain binary cross-entropy.
"""

from __future__ import annotations

from typing import Unpack

from torch import Tensor, nn

from hilltop.losses.base import LabelStats, PairBatch
from hilltop.losses.catalogue import LOSSES, Common
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.corrections import Correction
from hilltop.losses.memory import batch_rows
from hilltop.losses.terms import LogNegative, LogPositive

NO_EVIDENCE = "nothing is known of how labels were lost, so plain cross-entropy is used"
"""The sentence where there were no out-of-fold scores to ask."""


class AbsentWeights(Correction):
    r"""Masks out every unlabelled entry that is probably a missing label.

    .. math:: keep_{ic} = I(P(\text{absent}_{ic}) \ge 0.3), \qquad pseudo_{ic} = 0

    The probabilities are fixed before training, by out-of-fold scores. A wrong one does little
    harm: the pair is left out, and nothing is turned into a label.

    Args:
        weight: One number for each image and class of the training set ``(N, C)``.
    """

    weight: Tensor

    def __init__(self, weight: Tensor) -> None:
        """Store the weights, which are not saved with a model: ``prepare`` gives them again."""
        super().__init__()
        self.register_buffer("weight", weight, persistent=False)

    def forward(self, batch: PairBatch, loss_neg: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(keep, pseudo)``."""
        images, classes = self.weight.shape
        rows = batch_rows("auto", batch, (images, classes))
        keep = self.weight[rows.squeeze(-1)].to(loss_neg.dtype)
        if batch.verified is not None:
            keep = keep.masked_fill(batch.verified, 1.0)
        return keep, keep.new_zeros(())


class Auto(MultiLabelLoss):
    """Binary cross-entropy in which probable missing labels are masked out.

    Args:
        **common: Options of :class:`MultiLabelLoss`.
    """

    wants_evidence = True

    def __init__(self, **common: Unpack[Common]) -> None:
        """Begin as cross-entropy."""
        super().__init__(positive=LogPositive(), negative=LogNegative(), **common)
        self._sentence = NO_EVIDENCE
        self.register_load_state_dict_pre_hook(_without_inner)  # type: ignore[no-untyped-call]

    def prepare(self, stats: LabelStats) -> None:
        """Take the evidence, if there is any."""
        weight, self._sentence = None, NO_EVIDENCE
        if stats.evidence is not None:
            weight, self._sentence = stats.evidence.weight, stats.evidence.sentence
        self.correction = None
        if weight is not None:
            self.correction = AbsentWeights(weight).to(self.epoch.device)
        self._take_over_parts()

    def describe(self) -> str | None:
        """Return what was found and chosen."""
        return f"{self._sentence}."


def _without_inner(_: nn.Module, state: dict[str, Tensor], prefix: str, *__: object) -> None:
    """Take a state of the release before, in which the loss stood within another."""
    state.pop(f"{prefix}inner.epoch", None)


@LOSSES.register("auto")
def auto(**common: Unpack[Common]) -> Auto:
    """Binary cross-entropy in which probable missing labels are masked out, see :class:`Auto`.

    Training on features, or on images with pretrained weights, gathers the evidence by
    cross-validation. In a training loop of your own this is cross-entropy, unless ``prepare`` is
    given evidence.

    Assumption:
        Unlabelled entries are absent, or masked out by evidence.

    When to use:
        When you do not want to choose. It is the default of `hilltop train` and
        `HilltopClassifier`. On features, and on images with pretrained weights, they train cross-
        validated heads. If the out-of-fold scores indicate missing labels, likely false negatives
        are masked out of the loss; otherwise `auto` is cross-entropy.

    Args:
        **common: Options of :class:`MultiLabelLoss`.

    Example:
        >>> auto().describe()
        'nothing is known of how labels were lost, so plain cross-entropy is used.'
    """
    return Auto(**common)
