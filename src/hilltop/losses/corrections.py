"""Corrections: which unlabelled entries are taken for missing labels, and what becomes of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hilltop.losses.base import LabelStats, PairBatch
from hilltop.losses.terms import Part
from hilltop.losses.tracing import learns_from


class Correction(Part):
    """Decides for every entry how much of the negative term to keep, and what is a pseudo label.

    The two weights carry no gradient. "No correction" is (1, 0). Entries that a person verified
    always get (1, 0).
    """

    self_labelling: bool = False
    """Whether labels are inferred from the model's output from the first step on."""
    start_epoch: int = 0
    """First epoch that corrects, counting from 0."""
    independent_rows: bool = False
    """Whether the correction of an entry depends on that entry and the epoch alone. False is the
    safe answer: it looks at whole batches, or remembers."""

    def forward(self, batch: PairBatch, loss_neg: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(keep, pseudo)``: weights for the negative term and for that of pseudo labels.

        Args:
            batch: The pairs.
            loss_neg: The negative term of every entry.
        """
        raise NotImplementedError

    def extra_loss(self, batch: PairBatch) -> Tensor | None:
        """Return a loss of unlabelled entries that neither term expresses, or None.

        It is added to what ``keep`` and ``pseudo`` leave, and its gradient counts.
        """
        return None

    def prepare(self, stats: LabelStats) -> None:
        """Take what is known of a run before it starts."""

    def set_epoch(self, epoch: int) -> None:
        """Learn that an epoch begins, counting from 0; a resumed one begins twice."""

    def describe(self) -> str | None:
        """Return a sentence on memory that grows with images x classes, or None."""
        return None


class SelectiveCorrection(Correction):
    """A correction that selects entries, and does the same to all that it selected.

    Subclasses write :meth:`select`, and say with ``adds_pseudo_labels`` whether a selected entry is
    a pseudo label or does not count at all. They run in the compiled kernel, whatever they select
    by, unless they write ``forward`` or ``extra_loss`` too.
    """

    adds_pseudo_labels: bool = True

    def __init_subclass__(cls, **options: Any) -> None:
        """Take back the limit of a base class where ``select`` is written anew."""
        super().__init_subclass__(**options)
        if "select" in vars(cls) and "limit" not in vars(cls):
            cls.limit = SelectiveCorrection.limit  # type: ignore[method-assign]

    def select(self, batch: PairBatch, candidates: Tensor, *, learning: bool) -> Tensor:
        """Return True for some of the candidates.

        Args:
            batch: The pairs; logits come without gradient.
            candidates: True for entries that may be missing labels: their target is known and below
                1, and nobody verified it.
            learning: Whether this is a step of training, which may be remembered.
        """
        raise NotImplementedError

    def limit(self, epoch: Tensor | int) -> float | None:
        """Return the logit above which all that nobody verified is selected in an epoch.

        None if it is not that simple. The compiled kernel then needs no mask of what is selected.
        """
        return None

    def selects_only(self) -> bool:
        """Return whether :meth:`select` says all that this correction does."""
        kind = type(self)
        return (
            kind.forward is SelectiveCorrection.forward
            and kind.extra_loss is Correction.extra_loss
            and not self._forward_hooks
        )

    def selected(self, batch: PairBatch, *, learning: bool) -> Tensor:
        """Find the candidates and select among them."""
        batch = batch.with_logits(batch.logits.detach())
        return self.select(batch, batch.candidates(), learning=learning and self.training)

    def forward(self, batch: PairBatch, loss_neg: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(keep, pseudo)``."""
        selected = self.selected(batch, learning=learns_from(batch.logits))
        weight = selected.to(batch.logits.dtype)
        return 1 - weight, weight if self.adds_pseudo_labels else torch.zeros_like(weight)


class EmaTeacher(SelectiveCorrection):
    """Asks a correction about a teacher's logits instead of those of the model in training.

    A model that is surer after every step confirms itself. The exponential moving average (EMA) of
    its weights lags behind and is usually better. Set :attr:`teacher_logits` before every step;
    without them the model's own logits count.

    Args:
        inner: A correction that selects entries.

    Example:
        >>> from hilltop.losses import SelfPacedCorrection
        >>> correct = EmaTeacher(SelfPacedCorrection(tau=0.6, start_epoch=0))
        >>> batch = PairBatch(torch.tensor([[2.0, -2.0]]), torch.zeros(1, 2))
        >>> correct.teacher_logits = torch.tensor([[-2.0, 2.0]])
        >>> correct(batch, batch.logits)[1]
        tensor([[0., 1.]])
    """

    def __init__(self, inner: SelectiveCorrection) -> None:
        """Take the properties of the correction."""
        super().__init__()
        self.inner = inner
        self.teacher_logits: Tensor | None = None
        self.can_saturate, self.self_labelling = inner.can_saturate, inner.self_labelling
        self.independent_rows = inner.independent_rows
        self.adds_pseudo_labels = inner.adds_pseudo_labels

    def select(self, batch: PairBatch, candidates: Tensor, *, learning: bool) -> Tensor:
        """Select by the teacher's logits."""
        if self.teacher_logits is not None:
            batch = batch.with_logits(self.teacher_logits.detach().to(batch.logits))
        return candidates & self.inner.select(batch, candidates, learning=learning)

    def prepare(self, stats: LabelStats) -> None:
        """Pass the statistics on."""
        self.inner.prepare(stats)

    def set_epoch(self, epoch: int) -> None:
        """Pass the epoch on."""
        self.inner.set_epoch(epoch)

    def describe(self) -> str | None:
        """Return the sentence of the correction."""
        return self.inner.describe()
