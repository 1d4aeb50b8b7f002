"""Large-loss methods: the largest losses among unlabelled entries belong to missing labels."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from hilltop.checks import check_number
from hilltop.losses.base import LabelStats, PairBatch
from hilltop.losses.catalogue import LOSSES, Common, correct_base
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.corrections import SelectiveCorrection
from hilltop.losses.memory import (
    all_reduce_rows,
    batch_rows,
    describe_bytes,
    pack_bits,
    unpack_bits,
    value_at_place,
)


class _LargeLoss(SelectiveCorrection):
    """What the three have in common: one rate, and the largest losses of a batch."""

    def __init__(self, *, rate: float = 0.002) -> None:
        """Check and store the rate."""
        super().__init__()
        self.rate = check_number("rate", rate, low=0, high=1)

    def select(self, batch: PairBatch, candidates: Tensor, *, learning: bool) -> Tensor:
        """Select the share ``rate * epoch`` of all known pairs with the largest losses."""
        known = (batch.targets == batch.targets).sum()
        return _top(batch.logits, candidates, self.rate * batch.epoch * known)


class LargeLossRejection(_LargeLoss):
    r"""Large-loss rejection (LL-R): the largest losses of a batch do not count.

    .. math:: k = \lceil B\,K\,d\,t \rceil

    unlabelled entries out of a batch of B images and K classes are left out in the t-th epoch,
    counting from 0: none at first, and more as the model would begin to learn the gaps by heart.

    Args:
        rate: The d of the equation, as a share; published are 0.001 to 0.005.

    Example:
        >>> correct = LargeLossRejection(rate=0.2)
        >>> logits = torch.tensor([[-1.0, 3.0, 0.5, 4.0]])
        >>> targets = torch.tensor([[0, 0, 0, 1.0]])
        >>> batch = PairBatch(logits, targets, epoch=torch.tensor(1))
        >>> correct(batch, logits)  # keep, pseudo
        (tensor([[1., 0., 1., 1.]]), tensor([[0., 0., 0., 0.]]))

    Reference:
        Kim et al., Large loss matters in weakly supervised multi-label classification, CVPR 2022.

    Note:
        Ranked are logits: the negative terms that it is meant for grow with the logit, and logits
        do not round to ties where losses do. Equal logits share their fate.
    """

    adds_pseudo_labels = False


class LargeLossCorrection(_LargeLoss):
    r"""Large-loss correction for the step (LL-Ct): the largest losses of a batch are labels.

    .. math:: k = \lceil B\,K\,d\,t \rceil

    of them, as many as in :class:`LargeLossRejection`, but pseudo labels instead of left out;
    decided anew in every batch.

    Args:
        rate: The d of :class:`LargeLossRejection`, as a share.

    Reference:
        Kim et al., Large loss matters in weakly supervised multi-label classification, CVPR 2022.
    """


class LargeLossPermanent(_LargeLoss):
    r"""Large-loss correction for good (LL-Cp): the largest losses of a batch become labels.

    .. math:: k = \lceil B\,K\,d \rceil

    unlabelled entries of every batch become labels from the second epoch on, and stay so. The
    memory is one bit for each pair of image and class, allocated by :meth:`prepare` and kept in
    checkpoints. An image gives new labels once an epoch, however often it is seen, and in training
    steps only; with many processes each learns of the others' when an epoch begins.

    Args:
        rate: The d of the equation, as a share.

    Raises:
        ArgumentError: It was not prepared, or a batch comes without its row numbers ``index``.

    Reference:
        Kim et al., Large loss matters in weakly supervised multi-label classification, CVPR 2022.
    """

    memory: Tensor
    treated: Tensor

    def __init__(self, *, rate: float = 0.002) -> None:
        """Check and store the rate; there is no memory yet."""
        super().__init__(rate=rate)
        self.pairs: tuple[int, int] | None = None
        self.register_buffer("memory", None)
        self.register_buffer("treated", None)

    def prepare(self, stats: LabelStats) -> None:
        """Allocate the memory, without pseudo labels."""
        self.pairs = stats.images, len(stats.positives)
        device = stats.positives.device if self.memory is None else self.memory.device
        size = (stats.images, -(-len(stats.positives) // 8))
        self.memory = torch.zeros(size, dtype=torch.uint8, device=device)
        self.treated = torch.full((stats.images,), -1, dtype=torch.int32, device=device)

    def describe(self) -> str | None:
        """Say how large the memory is."""
        if self.pairs is None:
            return None
        size = describe_bytes(self.memory.numel() + 4 * self.treated.numel())
        images, classes = self.pairs
        return f"ll_cp keeps one bit for each of {images:,} images x {classes:,} classes: {size}"

    def set_epoch(self, epoch: int) -> None:
        """Learn the pseudo labels that other processes added in the epoch before."""
        if self.pairs is not None:
            all_reduce_rows(self.memory, self.treated == epoch - 1)

    def select(self, batch: PairBatch, candidates: Tensor, *, learning: bool) -> Tensor:
        """Select the pseudo labels of before, and in a step of training some more."""
        logits, epoch = batch.logits, torch.as_tensor(batch.epoch)
        rows = batch_rows("ll_cp", batch, self.pairs)
        classes = logits.shape[-1]
        pseudo = unpack_bits(self.memory[rows], classes)
        if learning:
            fresh = self.treated[rows].unsqueeze(1) < epoch
            new = candidates.view(-1, classes) & ~pseudo & fresh
            many = self.rate * (epoch >= 1) * (batch.targets == batch.targets).sum()
            pseudo = pseudo | _top(logits.view(-1, classes), new, many)
            self.memory[rows] = pack_bits(pseudo)
            self.treated[rows] = epoch.to(torch.int32)
        return pseudo.view(logits.shape) & candidates


def _top(logits: Tensor, candidates: Tensor, many: Tensor) -> Tensor:
    """True for the ``ceil(many)`` candidates with the largest logits."""
    if not logits.numel():
        return candidates
    # A product that is whole but for rounding must not count one more.
    count = torch.ceil(many.float() - 1e-3).long()
    ranks = torch.where(candidates, logits, -torch.inf).flatten()
    place = (count - 1).clamp(0, ranks.numel() - 1)
    return candidates & (logits >= value_at_place(ranks, place)) & (count > 0)


@LOSSES.register("ll_r")
def ll_r(
    base: MultiLabelLoss | str = "bce", *, rate: float = 0.002, **common: Unpack[Common]
) -> MultiLabelLoss:
    """Large-loss rejection: unlabelled entries with the largest losses of a batch are left out.

    Call ``set_epoch(epoch)`` at the start of every epoch, or it never begins.

    Assumption:
        Unlabelled entries are left out where their loss is largest.

    When to use:
        When you would rather ignore doubtful negatives than take them for labels.

    Args:
        base: The loss to correct, as a loss or a name.
        rate: Share of all pairs of a batch that each epoch adds, see :class:`LargeLossRejection`.
        **common: Options of :class:`MultiLabelLoss`, where ``base`` is a name.

    Reference:
        Kim et al., Large loss matters in weakly supervised multi-label classification, CVPR 2022.
    """
    return correct_base("ll_r", base, LargeLossRejection(rate=rate), common)


@LOSSES.register("ll_ct")
def ll_ct(
    base: MultiLabelLoss | str = "bce", *, rate: float = 0.002, **common: Unpack[Common]
) -> MultiLabelLoss:
    """Large-loss correction: unlabelled entries with the largest losses count as labels.

    Call ``set_epoch(epoch)`` at the start of every epoch, or it never begins.

    Assumption:
        Unlabelled entries are pseudo labels where their loss is largest.

    When to use:
        When the largest losses are mostly missing labels; a wrong pseudo label lasts for one step
        only.

    Args:
        base: The loss to correct, as a loss or a name.
        rate: Share of all pairs of a batch that each epoch adds, see :class:`LargeLossCorrection`.
        **common: Options of :class:`MultiLabelLoss`, where ``base`` is a name.
    """
    return correct_base("ll_ct", base, LargeLossCorrection(rate=rate), common)


@LOSSES.register("ll_cp")
def ll_cp(
    base: MultiLabelLoss | str = "bce", *, rate: float = 0.002, **common: Unpack[Common]
) -> MultiLabelLoss:
    """Permanent large-loss correction: entries with the largest losses become labels for good.

    Call ``prepare(stats)`` before training, ``set_epoch(epoch)`` at the start of every epoch, and
    pass ``index`` with every batch.

    Assumption:
        Unlabelled entries are pseudo labels for good where their loss is largest.

    When to use:
        As `ll_ct`, when labels are so sparse that what was found should stay found.

    Args:
        base: The loss to correct, as a loss or a name.
        rate: Share of all pairs of a batch that become labels, see :class:`LargeLossPermanent`.
        **common: Options of :class:`MultiLabelLoss`, where ``base`` is a name.
    """
    return correct_base("ll_cp", base, LargeLossPermanent(rate=rate), common)
