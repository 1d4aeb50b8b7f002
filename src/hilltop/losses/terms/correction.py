"""Corrections: which unlabelled entries are taken for missing labels, and what becomes of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hilltop.losses.base import LabelStats
from hilltop.losses.memory import learns_from
from hilltop.registry import Registry


class Correction(nn.Module):
    """Decides for every entry how much of the negative term to keep and how much to turn over.

    The two weights carry no gradient. "No correction" is (1, 0). Entries that a person confirmed
    (``observed``) always get (1, 0). ``can_go_flat`` says that a model which is wrongly sure of
    many entries would be confirmed in it; :class:`CollapseWatch` looks out for it.
    """

    can_go_flat: bool = False
    by_entry: bool = False
    """Whether what becomes of an entry depends on that entry and the epoch alone."""

    def forward(
        self,
        logits: Tensor,
        loss_neg: Tensor,
        *,
        targets: Tensor,
        observed: Tensor | None,
        epoch: Tensor,
        index: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Return ``(keep, flip)``: weights for the negative term and for the recovered one.

        Args:
            logits: Raw model output, 0 where the target is unknown.
            loss_neg: The negative term of every entry.
            targets: As given to the loss, NaN for unknown.
            observed: True where a person confirmed the target.
            epoch: The epoch, counting from 0; a tensor, so that it can change in compiled code.
            index: Row numbers of the batch in the data set.
        """
        raise NotImplementedError

    def further(
        self, logits: Tensor, *, targets: Tensor, observed: Tensor | None, index: Tensor | None
    ) -> Tensor | None:
        """Return a loss of unlabelled entries that neither half expresses, or None for no such.

        It is added to what ``keep`` and ``flip`` leave, and its gradient counts.
        """
        return None

    self_labelling = False
    """Whether labels are guessed from the first step on, see :attr:`Loss.self_labelling`."""

    def prepare(self, facts: LabelStats) -> None:
        """Take what is known of a run before it starts."""

    def set_epoch(self, epoch: int) -> None:
        """Take note that an epoch begins, counting from 0; a resumed one begins twice."""

    def note(self) -> str | None:
        """Return a sentence on memory that grows with images x classes, or None."""
        return None

    def flips_above(self, epoch: int) -> float | None:
        """Return the logit above which this correction flips, or None if it is not that simple.

        A correction of this simple form runs in the compiled kernel.
        """
        return None


class SelectiveCorrection(Correction):
    """A correction that picks pairs, and does the same to all that it picked.

    Subclasses write :meth:`pick`, and say with ``adds_pseudo_labels`` whether a picked pair counts
    as a label or not at all. They run in the compiled kernel, whatever they pick by.
    """

    adds_pseudo_labels: bool = True

    def pick(
        self,
        logits: Tensor,
        candidates: Tensor,
        *,
        targets: Tensor,
        epoch: Tensor,
        index: Tensor | None,
        learning: bool,
    ) -> Tensor:
        """Return True for some of the candidates.

        Args:
            logits: Raw model output without gradient.
            candidates: True for pairs that may be missing labels: their target is known and below
                1, and nobody confirmed it.
            targets: As given to the loss, NaN for unknown.
            epoch: The epoch, counting from 0, see :meth:`Correction.forward`.
            index: Row numbers of the batch in the data set.
            learning: Whether this is a step of training, which may be remembered.
        """
        raise NotImplementedError

    def picked(
        self,
        logits: Tensor,
        *,
        targets: Tensor,
        observed: Tensor | None,
        epoch: Tensor,
        index: Tensor | None,
        learning: bool,
    ) -> Tensor:
        """Find the candidates and pick among them."""
        candidates = targets < 1  # False for NaN
        if observed is not None:
            candidates = candidates & ~observed
        return self.pick(
            logits.detach(),
            candidates,
            targets=targets,
            epoch=epoch,
            index=index,
            learning=learning and self.training,
        )

    def forward(
        self,
        logits: Tensor,
        loss_neg: Tensor,
        *,
        targets: Tensor,
        observed: Tensor | None,
        epoch: Tensor,
        index: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Return ``(keep, flip)``."""
        chosen = self.picked(
            logits,
            targets=targets,
            observed=observed,
            epoch=epoch,
            index=index,
            learning=learns_from(logits),
        )
        weight = chosen.to(logits.dtype)
        return 1 - weight, weight if self.adds_pseudo_labels else torch.zeros_like(weight)


CORRECTIONS: Registry[Correction] = Registry("correction")
