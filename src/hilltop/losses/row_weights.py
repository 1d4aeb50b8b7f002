"""Rows that count more or less: a loss summed over a batch with one weight an image."""

from __future__ import annotations

import torch
from torch import Tensor

from hilltop.errors import ArgumentError
from hilltop.losses.base import Loss
from hilltop.losses.wrapper import LossWrapper


class RowWeighted(LossWrapper):
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

    remembers_rows = True
    weight: Tensor

    def __init__(self, loss: Loss, weight: Tensor) -> None:
        """Keep both."""
        if loss.reduction != "none":
            raise ArgumentError(
                f"A loss with weights for rows needs reduction 'none', but has {loss.reduction!r}."
            )
        super().__init__(loss, reduction="sum")
        self.register_buffer("weight", weight)

    def init_loss(self) -> Loss:
        """Return what the loss within starts as, with the same weights."""
        return RowWeighted(super().init_loss(), self.weight)

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        observed: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return the weighted sum over a batch; ``index`` is needed."""
        if index is None:
            raise ArgumentError("A loss with weights for rows needs index=, their row numbers.")
        entries = super().forward(logits, targets, observed=observed, index=index)
        weight = self.weight[index].unsqueeze(-1)
        return torch.sum(entries * weight.to(entries.dtype))
