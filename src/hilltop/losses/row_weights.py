"""RowWeighted: a loss summed over a batch with one weight for each image."""

from __future__ import annotations

import torch
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.losses.base import LabelStats, Loss, PairBatch, ParameterGroups


class RowWeighted(Loss):
    r"""A loss whose rows have weights.

    .. math:: L = \sum_i w_i \sum_c L_{ic}

    A weight of 2 counts like the same row twice, for every loss whose entries depend on their own
    row alone.

    Args:
        loss: A loss with reduction ``"none"``.
        weight: One weight for each row of the data set ``(N,)``; a batch finds its own by
            ``index``.

    Example:
        >>> loss = RowWeighted(bce(reduction="none"), torch.tensor([0.0, 2.0]))
        >>> rows = torch.tensor([0, 1])
        >>> loss(torch.zeros(2, 1), torch.ones(2, 1), index=rows) / torch.tensor(2.0).log()
        tensor(2.)
    """

    weight: Tensor

    def __init__(self, loss: Loss, weight: Tensor) -> None:
        """Take both, and the properties of the loss."""
        if loss.reduction != "none":
            raise ArgumentError(
                f"A loss with weights for rows needs reduction 'none', but has {loss.reduction!r}."
            )
        super().__init__(reduction="sum")
        self.inner = loss
        self.self_labelling, self.independent_rows = loss.self_labelling, loss.independent_rows
        self.wants_evidence = loss.wants_evidence
        self.register_buffer("weight", weight)

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        verified: Tensor | None = None,
        index: Tensor | None = None,
        observed: Tensor | None = None,
    ) -> Tensor:
        """Return the weighted sum over a batch; ``index`` is needed."""
        if index is None:
            raise ArgumentError("A loss with weights for rows needs index=, their row numbers.")
        verified = observed if verified is None else verified
        entries = self.inner(logits, targets, verified=verified, index=index)
        weight = self.weight[index].unsqueeze(-1)
        return torch.sum(entries * weight.to(entries.dtype))

    def set_epoch(self, epoch: int) -> None:
        """Tell both losses which epoch begins."""
        super().set_epoch(epoch)
        self.inner.set_epoch(epoch)

    def prepare(self, stats: LabelStats) -> None:
        """Pass the statistics on."""
        self.inner.prepare(stats)

    def init_loss(self) -> Loss:
        """Return the initial loss of the loss within, with the same weights."""
        return RowWeighted(self.inner.init_loss(), self.weight)

    def parameter_groups(self) -> ParameterGroups:
        """Return what the loss within learns."""
        return self.inner.parameter_groups()

    def describe(self) -> str | None:
        """Return the sentence of the loss within."""
        return self.inner.describe()

    def decision_threshold(self, scores: Tensor) -> float:
        """Return the threshold of the loss within."""
        return self.inner.decision_threshold(scores)

    def find_pseudo_labels(self, batch: PairBatch) -> Tensor:
        """Return the pseudo labels of the loss within."""
        return self.inner.find_pseudo_labels(batch)
