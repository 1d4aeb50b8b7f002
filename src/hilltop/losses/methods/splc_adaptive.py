"""Adaptive SPLC: a threshold for each class and stage, found from the scores themselves."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from hilltop.checks import check_number, check_whole
from hilltop.losses.base import LabelStats, PairBatch
from hilltop.losses.catalogue import LOSSES, Common, correct_base
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.corrections import SelectiveCorrection

_BINS, _LIMIT = 128, 10.0  # bins of logits between -10 and 10; the outer ones are open
_TOP = 0.1  # where labels are counted: as many pairs as a tenth of the labels of the class
_MOST_MISSING = 3.0  # missing labels for each label that is there
_LARGEST_SHARE = 0.3  # with 0.5, a third of the pseudo labels were wrong on COCO features


class AdaptiveSelfPacedCorrection(SelectiveCorrection):
    r"""Self-paced correction whose thresholds follow from the scores, for each class and stage.

    .. math:: \tau_c = \min \{ t : U_c(t) \le s\,\rho\,L_c \}, \qquad
              \rho = \frac{1 - \lambda}{\lambda}

    :math:`U_c(t)` is the number of unlabelled entries of class c that score at least t and
    :math:`L_c` that of its labels, both in a fading histogram of the last part of an epoch.
    :math:`\lambda` is the labelled share among the best-scored pairs of all classes, as many of
    each class as a tenth of its labels. A model that ranks well has true labels alone up there,
    and :math:`\rho` is the missing labels for each label that is there. The lowest value since
    correction started counts: at first it is too high, because the model does not rank well yet,
    and pseudo labels would push it up again, and so their number.

    A fixed tau stands for another number of labels in every class, for every loss and at every
    stage; too low, it adds ever more. Here that number is bounded: per class the share s of
    the estimate, and :math:`\rho \le 3`. Every class gets its part, however low its scores are.

    Args:
        share: The s of the equation: which part of the missing labels become pseudo labels, at most
            0.3.
        start_epoch: First epoch that corrects, counting from 0; at least 1.
        window: Length of the histogram's memory, in epochs.

    Note:
        Histograms change in training steps only and are part of a checkpoint. With many processes
        each has its own, of the images that it sees.
    """

    scores: Tensor
    missing: Tensor
    images: Tensor

    def __init__(self, *, share: float = 0.2, start_epoch: int = 3, window: float = 0.25) -> None:
        """Check and store the constants; the histograms are empty."""
        super().__init__()
        self.share = check_number("share", share, low=0, high=_LARGEST_SHARE)
        self.start_epoch = check_whole("start_epoch", start_epoch, low=1)
        self.window = check_number("window", window, low=0.01, high=10)
        self.register_buffer("scores", None)
        self.register_buffer("missing", torch.full((), -1.0))
        self.register_buffer("images", torch.zeros(()))

    def prepare(self, stats: LabelStats) -> None:
        """Make empty histograms; without this the first training step does."""
        self._start(len(stats.positives))

    def select(self, batch: PairBatch, candidates: Tensor, *, learning: bool) -> Tensor:
        """Select the candidates above the threshold of their class."""
        logits, epoch = batch.logits, torch.as_tensor(batch.epoch)
        learning = learning and logits.numel() > 0
        if self.missing.device != logits.device:
            self.to(logits.device)
        if self.scores is None and learning:
            self._start(logits.shape[-1])
        if self.scores is None or self.scores.shape[1] != logits.shape[-1]:
            return torch.zeros_like(candidates)
        if learning:
            self._estimate(epoch)
        pseudo = candidates & (logits >= self.thresholds()) & (epoch >= self.start_epoch)
        if learning:
            self._count(batch, candidates)
        return pseudo

    def thresholds(self) -> Tensor:
        """Return the logit of every class from which on a pair counts as a label.

        Infinity adds no pseudo labels: before correction starts, and for classes without labels.
        """
        labelled, unlabelled = self.scores
        labels = labelled.sum(dim=1, keepdim=True)
        budget = self.share * self.missing.clamp(min=0.0) * labels
        bins = (unlabelled.flip(1).cumsum(dim=1) <= budget).sum(dim=1)
        some = (bins > 0) & (labels[:, 0] > 0) & (self.missing > 0)
        return torch.where(some, _LIMIT - bins * (2 * _LIMIT / _BINS), torch.inf)

    def _estimate(self, epoch: Tensor) -> None:
        """Estimate the missing labels for each label that is there; it may only fall."""
        labelled, unlabelled = self.scores
        labels = labelled.sum(dim=1, keepdim=True)
        both = (labelled + unlabelled).flip(1)
        above = both.cumsum(dim=1) - both
        # All of a bin, none of it, or of the one in which the top ends the part that belongs to it.
        part = ((_TOP * labels - above) / both.clamp(min=1e-9)).clamp(0.0, 1.0)
        share = (labelled.flip(1) * part).sum() / (_TOP * labels.sum()).clamp(min=1e-9)
        estimate = ((1 - share) / share.clamp(min=1e-6)).clamp(0.0, _MOST_MISSING)
        due = (epoch >= self.start_epoch) & (labels.sum() > 0)
        before = torch.where(self.missing < 0, _MOST_MISSING, self.missing)
        self.missing.copy_(torch.where(due, torch.minimum(before, estimate), self.missing))

    def _count(self, batch: PairBatch, candidates: Tensor) -> None:
        """Add a batch to the histograms, in which older batches fade."""
        targets, classes = batch.targets, batch.logits.shape[-1]
        scores = torch.where(targets == targets, batch.logits, 0.0).reshape(-1, classes)
        labels = torch.where(targets == targets, targets, 0.0).reshape(-1, classes)
        rest = torch.where(candidates, 1 - targets, 0.0).reshape(-1, classes)
        self.images.add_(len(scores) * torch.as_tensor(batch.epoch == 0))
        span = self.window * self.images.clamp(min=len(scores))
        self.scores.mul_(torch.exp(-len(scores) / span))
        places = (scores + _LIMIT) * (_BINS / (2 * _LIMIT))
        bins = places.nan_to_num().clamp(0, _BINS - 1).long().t()  # NaN shows in the loss, not here
        weights = torch.stack([labels.t(), rest.t()]).to(self.scores.dtype)
        self.scores.scatter_add_(2, bins.expand(2, -1, -1), weights)

    def _start(self, classes: int) -> None:
        self.scores = torch.zeros(2, classes, _BINS, device=self.missing.device)
        self.missing.fill_(-1.0)
        self.images.zero_()


@LOSSES.register("splc_adaptive")
def splc_adaptive(
    base: MultiLabelLoss | str = "bce",
    *,
    share: float = 0.2,
    start_epoch: int = 3,
    window: float = 0.25,
    **common: Unpack[Common],
) -> MultiLabelLoss:
    r"""Self-paced correction with thresholds for each class and stage that need no tuning.

    The best-scored unlabelled entries of each class count as labels, as many as a share of what the
    early model finds missing, see :class:`AdaptiveSelfPacedCorrection`. Call ``set_epoch(epoch)``
    at the start of every epoch, or the correction never begins.

    Assumption:
        Unlabelled entries are pseudo labels, the best-scored few of each class.

    When to use:
        When most labels are there and classes differ in how high they score, so that one threshold
        for all would be wrong.

    Args:
        base: The loss to correct, as a loss or a name. Thresholds follow its scores, so that any
            will do.
        share: Which part of the missing labels become pseudo labels, at most 0.3.
        start_epoch: First epoch that corrects, counting from 0; at least 1.
        window: How much of an epoch the scores are followed over.
        **common: Options of :class:`MultiLabelLoss`, where ``base`` is a name.

    Note:
        This is not a method of the paper, which leaves adaptive thresholds for later.
    """
    correction = AdaptiveSelfPacedCorrection(share=share, start_epoch=start_epoch, window=window)
    return correct_base("splc_adaptive", base, correction, common)
