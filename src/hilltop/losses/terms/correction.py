"""Corrections: which unlabelled entries are taken for missing labels, and what becomes of them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from hilltop.losses.base import LabelStats, PairBatch
from hilltop.losses.capabilities import Capabilities
from hilltop.losses.memory import learns_from
from hilltop.registry import Registry


class PseudoAbove(NamedTuple):
    """A logit above which unconfirmed pairs are pseudo labels, from an epoch on."""

    logit: float
    start_epoch: int = 0


class Correction(Capabilities, nn.Module):
    """Decides for every entry how much of the negative term to keep, and what is a pseudo label.

    The two weights carry no gradient. "No correction" is (1, 0). Entries that a person confirmed
    (``observed``) always get (1, 0). A correction that does not say otherwise is taken to look at
    whole batches.
    """

    sees_whole_batch = True

    @property
    def by_entry(self) -> bool:
        """Whether what becomes of an entry depends on that entry and the epoch alone."""
        return not (self.sees_whole_batch or self.remembers)

    def forward(self, batch: PairBatch, loss_neg: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(keep, pseudo)``: weights for the negative term and for that of pseudo labels.

        Args:
            batch: The pairs; logits are 0 where the target is NaN.
            loss_neg: The negative term of every entry.
        """
        raise NotImplementedError

    def extra_loss(self, batch: PairBatch) -> Tensor | None:
        """Return a loss of unlabelled entries that neither term expresses, or None for no such.

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

    def pseudo_above(self) -> PseudoAbove | None:
        """Return the logit above which a pair is a pseudo label, or None if it is not that simple.

        A correction of this simple form runs in the compiled kernels.
        """
        return None


class SelectiveCorrection(Correction):
    """A correction that selects pairs, and does the same to all that it selected.

    Subclasses write :meth:`select`, and say with ``adds_pseudo_labels`` whether a selected pair is
    a pseudo label or does not count at all. They run in the compiled kernel, whatever they select
    by.
    """

    adds_pseudo_labels: bool = True

    def select(self, batch: PairBatch, candidates: Tensor, *, learning: bool) -> Tensor:
        """Return True for some of the candidates.

        Args:
            batch: The pairs; logits come without gradient.
            candidates: True for pairs that may be missing labels: their target is known and below
                1, and nobody confirmed it.
            learning: Whether this is a step of training, which may be remembered.
        """
        raise NotImplementedError

    def selected(self, batch: PairBatch, *, learning: bool) -> Tensor:
        """Find the candidates and select among them."""
        batch = batch.with_logits(batch.logits.detach())
        return self.select(batch, batch.candidates(), learning=learning and self.training)

    def forward(self, batch: PairBatch, loss_neg: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(keep, pseudo)``."""
        selected = self.selected(batch, learning=learns_from(batch.logits))
        weight = selected.to(batch.logits.dtype)
        return 1 - weight, weight if self.adds_pseudo_labels else torch.zeros_like(weight)


CORRECTIONS: Registry[Correction] = Registry("correction")
