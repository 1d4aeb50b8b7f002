"""Corrections that decide by what another model says, such as the moving average of weights."""

from __future__ import annotations

from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.losses.base import LabelStats, Loss, PairBatch
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.terms.correction import Correction, SelectiveCorrection


class JudgedCorrection(SelectiveCorrection):
    """Asks a correction about the logits of a judge instead of those of the model in training.

    A model that is surer after every step confirms itself; its moving average lags behind and is
    usually better. Set :attr:`judge` before every step; without it the model's own logits count.

    Args:
        inner: The correction: one that selects pairs, or takes those above a threshold.

    Example:
        >>> from hilltop.losses import SelfPacedCorrection
        >>> correct = JudgedCorrection(SelfPacedCorrection(tau=0.6, start_epoch=0))
        >>> batch = PairBatch(torch.tensor([[2.0, -2.0]]), torch.zeros(1, 2))
        >>> correct.judge = torch.tensor([[-2.0, 2.0]])
        >>> correct(batch, batch.logits)[1]
        tensor([[0., 1.]])
    """

    def __init__(self, inner: Correction) -> None:
        """Declare what the correction declares."""
        super().__init__()
        self.inner = inner
        self.judge: Tensor | None = None
        self.take_over([inner])
        if isinstance(inner, SelectiveCorrection):
            self.adds_pseudo_labels = inner.adds_pseudo_labels

    def select(self, batch: PairBatch, candidates: Tensor, *, learning: bool) -> Tensor:
        """Select by the logits of the judge."""
        if self.judge is not None:
            batch = batch.with_logits(self.judge.detach().to(batch.logits))
        if isinstance(self.inner, SelectiveCorrection):
            return self.inner.select(batch, candidates, learning=learning)
        above = self.inner.pseudo_above()
        assert above is not None
        started = batch.epoch >= above.start_epoch
        return candidates & (batch.logits > above.logit) & started

    def prepare(self, stats: LabelStats) -> None:
        """Pass the statistics on."""
        self.inner.prepare(stats)

    def set_epoch(self, epoch: int) -> None:
        """Pass the epoch on."""
        self.inner.set_epoch(epoch)

    def describe(self) -> str | None:
        """Return what the correction has to say."""
        return self.inner.describe()


def judged(loss: Loss) -> tuple[MultiLabelLoss, JudgedCorrection]:
    """Return a loss whose correction can be told to ask a judge, and that correction.

    Raises:
        ArgumentError: The loss turns no pairs into labels.
    """
    if isinstance(loss, MultiLabelLoss) and loss.correction is not None:
        inner = loss.correction
        if isinstance(inner, SelectiveCorrection) or inner.pseudo_above() is not None:
            correction = JudgedCorrection(inner)
            return loss.with_correction(correction), correction
    raise ArgumentError(
        "ask_average needs a loss that selects pairs, such as splc, splc_bounded or ll_ct, and this"
        " one has nothing to ask. Leave it out, or take another loss."
    )
