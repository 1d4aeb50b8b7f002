"""EM + APL: unlabelled entries are unknown, not absent, until they are surely low."""

from __future__ import annotations

from typing import Unpack

import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor

from hilltop.checks import check_number
from hilltop.losses import functional
from hilltop.losses.base import LabelStats, PairBatch
from hilltop.losses.catalogue import LOSSES, Common
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.corrections import Correction
from hilltop.losses.memory import all_reduce_rows, batch_rows, describe_bytes
from hilltop.losses.terms import LogNegative, LogPositive, NegativeTerm
from hilltop.losses.tracing import learns_from

_LEAST, _MOST = 6e-8, 6e4  # what float16 holds


class EntropyNegative(NegativeTerm):
    r"""Negative term that draws towards "unknown": the more certain, the costlier.

    .. math:: \ell^-(p) = \alpha\,[\log 2 + p \log p + (1 - p) \log(1 - p)], \qquad p = \sigma(x)

    Its gradient :math:`\alpha\,x\,p\,(1-p)` is small for all unlabelled entries, so that the few
    labels lead. The constant, which the publication does not have, keeps it from being negative.

    Args:
        alpha: Weight of the entropy.

    Shape:
        logits of any shape to a loss of the same shape.

    Example:
        >>> EntropyNegative(alpha=1.0)(torch.tensor([-2.0, 0.0, 4.0]))
        tensor([0.3278, 0.0000, 0.6031])
    """

    def __init__(self, *, alpha: float = 0.1) -> None:
        """Check and store the weight."""
        super().__init__()
        self.alpha = check_number("alpha", alpha, low=0)

    def forward(self, logits: Tensor) -> Tensor:
        """Return the loss of every entry."""
        return self.alpha * functional.entropy_negative(logits)


class AsymmetricPseudoLabels(Correction):
    r"""Asymmetric pseudo labels (APL): the lowest scores of a class become soft negatives.

    .. math:: \ell^- = \beta\,[-\hat y \log p - (1 - \hat y) \log(1 - p)]

    When an epoch begins after warm-up, the unlabelled entries of each class with the lowest scores
    are held, for good, at the score they have (:math:`\hat y`): the same number each time, so that
    the share ``theta`` is held in the last epoch. Nothing is turned into a label.

    The memory is two bytes for each pair of image and class, allocated by :meth:`prepare` and kept
    in checkpoints. Scores are those of the training steps of the epoch before.

    Args:
        beta: Weight of a pair that is held.
        theta: Share of the unlabelled entries held in the end; 0 holds none and needs no memory.
        warmup: Share of the epochs in which none is held.

    Raises:
        ArgumentError: It was not prepared, or a batch comes without its row numbers ``index``.

    Reference:
        Zhou et al., Acknowledging the unknown for multi-label learning with single positive
        labels, ECCV 2022.
    """

    surprise: Tensor  # -log of the last score; negative once held; 0 if labelled or never seen
    seen: Tensor
    held_in: Tensor

    def __init__(self, *, beta: float = 0.9, theta: float = 0.9, warmup: float = 0.5) -> None:
        """Check and store the constants; there is no memory yet."""
        super().__init__()
        self.beta = check_number("beta", beta, low=0)
        self.theta = check_number("theta", theta, low=0, high=1)
        self.warmup = check_number("warmup", warmup, low=0, high=1)
        self.independent_rows = self.theta == 0
        self.pairs: tuple[int, int] | None = None
        self.first, self.share = 0, 0.0
        self.register_buffer("surprise", None)
        self.register_buffer("seen", None)
        self.register_buffer("held_in", torch.full((), -1))

    def prepare(self, stats: LabelStats) -> None:
        """Allocate the memory and plan how many pairs each epoch holds."""
        if not self.theta:
            return
        self.pairs = stats.images, len(stats.positives)
        self.first = int(self.warmup * stats.epochs)
        self.share = self.theta / max(1, stats.epochs - self.first)
        device = self.held_in.device
        self.surprise = torch.zeros(self.pairs, dtype=torch.float16, device=device)
        self.seen = torch.zeros(stats.images, dtype=torch.bool, device=device)
        self.held_in.fill_(-1)

    def describe(self) -> str | None:
        """Say how large the memory is."""
        if self.pairs is None:
            return None
        images, classes = self.pairs
        size = describe_bytes(2 * self.surprise.numel())
        return (
            f"em_apl keeps the last score of each of {images:,} images x {classes:,} classes:"
            f" {size}"
        )

    @torch.no_grad()
    def set_epoch(self, epoch: int) -> None:
        """Hold the lowest scores of every class, once for each epoch after warm-up."""
        if self.pairs is None or epoch <= int(self.held_in):
            return
        all_reduce_rows(self.surprise, self.seen)
        self.seen.zero_()
        self.held_in.fill_(epoch)
        if epoch < self.first:
            return
        for column in self.surprise.unbind(dim=1):
            scores = column.float()
            count = int(self.share * int((scores != 0).sum()))
            found = scores.topk(min(count, len(scores)))
            lowest = found.indices[found.values > 0]
            column[lowest] = -column[lowest]

    def forward(self, batch: PairBatch, loss_neg: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(keep, pseudo)``: nothing of the negative term for pairs that are held."""
        logits = batch.logits.detach()
        keep, pseudo = torch.ones_like(logits), torch.zeros_like(logits)
        if not self.theta:
            return keep, pseudo
        rows = batch_rows("em_apl", batch, self.pairs)
        held = self._held(rows, batch)
        if self.training and learns_from(batch.logits):
            self._remember(rows, batch)
        return torch.where(held, 0.0, keep), pseudo

    def extra_loss(self, batch: PairBatch) -> Tensor | None:
        """Return the loss of pairs that are held."""
        if not self.theta:
            return None
        logits, rows = batch.logits, batch_rows("em_apl", batch, self.pairs)
        label = torch.exp(self.surprise[rows].view(logits.shape).to(logits.dtype)).clamp(max=1.0)
        loss = label * F.softplus(-logits) + (1 - label) * F.softplus(logits)
        return torch.where(self._held(rows, batch), self.beta * loss, 0.0)

    def _held(self, rows: Tensor, batch: PairBatch) -> Tensor:
        held = self.surprise[rows].view(batch.logits.shape) < 0
        return held if batch.verified is None else held & ~batch.verified

    def _remember(self, rows: Tensor, batch: PairBatch) -> None:
        """Keep the scores of unlabelled entries that are not held."""
        now = F.softplus(-batch.logits.detach()).clamp(_LEAST, _MOST).to(torch.float16)
        before = self.surprise[rows]
        fresh = torch.where(batch.candidates(), now, 0.0).view(before.shape)
        self.surprise[rows] = torch.where(before < 0, before, fresh)
        self.seen[rows] = True


@LOSSES.register("em_apl")
def em_apl(
    *,
    alpha: float = 0.1,
    beta: float = 0.9,
    theta: float = 0.9,
    warmup: float = 0.5,
    **common: Unpack[Common],
) -> MultiLabelLoss:
    r"""Entropy maximisation with asymmetric pseudo labels: unlabelled means unknown.

    .. math:: \ell^+ = -\log p, \qquad
              \ell^- = \alpha\,[\log 2 + p \log p + (1 - p) \log(1 - p)]

    and, later, the lowest scores of each class are held as soft negatives, see
    :class:`AsymmetricPseudoLabels`. Entries that a person verified to be absent cost
    :math:`-\log(1 - p)`. Call ``prepare(stats)`` before training, ``set_epoch(epoch)`` at the start
    of every epoch, and pass ``index`` with every batch.

    Assumption:
        Unlabelled entries are unknown; the lowest scores become soft negatives.

    When to use:
        When there is one label for each image and you do not want to assume anything of the rest.

    Args:
        alpha: Weight of the entropy; published: COCO and NUS 0.1, VOC 0.2.
        beta: Weight of soft negatives; published: COCO 0.9, NUS 0.2, VOC 0.02.
        theta: Share of the unlabelled entries that become soft negatives in the end; 0 is entropy
            maximisation alone, which needs neither ``prepare`` nor ``index``.
        warmup: Share of the epochs before the first soft negatives; published: 5 epochs of 10.
        **common: Options of :class:`MultiLabelLoss`.

    Example:
        >>> em_apl(theta=0)(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
        tensor(0.0690)

    Reference:
        Zhou et al., Acknowledging the unknown for multi-label learning with single positive
        labels, ECCV 2022.

    Note:
        Scores sit near one half: compare them with each other, not with 0.5. Start the head there
        too, with :func:`init_head` or at bias 0, and not at the label prior: down there the
        entropy has no gradient, labels alone pull, and every score rises (COCO, 40% left, frozen
        features: mAP 40 instead of 57).
    """
    return MultiLabelLoss(
        positive=LogPositive(),
        negative=EntropyNegative(alpha=alpha),
        verified_negative=LogNegative(),
        correction=AsymmetricPseudoLabels(beta=beta, theta=theta, warmup=warmup),
        **common,
    )
